from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from maxcosine.experiments import report
from maxcosine.experiments.charts import ALL
from maxcosine.experiments.looks import title_of
from maxcosine.experiments.results import Results
from maxcosine.experiments.statistics import differences, means, spreads
from tests.experiments.test_figures import MANY, small_results

HOSTILE = """</script><script>alert(1)</script><img src=x onerror=alert(2)> "'&<!--"""


class Page(HTMLParser):
    """The elements of a page, with their attributes, and what is written in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words = ""
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self) -> dict[str, object]:
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(small_results(), path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(written):
    return Page(written)


@pytest.fixture(scope="module")
def hostile():
    results = small_results(("mcp", HOSTILE), (HOSTILE, "Bag"), 2)
    results.dataset |= {"title": HOSTILE, "source": HOSTILE, "sha256": HOSTILE}
    results.command = results.started = HOSTILE
    results.versions = {HOSTILE: HOSTILE}
    results.machine = {HOSTILE: HOSTILE}
    return Page(report.page(results))


def test_nothing_is_asked_for_from_outside(page):
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("data:image/svg+xml;base64,", "#"))
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "base")]


def test_only_the_scripts_of_the_page_may_run(page):
    policy = page.all("meta")[1]["content"]
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in page.scripts[1:]]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert policy.startswith(f"default-src 'none'; script-src {allowed};")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]


def test_hostile_words_stay_words(hostile, page):
    assert [tag for tag, _ in hostile.elements].count("script") == 3
    assert len(hostile.all("img")) == len(page.all("img"))
    assert not [a for _, attributes in hostile.elements for a in attributes if a.startswith("on")]
    assert hostile.data["shown"] == ["MCP", HOSTILE]
    assert hostile.words.count(HOSTILE) > 10
    assert HOSTILE in [box["value"] for box in hostile.all("input")]


def test_figures_are_pictures_first(page):
    pictures = page.all("img")
    assert len(pictures) == 6
    for picture, figure in zip(pictures, page.data["figures"].values(), strict=True):
        assert picture["alt"] == figure["alt"][str(ALL)]
        assert b"<svg" in base64.b64decode(picture["src"].split(",")[1])[:200]


def test_a_label_can_be_chosen_where_it_matters(page):
    assert len(page.all("select")) == 4  # few rules: bars and differences show all labels
    assert [box["value"] for box in page.all("input")] == ["PA", "A-ROMMA", "MCP"]


def table(written: str, title: str) -> list[list[str]]:
    """The cells of a table, as text."""
    found = re.search(rf'<table aria-label="{re.escape(title)}">.*?</table>', written, re.DOTALL)
    return [
        [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", found[0])
    ]


def test_table_of_mistakes(written):
    results = small_results()
    mean, spread = means(results), spreads(results)
    head, *rows, foot = table(written, "Test mistakes")
    assert head == ["label", "PA", "A-ROMMA", "MCP"]
    for k, (label, row) in enumerate(zip(results.labels, rows, strict=True)):
        assert row == [label, *(f"{mean[r][k]:.1f} ± {spread[r][k]:.1f}" for r in results.rules)]
        best = min(results.rules, key=lambda rule: mean[rule][k])
        assert f'class="best" data-value="{mean[best][k]}">' in written
    assert foot == ["mean", *(f"{mean[rule].mean():.1f}" for rule in results.rules)]


def test_tables_of_differences(written):
    found = differences(small_results(), "mcp")
    for title, here in (
        ("MCP beside the other rules, all labels", [one for one in found if one.label is None]),
        ("MCP beside the other rules, label by label", [one for one in found if one.label is not None]),
    ):
        _, *rows = table(written, title)
        for row, one in zip(rows, here, strict=True):
            assert row[0] == title_of(one.other)
            mean, interval, p, better = row[-4:]
            assert float(mean.replace("\N{MINUS SIGN}", "-")) == pytest.approx(one.mean, abs=0.005)
            assert f"{abs(one.low):.2f}" in interval
            assert f"{abs(one.high):.2f}" in interval
            assert p == (f"{one.p:.3f}" if one.p >= 0.001 else "&lt; 0.001")
            assert better == f"{one.better} / {one.worse} of {one.pairs}"


def test_every_table_can_be_sorted(written, page):
    assert written.count("<thead>") == 4
    for head in re.findall("<thead>(.*?)</thead>", written):
        assert re.sub("<button.*?</button>", "", head).count("<th ") == head.count("<button") > 1
    assert all("data-value" in cell for cell in page.all("td"))


def test_what_it_takes_to_find_it_again(page):
    for fact in ("maxcosine reproduce fashion", "ab" * 32, "a folder", "maxcosine 0.1.0", "Seed"):
        assert fact in page.words


def test_many_rules_go_down_the_table():
    text = report.page(small_results(MANY))
    head, *rows = table(text, "Test mistakes")
    assert head == ["rule", "mean", "T-shirt", "Bag", "Ankle boot"]
    assert sorted(row[0] for row in rows) == sorted(title_of(rule) for rule in MANY)
    assert [float(row[1]) for row in rows] == sorted(float(row[1]) for row in rows)
    assert text.count("<select") == 6
    assert "<h1>8 rules on Fashion</h1>" in text


@pytest.mark.parametrize("rules", [("mcp",), ("pa", "mcp")])
def test_one_order_without_curves(rules):
    results: Results = small_results(rules, permutations=1)
    results.curves = {}
    page = Page(report.page(results))
    assert len(page.all("img")) == len(rules)
    assert "±" not in page.words
    assert not page.all("fieldset")
