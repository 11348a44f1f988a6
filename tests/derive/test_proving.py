"""What is proved is true, what is called false is false, and what is neither says so."""

from __future__ import annotations

import time
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

from maxcosine.derive import deciding
from maxcosine.derive.cells import sample_points
from maxcosine.derive.proving import Verdict, all_of, best_constant, feasible, prove, prove_positive
from maxcosine.derive.regions import split_expression, split_region
from maxcosine.derive.regularity import is_regular
from tests.derive.claims import SYMBOLS, THIN, points, random_claim

U, C, A, B, V = sp.symbols("u c a b v", real=True)
RANGES = [U > 0, C > -1, C < 1]
HALF = sp.Rational(1, 2)
EPSILON = sp.Rational(1, 1000)


def rise(z: sp.Expr, gain: sp.Expr) -> sp.Expr:
    """(u + z)^2 - (u^2 + gain) (1 + z^2 + 2 c z): >= 0 if a step z raises u^2 by at least `gain`."""
    return (U + z) ** 2 - (U**2 + gain) * (1 + z**2 + 2 * C * z)


def band(k: sp.Expr, m: sp.Expr = 1) -> sp.Expr:
    return 2 * k * (1 - V) - k**2 - m


def fails_at(claim: sp.Expr, region: list[Any], verdict: Verdict) -> bool:
    """Whether the counterexample is in the region and violates claim >= 0, in exact arithmetic."""
    assert verdict.status == "false"
    values = {sp.Symbol(name, real=True): sp.Rational(x) for name, x in verdict.counterexample.items()}
    return all(k.subs(values) == sp.true for k in region) and claim.subs(values) < 0


NAROMMA = (1 - U * C) / (U - C)
DAMPED = 1 / (U * (1 - A * U * C))
THEOREMS = {
    "mcp_exact never falls": (rise(1 / U, 0), [*RANGES, 2 * U * C <= 1]),
    "mcp_exact and CMCP gain 1 on mistakes": (rise(1 / U, 1), [*RANGES, C <= 0]),
    "MCP is sound on margins": (rise(1 / U, 1 - 2 * U * C), [*RANGES, C >= 0, 2 * U * C <= 1]),
    "MCP is sound": (rise(1 / U, 1 - 2 * U * sp.Max(0, C)), [*RANGES, 2 * U * C <= 1]),
    "NAROMMA gains 1 on mistakes": (rise(NAROMMA, 1), [*RANGES, C < U, U * C < 1, C <= 0]),
    "NAROMMA never falls": (rise(NAROMMA, 0), [*RANGES, C < U, U * C < 1]),
    "NAROMMA steps forward": (NAROMMA, [*RANGES, C < U, U * C < 1]),
    "damped by a in [0, 2] gains 1": (rise(DAMPED, 1), [*RANGES, C <= 0, A >= 0, A <= 2]),
}


@pytest.mark.parametrize("name", THEOREMS)
def test_theorems_are_proved(name: str) -> None:
    claim, region = THEOREMS[name]
    verdict = prove(claim, region)
    assert verdict
    assert verdict.method in ("cells", "signs")


@pytest.mark.parametrize("name", THEOREMS)
def test_theorems_lowered_a_little_are_false(name: str) -> None:
    claim, region = THEOREMS[name]
    lowered = claim - EPSILON
    assert fails_at(lowered, region, prove(lowered, region))


@pytest.mark.parametrize(
    ("claim", "region"),
    [
        (rise(1 / U, 1), [*RANGES, 2 * U * C <= 1]),  # MCP's bound on positive margins
        (rise(4, 0).subs(U, 2), [C > -1, C < 1]),  # the Perceptron's exact bound can fall: u = 2, c = -1/2
        (rise(DAMPED, 1), [*RANGES, C <= 0, A >= 0, 100 * A <= 201]),
        (1 - 2 * U * C, [*RANGES, U * C <= HALF + EPSILON]),
        (sp.sqrt(1 + U**2) - 1 - C * U, RANGES),  # not rational: found by testing
        (A * B + U * C + 2, [*RANGES, A >= -2, A <= 2, B >= -2, B <= 2]),  # too many symbols for cells
    ],
)
def test_false_claims_have_an_exact_counterexample(claim: sp.Expr, region: list[Any]) -> None:
    assert fails_at(claim, region, prove(claim, region))


# --- negative controls -----------------------------------------------------------------------


def check_random_claims(seed: int, count: int) -> Counter[str]:
    """Nothing proved is violated at any of 40,000 points; every counterexample is one."""
    rng = np.random.default_rng(seed)
    cloud = points(rng, 40_000)
    found: Counter[str] = Counter()
    for _ in range(count):
        claim = random_claim(rng)
        verdict = prove(claim.expression(), claim.region())
        found[verdict.status] += 1
        if verdict.status == "false":
            assert claim.fails_at([verdict.counterexample.get(s.name, Fraction(0)) for s in SYMBOLS]), claim
        else:
            assert claim.violation_among(cloud) is None, claim
        if verdict.status == "tested":
            assert all(condition in claim.conditions for condition in THIN), claim  # all else is decided
    return found


def test_random_claims_are_decided_rightly() -> None:
    found = check_random_claims(seed=1, count=60)
    assert found["proved"] > 15
    assert found["false"] > 15


@pytest.mark.slow
def test_many_random_claims_are_decided_rightly() -> None:
    found = check_random_claims(seed=2, count=2000)
    assert found["proved"] > 500
    assert found["false"] > 500


@pytest.mark.parametrize("size", [10**2, 10**6, 10**12])
@pytest.mark.parametrize(("u", "c"), [(1, "-1/3"), ("7/5", "-99/100"), (10**6, "-1/10"), ("1/1000", "-1/1000")])
def test_a_claim_false_in_one_tiny_cell_is_false(u: Any, c: str, size: int) -> None:
    center = {U: sp.Rational(u), C: sp.Rational(c)}
    bowl = (U - center[U]) ** 2 + (C - center[C]) ** 2
    region = [*RANGES, C <= 0]
    assert prove(bowl, region)
    lowered = bowl - sp.Rational(1, size)
    assert fails_at(lowered, region, prove(lowered, region))


def test_a_prover_that_loses_cells_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative controls themselves: without every third sample point false claims are proved."""

    def lossy(*arguments: Any) -> Any:
        return (point for i, point in enumerate(sample_points(*arguments)) if i % 3)

    monkeypatch.setattr(deciding, "sample_points", lossy)
    with pytest.raises(AssertionError):
        check_random_claims(seed=1, count=300)


# --- thin parts ------------------------------------------------------------------------------

NEGATIVE = -1 - U - C**2
THIN_REGIONS = [  # and a claim that fails on the thin part, but on no open cell
    ([*RANGES, C >= 0, C <= 0], NEGATIVE),
    ([*RANGES, (C - HALF) ** 2 <= 0], NEGATIVE),
    ([*RANGES, U * (C - HALF) ** 2 <= 0], NEGATIVE),
    ([*RANGES, U >= 1, U <= 1], NEGATIVE),
    ([*RANGES, U * C >= 0, U * C <= 0], NEGATIVE),
    ([*RANGES, sp.Abs(C) <= 0], NEGATIVE),
    ([*RANGES, sp.Eq(U, 1)], NEGATIVE),
    ([*RANGES, C >= A, C <= A, A >= 0, A <= HALF], NEGATIVE),
    ([*RANGES, (U - 1) ** 2 * (U - 2) >= 0], U - 2 + C**2 * (U - 1)),
    ([*RANGES, sp.Or(C <= -HALF, sp.And(C >= 0, C <= 0))], -C - sp.Rational(1, 4) + U * C**2),
]
REGULAR_REGIONS = [
    RANGES,
    [*RANGES, C <= 0],
    [*RANGES, C >= 0, 2 * U * C <= 1],
    [*RANGES, C < U, U * C < 1],
    [*RANGES, U * C <= A, A >= 0, A <= 2],
    [*RANGES, 2 * U * sp.Max(0, C) <= 1],
    [*RANGES, sp.Abs(U * C) <= 1],
    [*RANGES, C >= U - 1, C <= 1 - U],  # shrinks to the point (1, 0), a limit of others
    [*RANGES, C >= HALF, C <= 0],  # empty
    [*RANGES, C <= 0, sp.Ne(U, 1)],
]


@pytest.mark.parametrize(("region", "claim"), THIN_REGIONS)
def test_what_fails_on_a_thin_part_alone_is_not_proved(region: list[Any], claim: sp.Expr) -> None:
    assert not is_regular(region)
    verdict = prove(claim, region)
    assert not verdict
    assert verdict.status == "tested" or fails_at(claim, region, verdict)


@pytest.mark.parametrize("region", REGULAR_REGIONS)
def test_common_regions_are_regular(region: list[Any]) -> None:
    assert is_regular(region)


def test_signs_decide_on_thin_regions_too() -> None:
    verdict = prove(1 + U - C, [*RANGES, C >= 0, C <= 0])
    assert str(verdict) == "proved (signs)"


def test_one_variable_is_decided_at_every_point() -> None:
    assert prove(U - 1, [(U - 1) ** 2 * (U - 2) >= 0])
    assert not prove(U - 2, [(U - 1) ** 2 * (U - 2) >= 0])
    assert prove(U - 2, [(U - 1) ** 2 * (U - 2) > 0])
    assert prove(-((U**2 - 2) ** 2), [sp.Eq(U**2, 2)])
    assert not prove(-1 - U**2, [sp.Eq(U**2, 2)])  # false, at irrational points only


# --- branches --------------------------------------------------------------------------------


def test_branches_cover_each_other() -> None:
    assert prove(sp.Abs(C) - C, RANGES)
    assert prove(sp.Max(C, -C, 0) - sp.Abs(C), RANGES)
    assert prove(U - sp.Min(U, C), RANGES)
    assert not prove(sp.Min(U, C) - C + EPSILON, RANGES)
    assert prove(sp.Max(U * C, 1) - U * C, [*RANGES, sp.Max(C, 0) <= HALF])


def test_piecewise_claims_are_decided_piece_by_piece() -> None:
    z = sp.Piecewise((1 / U, C <= 0), ((1 - U * C) / U, True))
    assert prove(rise(z, 0), [*RANGES, U * C <= 1])
    jump = sp.Piecewise((sp.Integer(-1), sp.And(C >= 0, C <= 0)), (sp.Integer(1), True))
    assert prove(jump * U, RANGES).status == "false"
    border = sp.Piecewise((U, C < 0), (-U, C <= 0), (U, True))
    assert not prove(border, RANGES)


def test_denominators_of_either_sign_are_kept() -> None:
    assert not prove(1 / (U - 1), [U > 0, C > -1, C < 1])
    assert prove(1 / (U - 1) + C * 0, [U > 1, C > -1, C < 1])
    assert not prove((C - U) / (C - U) ** 2, RANGES)
    assert prove((U - C) / (U - C) ** 3, RANGES)
    assert prove(U - C, [*RANGES, 1 / (U - C) >= 0])
    assert not prove(U - 1, [*RANGES, 1 / (U - C) >= 0])


def test_symbols_that_do_not_matter_are_left_alone() -> None:
    region = [*RANGES, C <= 0, A >= 0, A <= 1, B > 0, A * B <= 1]
    assert prove(rise(1 / U, 1), region)
    verdict = prove(rise(1 / U, 1) - 1, region)
    assert fails_at(rise(1 / U, 1) - 1, region, verdict)
    assert prove(U * C - 10, [*RANGES, A >= 1, A <= 0])  # an empty region


# --- what is not proved ----------------------------------------------------------------------


def test_claims_beyond_the_methods_are_tested() -> None:
    verdict = prove(sp.sqrt(1 + U**2) - C, RANGES)
    assert verdict.status == "tested"
    assert verdict.points == 20_000
    four = prove((A - B) ** 2 + (U - C) ** 2 + A * B - A * B + (A - U * C) ** 2 * (B - 1), [*RANGES, A >= 0, B >= 1])
    assert four.status == "tested"


def test_running_out_of_time_never_proves() -> None:
    claim, region = THEOREMS["mcp_exact never falls"]
    assert prove(claim, region, seconds=0).status == "tested"
    verdict = prove(claim - EPSILON * 10**5, region, seconds=0)
    assert verdict.status in ("tested", "false")


def test_branches_that_exclude_each_other_are_left_out() -> None:
    kinks = sum(sp.Abs(U - i) for i in range(12))
    assert len(split_expression(kinks, (sp.Abs,))) == 13  # of 2^12
    assert len(split_expression(kinks, (sp.Abs,), split_region([U > 11])[0])) == 1
    assert len(split_region([sp.Abs(U - i) <= 3 * i for i in range(5)])) <= 6


def test_a_hard_claim_ends_in_time() -> None:
    claim = (U**5 * C**4 + A**5 * U - C**3) ** 2 + (A * U**3 - C**5) ** 2 - U**4 * C**3 * A**4 + 1
    start = time.process_time()
    verdict = prove(claim, [*RANGES, A >= 0, A <= 1], seconds=2)
    assert time.process_time() - start < 10
    assert verdict.status in ("tested", "false")


@pytest.mark.parametrize("symbol", [sp.Symbol("u", positive=True), sp.Symbol("u"), sp.Symbol("u", nonnegative=True)])
def test_symbols_with_other_assumptions_are_refused(symbol: sp.Symbol) -> None:
    with pytest.raises(ValueError, match="symbol u must be declared with real=True"):
        prove(symbol**2, [])
    with pytest.raises(ValueError, match="symbol u must be declared with real=True"):
        feasible([symbol**2 > 2])


def test_what_is_no_condition_is_refused() -> None:
    with pytest.raises(ValueError, match="is no condition"):
        prove(U, [U])


# --- strict claims ---------------------------------------------------------------------------


def test_strictly_positive_claims() -> None:
    assert str(prove_positive(1 / U, RANGES)) == "proved (signs)"
    assert prove_positive(1 + U - C, [*RANGES, C <= 0])
    assert prove_positive(1 - C, RANGES)
    assert str(prove_positive(V**2 - V + 1, [V >= 0])) == "proved (cells)"
    assert prove_positive(2 - V, [V >= 0, V < 2])


@pytest.mark.parametrize(
    ("claim", "region", "expected"),
    [
        (2 - V, [V >= 0, V <= 2], {"v": 2}),  # at a border that belongs to the region
        ((V - 1) ** 2, [V >= 0], {"v": 1}),
        (-C, [*RANGES, C <= 0], {"c": 0}),
        (-C * U, [*RANGES, C <= 0], {"c": 0}),
        ((U - 1) ** 2 + C**2, RANGES, {"c": 0, "u": 1}),
    ],
)
def test_a_zero_refutes_a_strict_claim(claim: sp.Expr, region: list[Any], expected: dict[str, int]) -> None:
    verdict = prove_positive(claim, region)
    assert verdict.status == "false"
    assert expected.items() <= verdict.counterexample.items()
    assert prove(claim, region)


def test_strictness_that_is_not_established_is_tested() -> None:
    assert prove_positive((V**2 - 2) ** 2, [V >= 0]).status == "tested"  # zero at an irrational point
    assert prove_positive((U - C) ** 2 + (U * C - 2) ** 2, RANGES).status == "tested"


# --- one variable, constants, regions --------------------------------------------------------


def test_curves_in_one_variable() -> None:
    root, mistakes = 1 / sp.sqrt(1 - 2 * V), [V <= 0]
    assert str(prove(band(root), mistakes)) == "proved (intervals)"
    assert str(prove(band(1 / sp.sqrt(1 + 2 * sp.Abs(V))), mistakes)) == "proved (intervals)"
    assert prove(band(root + sp.Rational(1, 10_000)), mistakes).status == "false"
    assert prove(band(1 / (1 + sp.Abs(V))), mistakes)
    assert prove(band(1 / (1 + 3 * sp.Abs(V))), mistakes).status == "false"
    assert prove(2 - V**2, [V >= 0, sp.Rational(14142, 10_000) >= V])
    assert prove(2 - V**2, [V >= 0, sp.Rational(14143, 10_000) >= V]).status == "false"


@pytest.mark.parametrize(
    ("claim", "region", "expected"),
    [
        (lambda m: rise(1 / U, m), [*RANGES, C <= 0], sp.Integer(1)),
        (lambda m: rise(1 / (3 * U), m), [*RANGES, C <= 0], sp.Rational(5, 9)),  # 2 k - k^2
        (lambda m: rise(DAMPED.subs(A, 5), m), [*RANGES, C <= 0], sp.Rational(2, 5)),  # 2 / a
        (lambda m: rise(A / U, m), [*RANGES, C <= 0, A >= HALF, A <= 1], sp.Rational(3, 4)),
        (lambda m: band(1 / sp.sqrt(1 - 2 * V), m), [V <= 0], sp.Integer(1)),
    ],
)
def test_best_constant_is_found_and_proved(claim, region: list[Any], expected: sp.Rational) -> None:
    m, verdict = best_constant(lambda m: prove(claim(m), region))
    assert m == Fraction(int(expected.p), int(expected.q))
    assert verdict
    assert prove(claim(expected), region)
    if expected < 1:
        assert not prove(claim(expected + sp.Rational(1, 100)), region)


def test_an_irrational_best_constant_is_approached_from_below() -> None:
    m, verdict = best_constant(lambda m: prove((V**2 + 1) * (1 - m) - V, [V >= 0]))
    assert (m, verdict.status) == (Fraction(1, 2), "proved")
    m, verdict = best_constant(lambda m: prove(2 - (V + m) ** 2, [V >= 0, V <= 1]))
    assert verdict
    assert 0 < sp.sqrt(2) - 1 - sp.Rational(m) < sp.Rational(1, 2**19)


def test_no_constant_is_given_if_none_above_zero_is_proved() -> None:
    assert best_constant(lambda m: prove(band(1 / (1 - V + V**2), m), [V <= 0]))[0] is None  # tends to 0
    m, verdict = best_constant(lambda m: prove(rise(4, m), RANGES))
    assert m is None
    assert verdict.status == "false"


def test_feasible_regions_have_interior() -> None:
    assert feasible([*RANGES, C > U]) is True
    assert feasible([*RANGES, C > U, U * C > 1]) is False
    assert feasible([*RANGES, C >= 0, C <= 0]) is False
    assert feasible([V >= 0, V <= 0]) is False
    assert feasible([*RANGES, sp.sqrt(U) > 2]) is True
    assert feasible([*RANGES, sp.sqrt(U) < -1]) is None
    assert feasible([*RANGES, A >= 0, A <= 1, B >= 2]) is True


# --- verdicts --------------------------------------------------------------------------------


def test_verdicts_read_as_sentences() -> None:
    assert str(Verdict("proved", "cells")) == "proved (cells)"
    assert str(Verdict("tested", points=20_000)) == "tested, not proved (20,000 points)"
    assert (
        str(Verdict("false", counterexample={"u": Fraction(1, 4), "c": Fraction(1, 2)})) == "false at c = 1/2, u = 1/4"
    )
    assert [bool(Verdict(status)) for status in ("proved", "tested", "false")] == [True, False, False]


def test_the_worst_verdict_counts() -> None:
    proved, signs = Verdict("proved", "cells"), Verdict("proved", "signs")
    tested, less = Verdict("tested", points=20_000), Verdict("tested", points=10)
    false = Verdict("false", counterexample={"u": Fraction(1)})
    assert all_of([signs, proved, proved]) == Verdict("proved", "cells, signs")
    assert all_of([proved, tested, less]) == less
    assert all_of([tested, false, proved]) == false
    assert all_of([]) == Verdict("proved")
