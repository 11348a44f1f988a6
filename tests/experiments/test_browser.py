"""The report as a reader sees it: in a real browser, from a file, with no network to help."""

from __future__ import annotations

import shutil

import pytest

from maxcosine.experiments import report
from tests.experiments.test_figures import MANY, small_results
from tests.experiments.test_report import HOSTILE

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(
            f"none of {', '.join(BROWSERS)} is installed: make test-all installs Chromium, and so does "
            "the package chromium of most systems"
        )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("playwright, which drives the browser, is missing: make test-all installs it")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Reports of few rules, of many, and of one that means harm."""
    folder = tmp_path_factory.mktemp("reports")
    for name, rules in (("few", ("pa", "aggressive_romma", "mcp")), ("many", MANY)):
        report.write(small_results(rules), folder / f"{name}.html")
    hostile = small_results(("mcp", HOSTILE), (HOSTILE, "Bag"))
    report.write(hostile, folder / "hostile.html")
    return folder


class Reader:
    """A page that was opened, and everything that it said and asked for."""

    def __init__(self, context, url: str) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)
        for chart in self.charts:
            chart.and_(self.page.get_by_role("img")).locator("svg").wait_for()  # drawn and described

    @property
    def charts(self):
        return self.page.locator(".chart").all()

    def drawing(self, name: str) -> str:
        return self.page.locator(f"#chart-{name} svg").inner_html()

    def choose(self, label: str, *names: str) -> None:
        """A label, until these charts say that they show it."""
        self.page.locator("select").first.select_option(label)
        for name in names:
            self.page.locator(f'#chart-{name}[aria-label*="label {label}"]').wait_for()

    def table(self, title: str) -> Table:
        return Table(self.page.locator(f'table[aria-label="{title}"]'))


class Table:
    def __init__(self, found) -> None:
        self.found = found

    def heading(self, name: str):
        return self.found.locator(
            "thead th", has=self.found.page.get_by_role("button", name=name, exact=True)
        )

    def column(self, k: int) -> list[float]:
        cells = self.found.locator(f"tbody tr > :nth-child({k})").all()
        return [float(cell.get_attribute("data-value")) for cell in cells]


@pytest.fixture
def read(browser, files):
    """Opens a report, on a screen of some size and colour."""
    contexts = []

    def opened(name: str = "few", *, viewport=DESK, **more) -> Reader:
        contexts.append(browser.new_context(viewport=viewport, offline=True, **more))
        return Reader(contexts[-1], (files / f"{name}.html").as_uri())

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["few", "many"])
def test_every_chart_is_drawn_without_a_word_or_a_request(read, files, name):
    reader = read(name)
    assert len(reader.charts) == 6
    for chart in reader.charts:
        box = chart.locator("svg").bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
        assert chart.locator(".mark-rect path, .mark-symbol path, .mark-line path").count() >= 3
        assert chart.get_attribute("role") == "img"
        assert "MCP" in chart.get_attribute("aria-label")
    assert reader.messages == []
    assert reader.requests == [(files / f"{name}.html").as_uri()]


def test_hostile_words_do_nothing(read):
    reader = read("hostile")
    reader.page.locator("#chart-mistakes .mark-rect path").first.hover(force=True)  # its spread is before it
    tip = reader.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert HOSTILE in tip.inner_text()
    assert reader.page.locator("img:not(.static)").count() == 0
    assert reader.messages == []  # nothing was tried that the page forbids


def test_a_table_sorts_both_ways_by_click(read):
    table = read().table("Test mistakes")
    heading = table.heading("MCP")
    before = table.column(4)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert table.column(4) == sorted(before)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert table.column(4) == sorted(before, reverse=True)
    table.heading("label").locator("button").click()
    assert heading.get_attribute("aria-sort") is None
    assert table.column(4) == before


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_table_sorts_by_keyboard(read, key):
    reader = read()
    table = reader.table("Test mistakes")
    table.heading("PA").locator("button").focus()
    reader.page.keyboard.press("Tab")  # to the next heading
    reader.page.keyboard.press(key)
    assert table.heading("A-ROMMA").get_attribute("aria-sort") == "ascending"
    assert table.column(3) == sorted(table.column(3))
    reader.page.keyboard.press(key)
    assert table.column(3) == sorted(table.column(3), reverse=True)


def test_light_and_dark(read):
    def colours(reader: Reader) -> tuple[str, str]:
        background = reader.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        return background, reader.page.locator("#chart-bound .role-axis-label text").first.get_attribute(
            "fill"
        )

    light, dark = read(color_scheme="light"), read(color_scheme="dark")
    assert all(one != other for one, other in zip(colours(light), colours(dark), strict=True))
    before = colours(light)[1]
    light.page.emulate_media(color_scheme="dark")
    axis = light.page.locator(f'#chart-bound .role-axis-label text[fill="{before}"]')
    axis.first.wait_for(state="detached")  # drawn again
    assert colours(light) == colours(dark)


@pytest.mark.parametrize("name", ["few", "many"])
def test_a_phone_never_scrolls_sideways(read, name):
    page = read(name, viewport=PHONE).page
    page.locator("summary").click()  # the long table too
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    page.evaluate("() => scrollTo(1000, 0)")
    assert page.evaluate("() => scrollX") == 0


def test_choosing_a_label_changes_the_curves(read):
    reader = read()
    before = reader.drawing("learning")
    reader.choose("Ankle boot", "learning")
    assert reader.drawing("learning") != before
    assert {one.input_value() for one in reader.page.locator("select").all()} == {"2"}  # one choice for all
    assert reader.messages == []


def test_choosing_a_label_changes_the_bars_of_many_rules(read):
    reader = read("many")
    before = reader.drawing("mistakes"), reader.drawing("paired")
    reader.choose("Bag", "mistakes", "paired")
    assert reader.drawing("mistakes") != before[0]
    assert reader.drawing("paired") != before[1]


def test_curves_come_and_go_with_their_rule(read):
    reader = read("many")
    lines = reader.page.locator("#chart-bound .mark-line path")
    assert lines.count() == 6
    reader.page.get_by_label("averaged MCP", exact=True).check()
    lines.nth(6).wait_for()
    reader.page.get_by_label("PA", exact=True).uncheck()
    lines.nth(6).wait_for(state="detached")
    assert lines.count() == 6
    assert reader.messages == []


def test_the_command_is_copied(read):
    reader = read(permissions=["clipboard-read", "clipboard-write"])
    button = reader.page.locator("#copy")
    button.click()
    reader.page.get_by_role("button", name="Copied").wait_for()
    assert reader.page.evaluate("() => navigator.clipboard.readText()") == "maxcosine reproduce fashion"


def test_pictures_stand_in_for_charts_on_paper_and_without_scripts(read, browser, files):
    page = read(color_scheme="dark").page
    assert not page.locator(".static").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator(".static").first.is_visible()
    assert not page.locator(".chart").first.is_visible()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((files / "few.html").as_uri())
    assert all(picture.bounding_box()["height"] > 100 for picture in page.locator(".static").all())
    assert page.locator("noscript p").is_visible()
    context.close()
