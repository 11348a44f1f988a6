"""The only loop over examples, for every rule, every storage and any number of heads.

Each example costs time linear in its non-zeros. A sum over the non-zeros of a row runs in four
lanes, the k-th non-zero in lane k mod 4 and the last few apart, in this order for one head and for
many: so that dense rows, sparse rows and any cutting into chunks give the same bits.

Averaging. The sum over time of w_t = s_t v_t is S v + total, where S is the sum of the scales so
far, if total loses S times whatever is added to v: so only what an update touches is written. The
two parts cancel where w has shrunk and S has not; then S v is moved into total, and S starts anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxcosine.compiled import helper, inline, jit
from maxcosine.engine.heads import Arrays
from maxcosine.engine.native import (
    LANES,
    add_lanes,
    add_squares,
    borrow,
    call_rule,
    gather_multiply_add,
    multiply_add,
    prefetch,
    store_lanes,
    sum_lanes,
    zero_lanes,
)

# What ended a sweep.
FINISHED, NOT_CANONICAL, BAD_ROW, BAD_STEP = 0, 1, 2, 3

# Weights larger than this, in bytes, do not stay in the second-level cache: rows ask for theirs
# one row ahead.
PREFETCH_FROM = 2**19
ROWS_AHEAD = 1

# sq_v is tracked by its increments. It is computed anew when cancellation has eaten four of its
# digits, and when as many non-zeros were written as computing it costs.
CANCELLATION = 1e-4
REFRESH_FROM = 2**20

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

# Dense rows are packed into blocks of about this many values, which fit the second-level cache.
BLOCK_VALUES = 2**17


@inline
def square_norm(x: Any) -> Any:
    """The square norm of a contiguous row."""
    stop = len(x) - len(x) % LANES
    lanes, rest = zero_lanes(), 0.0
    for k in range(0, stop, LANES):
        lanes = add_squares(lanes, x, k)
    for k in range(stop, len(x)):
        rest += np.float64(x[k]) * np.float64(x[k])
    return sum_lanes(lanes) + rest


@inline
def is_canonical(slots: Any, n_features: int) -> bool:
    """Whether the slots, unsigned, rise strictly and lie within the features.

    Asked here, where a row is in the cache anyway; so no index can lead outside the weights.
    """
    rising = True
    for k in range(1, len(slots)):
        rising &= slots[k] > slots[k - 1]
    return rising and (len(slots) == 0 or slots[len(slots) - 1] < n_features)


@helper
def is_zero(x: Any) -> bool:
    """All values are zero; a square norm of 0 may also be an underflow."""
    return not np.any(x != 0.0)


@inline
def score_one_head(slots: Any, x: Any, v: Any) -> Any:
    stop = len(x) - len(x) % LANES
    lanes, rest = zero_lanes(), 0.0
    for k in range(0, stop, LANES):
        lanes = gather_multiply_add(lanes, x, v, slots, k)
    for k in range(stop, len(x)):
        rest += np.float64(x[k]) * v[slots[k], 0]
    return sum_lanes(lanes) + rest


@inline
def score_four_heads(slots: Any, x: Any, v: Any, h: int) -> Any:
    stop = len(x) - len(x) % LANES
    s0, s1, s2, s3, rest = zero_lanes(), zero_lanes(), zero_lanes(), zero_lanes(), zero_lanes()
    for k in range(0, stop, LANES):
        s0 = multiply_add(s0, np.float64(x[k]), v, slots[k], h)
        s1 = multiply_add(s1, np.float64(x[k + 1]), v, slots[k + 1], h)
        s2 = multiply_add(s2, np.float64(x[k + 2]), v, slots[k + 2], h)
        s3 = multiply_add(s3, np.float64(x[k + 3]), v, slots[k + 3], h)
    for k in range(stop, len(x)):
        rest = multiply_add(rest, np.float64(x[k]), v, slots[k], h)
    return add_lanes(add_lanes(add_lanes(s0, s1), add_lanes(s2, s3)), rest)


@inline
def add_row(weights: Any, constants: Any, h: int, slots: Any, x: Any, constant: float, factor: float) -> None:
    """Add factor times a row to one head, in the arithmetic of the weights."""
    typed = x.dtype.type(factor)
    for k in range(len(x)):
        weights[slots[k], h] += typed * x[k]
    constants[h] += constants.dtype.type(factor * constant)


@helper
def exact_square_norm(heads: Any, h: int) -> Any:
    v, n = heads.v, heads.table[h]["highest"] + 1
    constant = np.float64(heads.bias[h])
    if v.shape[1] == 1:
        return square_norm(v.reshape(-1)[:n]) + constant * constant
    # Lane by lane as square_norm does it, for weights that are not neighbours.
    sums, rest = np.zeros(LANES), 0.0
    for slot in range(n - n % LANES):
        sums[slot % LANES] += np.float64(v[slot, h]) * np.float64(v[slot, h])
    for slot in range(n - n % LANES, n):
        rest += np.float64(v[slot, h]) * np.float64(v[slot, h])
    return ((sums[0] + sums[1]) + (sums[2] + sums[3]) + rest) + constant * constant


@helper
def forget(heads: Any, h: int) -> None:
    """w = 0, at the cost of what was written since it was last 0."""
    head = heads.table[h]
    averaging = heads.total.shape[0] > 0
    factor = heads.total.dtype.type(head["sum_scale"])
    logged = 0 < head["logged"] <= heads.log.shape[1]
    for k in range(head["logged"] if logged else head["highest"] + 1):
        slot = np.int64(heads.log[h, k]) if logged else k
        if averaging:
            heads.total[slot, h] += factor * heads.v[slot, h]
        heads.v[slot, h] = 0.0
    heads.total_bias[h] += factor * heads.bias[h]
    heads.bias[h] = 0.0
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
    factor = heads.total.dtype.type(head["sum_scale"])
    for slot in range(head["highest"] + 1):
        heads.total[slot, h] += factor * heads.v[slot, h]
    heads.total_bias[h] += factor * heads.bias[h]
    head["sum_scale"] = 0.0


@helper
def rescale(heads: Any, h: int, exponent: int) -> None:
    """v <- v / 2^exponent and scale * 2^exponent: exact, w is the same."""
    head = heads.table[h]
    factor = math.ldexp(1.0, -exponent)
    typed = heads.v.dtype.type(factor)
    for slot in range(head["highest"] + 1):
        heads.v[slot, h] *= typed
    heads.bias[h] *= typed
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
    return cancelled or head["written"] > max(REFRESH_FROM, head["highest"] + 1)


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
    """w <- keep * w, which costs nothing; w = 0 stays what it is. False if the weights overflow."""
    if head["sq_v"] > 0.0:
        head["scale"] *= keep
    if head["scale"] < SMALLEST_SCALE:
        forget(heads, h)
    return head["scale"] * head["scale"] * head["sq_v"] <= limits.high_sq_w


@inline
def plan_step(heads: Any, limits: Any, h: int, head: Any, add: float, dot: float, sq_x: float) -> Any:
    """The length of the step beside v, and sq_v after it; nan if the weights overflow."""
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
        return math.nan
    head["sq_v"] = sq_v
    return step


@inline
def count_step(heads: Any, limits: Any, h: int, head: Any, slots: Any, step: float, sq_x: float) -> None:
    """The scalars after a step has been written."""
    head["coef_v"] += step
    head["peak_sq_v"] = max(head["peak_sq_v"], head["sq_v"])
    head["written"] += len(slots)
    head["highest"] = max(head["highest"], np.int64(slots[len(slots) - 1]))
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


@inline
def borrow_all(heads: Any) -> Any:
    return Arrays(
        borrow(heads.v),
        borrow(heads.bias),
        borrow(heads.total),
        borrow(heads.total_bias),
        borrow(heads.table),
        borrow(heads.state),
        borrow(heads.params),
        borrow(heads.rules),
        borrow(heads.log),
    )


@jit
def sweep(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
    codes: Any,
    constant: float,
    limits: Any,
    heads: Any,
) -> tuple[int, int, int]:
    """Learn from the rows named by `order`, in that order, in every head.

    Returns how many rows were finished, what ended the sweep, and in which head.
    """
    indptr, indices, data = borrow(indptr), borrow(indices), borrow(data)
    heads = borrow_all(heads)
    v, bias, total, total_bias, table, state, params, rules, log = heads
    averaging, logging = total.shape[0] > 0, log.shape[0] > 0
    far = v.size * v.itemsize > PREFETCH_FROM
    scores, move = np.empty(v.shape[1]), np.empty(2)
    for position in range(len(order)):
        row = order[position]
        if far and position + ROWS_AHEAD < len(order):
            ahead = order[position + ROWS_AHEAD]
            for slot in indices[indptr[ahead] : indptr[ahead + 1]]:
                prefetch(v, slot)
        x = data[indptr[row] : indptr[row + 1]]
        slots = indices[indptr[row] : indptr[row + 1]]
        if not is_canonical(slots, v.shape[0]):
            return position, NOT_CANONICAL, 0
        sq_x = square_norm(x)
        if sq_x == 0.0 and is_zero(x):
            for h in range(len(table)):
                table[h]["seen"] += 1
            continue
        if not limits.low_sq_x <= sq_x <= limits.high_sq_x:
            return position, BAD_ROW, 0
        sq_x += constant * constant
        if v.shape[1] == 1:
            scores[0] = score_one_head(slots, x, v)
        else:
            for h in range(0, v.shape[1], LANES):
                store_lanes(scores, h, score_four_heads(slots, x, v, h))

        for h in range(len(table)):
            head = table[h]
            y = 1.0 if codes[row] == head["positive"] else -1.0
            scale = head["scale"]
            dot = y * (scores[h] + constant * bias[h])
            margin, sq_w, coef_sum = scale * dot, scale * scale * head["sq_v"], scale * head["coef_v"]
            move[0], move[1] = math.nan, math.nan  # what a rule that raises an error leaves behind
            call_rule(rules[h], margin, sq_w, sq_x, coef_sum, state[h], params[h], move)
            keep, add = move[0], move[1]
            finite = 0.0 <= keep < math.inf and 0.0 <= add < math.inf
            if not finite or (keep != 1.0 and not shrink(heads, limits, h, head, keep)):
                return position, BAD_STEP, h
            if averaging and head["sum_scale"] > LARGEST_DEBT * head["scale"] * (head["learnt"] + 1):
                head["sum_slack"] += debt_rounding(head, limits)
                pay_debt(heads, h)
            if add > 0.0:
                step = plan_step(heads, limits, h, head, add, dot, sq_x)
                if not step >= 0.0:
                    return position, BAD_STEP, h
                add_row(v, bias, h, slots, x, constant, step * y)
                if averaging:
                    head["sum_slack"] += debt_rounding(head, limits)
                    add_row(total, total_bias, h, slots, x, constant, -head["sum_scale"] * step * y)
                if logging:
                    remember_slots(log, h, head, slots)
                count_step(heads, limits, h, head, slots, step, sq_x)
            head["seen"] += 1
            head["learnt"] += 1
            head["mistakes"] += margin <= 0.0
            if averaging:
                head["sum_scale"] += head["scale"]
                head["sum_coef"] += head["scale"] * head["coef_v"]
                head["sum_norm"] += head["scale"] * math.sqrt(head["sq_v"])
                head["sum_slack"] += head["scale"] * head["slack_v"]
    return len(order), FINISHED, 0


@helper
def pack(x: Any, order: Any, indptr: Any, indices: Any, data: Any) -> None:
    """The non-zeros of the dense rows named by `order`, as sparse rows."""
    end = 0
    for position in range(len(order)):
        row = x[order[position]]
        for column in range(len(row)):
            # Written always and kept if not zero: a branch here would be mispredicted.
            indices[end] = column
            data[end] = row[column]
            end += row[column] != 0.0
        indptr[position + 1] = end


@jit
def sweep_dense(
    x: Any, order: Any, codes: Any, constant: float, limits: Any, heads: Any
) -> tuple[int, int, int]:
    """`sweep` over the rows of a dense array, packed block by block into sparse ones."""
    n_columns = x.shape[1]
    rows = max(1, BLOCK_VALUES // max(1, n_columns))
    indptr = np.zeros(rows + 1, np.int64)
    indices = np.empty(rows * n_columns + 1, np.uint32)
    data = np.empty(rows * n_columns + 1, x.dtype)
    for start in range(0, len(order), rows):
        block = order[start : start + rows]
        pack(x, block, indptr, indices, data)
        done, fault, head = sweep(
            indptr, indices, data, np.arange(len(block)), codes[block], constant, limits, heads
        )
        if fault != FINISHED:
            return start + done, fault, head
    return len(order), FINISHED, 0
