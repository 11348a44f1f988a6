"""The few machine instructions that Numba does not write by itself.

Ask for a weight before it is needed, call a rule by its address, and work on four numbers at a time in
one vector register. Here is what each does, as plain Python; `native_code` writes the instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import native

LANES = 4
"""Heads in one vector; the weights are padded to a multiple of it."""


@native
def prefetch(v: Any, slot: Any) -> None:
    """Ask the memory for the weights of `slot`, which a later row will read and write."""


@native
def only_column(v: Any) -> Any:
    """The column of a matrix that has one, as a vector."""
    return v.reshape(-1)


@native
def call_rule(entry: Any, *arguments: Any) -> None:
    """Call the rule at address `entry`; it writes its state, and keep and add into `move`."""
    entry(*arguments)


@native
def zero_lanes() -> Any:
    """Four zeros."""
    return np.zeros(LANES)


@native
def multiply_add(lanes: Any, x: Any, v: Any, slot: Any, head: Any) -> Any:
    """lanes + x * v[slot, head : head + 4], each product and sum rounded to float64."""
    return lanes + x * v[slot, head : head + LANES].astype(np.float64)


@native
def gather_multiply_add(lanes: Any, x: Any, v: Any, slots: Any, k: Any) -> Any:
    """lanes + x[k : k + 4] * v[slots[k : k + 4], 0], each product and sum rounded to float64."""
    weights = v[slots[k : k + LANES], 0].astype(np.float64)
    return lanes + x[k : k + LANES].astype(np.float64) * weights


@native
def add_squares(lanes: Any, x: Any, k: Any) -> Any:
    """lanes + x[k : k + 4]^2, each product and sum rounded to float64."""
    return lanes + np.square(x[k : k + LANES], dtype=np.float64)


@native
def add_lanes(a: Any, b: Any) -> Any:
    """a + b."""
    return a + b


@native
def sum_lanes(lanes: Any) -> Any:
    """(first + second) + (third + fourth)."""
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


@native
def store_lanes(scores: Any, head: Any, lanes: Any) -> None:
    """scores[head : head + 4] = lanes."""
    scores[head : head + LANES] = lanes
