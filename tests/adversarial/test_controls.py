"""The checks find claims that are made false on purpose, and so can fail."""

from dataclasses import replace

import numpy as np
import pytest

from maxcosine import OnlineClassifier
from maxcosine.certificate import Certificate
from maxcosine.heads import Heads
from maxcosine.merging import NotSeparable
from tests.adversarial import claims, history
from tests.adversarial.checks import ModelChecks, smallest
from tests.adversarial.generator import Case, ModelSpec, Plan, generate
from tests.adversarial.geometry import Geometry
from tests.adversarial.shards import Shard

pytestmark = pytest.mark.filterwarnings("ignore")

# Separable; after the first row alone, the second one is a mistake.
X = np.array([[3.0, 1.0], [1.0, -2.0], [1.0, 0.25], [-4.0, 1.0]])
Y = np.array([1, 0, 1, 0])
ALONE = Plan((), (((0,), (1, 2), (3,)),), ((0, 1, 2, 3),))
MERGED = Plan((), (((0, 1),), ((2, 3),)), ())


def checked(rule="cmcp", average=False, plan=ALONE, rows=X, labels=Y):
    model = ModelSpec(rule, {}, average)
    case = Case(0, rows, labels, plan, (model,), False, "two")
    return ModelChecks(case, model, Geometry(case)).run()


def false_checks(**options):
    return {finding.check for finding in checked(**options).findings} - {"attained"}


def test_true_claims_pass():
    for average in (False, True):
        assert not false_checks(average=average)
    assert not false_checks(plan=MERGED)


def test_a_ceiling_below_the_largest_margin_is_found(monkeypatch):
    low = property(lambda self: (1 - 1e-9) / self.best_bound)
    monkeypatch.setattr(Certificate, "margin_ceiling", low)
    assert "ceiling" in false_checks()


def test_a_ceiling_is_false_by_the_last_bit():
    nearest = Geometry(checked().case).nearest(frozenset({(0, 1)}))  # the margin of one example is its norm
    assert nearest.sq_margin == 10
    assert claims.ceiling_fault(nearest.margin, nearest)  # rounded down
    assert claims.ceiling_fault(np.nextafter(nearest.margin, 4.0), nearest) is None


@pytest.mark.parametrize("number", [float("nan"), -1.0])
def test_a_ceiling_that_is_no_margin_is_found(number):
    assert claims.ceiling_fault(number, None)


def test_a_bound_that_promises_too_large_a_cosine_is_found(monkeypatch):
    honest = OnlineClassifier.certificate_.fget
    too_much = property(lambda self: replace(honest(self), bound=honest(self).bound * (1 + 1e-9)))
    monkeypatch.setattr(OnlineClassifier, "certificate_", too_much)
    assert "bound" in false_checks()


def test_an_attained_margin_above_the_largest_is_found(monkeypatch):
    honest = OnlineClassifier.attained_margin
    monkeypatch.setattr(OnlineClassifier, "attained_margin", lambda self, X, y: honest(self, X, y) * (1 + 1e-9))
    assert any("above the largest one" in str(finding) for finding in checked().findings)
    assert claims.attained_fault(float("nan"), 1.0, Geometry(checked().case).nearest(frozenset({(0, 1)})))


def test_more_mistakes_than_the_budget_are_found(monkeypatch):
    monkeypatch.setattr(Certificate, "mistake_budget", lambda self, margin, radius: 0.0)
    assert "budget" in false_checks()


def test_more_mistakes_than_the_rule_can_make_are_found(monkeypatch):
    honest = OnlineClassifier.certificate_.fget
    too_few = property(lambda self: replace(honest(self), gain=1e9))
    monkeypatch.setattr(OnlineClassifier, "certificate_", too_few)
    assert "mistake bound" in false_checks(rule="perceptron")


def test_a_wrong_count_of_mistakes_is_found(monkeypatch):
    honest = OnlineClassifier.certificate_.fget
    one_more = property(lambda self: replace(honest(self), mistakes=honest(self).mistakes + 1))
    monkeypatch.setattr(OnlineClassifier, "certificate_", one_more)
    assert "mistakes" in false_checks()


@pytest.mark.parametrize("rule", ["cmcp", "perceptron"])
def test_a_last_hypothesis_in_place_of_the_average_is_found(monkeypatch, rule):
    assert not false_checks(rule=rule, average=True)
    monkeypatch.setattr(Heads, "averaged_weights", lambda self: self.last().hypotheses())
    assert "average" in false_checks(rule=rule, average=True)


def test_a_certificate_that_changes_the_model_is_found(monkeypatch):
    honest = OnlineClassifier.certificate_.fget

    def asked(self):
        self.model_.heads.arrays.state[:, -1] += 1.0
        return honest(self)

    monkeypatch.setattr(OnlineClassifier, "certificate_", property(asked))
    assert "asking" in false_checks()


def test_a_merge_that_refuses_separable_examples_is_found(monkeypatch):
    def refuse(*_):
        raise NotSeparable(1e-9)

    monkeypatch.setattr(history, "merge", refuse)
    assert "refusal" in false_checks(plan=MERGED)
    contradicting = np.array([[1.0, 2.0], [3.0, -1.0], [1.0, 2.0], [3.0, 1.0]])
    assert "refusal" not in false_checks(plan=MERGED, rows=contradicting, labels=np.array([1, 1, 0, 1]))


def test_a_false_claim_is_shown_with_no_row_too_many(monkeypatch):
    monkeypatch.setattr(Certificate, "margin_ceiling", property(lambda self: 0.5 / self.best_bound))
    case = checked().case
    less, finding = smallest(case, case.models[0], "ceiling")
    assert len(less.plan.rows) == 1
    assert "a separator attains" in str(finding)
    text = str(Shard(shown=1).check(range(3)))
    assert "X = [[" in text
    assert "seed " in text


def test_cases_are_the_same_for_the_same_seed():
    one, two = generate(7), generate(7)
    assert one.X.tobytes() == two.X.tobytes()
    assert (one.plan, one.models, one.kinds) == (two.plan, two.models, two.kinds)
