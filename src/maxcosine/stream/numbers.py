"""Numbers in text, read eight digits at a time, and rounded as Python's float() rounds them.

A text is an array of bytes, followed by at least eight zero bytes, which end every number. Positions have
no sign: an index that may be negative is checked, which costs more than reading a digit.

Most numbers have few digits and a small exponent, and one exact multiplication or division gives the
nearest double [1]. For others, 128 bits of a power of five tell the two doubles between which the number
lies, and nearly always which is nearer [2]. If not, the comparison is made with all digits.

[1] Clinger, "How to read floating point numbers accurately", PLDI 1990.
[2] Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51 (8), 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import helper, inline
from maxcosine.index.native import leading_zeros, trailing_zeros, word_at

U = np.uint64

SPACE, PLUS, MINUS, POINT, ZERO, COLON, LETTER_E = 32, 43, 45, 46, 48, 58, 101
_LOWER_CASE = 32

# Eight times the same byte, or a number for four pairs of digits, two fours, one eight.
_ZEROS = U(0x3030303030303030)
_BEYOND_NINE = U(0x7676767676767676)  # added to a byte above 9, it sets the highest bit
_HIGHEST = U(0x8080808080808080)
_PAIRS = U(0x000000FF000000FF)
_FIRST_PAIRS = U(100 + (1_000_000 << 32))
_SECOND_PAIRS = U(1 + (10_000 << 32))

MOST_DIGITS = 19  # that always fit into 64 bits
_EIGHT_DIGITS = U(10**8)
_WHOLE = U(2**53)
_TEN_TO = 10 ** np.arange(9, dtype=np.uint64)
_EXACT_POWERS = 10.0 ** np.arange(23)  # all of which are doubles
_LARGEST_EXACT = 22

# Below these powers of ten any 19 digits are nearer to 0 than to a double; above, they are infinite.
_SMALLEST_POWER, _LARGEST_POWER = -342, 308
_MANY_BITS = 1024  # of which at least 128 are left when it was divided by the largest power of five
_LEAST = -1074  # the smallest double is 2^-1074
_INFINITY = U(0x7FF << 52)
_HUGE_EXPONENT = 10**17

# More digits than this do not matter, but whether one of them is not 0 does: what lies halfway between two
# doubles has at most 768. The numbers compared then have fewer than 5000 bits.
_DIGITS_COMPARED = 800
_LIMBS = 256
_LIMB_BITS, _LIMB = U(32), U(2**32 - 1)


def _powers_of_five() -> list[tuple[int, int]]:
    """The highest 128 bits of each, rounded down."""
    negative, positive = [2**_MANY_BITS], [2**128]
    while len(negative) <= -_SMALLEST_POWER:
        negative.append(negative[-1] // 5)  # rounding down in every step comes to the same as in the last
    while len(positive) <= _LARGEST_POWER:
        positive.append(positive[-1] * 5)
    bits = [power >> (power.bit_length() - 128) for power in (*negative[:0:-1], *positive)]
    return [(power >> 64, power & (2**64 - 1)) for power in bits]


_FIVES = np.array(_powers_of_five(), np.uint64)


@inline
def word_of(text: Any, p: Any) -> Any:
    """Eight bytes of a text."""
    return word_at(U(text.ctypes.data) + p)


@inline
def digit_values(word: Any) -> Any:
    """Each byte that is a digit becomes its value."""
    return word ^ _ZEROS


@inline
def no_digits(values: Any) -> Any:
    """The highest bit of each byte that is no digit; what follows the first of them is not reliable."""
    return ((values + _BEYOND_NINE) | values) & _HIGHEST


@inline
def whole_number(values: Any) -> Any:
    """Eight digits, the first in the lowest byte, as one number: pairs, then fours, then all."""
    pairs = values * U(10) + (values >> U(8))
    return ((pairs & _PAIRS) * _FIRST_PAIRS + ((pairs >> U(16)) & _PAIRS) * _SECOND_PAIRS) >> U(32)


@inline
def first_digits(values: Any, others: Any) -> tuple[Any, Any]:
    """The number that fewer than eight digits make, and how many there are; `others` is not 0."""
    n = trailing_zeros(others) >> U(3)
    # What follows is shifted out, and zeros come in before. Twice, as a shift by 64 means nothing.
    return whole_number((values << U(1)) << (U(63) - (n << U(3)))), n


@inline
def last_digits(text: Any, stop: Any, n: Any) -> tuple[Any, bool]:
    """The number that the n bytes before `stop` make, and whether these are one to eight digits.

    Eight bytes before `stop` are read.
    """
    others = (U(8) - n) << U(3)
    values = (digit_values(word_of(text, stop - U(8))) >> others) << others
    return whole_number(values), (n - U(1) < U(8)) & (no_digits(values) == U(0))


@inline
def shifted(digit: Any, decimals: Any, n: Any) -> Any:
    """The nearest double to `digit.decimals`, with n decimals, at most eight."""
    return np.float64(digit * _TEN_TO[n] + decimals) / _EXACT_POWERS[n]


@inline
def read_digits(text: Any, p: Any, number: Any) -> tuple[Any, Any]:
    """The number with the digits from p on appended, modulo 2^64, and where they end."""
    values = digit_values(word_of(text, p))
    others = no_digits(values)
    while others == U(0):
        number = number * _EIGHT_DIGITS + whole_number(values)
        p += U(8)
        values = digit_values(word_of(text, p))
        others = no_digits(values)
    last, n = first_digits(values, others)
    return number * _TEN_TO[n] + last, p + n


@inline
def digit_at(text: Any, p: Any) -> Any:
    """The value of a digit; 10 or more for what is none."""
    return U(text[p]) - U(ZERO)


@helper
def read_id(text: Any, p: Any) -> tuple[Any, Any, bool]:
    """A whole number of any length, where it ends, and whether it is below 2^64."""
    while text[p] == ZERO:
        p += U(1)
    number, stop = read_digits(text, p, U(0))
    n = stop - p
    # Of 20 digits, those that fit begin with 1, and have not wrapped around.
    fits = n <= U(MOST_DIGITS) or (n == U(20) and text[p] == ZERO + 1 and number >= U(10**19))
    return number, stop, fits


@helper
def read_exponent(text: Any, p: Any) -> tuple[Any, Any]:
    """The exponent after an e, and where it ends: at p itself if there is none."""
    start, exponent = p, np.int64(0)
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += U(1)
    if digit_at(text, p) > U(9):
        return exponent, start
    # Digit by digit: most exponents are alike, and so what is read next need not wait for the last digit.
    while digit_at(text, p) <= U(9):
        exponent = min(np.int64(10) * exponent + np.int64(digit_at(text, p)), np.int64(_HUGE_EXPONENT))
        p += U(1)
    return -exponent if negative else exponent, p


@helper
def read_number(text: Any, p: Any) -> tuple[float, Any]:
    """A decimal number and where it ends: at p itself if there is none. It may be infinite."""
    start = p
    sign = text[p]
    if sign in (MINUS, PLUS):
        p += U(1)
    first = p
    mantissa, p = read_digits(text, p, U(0))
    n_digits, exponent = p - first, np.int64(0)
    if text[p] == POINT:
        point = p
        mantissa, p = read_digits(text, point + U(1), mantissa)
        exponent = -np.int64(p - point - U(1))
        n_digits = p - first - U(1)
    if n_digits == U(0):
        return 0.0, start
    last = p
    if text[p] | _LOWER_CASE == LETTER_E:
        power, stop = read_exponent(text, p + U(1))
        if stop > p + U(1):
            exponent += power
            p = stop
    fits = n_digits <= U(MOST_DIGITS)
    if fits and mantissa <= _WHOLE and -_LARGEST_EXACT <= exponent <= _LARGEST_EXACT:
        number = np.float64(mantissa)
        if exponent < 0:
            number /= _EXACT_POWERS[U(-exponent)]
        else:
            number *= _EXACT_POWERS[U(exponent)]
    else:
        number = _nearest(text, first, last, fits, mantissa, exponent)
    return -number if sign == MINUS else number, p


@inline
def read_short_number(text: Any, p: Any) -> tuple[float, Any, bool]:
    """What most numbers are, `d` or `d.ddd` with a blank after it; where it ends, and whether it is one."""
    digit, stop = digit_at(text, p), p + U(1)
    number = np.float64(digit)
    if text[stop] == POINT:
        values = digit_values(word_of(text, stop + U(1)))
        others = no_digits(values)
        if others != U(0):
            decimals, n = first_digits(values, others)
            stop += U(1) + n
            number = shifted(digit, decimals, n)
    return number, stop, digit <= U(9) and text[stop] == SPACE


@helper
def _nearest(text: Any, first: Any, last: Any, fits: bool, mantissa: Any, exponent: Any) -> Any:
    """The double nearest to the digits from `first` to `last`, times ten to the exponent."""
    power, more = exponent, False
    if not fits:
        mantissa, power, more = _leading_digits(text, first, last, exponent)
    if mantissa == U(0) or power < _SMALLEST_POWER:
        return 0.0
    if power > _LARGEST_POWER:
        return np.inf
    # The number is mantissa * 5^power * 2^power, and a little more if digits are left out. Bounded from below
    # by the highest 128 bits of the product; from above, by adding `slack` to the higher half of them.
    zeros = leading_zeros(mantissa)
    k = U(power - _SMALLEST_POWER)
    high, low = _times_five_power(mantissa << zeros, _FIVES[k, 0], _FIVES[k, 1])
    slack = (U(1) << zeros) + U(2) if more else U(1)
    # The double below has 53 bits of it, or fewer if it is very small: floor * 2^scale.
    shift = 10 + np.int64(high >> U(63))
    scale = ((217706 * power) >> 16) - np.int64(zeros) + 1 + shift  # 217706 / 2^16 is log2(10), nearly
    if scale < _LEAST:
        shift += _LEAST - scale
        scale = _LEAST
    if shift > 65:
        return 0.0
    floor, above, unclear = U(0), False, True
    if shift < 65:
        half = U(1) << U(shift - 1)
        floor = (high >> U(1)) >> U(shift - 1)
        rest = high & (half + half - U(1))
        above = rest > half or (rest == half and low > U(0))
        unclear = not above and rest + slack >= half
    if unclear:
        above = _is_nearer_above(text, first, last, exponent, floor, scale)
    bits = U(floor + (U(scale - _LEAST) << U(52)) + U(above))
    return bits.view(np.float64) if bits < _INFINITY else np.inf


@helper
def _leading_digits(text: Any, first: Any, last: Any, exponent: int) -> tuple[Any, int, bool]:
    """The first 19 digits that count, their exponent, and whether any but zeros follow."""
    number, n, more = U(0), 0, False
    for p in range(first, last):
        digit = digit_at(text, p)
        if digit > U(9):
            continue
        if n < MOST_DIGITS:
            number = number * U(10) + digit
            n += number > U(0)
        else:
            more |= digit > U(0)
            exponent += 1
    return number, exponent, more


@helper
def _times_five_power(number: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """The highest 128 bits of the product of 64 bits and 128 bits, rounded down."""
    top, middle = _product(number, high)
    carried, _ = _product(number, low)
    middle += carried
    return top + U(middle < carried), middle


@inline
def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """All 128 bits of the product of two numbers, the higher half first."""
    a_high, a_low, b_high, b_low = a >> _LIMB_BITS, a & _LIMB, b >> _LIMB_BITS, b & _LIMB
    middle = a_high * b_low + ((a_low * b_low) >> _LIMB_BITS)
    other = a_low * b_high + (middle & _LIMB)
    return a_high * b_high + (middle >> _LIMB_BITS) + (other >> _LIMB_BITS), a * b


@helper
def _is_nearer_above(text: Any, first: Any, last: Any, exponent: Any, floor: Any, scale: Any) -> Any:
    """Whether the digits, times ten to the exponent, are nearer to (floor + 1) * 2^scale than to
    floor * 2^scale; or as near, and floor is odd. Compares whole numbers of any length, 32 bits a limb."""
    here, there = np.zeros(_LIMBS, np.uint64), np.zeros(_LIMBS, np.uint64)
    n_here, n_there, n_digits, more = 0, 2, 0, False
    for p in range(first, last):
        digit = digit_at(text, p)
        if digit > U(9):
            continue
        if n_digits < _DIGITS_COMPARED:
            n_here = _multiply(here, n_here, U(10), digit)
            n_digits += n_here > 0
        else:
            more |= digit > U(0)
            exponent += 1
    halfway = floor + floor + U(1)  # times 2^(scale - 1)
    there[0], there[1] = halfway & _LIMB, halfway >> _LIMB_BITS
    twos = exponent - (scale - 1)
    n_here = _multiply_by_power(here, n_here, 5, 13, max(exponent, 0))
    n_here = _multiply_by_power(here, n_here, 2, 31, max(twos, 0))
    n_there = _multiply_by_power(there, n_there, 5, 13, max(-exponent, 0))
    n_there = _multiply_by_power(there, n_there, 2, 31, max(-twos, 0))
    for k in range(max(n_here, n_there) - 1, -1, -1):
        if here[k] != there[k]:
            return here[k] > there[k]
    return more or floor & U(1) == U(1)


@helper
def _multiply(limbs: Any, n: int, factor: Any, added: Any) -> Any:
    """Multiply n limbs by a factor below 2^32, and add; returns how many there are then."""
    carry = added
    for k in range(n):
        carry += limbs[k] * factor
        limbs[k] = carry & _LIMB
        carry >>= _LIMB_BITS
    limbs[n] = carry
    return n + (carry > U(0))


@helper
def _multiply_by_power(limbs: Any, n: int, base: int, at_once: int, power: int) -> Any:
    """Multiply by a power of a base of which so many together are below 2^32."""
    for _ in range(power // at_once):
        n = _multiply(limbs, n, U(base**at_once), U(0))
    for _ in range(power % at_once):
        n = _multiply(limbs, n, U(base), U(0))
    return n
