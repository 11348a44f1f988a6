"""The only loop over examples, for every rule, every storage and any number of heads.

Each example costs time linear in its non-zeros, in every column of the weights.

One-vs-rest: head h has column h, and its example is y x with y = 1 for its class, else -1. A head
whose class has not come yet waits; it is born with the first row that carries it.

Joint: one head has all columns, one a class; its example is x in the column of its class and -x in
that of the best wrong class, so its square norm is twice that of x (Kesler's construction).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxcosine.compiled import borrow, helper, inline, kernel, not_literally
from maxcosine.engine.arithmetic import (
    BLOCK_VALUES,
    add_debt,
    add_row,
    highest_slot,
    is_canonical,
    is_zero,
    pack,
    score_all,
    square_norm,
)
from maxcosine.engine.books import (
    LARGEST_DEBT,
    count_step,
    debt_rounding,
    pay_debt,
    plan_step,
    remember_slots,
    shrink,
)
from maxcosine.engine.heads import MOVE, Arrays
from maxcosine.engine.native import call_rule, prefetch

# What ended a sweep.
FINISHED, NOT_CANONICAL, BAD_ROW, BAD_STEP = 0, 1, 2, 3

# Weights larger than this, in bytes, do not stay in the second-level cache: rows ask for theirs
# some rows ahead.
PREFETCH_FROM = 2**21
ROWS_AHEAD = 2


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
        borrow(heads.came),
        borrow(heads.scratch),
    )


@helper
def give_birth(table: Any, came: Any, code: int) -> None:
    """This class has come; the head that waited for it, if one did, begins."""
    came[code] = 1
    for h in range(len(table)):
        if table[h]["since"] < 0 and table[h]["positive"] == code:
            table[h]["since"] = table[h]["seen"]


@inline
def see(table: Any) -> None:
    """Count a row from which no head learns."""
    for h in range(len(table)):
        table[h]["seen"] += 1


@inline
def best_rival(scores: Any, bias: Any, constant: float, code: int, n_classes: int, came: Any) -> int:
    """The wrong class of the highest score, the first of equals; -1 if no other class has come."""
    rival, highest = -1, -math.inf
    for other in range(n_classes):
        score = scores[other] + constant * bias[other]
        if other != code and came[other] != 0 and score > highest:
            rival, highest = other, score
    return rival


@inline
def predict(scores: Any, bias: Any, constant: float, table: Any, joint: bool, came: Any) -> int:
    """The class that the last hypotheses predict, the first of equals, as `Model.predicted_codes` does."""
    if not joint and len(table) == 1:
        return table[0]["positive"] if scores[0] + constant * bias[0] > 0.0 else 0
    best, highest = 0, -math.inf
    for c in range(table[0]["stop"] if joint else len(table)):
        score = scores[c] + constant * bias[c]
        if not joint:
            head = table[c]
            if head["since"] < 0:
                continue
            if not head["scale_free"]:
                score *= head["scale"]
            elif head["coef_v"] > 0.0:
                score /= head["coef_v"]
        if came[c] != 0 and score > highest:
            best, highest = c, score
    return best


@kernel
def sweep(
    indptr: Any,
    indices: Any,
    data: Any,
    squares: Any,
    order: Any,
    codes: Any,
    weights: Any,
    predicted: Any,
    mapped: bool,
    constant: float,
    limits: Any,
    heads: Any,
) -> tuple[int, int, int]:
    """Learn from the rows named by `order`, in that order, in every head.

    `squares` are the square norms of the rows, or it is empty, and they are found here; `weights` multiply
    the steps, or are empty; `predicted` takes the class of each row that is predicted before it is learnt
    from, or is empty; `mapped` says that the indices are slots of an index: within bounds and each once in
    a row, but in any order. Returns how many rows were finished, what ended the sweep, and in which head.
    """
    indptr, indices, data = borrow(indptr), borrow(indices), borrow(data)
    codes, weights, predicted = borrow(codes), borrow(weights), borrow(predicted)
    squares, heads = borrow(squares), borrow_all(heads)
    v, bias, total, total_bias, table, state, params, rules, log, came, scratch = heads
    averaging, logging, weighted = total.shape[0] > 0, log.shape[0] > 0, len(weights) > 0
    predicting, measured = len(predicted) > 0, len(squares) > 0
    joint = table[0]["joint"] != 0
    far = v.size * v.itemsize > PREFETCH_FROM
    # Not arrays of its own, which would be reference-counted wherever they are handed over.
    move, scores, rival = scratch[:MOVE], scratch[MOVE:], -1
    for position in range(len(order)):
        row = order[position]
        if far and position + ROWS_AHEAD < len(order):
            ahead = order[position + ROWS_AHEAD]
            for slot in indices[indptr[ahead] : indptr[ahead + 1]]:
                prefetch(v, slot)
        x = data[indptr[row] : indptr[row + 1]]
        slots = indices[indptr[row] : indptr[row + 1]]
        if not mapped and not is_canonical(slots, v.shape[0]):
            return position, NOT_CANONICAL, 0
        sq_x = squares[row] if measured else square_norm(x)
        if predicting:
            score_all(slots, x, v, scores)
            predicted[row] = predict(scores, bias, constant, table, joint, came)
        if came[codes[row]] == 0:
            give_birth(table, came, codes[row])
        weight = weights[row] if weighted else 1.0
        if (sq_x == 0.0 and is_zero(x)) or weight == 0.0:
            see(table)
            continue
        if not limits.low_sq_x <= sq_x <= limits.high_sq_x:
            return position, BAD_ROW, 0
        sq_x += constant * constant
        if not predicting:
            score_all(slots, x, v, scores)
        if joint:
            sq_x *= 2.0
            rival = best_rival(scores, bias, constant, codes[row], table[0]["stop"], came)

        for h in range(len(table)):
            head = table[h]
            if head["since"] < 0 or (joint and rival < 0):
                head["seen"] += 1
                continue
            if joint:
                right, y = codes[row], 1.0
                dot = scores[right] - scores[rival] + constant * (bias[right] - bias[rival])
            else:
                right, y = h, (1.0 if codes[row] == head["positive"] else -1.0)
                dot = y * (scores[h] + constant * bias[h])
            scale = head["scale"]
            margin, sq_w, coef_sum = scale * dot, scale * scale * head["sq_v"], scale * head["coef_v"]
            move[0], move[1] = math.nan, math.nan  # what a rule that raises an error leaves behind
            call_rule(rules[h], margin, sq_w, sq_x, coef_sum, state[h], params[h], move)
            keep, add = move[0], move[1]
            if not (0.0 <= keep < math.inf and 0.0 <= add < math.inf):
                return position, BAD_STEP, h
            if weight != 1.0:
                head["weighted"] = 1
                add *= weight
            if keep != 1.0 and not shrink(heads, limits, h, head, keep):
                return position, BAD_STEP, h
            if averaging and head["sum_scale"] > LARGEST_DEBT * head["scale"] * (head["learnt"] + 1):
                head["sum_slack"] += debt_rounding(head, limits)
                pay_debt(heads, h)
            step = plan_step(heads, limits, h, head, add, dot, sq_x) if add > 0.0 else 0.0
            if not step >= 0.0:
                return position, BAD_STEP, h
            if step > 0.0:
                add_row(v, bias, right, slots, x, constant, step * y)
                if joint:
                    add_row(v, bias, rival, slots, x, constant, -step)
                if averaging:
                    head["sum_slack"] += debt_rounding(head, limits)
                    owed = -head["sum_scale"] * step
                    add_debt(total, total_bias, right, slots, x, constant, owed * y)
                    if joint:
                        head["sum_slack"] += debt_rounding(head, limits)
                        add_debt(total, total_bias, rival, slots, x, constant, -owed)
                if logging:
                    remember_slots(log, h, head, slots)
                highest = highest_slot(slots) if mapped else np.int64(slots[len(slots) - 1])
                count_step(heads, limits, h, head, len(slots), highest, step, sq_x)
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
def _taken(values: Any, rows: Any) -> Any:
    """values[rows], which Numba would write so that it can tell of rows that do not exist."""
    taken = np.empty(len(rows), values.dtype)
    for k in range(len(rows)):
        taken[k] = values[rows[k]]
    return taken


@kernel
def sweep_dense(
    x: Any,
    order: Any,
    codes: Any,
    weights: Any,
    predicted: Any,
    constant: float,
    limits: Any,
    heads: Any,
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
        found = np.empty(len(block) if len(predicted) > 0 else 0, np.int64)
        done, fault, head = sweep(
            indptr,
            indices,
            data,
            np.empty(0),
            np.arange(len(block)),
            _taken(codes, block),
            _taken(weights, block) if len(weights) > 0 else weights,
            found,
            not_literally(False),
            constant,
            limits,
            heads,
        )
        for k in range(done if len(predicted) > 0 else 0):
            predicted[block[k]] = found[k]
        if fault != FINISHED:
            return start + done, fault, head
    return len(order), FINISHED, 0
