"""Exploring a family: members are proven one by one, and winners are judged on examples that the search never saw."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from maxcosine.derive import Abs, curve, derive, ell, g, param, sq_x, sqrt, v, x
from maxcosine.experiments import datasets, exploration_report
from maxcosine.experiments.exploring import explore, full_grid, search_part
from maxcosine.experiments.protocol import Experiment, Learner, Protocol
from maxcosine.rules import RULES
from tests.experiments.small import small_dataset

A = param("a", 1, low=0, high=8)
THETA = param("theta", "1/2", low=0, high=1)


def damped():
    return curve(1 / (1 + A * Abs(v)), theta=THETA, name="damped")


@pytest.fixture(scope="module")
def found():
    return explore(damped(), small_dataset(), grid={"a": [0, 1, 4], "theta": ["1/2", "9/10"]}, permutations=3)


def test_each_member_has_its_own_proof(found):
    assert len(found.members) == 6
    for member in found.members:
        a, theta = member.values["a"], member.values["theta"]
        # Mistakes gain min(1, 2/a); margins need 1/(1 + a v) <= 2 (1 - v) up to theta (statements 2 and 3 of the band).
        rises = all(1 / (1 + a * at) <= 2 * (1 - at) for at in (theta * k / 100 for k in range(101)))
        assert member.bound.m == (min(Fraction(1), 2 / a) if a else 1) if rises else member.bound.m is None
        assert member.proven == rises
        assert member.rule.gain == (None if member.bound.m is None else float(member.bound.m))
    assert {member.proven for member in found.members} == {True, False}


def test_members_run_as_they_would_alone(found):
    """All members share the compiled code of the family; each must move as the rule derived for its values."""
    family = damped()
    for member in found.members:
        alone = family.at(**{name: str(value) for name, value in member.values.items()}).rule
        for scalars in (-0.3, 1.7, 0.8, 1.1), (0.2, 1.7, 0.8, 1.1), (0.9, 0.5, 2.0, 1.3):
            assert member.rule(*scalars, (), member.rule.make_params())[:2] == pytest.approx(
                alone(*scalars, (), ())[:2], rel=1e-14
            )
    assert len({member.rule.compiled for member in found.members}) == 1


def test_winners_have_the_fewest_mistakes_of_their_kind(found):
    assert list(found.winners) == ["best_proven", "best_unproven"]
    for name, winner in found.winners.items():
        same = [one.mistakes for one in found.members if one.proven == (name == "best_proven")]
        assert winner.mistakes == min(same)


def test_mistakes_of_the_search_are_those_of_the_paper_protocol_on_its_part(found):
    part = search_part(small_dataset())
    experiment = Experiment(part, Protocol([Learner(RULES["mcp"])], part.buckets, 3))
    counts = [experiment.run_unit(*unit)["runs"][0]["test_mistakes"] for unit in experiment.units]
    assert found.rivals["mcp"] == pytest.approx(np.mean(counts))


def test_search_never_sees_a_test_example():
    data = small_dataset()
    part = search_part(data)
    assert (len(part.y_train), len(part.y_test), part.buckets) == (100, 20, 5)
    assert np.array_equal(np.concatenate([part.X_train, part.X_test]), data.X_train)
    other = replace(data, X_test=data.X_test[::-1], y_test=(data.y_test + 1) % 3)
    grid = {"a": [0, 4]}
    one, two = (explore(damped(), each, grid=grid, rivals=["mcp"], permutations=1) for each in (data, other))
    assert [member.mistakes for member in one.members] == [member.mistakes for member in two.members]
    assert one.judged.counts()["mcp"].tolist() != two.judged.counts()["mcp"].tolist()


def test_counts_do_not_depend_on_the_number_of_threads(found):
    again = explore(damped(), small_dataset(), grid={"a": [0, 1, 4], "theta": ["1/2", "9/10"]}, permutations=3, jobs=1)
    assert [one.mistakes for one in again.members] == [one.mistakes for one in found.members]
    assert again.judged.counts()["best_proven"].tolist() == found.judged.counts()["best_proven"].tolist()


def test_judging_compares_the_best_proven_member_in_pairs(found):
    assert found.judged.protocol["focus"] == "best_proven"
    assert found.judged.rules[:2] == ["best_proven", "best_unproven"]
    params = found.judged.protocol["params"]["best_proven"]
    assert params == pytest.approx({name: float(value) for name, value in found.winners["best_proven"].values.items()})


def test_parameters_outside_the_grid_keep_their_defaults():
    found = explore(damped(), small_dataset(), grid={"a": [1]}, rivals=["mcp"], permutations=1)
    (member,) = found.members
    assert member.values == {"a": 1}
    assert member.bound.m == 1  # not so for all theta up to 1
    assert member.rule.make_params()._asdict() == {"a": 1.0}
    assert list(found.winners) == ["best_proven"]


def test_default_grid_covers_the_intervals_evenly():
    grid = full_grid(damped(), None)
    assert grid["a"][:2] == [0, 1]
    assert (len(grid["a"]), grid["theta"][-1]) == (9, 1)


@pytest.mark.parametrize(
    ("family", "grid", "message"),
    [
        (derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= 0), None, "has no parameter to explore"),
        (damped(), {"b": [1]}, "no parameter 'b'; its parameters: a, theta"),
        (damped(), {"a": []}, "no value of a"),
        (damped(), {"a": range(600)}, "600 members"),
        (damped(), {"a": [9]}, "a = 9 is not between 0 and 8"),
        (curve(1 / (1 + param("b", 1) * Abs(v))), None, "lies between 0 and oo"),
        (curve((A + param("b", 1, 0, 2)) / (1 + Abs(v)), theta=THETA), None, "one or two parameters"),
    ],
)
def test_grids_that_make_no_sense_are_refused(family, grid, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        explore(family, small_dataset(), grid=grid)


def test_page_shows_map_band_and_judgement(found):
    page = exploration_report.page(found)
    assert "6 members of damped were tried, 3 of them with a proven mistake bound." in page
    for name in ("map", "band", "mistakes", "paired"):
        assert f'id="chart-{name}"' in page
    assert "not proved that" in page
    assert "which the search has not seen" in page


def test_outline_of_the_map_surrounds_exactly_the_proven_cells(found):
    layers = exploration_report.exploration_map(found).spec["layer"]
    cells, outline = layers[0], layers[1]["data"]["values"]
    assert cells["mark"]["type"] == "rect"
    rows = exploration_report.exploration_map(found).spec["data"]["values"]
    area = sum((row["x2"] - row["x1"]) * (row["y2"] - row["y1"]) for row in rows if row["proven"] == "proven")
    # Green's theorem: a region is left of its upper and right of its lower edges.
    vertical = [edge for edge in outline if edge["x1"] == edge["x2"]]
    inside = {(row["x1"], row["y1"]) for row in rows if row["proven"] == "proven"}
    enclosed = sum(
        (1 if (edge["x1"], edge["y1"]) not in inside else -1) * edge["x1"] * (edge["y2"] - edge["y1"])
        for edge in vertical
    )
    assert enclosed == pytest.approx(area)


def test_map_of_one_parameter_tells_proven_members_apart():
    found = explore(damped(), small_dataset(), grid={"theta": ["1/2", "3/4"]}, rivals=["mcp"], permutations=1)
    spec = exploration_report.exploration_map(found).spec
    assert [row["proven"] for row in spec["data"]["values"]] == ["proven", "not proven"]


def test_file_is_divided_into_training_and_test_examples(tmp_path):
    random = np.random.default_rng(0)
    X = scipy.sparse.random_array((50, 30), density=0.2, rng=random, format="csr")
    y = random.integers(0, 2, 50)
    lines = [
        f"{'+1' if y[i] else '-1'} " + " ".join(f"{k + 1}:{float(X[i, k])!r}" for k in sorted(X[[i]].indices))
        for i in range(50)
    ]
    path = tmp_path / "few.svm"
    path.write_text("\n".join(lines) + "\n")
    data = datasets.load_file(path)
    assert (data.X_train.shape[0], data.X_test.shape[0], data.labels) == (40, 10, ("1",))
    assert np.sort(np.concatenate([data.y_train, data.y_test])).tolist() == np.sort(1 - y).tolist()
    sums = np.concatenate([data.X_train.sum(axis=1), data.X_test.sum(axis=1)])
    assert np.sort(sums) == pytest.approx(np.sort(X.sum(axis=1)))
    found = explore(damped(), data, grid={"a": [0, 1]}, rivals=["mcp"], permutations=2)
    assert found.judged.counts()["best_proven"].shape == (1, 2)


def test_file_of_one_class_is_refused(tmp_path):
    path = tmp_path / "one.svm"
    path.write_text("1 1:1\n" * 9)
    with pytest.raises(ValueError, match="has 9 examples of 1 classes"):
        datasets.load_file(path)
