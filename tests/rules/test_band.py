"""What is proven of the rules of the band: k(v) times the step of mcp_exact, where v = Lambda margin / sq_w."""

from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from maxcosine import RULES, DampedMCPClassifier, SoftMCPClassifier
from tests.reference import attained_margin, maximal_margin
from tests.rules.streams import Walk, learner, stream

STREAMS = [stream(seed, n=60, gap=gap, noise=noise) for seed, gap, noise in [(0, 0.5, 0), (1, 0.3, 0.1), (2, 0.1, 0)]]
POSITIVE = st.fractions(Fraction(1, 50), 50, max_denominator=50)
COSINES = st.fractions(-1, 1, max_denominator=100)

# The curves in exact arithmetic, None where the rule does not move, and the least gain of a step at v.
CURVES = {
    "damped_mcp": (
        lambda v: 1 / (1 + abs(v)) if v <= Fraction(7, 10) else None,
        lambda v: 1 if v <= 0 else Fraction(2, 289),
    ),
    "soft_mcp": (
        lambda v: None if v >= 1 else min(Fraction(1), 1 - v),
        lambda v: 1 if v <= 0 else (1 - v) ** 2,
    ),
}

every_curve = pytest.mark.parametrize("name", CURVES)


@every_curve
@settings(max_examples=150, deadline=None)
@given(v=st.fractions(-1000, 1, max_denominator=1000))
@example(v=Fraction(0))
@example(v=Fraction(7, 10))
@example(v=Fraction(-1, 10**9))
def test_curve_runs_inside_the_band(name, v):
    k = CURVES[name][0](v)
    if v <= 0:
        assert 2 * k * (1 - v) - k**2 >= 1
    elif k is not None:
        assert 0 <= k <= 2 * (1 - v)


@every_curve
@settings(max_examples=150, deadline=None)
@given(norm_w=POSITIVE, ell=POSITIVE, length=POSITIVE, cos=COSINES)
@example(norm_w=Fraction(1), ell=Fraction(1), length=Fraction(1), cos=Fraction(0))
@example(norm_w=Fraction(1), ell=Fraction(7), length=Fraction(10), cos=Fraction(1, 100))
@example(norm_w=Fraction(1), ell=Fraction(1), length=Fraction(1), cos=Fraction(7, 10))
def test_step_gains_what_is_proven_in_exact_arithmetic(name, norm_w, ell, length, cos):
    sq_w, sq_x, coef_sum, margin = norm_w**2, length**2, ell * norm_w, cos * norm_w * length
    curve, least = CURVES[name]
    v, z = margin * coef_sum / sq_w, 1 / (ell**2 * sq_x)
    k = curve(v)
    scalars = [float(one) for one in (margin, sq_w, sq_x, coef_sum)]
    assume(min(abs(v - Fraction(7, 10)), abs(v - 1)) > 1e-9)  # there rounding decides whether the rule moves
    keep, add, _ = RULES[name](*scalars, (), ())
    if k is None:
        assert (keep, add) == (1.0, 0.0)
        return
    step = k * sq_w / (coef_sum * sq_x)
    assert keep == 1.0
    assert add == pytest.approx(float(step), rel=1e-14)
    sq_after = sq_w + 2 * step * margin + step**2 * sq_x
    assume(sq_after > 0)
    gain = sq_x * ((coef_sum + step) ** 2 / sq_after - ell**2)
    assert gain == (2 * k * (1 - v) - k**2 + k**2 * z) / (1 + k * z * (k + 2 * v))
    assert gain >= least(v)


@every_curve
def test_ell_never_falls_and_a_mistake_raises_its_square_by_the_inverse_of_sq_x(name):
    for data in STREAMS:
        walk = Walk.of(RULES[name], data.X.shape[1])
        for x, y in zip(data.X, data.y, strict=True):
            if x.any():
                before, mistaken = walk.bound**2, walk.margin(x, y) <= 0
                walk.step(x, y)
                assert walk.bound**2 >= (before + (1 / (x @ x) if mistaken else 0)) * (1 - 1e-12)


def test_damped_mcp_stops_with_seven_tenths_of_the_largest_margin():
    for seed in range(3):
        data = stream(seed, n=50, d=6, gap=0.8)
        gamma = maximal_margin(data.X, data.y)
        model, updates = learner("damped_mcp"), -1
        while updates < (updates := model.partial_fit(data.X, data.y, classes=[-1, 1]).updates_):
            assert updates <= 144.5 * (data.radius / gamma) ** 2
        assert attained_margin(model.coef_[0], data.X, data.y) > 0.7 * gamma * (1 - 1e-9)


def test_soft_mcp_approaches_the_largest_margin():
    """At most (R / gamma)^2 / delta^2 steps have v <= 1 - delta."""
    for seed in range(3):
        data = stream(seed, n=50, d=6, gap=0.8)
        most = (data.radius / maximal_margin(data.X, data.y)) ** 2
        walk, positions = Walk.of(RULES["soft_mcp"], data.X.shape[1]), []
        for _ in range(100):
            for x, y in walk.over(data):
                if walk.w.any():
                    positions.append(walk.margin(x, y) * walk.coef_sum / (walk.w @ walk.w))
        for delta in (0.05, 0.1, 0.2, 0.5, 1.0):
            assert sum(v <= 1 - delta for v in positions) <= most / delta**2
        assert attained_margin(walk.w, data.X, data.y) > 0.95 * maximal_margin(data.X, data.y)


@every_curve
def test_theorem_10_is_attained_by_orthogonal_examples(name):
    """Every example is a mistake at v = 0, where both rules take MCP's step."""
    model = learner(name).partial_fit([[3.0, 0, 0], [0, 3.0, 0], [0, 0, 3.0]], [1, -1, 1], classes=[-1, 1])
    gamma = 3.0 / 3**0.5
    assert model.certificate_.mistakes == 3 == pytest.approx((3.0 / gamma) ** 2)
    assert model.certificate_.margin_ceiling == pytest.approx(gamma)


def test_far_mistakes_move_damped_mcp_less_than_near_ones():
    steps = [RULES["damped_mcp"](margin, 4.0, 1.0, 1.0, (), ())[1] for margin in (0.0, -1.0, -4.0, -40.0)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == RULES["mcp_exact"](0.0, 4.0, 1.0, 1.0, (), ())[1]
    assert steps[-1] == pytest.approx(steps[0] / 11)


def test_steps_of_soft_mcp_shrink_to_0_at_the_ceiling():
    steps = [RULES["soft_mcp"](margin, 4.0, 1.0, 1.0, (), ())[1] for margin in (-4.0, 0.0, 2.0, 3.9, 4.0, 5.0)]
    assert steps == pytest.approx([4.0, 4.0, 2.0, 0.1, 0.0, 0.0])


@pytest.mark.parametrize(("classifier", "name"), [(DampedMCPClassifier, "damped_mcp"), (SoftMCPClassifier, "soft_mcp")])
def test_classifier_learns_by_its_rule(classifier, name):
    data = STREAMS[0]
    found, expected = classifier().fit(data.X, data.y), learner(name).set_params(fit_intercept=True).fit(data.X, data.y)
    assert found.certificate_ == expected.certificate_
    assert (found.coef_ == expected.coef_).all()
