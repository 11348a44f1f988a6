"""docs/gallery/derived.md agrees with the committed counts, and with what can be proven of its learners."""

import gzip
import json
import re
import runpy

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from maxcosine import OnlineClassifier
from maxcosine.experiments.rule_styles import title_of
from tests.docs.generators import DOCS, load_generator

RESULTS = json.loads((DOCS / "results" / "gallery.json").read_text(encoding="utf-8"))
PAGE = (DOCS / "gallery" / "derived.md").read_text(encoding="utf-8")
BENCHMARK = DOCS.parent / "benchmarks" / "gallery.py"
SETS = [one["title"] for one in RESULTS["sets"]]


@pytest.fixture(scope="module")
def generator():
    return load_generator("generate_gallery")


@pytest.fixture(scope="module")
def learners(generator):
    return generator.derivations()


def test_page_is_the_output_of_the_generator(generator, learners):
    assert generator.page(RESULTS, learners) == PAGE


def test_every_learner_has_the_mistake_bound_of_the_perceptron(learners):
    assert {one.name: one.mistake_bound().m for one in learners} == dict.fromkeys([one.name for one in learners], 1)


def test_every_learner_is_compared_on_every_set(learners):
    assert len(SETS) == 8
    names = [one.name for one in learners]
    assert RESULTS["rules"][: len(names)] == names
    for one in RESULTS["sets"]:
        assert set(one["counts"]) == set(RESULTS["rules"])
        counts = np.array([[of_rule[kind] for kind in of_rule] for of_rule in one["counts"].values()])
        assert counts.shape[-1] >= 20  # orders
        assert counts.min() >= 0
        assert counts[:, :2].max() <= one["test"]


@pytest.mark.parametrize("title", SETS)
def test_tables_hold_the_means_of_the_counts(title):
    counts = RESULTS["sets"][SETS.index(title)]["counts"]
    section = re.split(r"^##+ ", PAGE.partition(f"### {title}\n")[2], flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|[^|]*\| ([\d.]+) \|[^|]*\| ([\d.]+) \|$", section, re.MULTILINE)
    assert {rule for rule, *_ in rows} == set(counts)
    for rule, *printed in rows:
        means = [np.mean(counts[rule][kind]) for kind in ("last", "averaged", "learning")]
        assert [float(cell) for cell in printed] == pytest.approx(means, abs=0.0501)


def test_damped_and_soft_mcp_beat_mcp_exact_on_mnist():
    counts = RESULTS["sets"][SETS.index("MNIST")]["counts"]
    means = {rule: np.mean(counts[rule]["last"]) for rule in counts}
    assert means["damped_mcp"] < means["soft_mcp"] < means["mcp_exact"] < means["mcp"]


def test_pictures_show_every_curve(generator, learners):
    for name, figure in ("gallery-band", generator.gallery_band(learners)), ("band", generator.tutorial_band(learners)):
        picture = (DOCS / "results" / f"{name}.svg").read_text(encoding="utf-8")
        drawn = {row["rule"] for row in figure.spec["data"]["values"]}
        assert all(f">{title}</text>" in picture for title in drawn)
    assert {title_of(one.name) for one in learners} < {
        row["rule"] for row in generator.gallery_band(learners).spec["data"]["values"]
    }


def write_sparse(folder, name, X, y):
    (folder / "sparse").mkdir(exist_ok=True)
    with gzip.open(folder / "sparse" / f"{name}.svm.gz", "wb") as file:
        dump_svmlight_file(X, y, file, zero_based=False)


def test_counts_on_sparse_files_are_those_of_single_classifiers(learners, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 8)) * (random.random((100, 8)) < 0.5)
    y = np.where(X @ random.normal(size=8) + 0.3 * random.normal(size=100) > 0, 1, -1)
    write_sparse(tmp_path, "a9a_train", X[:70], y[:70])
    write_sparse(tmp_path, "a9a_test", X[70:], y[70:])
    rule = learners[0].rule
    counted = runpy.run_path(str(BENCHMARK))["count_on_sparse"]("a9a", [rule], tmp_path)
    assert (counted["train"], counted["test"], counted["divided"]) == (70, 30, False)
    order = np.random.default_rng([0, 3]).permutation(70)
    for kind, average in ("last", False), ("averaged", True):
        model = OnlineClassifier(rule, fit_intercept=False, average=average).fit(X[order], y[order])
        assert counted["counts"][rule.name][kind][0][3] == np.sum(model.predict(X[70:]) != y[70:])


def test_sparse_file_without_test_examples_is_divided(tmp_path):
    write_sparse(tmp_path, "mushrooms", np.diag(np.arange(1.0, 21.0)), np.where(np.arange(20) % 2, 1, -1))
    data = runpy.run_path(str(BENCHMARK))["load_sparse"]("mushrooms", tmp_path)
    assert data.divided
    train, test = (np.ravel(part.sum(axis=1)).astype(int).tolist() for part in (data.X, data.X_test))
    assert len(test) == 4
    assert sorted([*train, *test]) == list(range(1, 21))
    assert data.test_positive.tolist() == [value % 2 == 0 for value in test]
