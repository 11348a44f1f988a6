"""What is printed as proven is proven: upper limits are rounded up, lower limits down."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxcosine import OnlineClassifier, merge
from maxcosine.certificate_text import mistake_bound, rounded_down, rounded_up

DIGITS = st.integers(1, 17)
NUMBERS = st.floats(allow_nan=False)


@given(NUMBERS, DIGITS)
@example(0.0, 4)
@example(-0.0, 4)
@example(math.inf, 4)
@example(-math.inf, 4)
@example(5e-324, 6)
@example(1.7976931348623157e308, 6)
@example(9999.5, 4)
@example(0.1, 17)
def test_printed_number_is_on_the_safe_side_and_close(value, digits):
    exact, up, down = Decimal(value), Decimal(rounded_up(value, digits)), Decimal(rounded_down(value, digits))
    assert down <= exact <= up
    if math.isfinite(value):
        assert all(len(one.as_tuple().digits) <= digits or one == one.to_integral_value() for one in (up, down))
        assert up - down <= abs(exact) * Decimal(10) ** (1 - digits)
    else:
        assert up == down == exact


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), DIGITS)
def test_float32_is_rounded_from_its_exact_value(value, digits):
    assert Decimal(rounded_down(np.float32(value), digits)) <= Decimal(value)
    assert Decimal(rounded_up(np.float32(value), digits)) >= Decimal(value)


@given(NUMBERS, st.integers(1, 15))
def test_numbers_that_fit_keep_their_digits(value, digits):
    short = float(f"{value:.{digits - 1}e}")
    if math.isfinite(short) and abs(short) > 1e-300:
        nearest = {rounded_up(short, digits), rounded_down(short, digits)}
        assert Decimal(f"{short:.{digits - 1}e}") in {Decimal(text) for text in nearest}


def test_usual_numbers_are_written_without_an_exponent():
    assert rounded_up(12.34567, 6) == "12.3457"
    assert rounded_down(12.34567, 6) == "12.3456"
    assert rounded_up(1000.0, 4) == "1000"
    assert rounded_up(0.00012345, 4) == "0.0001235"
    assert (rounded_up(0.0, 3), rounded_down(-0.0, 3)) == ("0", "0")
    assert (rounded_up(math.inf, 3), rounded_down(-math.inf, 3), rounded_up(math.nan, 3)) == ("inf", "-inf", "nan")
    assert rounded_up(1.7976931348623157e308, 3) == "1.8e+308"


@given(st.floats(1e-300, 1.0))
@example(1 / 3)
@example(math.nextafter(0.5, 0.0))
def test_printed_mistake_bound_is_not_below_the_proven_one(gain):
    printed = Fraction(mistake_bound(gain, "!").removesuffix("!").strip() or 1)
    assert 1 / Fraction(gain) <= printed <= 1.011 / Fraction(gain)


def certificates(n_classes, average=False):
    """Certificates of several data sets, so that nearest digits would be wrong for some of them."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        X = random.normal(size=(40, 3))
        y = np.arange(20) % n_classes
        parts = [OnlineClassifier(average=average).fit(half, y) for half in (X[:20], X[20:])]
        yield parts[0].certificate_
        yield merge(parts).certificate_


@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
def test_text_of_a_certificate_claims_no_more_than_it_proves(average):
    number = r"(\d[\d.e+-]*\d|\d)"
    for proven in certificates(2, average):
        text = repr(proven)

        def printed(words, text=text):
            return Decimal(re.search(f"{words} {number}", text)[1])

        assert printed("has a margin above") >= Decimal(proven.margin_ceiling)
        assert printed("is at least") <= Decimal(proven.bound)
        assert printed("g -") >= Decimal(proven.rounding)
        assert printed("Lambda") <= Decimal(proven.coef_sum)
        assert printed("norm") >= Decimal(proven.norm)
        assert printed(", bound") <= Decimal(proven.bound)
        assert printed("best bound") <= Decimal(proven.best_bound)
        if proven.merge:
            assert printed("certified") <= Decimal(proven.merge.certified)
            assert printed("mean") <= Decimal(proven.merge.mean)


def test_table_of_a_certificate_claims_no_more_than_it_proves():
    for proven in certificates(4):
        rows = [line.split() for line in repr(proven).splitlines() if re.match(r" +\d ", line)]
        assert len(rows) == 4
        for k, (_, ceiling, bound, best_bound, coef_sum, norm, *_) in enumerate(rows):
            assert Decimal(ceiling) >= Decimal(proven.margin_ceiling[k])
            assert Decimal(norm) >= Decimal(proven.norm[k])
            for text, value in ((bound, proven.bound), (best_bound, proven.best_bound), (coef_sum, proven.coef_sum)):
                assert Decimal(text) <= Decimal(value[k])
        found = re.search(r"certified (\S+) to (\S+), mean", repr(proven))
        if found:
            low, high = np.min(proven.merge.certified), np.max(proven.merge.certified)
            assert Decimal(found[1]) <= Decimal(low)
            assert Decimal(found[2]) <= Decimal(high)
