"""The report contains everything it needs, and all that the results say."""

import base64
import hashlib
import re

import pytest

from maxcosine.experiments import report
from maxcosine.experiments.charts import ALL
from maxcosine.experiments.rule_styles import title_of
from maxcosine.experiments.statistics import differences, means, spreads
from tests.experiments.small import HOSTILE, MANY, Page, small_results, table


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(small_results(), path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(written):
    return Page(written)


def test_page_makes_no_requests_and_runs_no_other_scripts(page):
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("data:image/svg+xml;base64,", "#"))
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "base")]
    policy = page.all("meta")[1]["content"]
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in page.scripts[1:]]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert policy.startswith(f"default-src 'none'; script-src {allowed};")
    assert "unsafe-eval" not in policy


def test_names_cannot_inject_html(page):
    results = small_results(("mcp", HOSTILE), (HOSTILE, "Bag"), 2)
    results.dataset |= {"title": HOSTILE, "source": HOSTILE, "sha256": HOSTILE}
    results.command = results.started = HOSTILE
    results.versions = results.machine = {HOSTILE: HOSTILE}
    hostile = Page(report.page(results))
    assert [tag for tag, _ in hostile.elements].count("script") == 3
    assert len(hostile.all("img")) == len(page.all("img"))
    assert not [name for _, attributes in hostile.elements for name in attributes if name.startswith("on")]
    assert hostile.data["shown"] == ["MCP", HOSTILE]
    assert hostile.words.count(HOSTILE) > 10


def test_figures_have_images_choices_and_alternative_texts(page):
    images = page.all("img")
    assert len(images) == 6
    for image, figure in zip(images, page.data["figures"].values(), strict=True):
        assert image["alt"] == figure["alt"][str(ALL)]
        assert b"<svg" in base64.b64decode(image["src"].split(",")[1])[:200]
    assert len(page.all("select")) == 4  # with a few rules, bars and differences show all labels
    assert [box["value"] for box in page.all("input")] == ["PA", "A-ROMMA", "MCP"]


def test_tables_hold_means_spreads_and_differences(written):
    results = small_results()
    mean, spread = means(results), spreads(results)
    head, *rows, foot = table(written, "Test mistakes")
    assert head == ["label", "PA", "A-ROMMA", "MCP"]
    for k, (label, row) in enumerate(zip(results.labels, rows, strict=True)):
        assert row == [label, *(f"{mean[r][k]:.1f} ± {spread[r][k]:.1f}" for r in results.rules)]
        best = min(results.rules, key=lambda rule: mean[rule][k])
        assert f'class="best" data-value="{mean[best][k]}">' in written
    assert foot == ["mean", *(f"{mean[rule].mean():.1f}" for rule in results.rules)]
    found = differences(results, "mcp")
    for title, here in (
        ("MCP compared with the other rules, all labels", [one for one in found if one.label is None]),
        (
            "MCP compared with the other rules, label by label",
            [one for one in found if one.label is not None],
        ),
    ):
        for row, one in zip(table(written, title)[1:], here, strict=True):
            difference, _, p, better = row[-4:]
            label = "" if one.label is None else f" label {results.labels[one.label]}"
            assert row[0] == title_of(one.other) + label
            assert float(difference.replace("\N{MINUS SIGN}", "-")) == pytest.approx(one.mean, abs=0.005)
            assert p == (f"{one.p:.3f}" if one.p >= 0.001 else "&lt; 0.001")
            assert better == f"{one.better} / {one.worse} of {one.pairs}"


def test_table_of_rules_has_the_mistake_bounds_that_were_recorded(written):
    rules = ("mcp", "avg_mcp", "pa1", "mine")
    results = small_results(rules)
    results.protocol["gains"] = {"mcp": 1.0, "pa1": None, "mine": 0.5}
    text = report.page(results)
    head, *rows = table(text, "The rules")
    assert head[-1] == "mistake bound"
    found = {row[0]: row[-1] for row in rows}
    assert found == {"MCP": "(R/γ)²", "averaged MCP": "(R/γ)²", "PA-I": "none proven", "mine": "2 (R/γ)²"}
    assert 'data-value="2.0">2 (R/γ)²' in text
    assert table(written, "The rules")[0][-1] == "updates"  # results without gains


def test_every_table_can_be_sorted(written, page):
    assert written.count("<thead>") == 4
    for head in re.findall("<thead>(.*?)</thead>", written):
        assert re.sub("<button.*?</button>", "", head).count("<th ") == head.count("<button") > 1
    assert all("data-value" in cell for cell in page.all("td"))


def test_page_says_how_to_repeat_the_experiment(page):
    for fact in ("maxcosine reproduce", "ab" * 32, "a folder", "maxcosine 0.1.0", "Seed"):
        assert fact in page.words


def test_many_rules_are_rows_of_the_table():
    text = report.page(small_results(MANY))
    head, *rows = table(text, "Test mistakes")
    assert head == ["rule", "mean", "T-shirt", "Bag", "Ankle boot"]
    assert sorted(row[0] for row in rows) == sorted(title_of(rule) for rule in MANY)
    assert [float(row[1]) for row in rows] == sorted(float(row[1]) for row in rows)
    assert "<h1>8 rules on Small</h1>" in text


def test_one_rule_in_one_order_without_curves():
    results = small_results(("mcp",), permutations=1)
    results.curves = {}
    page = Page(report.page(results))
    assert len(page.all("img")) == 1
    assert "±" not in page.words
    assert not page.all("fieldset")


def test_one_order_has_no_interval():
    results = small_results(permutations=1)
    page = report.page(results)
    head, first, *_ = table(page, "MCP compared with the other rules, all labels")
    assert head == ["other rule", "difference", "MCP better / worse"]
    assert len(first) == 3
    words = Page(page).words
    assert "One order gives no interval." in words
    assert "95 % interval" not in words
    assert "inf" not in re.sub("[a-z]*inf[a-z]+|[a-z]+inf", "", words)
