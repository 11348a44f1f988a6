"""The protocol gives exactly the counts of the reference."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine import RULES, rule
from maxcosine.experiments import datasets
from maxcosine.experiments.protocol import Experiment, Learner, Protocol, learners_of
from maxcosine.experiments.rule_heads import ceiling_of
from tests.experiments.small import PAPER, small_dataset
from tests.reference import run as run_reference


def experiment(data, rules=PAPER, *, average=False, permutations=2):
    return Experiment(data, Protocol(learners_of(rules, average=average), data.buckets, permutations))


def counts(units):
    """Everything but times."""
    found = [{**run, "seconds": 0.0} for unit in units for run in unit["runs"]]
    return {(run["rule"], run["label"], run["permutation"]): run for run in found}


def reference_counts(data, protocol, name, label, permutation):
    """Test mistakes, the same of the averaged rule, training mistakes and updates of the reference."""
    size = len(data.X_train) // protocol.buckets
    rows = (protocol.order(label, permutation)[:, None] * size + np.arange(size)).ravel()
    X, y = data.X_train[rows].astype(np.float64), np.where(data.y_train[rows] == label, 1, -1)
    found = run_reference(name, X, y, average=True)
    predicted = data.X_test.astype(np.float64) @ np.stack([found.w, found.averaged_w], axis=1) > 0.0
    last, averaged = np.sum(predicted != (data.y_test == label)[:, None], axis=0).tolist()
    return last, averaged, found.mistakes, found.updates


def test_counts_of_every_rule_equal_those_of_the_reference():
    digits = datasets.load("digits")
    found = experiment(digits, list(RULES), average=True)
    assert found.examples == list(range(20, 1281, 20))
    runs = {run["rule"]: run for run in found.run_unit(8, 1)["runs"]}
    assert len(runs) == 2 * len(RULES)
    for name in RULES:
        run, averaged = runs[name], runs[f"avg_{name}"]
        assert (averaged["train_mistakes"], averaged["updates"]) == (run["train_mistakes"], run["updates"])
        counts = run["test_mistakes"], averaged["test_mistakes"], run["train_mistakes"], run["updates"]
        assert counts == reference_counts(digits, found.protocol, name, 8, 1), name


def test_counts_and_curves_do_not_depend_on_jobs_or_on_other_rules():
    alone = experiment(small_dataset(), ["mcp"], permutations=4)
    beside = experiment(small_dataset(), list(RULES), average=True, permutations=4)
    one = list(alone.run(alone.units, jobs=1))
    many = list(beside.run(beside.units, jobs=5))
    assert counts(one).items() <= counts(many).items()
    curves = {(unit["label"], unit["permutation"]): unit["curves"]["mcp"] for unit in many}
    assert curves == {(unit["label"], unit["permutation"]): unit["curves"]["mcp"] for unit in one}


def test_orders_are_permutations_that_depend_on_label_and_seed():
    protocol = Protocol(learners_of(PAPER), 60)
    orders = [protocol.order(label, permutation) for label in range(10) for permutation in range(20)]
    assert all(sorted(order) == list(range(60)) for order in orders)
    assert len({tuple(order) for order in orders}) == 200
    assert not np.array_equal(Protocol(learners_of(PAPER), 60, seed=1).order(3, 7), protocol.order(3, 7))


def test_curves_end_with_the_values_of_the_run():
    found = experiment(small_dataset(), list(RULES), average=True)
    unit = found.run_unit(2, 0)
    for run in unit["runs"]:
        curves = unit["curves"][run["rule"]]
        assert {len(curve) for curve in curves.values()} == {found.protocol.buckets}
        assert curves["mistakes"][0] <= found.bucket_size
        assert curves["mistakes"][-1] == run["train_mistakes"]
        assert curves["cosine"][-1] == pytest.approx(1.0)
        assert curves["bound"][-1] == run["bound"]
        assert np.all(np.diff(curves["margin_ceiling"]) <= 0.0)
        assert run["margin_ceiling"] <= ceiling_of(run["bound"])


@given(st.floats(1e-300, 1e300))
def test_ceiling_is_not_below_the_exact_quotient(bound):
    ceiling = ceiling_of(bound)
    assert Fraction(ceiling) * Fraction(bound) >= 1
    assert ceiling <= 1.0 / bound * (1 + 1e-15)


def test_users_rule_takes_part():
    @rule
    def half_perceptron(margin, sq_w, sq_x, coef_sum, state, params):
        """A perceptron with half the step."""
        return 1.0, (0.5 if margin <= 0.0 else 0.0), state

    perceptron, own = experiment(small_dataset(), ["perceptron", half_perceptron]).run_unit(0, 0)["runs"]
    assert own["rule"] == "half_perceptron"
    # The length of the steps does not matter to a perceptron that starts at 0.
    assert own["test_mistakes"] == perceptron["test_mistakes"]
    assert own["updates"] == perceptron["updates"]


def test_names_of_learners():
    assert [one.name for one in learners_of(["pa", "avg_mcp", "pa"])] == ["pa", "avg_mcp"]
    assert [one.name for one in learners_of(["pa", "mcp"], average=True)] == [
        "pa",
        "mcp",
        "avg_pa",
        "avg_mcp",
    ]
    assert learners_of(["avg_pa"], average=True) == [Learner(RULES["pa"], averaged=True)]
    with pytest.raises(ValueError, match=r"there is no rule 'mpc'; the rules are .*, each also as avg_NAME"):
        learners_of(["mpc"])
    with pytest.raises(ValueError, match="no rule is given; name some"):
        learners_of([])


def test_more_buckets_than_examples_are_refused():
    with pytest.raises(ValueError, match="5 examples cannot be divided into 6 buckets"):
        experiment(small_dataset(n_train=5))


def test_closing_the_iterator_cancels_units_that_have_not_started(monkeypatch):
    found = experiment(small_dataset(), permutations=50)
    started, run_unit = [], found.run_unit
    monkeypatch.setattr(found, "run_unit", lambda *unit: started.append(unit) or run_unit(*unit))
    units = found.run(found.units, jobs=2)
    next(units)
    units.close()
    assert len(started) < len(found.units)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_counts_on_mnist_equal_those_of_the_reference(name, mnist):
    mnist = replace(mnist, X_train=mnist.X_train[:6000], y_train=mnist.y_train[:6000])
    found = experiment(mnist, [name], average=True, permutations=4)
    run, averaged = found.run_unit(5, 3)["runs"]
    counts = run["test_mistakes"], averaged["test_mistakes"], run["train_mistakes"], run["updates"]
    assert counts == reference_counts(mnist, found.protocol, name, 5, 3)
