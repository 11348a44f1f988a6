"""The books of one head: what a step does to its scalars, and what keeps them exact and in range.

Averaging. The sum over time of w_t = s_t v_t is S v + total, where S is the sum of the scales so
far, if total loses S times whatever is added to v: so only what an update touches is written. The
two parts cancel where w has shrunk and S has not; then S v is moved into total, and S starts anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxcosine.compiled import helper, inline
from maxcosine.engine.arithmetic import square_norm
from maxcosine.engine.native import LANES, only_column

# sq_v is tracked by its increments. It is computed anew when cancellation has eaten four of its
# digits, and when so many non-zeros were written that beside them computing it costs nothing.
CANCELLATION = 1e-4
REFRESH_FROM = 2**20
WRITTEN_A_WEIGHT = 4

# A hypothesis that has decayed this far is 0; so is one beside which a step is 2^100 times as long.
SMALLEST_SCALE = 2.0**-900
LARGEST_STEP_EXPONENT = 100

# Rules read a Lambda / norm(w) of at most this, relative to the longest example.
LARGEST_READ = 2.0**200

# Within these, relative to its start, a w whose length means nothing keeps the length that its rule
# gave it.
SHORTEST_SQ_W, LONGEST_SQ_W = 2.0**-40, 2.0**40
SHORTEST_SQ_START, LONGEST_SQ_START = 1e-12, 1e12

# S v may be this many times what as many rounds with the present w would have brought it to.
LARGEST_DEBT = 16.0


@helper
def column_square_norm(v: Any, column: int, n: int) -> Any:
    """The square norm of the first n weights of a column, lane by lane as square_norm does it."""
    if v.shape[1] == 1:
        return square_norm(only_column(v)[:n])
    sums, rest = np.zeros(LANES), 0.0
    for slot in range(n - n % LANES):
        sums[slot % LANES] += np.float64(v[slot, column]) * np.float64(v[slot, column])
    for slot in range(n - n % LANES, n):
        rest += np.float64(v[slot, column]) * np.float64(v[slot, column])
    return (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest


@helper
def exact_square_norm(heads: Any, h: int) -> Any:
    head, total = heads.table[h], 0.0
    for column in range(head["first"], head["stop"]):
        constant = np.float64(heads.bias[column])
        total += column_square_norm(heads.v, column, head["highest"] + 1) + constant * constant
    return total


@inline
def owe(total: Any, slot: Any, column: int, factor: float, weight: Any) -> None:
    """Add factor * weight to a sum over time. The factor alone may be beyond float32."""
    total[slot, column] += total.dtype.type(factor * np.float64(weight))


@helper
def forget(heads: Any, h: int) -> None:
    """w = 0, at the cost of what was written since it was last 0."""
    head = heads.table[h]
    averaging, factor = heads.total.shape[0] > 0, head["sum_scale"]
    logged = 0 < head["logged"] <= heads.log.shape[1]
    for k in range(head["logged"] if logged else head["highest"] + 1):
        slot = np.int64(heads.log[h, k]) if logged else k
        for column in range(head["first"], head["stop"]):
            if averaging:
                owe(heads.total, slot, column, factor, heads.v[slot, column])
            heads.v[slot, column] = 0.0
    for column in range(head["first"], head["stop"]):
        heads.total_bias[column] += heads.bias.dtype.type(factor * heads.bias[column])
        heads.bias[column] = 0.0
    head["scale"] = 1.0
    head["sq_v"] = 0.0
    head["coef_v"] = 0.0
    head["claim_v"] = 0.0
    head["slack_v"] = 0.0
    head["start_sq_w"] = 0.0
    head["peak_sq_v"] = 0.0
    head["written"] = 0
    head["highest"] = -1
    head["logged"] = 0
    head["sum_scale"] = 0.0


@helper
def pay_debt(heads: Any, h: int) -> None:
    """Move S v into total; see Averaging above."""
    head = heads.table[h]
    factor = head["sum_scale"]
    for slot in range(head["highest"] + 1):
        for column in range(head["first"], head["stop"]):
            owe(heads.total, slot, column, factor, heads.v[slot, column])
    for column in range(head["first"], head["stop"]):
        heads.total_bias[column] += heads.bias.dtype.type(factor * heads.bias[column])
    head["sum_scale"] = 0.0


@helper
def rescale(heads: Any, h: int, exponent: int) -> None:
    """v <- v / 2^exponent and scale * 2^exponent: exact, w is the same."""
    head = heads.table[h]
    factor = math.ldexp(1.0, -exponent)
    typed = heads.v.dtype.type(factor)
    for slot in range(head["highest"] + 1):
        for column in range(head["first"], head["stop"]):
            heads.v[slot, column] *= typed
    for column in range(head["first"], head["stop"]):
        heads.bias[column] *= typed
    head["scale"] /= factor
    head["sq_v"] *= factor * factor
    head["coef_v"] *= factor
    head["claim_v"] *= factor
    head["slack_v"] *= factor
    head["peak_sq_v"] *= factor * factor
    head["sum_scale"] /= factor


@inline
def step_exponent(add: float, sq_x: float, scale: float) -> int:
    """The power of two next to the length of the step relative to the scale."""
    return math.frexp(add)[1] + math.frexp(sq_x)[1] // 2 - math.frexp(scale)[1]


@helper
def make_room(heads: Any, h: int, add: float, sq_x: float) -> float:
    """Rescale v so that a step that is long beside it fits; returns by what v was multiplied."""
    head = heads.table[h]
    exponent = step_exponent(add, sq_x, head["scale"])
    if exponent > LARGEST_STEP_EXPONENT:
        forget(heads, h)
        head["scale"] = math.ldexp(1.0, step_exponent(add, sq_x, 1.0))
        return 0.0
    exponent = max(exponent, math.frexp(head["sq_v"])[1] // 2)
    rescale(heads, h, exponent)
    return math.ldexp(1.0, -exponent)


@inline
def remember_slots(log: Any, h: int, head: Any, slots: Any) -> None:
    start = head["logged"]
    if start <= log.shape[1]:
        if start + len(slots) <= log.shape[1]:
            for k in range(len(slots)):
                log[h, start + k] = slots[k]
        head["logged"] = start + len(slots)


@helper
def refresh(heads: Any, limits: Any, h: int) -> None:
    """Compute sq_v anew from the weights, and keep it in range."""
    head = heads.table[h]
    head["sq_v"] = exact_square_norm(heads, h)
    head["peak_sq_v"] = head["sq_v"]
    head["written"] = 0
    if head["sq_v"] == 0.0:
        # The origin is in the hull: nothing separates. w = 0 is where a rule starts.
        head["best_bound"] = max(head["best_bound"], 1.0 / (limits.eps * head["radius"]))
        forget(heads, h)
    elif head["sq_v"] < limits.low_sq_v:
        rescale(heads, h, math.frexp(head["sq_v"])[1] // 2)


@inline
def debt_rounding(head: Any, limits: Any) -> Any:
    """What rounding may do to total in one write: total is at most the sum of the norms and S v."""
    longest_v = math.sqrt(max(head["sq_v"], head["peak_sq_v"]))
    return limits.eps * (head["sum_norm"] + 2.0 * head["sum_scale"] * longest_v)


@inline
def must_refresh(head: Any, limits: Any) -> bool:
    sq_v = head["sq_v"]
    cancelled = not (sq_v >= CANCELLATION * head["peak_sq_v"] and sq_v >= limits.low_sq_v)
    return cancelled or head["written"] > max(REFRESH_FROM, WRITTEN_A_WEIGHT * (head["highest"] + 1))


@inline
def certify(head: Any, limits: Any) -> None:
    """ell = Lambda / norm(w), and the largest so far.

    1 / ell is known up to rounding relative to the longest example, so a larger ell is not claimed;
    a Lambda smaller than the true one keeps every claim true. Rules go on reading the true one,
    held where float64 ends on data that nothing separates. The combination that v stands for may be
    longer than v by what rounding took from it.
    """
    norm_v = math.sqrt(head["sq_v"])
    if norm_v > 0.0:
        readable = LARGEST_READ * norm_v / head["radius"]
        if head["coef_v"] > readable:
            # (norm + slack) / Lambda only rises when both slack and Lambda shrink alike.
            head["slack_v"] *= readable / head["coef_v"]
            head["coef_v"] = readable
        bound = head["coef_v"] / (norm_v + head["slack_v"])
        bound = min(bound, 1.0 / (limits.eps * head["radius"]))
        head["claim_v"] = bound * norm_v
        head["best_bound"] = max(head["best_bound"], bound)


@inline
def hold_length(head: Any) -> None:
    """Where the length of w means nothing, keep it within reach: on noise it shrinks without end.

    In reach of where it started, so that scaling all examples changes nothing.
    """
    sq_w = head["scale"] * head["scale"] * head["sq_v"]
    if not head["scale_free"] or sq_w == 0.0:
        return
    wanted = head["start_sq_w"]
    if wanted == 0.0:
        wanted = min(max(sq_w, SHORTEST_SQ_START), LONGEST_SQ_START)
        head["start_sq_w"] = wanted
        held = sq_w == wanted
    else:
        held = SHORTEST_SQ_W * wanted <= sq_w <= LONGEST_SQ_W * wanted
    if not held:
        head["scale"] = math.ldexp(head["scale"], (math.frexp(wanted)[1] - math.frexp(sq_w)[1]) // 2)


@inline
def shrink(heads: Any, limits: Any, h: int, head: Any, keep: float) -> Any:
    """w <- keep * w, which costs nothing; w = 0 stays what it is. False if the weights overflow.

    Where examples are weighted, w is held at half of what the weights can carry instead.
    """
    if head["sq_v"] > 0.0:
        head["scale"] *= keep
    if head["scale"] < SMALLEST_SCALE:
        forget(heads, h)
    fits = head["scale"] * head["scale"] * head["sq_v"] <= limits.high_sq_w
    if not fits and head["weighted"]:
        head["scale"] = math.sqrt(limits.high_sq_w / head["sq_v"]) / 2.0
        fits = True
    return fits


@inline
def plan_step(heads: Any, limits: Any, h: int, head: Any, add: float, dot: float, sq_x: float) -> Any:
    """The length of the step beside v, and sq_v after it; nan if the weights overflow.

    Where examples are weighted, such a step is not taken: it is 0.
    """
    if head["weighted"] and not add < math.inf:
        return 0.0
    if head["sq_v"] == 0.0:
        # v starts with a norm of about 1
        head["scale"] = math.ldexp(1.0, step_exponent(add, sq_x, 1.0))
        dot = 0.0
    step = add / head["scale"]
    sq_v = head["sq_v"] + step * (2.0 * dot + step * sq_x)
    if not sq_v <= limits.high_sq_v:
        dot *= make_room(heads, h, add, sq_x)
        step = add / head["scale"]
        sq_v = head["sq_v"] + step * (2.0 * dot + step * sq_x)
    if not head["scale"] * head["scale"] * sq_v <= limits.high_sq_w:
        return 0.0 if head["weighted"] else math.nan
    head["sq_v"] = sq_v
    return step


@inline
def count_step(
    heads: Any, limits: Any, h: int, head: Any, n_written: int, highest: Any, step: float, sq_x: float
) -> None:
    """The scalars after a step has been written, to slots up to `highest`."""
    head["coef_v"] += step
    head["peak_sq_v"] = max(head["peak_sq_v"], head["sq_v"])
    head["written"] += n_written
    head["highest"] = max(head["highest"], highest)
    head["radius"] = max(head["radius"], math.sqrt(sq_x))
    head["updates"] += 1
    if must_refresh(head, limits):
        refresh(heads, limits, h)
    if head["sq_v"] > 0.0:
        # Each weight written is rounded, and so were the step and its product with the row; twice,
        # for the norm that is tracked besides.
        head["slack_v"] += limits.eps * (math.sqrt(head["sq_v"]) + 2.0 * step * math.sqrt(sq_x))
    certify(head, limits)
    hold_length(head)
