"""docs/results/onepass.md agrees with the committed figures, and its words follow from them."""

import importlib
import json
import re

import numpy as np
import pytest
import scipy.stats
from sklearn.datasets import load_iris

from maxcosine import RULES, OnePassClassifier, OnlineClassifier
from tests.docs.generators import DOCS, load_generator

RESULTS = json.loads((DOCS / "results" / "onepass.json").read_text(encoding="utf-8"))
PAGE = (DOCS / "results" / "onepass.md").read_text(encoding="utf-8")
SETS = {one["title"]: one for one in RESULTS["sets"]}
TITLES = {one["name"]: one["title"] for one in RESULTS["learners"]}


def section(title):
    return re.split(r"^## ", PAGE.partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]


def table(title):
    """Return the rows of the first table of a section, by their first cell."""
    lines = [line.strip("| ").split(" | ") for line in section(title).splitlines() if line.startswith("| ")]
    header, rows = lines[0], {line[0]: line[1:] for line in lines[2:]}
    return header[1:], rows


def mean_error(one, name):
    return np.mean(one["runs"][name]["mistakes"]) / one["test"]


def batch_error(one):
    best = min(one["batch"].values(), key=lambda found: round(found["cv_error"], 9))  # the first of equal ones
    return np.mean(best["mistakes"]) / one["test"]


def test_page_is_the_output_of_the_generator():
    assert load_generator("generate_onepass").page(RESULTS) == PAGE


def test_every_learner_is_measured_in_three_orders_on_every_set():
    assert {f"avg_{rule}" for rule in RULES} | set(RULES) < set(TITLES)
    for one in SETS.values():
        assert set(TITLES) - {"river"} <= set(one["runs"]) <= set(TITLES)
        for run in one["runs"].values():
            mistakes = np.array(run["mistakes"])
            assert mistakes.shape == (10 if one["name"].endswith("_rest") else 1, len(RESULTS["orders"]))
            assert mistakes.min() >= 0
            assert mistakes.max() <= one["test"]
        assert set(one["batch"]) == {"LinearSVC", "LogisticRegression"}


def test_error_table_holds_the_means_of_the_orders():
    header, rows = table("Test error")
    assert header == list(SETS)
    for name, title in TITLES.items():
        for one, cell in zip(SETS.values(), rows[title], strict=True):
            if name not in one["runs"]:
                assert not cell
                continue
            best = min(mean_error(one, other) for other in one["runs"])
            assert float(cell.strip("*")) == pytest.approx(100 * mean_error(one, name), abs=0.00501)
            assert cell.startswith("**") == (mean_error(one, name) == best)


def test_summary_holds_mean_ranks_and_ratios():
    _, rows = table("In short")
    names = [name for name in TITLES if name != "river"]
    ranks = np.mean([scipy.stats.rankdata([mean_error(one, n) for n in names]) for one in SETS.values()], axis=0)
    for name, rank in zip(names, ranks, strict=True):
        logs = [
            np.log((mean_error(one, name) * one["test"] + 0.5) / (batch_error(one) * one["test"] + 0.5))
            for one in SETS.values()
        ]
        assert rows[TITLES[name]][:2] == [f"{rank:.1f}", f"{np.exp(np.mean(logs)):.2f}"]
    words = section("In short").replace("\n", " ")
    assert f"has the mean rank {ranks[0]:.1f} among {len(names)} one-pass learners on {len(SETS)} sets" in words
    first = names[int(np.argmin(ranks))]
    assert ("the next is" in words) == (first == "onepass")


@pytest.mark.parametrize("title", SETS)
def test_losses_name_every_learner_that_is_better_and_no_other(title):
    one, words = SETS[title], section("Where it loses")
    ours = mean_error(one, "onepass")
    better = {TITLES[name]: mean_error(one, name) for name in one["runs"] if mean_error(one, name) < ours}
    line = next((line for line in words.splitlines() if line.startswith(f"- {title}, {100 * ours:.2f} %")), None)
    for name, found in one["batch"].items():
        if np.mean(found["mistakes"]) / one["test"] < ours:
            better[f"tuned {name}"] = np.mean(found["mistakes"]) / one["test"]
    if not better:
        assert line is None
        assert f"{title} ({100 * ours:.2f} %)" in words.partition("It loses to none")[2]
        return
    claims = re.findall(r"(?:loses to |; )(.*?) by ([\d.]+) points \(([\d.]+) %\)", line)
    assert {title for title, *_ in claims} == set(better)
    for title, points, percent in claims:
        assert float(points) == pytest.approx(100 * (ours - better[title]), abs=0.00501)
        assert float(percent) == pytest.approx(100 * better[title], abs=0.00501)


def test_log_losses_are_compared_with_the_tuned_logistic_regression():
    words = section("Where it loses")
    for title, one in SETS.items():
        if "log_loss" in one["runs"]["onepass"]:
            ratio = np.mean(one["runs"]["onepass"]["log_loss"]) / one["batch"]["LogisticRegression"]["log_loss"]
            assert f"{title} {ratio:.2f}" in words


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    return importlib.import_module("onepass")


def test_calibration_error_of_known_confidences(benchmark):
    confidence, right = np.array([0.9, 0.9, 0.9, 0.9, 0.5, 0.5]), np.array([1, 1, 1, 0, 1, 0], bool)
    # Four rows with 0.9 instead of 0.75, and two that are exact.
    assert benchmark.expected_calibration_error(confidence, right) == pytest.approx(4 / 6 * 0.15)


def test_figures_are_those_of_single_classifiers(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark.batch, "STRENGTHS", dict.fromkeys(benchmark.BATCH, (10.0,)))
    X, y = load_iris(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(len(y))
    (X, X_test), (y, y_test) = ((part[shuffled[:100]], part[shuffled[100:]]) for part in (X, y))
    problem = benchmark.Problem("iris", "Iris", "", X, y, X_test, y_test, "", rest_title="one against the rest")
    compared = [one for one in benchmark.learners() if one.name in ("onepass", "avg_pa1", "sgd_log_loss")]
    joint, rest = benchmark.measure(problem, compared)
    order = np.random.default_rng(2).permutation(len(y))
    ours = OnePassClassifier().fit(X[order], y[order])
    assert joint["runs"]["onepass"]["mistakes"][0][2] == np.sum(ours.predict(X_test) != y_test)
    assert joint["runs"]["onepass"]["log_loss"][2] == pytest.approx(
        -np.mean(ours.predict_log_proba(X_test)[np.arange(len(y_test)), y_test])
    )
    for name, model in ("onepass", OnePassClassifier()), ("avg_pa1", OnlineClassifier("pa1", average=True)):
        predicted = model.fit(X[order], y[order] == 1).predict(X_test)
        assert rest["runs"][name]["mistakes"][1][2] == np.sum(predicted != (y_test == 1))
    assert all(len(found["mistakes"]) == 3 for found in rest["batch"].values())
    assert joint["batch"]["LogisticRegression"]["log_loss"] < np.log(3)
