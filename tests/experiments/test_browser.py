"""The report in a real browser, opened from a file, without network."""

import shutil

import pytest

from maxcosine.derive import Abs, curve, derive, ell, g, param, sq_x, sqrt, v, x
from maxcosine.experiments import derivation_report, exploration_report, report
from maxcosine.experiments.exploring import explore
from tests.experiments.small import HOSTILE, MANY, PAPER, small_dataset, small_results

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE = {"width": 375, "height": 740}
DESKTOP = {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is installed; make test-all installs Chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("playwright is not installed; make test-all installs it")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"], ignore_default_args=["--hide-scrollbars"]
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports of a few rules, of many, and of one with a hostile name."""
    folder = tmp_path_factory.mktemp("reports")
    report.write(small_results(PAPER), folder / "few.html")
    report.write(small_results(MANY), folder / "many.html")
    report.write(small_results(("mcp", HOSTILE), (HOSTILE, "Bag")), folder / "hostile.html")
    naromma = derive((ell + x) / sqrt(1 + sq_x * x**2 + 2 * g * x), name="mine")
    derivation_report.write(naromma, folder / "derived.html", "maxcosine derive")
    damped = curve(1 / (1 + param("a", 1, 0, 8) * Abs(v)), theta=param("t", "1/2", 0, 1), name="damped")
    found = explore(damped, small_dataset(), grid={"a": [0, 1, 4], "t": ["1/2", "9/10"]}, permutations=2)
    exploration_report.write(found, folder / "explored.html")
    return folder


class Reader:
    """An open page, with the messages it logged and the requests it made."""

    def __init__(self, context, url):
        self.messages, self.requests = [], []
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

    def drawing(self, name):
        return self.page.locator(f"#chart-{name} svg").inner_html()

    def choose(self, label, *names):
        """Choose a label, and wait until these charts show it."""
        self.page.locator("select").first.select_option(label)
        for name in names:
            self.page.locator(f'#chart-{name}[aria-label*="label {label}"]').wait_for()

    def heading(self, name):
        button = self.page.get_by_role("button", name=name, exact=True)
        return self.page.locator('table[aria-label="Test mistakes"] thead th', has=button)

    def column(self, k):
        cells = self.page.locator(f'table[aria-label="Test mistakes"] tbody tr > :nth-child({k})').all()
        return [float(cell.get_attribute("data-value")) for cell in cells]


@pytest.fixture
def read(browser, folder):
    """Opens a report in a browser of some size and colour scheme."""
    contexts = []

    def read(name="few", *, viewport=DESKTOP, **options):
        contexts.append(browser.new_context(viewport=viewport, offline=True, **options))
        return Reader(contexts[-1], (folder / f"{name}.html").as_uri())

    yield read
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["few", "many"])
def test_every_chart_is_drawn_without_messages_or_requests(read, folder, name):
    reader = read(name)
    assert len(reader.charts) == 6
    for chart in reader.charts:
        box = chart.locator("svg").bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
        assert chart.locator(".mark-rect path, .mark-symbol path, .mark-line path").count() >= 3
        assert chart.get_attribute("role") == "img"
    assert reader.messages == []
    assert reader.requests == [(folder / f"{name}.html").as_uri()]


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_formulas_of_a_derivation_are_laid_out_without_messages_or_requests(read, folder, viewport):
    reader = read("derived", viewport=viewport)
    fraction = reader.page.locator("#algorithm td mfrac").last
    above, below = (fraction.locator(f"> :nth-child({k})").bounding_box() for k in (1, 2))
    assert above["y"] + above["height"] <= below["y"] + 1
    assert len(reader.charts) == 1
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert reader.messages == []
    assert reader.requests == [(folder / "derived.html").as_uri()]


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_map_has_a_cell_for_each_member_and_an_outline(read, folder, viewport):
    reader = read("explored", viewport=viewport)
    assert len(reader.charts) == 4
    cells = reader.page.locator("#chart-map .role-mark.mark-rect path")
    assert cells.count() == 6
    assert reader.page.locator("#chart-map .mark-rule line").count() >= 4
    cells.first.hover(force=True)
    tip = reader.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "mistakes" in tip.inner_text()
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert reader.messages == []
    assert reader.requests == [(folder / "explored.html").as_uri()]


def test_hostile_names_do_nothing(read):
    reader = read("hostile")
    reader.page.locator("#chart-mistakes .mark-rect path").first.hover(force=True)
    tip = reader.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert HOSTILE in tip.inner_text()
    assert reader.page.locator("img:not(.static)").count() == 0
    assert reader.messages == []


def test_tables_sort_both_ways_by_click_and_keyboard(read):
    reader = read()
    before = reader.column(4)
    heading = reader.heading("MCP")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert reader.column(4) == sorted(before)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert reader.column(4) == sorted(before, reverse=True)
    reader.heading("PA").locator("button").focus()
    reader.page.keyboard.press("Tab")  # to the next heading
    reader.page.keyboard.press("Enter")
    assert reader.heading("A-ROMMA").get_attribute("aria-sort") == "ascending"
    assert heading.get_attribute("aria-sort") is None
    assert reader.column(3) == sorted(reader.column(3))


def test_light_and_dark(read):
    def colours(reader):
        background = reader.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        label = reader.page.locator("#chart-bound .role-axis-label text").first
        return background, label.get_attribute("fill")

    light, dark = read(color_scheme="light"), read(color_scheme="dark")
    assert all(one != other for one, other in zip(colours(light), colours(dark), strict=True))
    old = light.page.locator(f'#chart-bound .role-axis-label text[fill="{colours(light)[1]}"]')
    light.page.emulate_media(color_scheme="dark")
    old.first.wait_for(state="detached")  # the chart is drawn again
    assert colours(light) == colours(dark)


@pytest.mark.parametrize("name", ["few", "many"])
def test_phone_never_scrolls_sideways(read, name):
    page = read(name, viewport=PHONE).page
    page.locator("summary").click()  # show the long table, too
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("name", ["few", "many"])
def test_tables_on_a_phone_scroll_visibly_and_keep_the_name_of_the_row(read, name):
    page = read(name, viewport=PHONE).page
    page.locator("summary").click()
    wide = 0
    for region in page.locator(".scroll").all():
        if not region.evaluate("one => one.scrollWidth > one.clientWidth"):
            continue
        wide += 1
        style = region.evaluate("one => getComputedStyle(one).backgroundAttachment")
        assert style == "local, local, scroll, scroll"  # shadows, and covers that move with the content
        # The scrollbar takes room, so it does not hide.
        assert region.evaluate("one => one.offsetHeight - one.clientHeight") >= 6
        region.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
        left, width = (region.bounding_box()[side] for side in ("x", "width"))
        for row_name in region.locator("tr > th:first-child").all():
            box = row_name.bounding_box()
            assert box["x"] == pytest.approx(left, abs=1.0)
            assert box["width"] < width / 2
            ends = row_name.evaluate("one => [one.scrollWidth, one.clientWidth]")
            assert ends[0] <= ends[1] + 1  # nothing is cut off
        last = region.locator("tbody tr").first.locator("td").last.bounding_box()
        assert last["x"] + last["width"] <= left + width + 1.0
    assert wide >= 3


def test_choosing_a_label_changes_all_charts(read):
    reader = read("many")
    names = ("mistakes", "paired", "learning")
    before = [reader.drawing(name) for name in names]
    reader.choose("Ankle boot", *names)
    assert all(reader.drawing(name) != old for name, old in zip(names, before, strict=True))
    assert {one.input_value() for one in reader.page.locator("select").all()} == {"2"}
    assert reader.messages == []


def test_checkboxes_show_and_hide_curves(read):
    reader = read("many")
    lines = reader.page.locator("#chart-bound .mark-line path")
    assert lines.count() == 6
    reader.page.get_by_label("averaged MCP", exact=True).check()
    lines.nth(6).wait_for()
    reader.page.get_by_label("PA", exact=True).uncheck()
    lines.nth(6).wait_for(state="detached")
    assert lines.count() == 6


def test_command_is_copied(read):
    reader = read(permissions=["clipboard-read", "clipboard-write"])
    reader.page.locator("#copy").click()
    reader.page.get_by_role("button", name="Copied").wait_for()
    assert reader.page.evaluate("() => navigator.clipboard.readText()") == "maxcosine reproduce"


def test_images_replace_charts_in_print_and_without_scripts(read, browser, folder):
    page = read(color_scheme="dark").page
    assert not page.locator(".static").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator(".static").first.is_visible()
    assert not page.locator(".chart").first.is_visible()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "few.html").as_uri())
    assert all(image.bounding_box()["height"] > 100 for image in page.locator(".static").all())
    assert page.locator("noscript p").is_visible()
    context.close()
