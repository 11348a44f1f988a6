"""The protocol beside the reference: the same order, the same counts, to the digit."""

import numpy as np
import pytest

from maxcosine import RULES, rule
from maxcosine.experiments import datasets
from maxcosine.experiments.protocol import PAPER, Laboratory, Learner, Protocol, learners_of
from tests.experiments.small import small_dataset
from tests.reference import run as run_reference

ALL = list(RULES)


def laboratory(data, rules=PAPER, *, average=False, permutations=2, seed=0):
    learners = learners_of(rules, average=average)
    return Laboratory(data, Protocol(learners, data.buckets, permutations, seed))


def counts(units):
    """What does not depend on the machine."""
    return {
        (run["rule"], run["label"], run["permutation"]): {k: v for k, v in run.items() if k != "seconds"}
        for unit in units
        for run in unit["runs"]
    }


def by_reference(data, protocol, name, label, permutation, *, average=False):
    """Test mistakes, training mistakes and updates of the reference, over the same order."""
    size = len(data.X_train) // protocol.buckets
    rows = np.concatenate([np.arange(b * size, (b + 1) * size) for b in protocol.order(label, permutation)])
    X, y = data.X_train[rows].astype(np.float64), np.where(data.y_train[rows] == label, 1, -1)
    found = run_reference(name, X, y, average=average)
    predicted = data.X_test.astype(np.float64) @ (found.averaged_w if average else found.w) > 0.0
    return int(np.sum(predicted != (data.y_test == label))), found.mistakes, found.updates


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.mark.parametrize("label", [0, 8])
def test_counts_of_every_rule_are_those_of_the_reference(digits, label):
    lab = laboratory(digits, ALL, average=True)
    runs = {run["rule"]: run for run in lab.unit(label, 1)["runs"]}
    assert len(runs) == 2 * len(RULES)
    for name in ALL:
        for average in (False, True):
            run = runs[f"avg_{name}" if average else name]
            found = run["test_mistakes"], run["train_mistakes"], run["updates"]
            assert found == by_reference(digits, lab.protocol, name, label, 1, average=average), run["rule"]


def test_naromma_and_aggressive_romma_agree_to_the_digit(digits):
    lab = laboratory(digits, ["naromma", "aggressive_romma"], permutations=3)
    for unit in lab.run(lab.units, jobs=2):
        one, other = ({k: v for k, v in run.items() if k not in ("rule", "seconds")} for run in unit["runs"])
        for name in ("test_mistakes", "train_mistakes", "updates"):
            assert one[name] == other[name]
        assert one["bound"] == pytest.approx(other["bound"])


def test_digits_come_in_64_buckets_of_20_and_500_test_them(digits):
    lab = laboratory(digits)
    assert (lab.protocol.buckets, lab.bucket_size, len(digits.X_test)) == (64, 20, 500)
    assert lab.examples == list(range(20, 1281, 20))


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_the_number_of_jobs_changes_nothing(jobs):
    lab = laboratory(small_dataset(), average=True, permutations=4)
    alone = [lab.unit(*unit) for unit in lab.units]
    together = list(lab.run(lab.units, jobs))
    assert counts(together) == counts(alone)
    curves = {(unit["label"], unit["permutation"]): unit["curves"] for unit in together}
    assert curves == {(unit["label"], unit["permutation"]): unit["curves"] for unit in alone}


def test_rules_are_compared_on_the_same_orders():
    data = small_dataset()
    alone = counts(laboratory(data, ["mcp"]).run([(1, 1)], 1))
    beside = counts(laboratory(data, ALL, average=True).run([(1, 1)], 1))
    assert alone.items() <= beside.items()


def test_orders_are_permutations_drawn_for_each_label_and_by_the_seed():
    protocol = Protocol(learners_of(PAPER), 60)
    orders = [protocol.order(label, permutation) for label in range(10) for permutation in range(20)]
    assert all(sorted(order) == list(range(60)) for order in orders)
    assert len({tuple(order) for order in orders}) == 200
    again = Protocol(learners_of(["pa"]), 60)
    assert np.array_equal(again.order(3, 7), protocol.order(3, 7))
    other = Protocol(learners_of(PAPER), 60, seed=1)
    assert not np.array_equal(other.order(3, 7), protocol.order(3, 7))


def test_curves_end_where_the_runs_do():
    lab = laboratory(small_dataset(), ALL, average=True)
    unit = lab.unit(2, 0)
    for run in unit["runs"]:
        curves = unit["curves"][run["rule"]]
        assert {len(curve) for curve in curves.values()} == {lab.protocol.buckets}
        assert curves["mistakes"][-1] == run["train_mistakes"]
        assert np.all(np.diff(curves["mistakes"]) >= 0)
        assert curves["cosine"][-1] == pytest.approx(1.0)
        assert curves["bound"][-1] == pytest.approx(run["bound"], rel=1e-6)
        assert np.all(np.diff(curves["margin_ceiling"]) <= 0.0)
        assert run["margin_ceiling"] <= 1.0 / run["bound"]


def test_ceilings_are_above_the_margin_of_any_separator():
    data = small_dataset()
    lab = laboratory(data, ALL)
    for label in range(3):
        y = np.where(data.y_train == label, 1.0, -1.0)
        # The perceptron, again and again: if it ends, it has separated the rows.
        w = np.zeros(data.X_train.shape[1])
        X = data.X_train.astype(float)
        for _ in range(2000):
            wrong = np.flatnonzero(y * (X @ w) <= 0.0)
            if not len(wrong):
                break
            w = w + y[wrong[0]] * X[wrong[0]]
        else:
            continue
        margin = np.min(y * (X @ w)) / np.linalg.norm(w)
        assert all(run["margin_ceiling"] >= margin for run in lab.unit(label, 0)["runs"])


def test_a_rule_of_ones_own_takes_part():
    @rule
    def half_perceptron(margin, sq_w, sq_x, coef_sum, state, params):
        """A perceptron of half the step."""
        return 1.0, (0.5 if margin <= 0.0 else 0.0), state

    lab = laboratory(small_dataset(), ["perceptron", half_perceptron])
    whole, own = lab.unit(0, 0)["runs"]
    assert own["rule"] == "half_perceptron"
    # The length of the steps means nothing to a perceptron that starts at 0.
    assert own["test_mistakes"] == whole["test_mistakes"]
    assert own["updates"] == whole["updates"]


def test_names_of_learners():
    assert [one.name for one in learners_of(["pa", "avg_mcp", "pa"])] == ["pa", "avg_mcp"]
    assert [one.name for one in learners_of(["pa", "mcp"], average=True)] == [
        "pa",
        "mcp",
        "avg_pa",
        "avg_mcp",
    ]
    assert learners_of(["avg_pa"], average=True) == [Learner(RULES["pa"], averaged=True)]
    with pytest.raises(
        ValueError, match=r"there is no rule 'mpc'; the rules are aggressive_romma, .*each also as avg_"
    ):
        learners_of(["mpc"])
    with pytest.raises(ValueError, match="no rule is given; name some"):
        learners_of([])


def test_more_buckets_than_examples_are_refused():
    data = small_dataset(n_train=5)
    with pytest.raises(ValueError, match="5 examples cannot come in 6 buckets"):
        laboratory(data)


def test_who_stops_asking_stops_the_work():
    lab = laboratory(small_dataset(), permutations=50)
    begun = []
    unit = lab.unit
    lab.unit = lambda *which: begun.append(which) or unit(*which)
    work = lab.run(lab.units, jobs=2)
    next(work)
    work.close()
    assert len(begun) <= 2 * 2 + 2
