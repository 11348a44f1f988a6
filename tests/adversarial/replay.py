"""Learn again with 60 digits: the hypotheses as the rule means them, and their average.

The steps are those that the rule chooses from exact scalars. They may differ from those of a model whose scalars
were rounded; so the model's own hypotheses, row by row, are kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from maxcosine import Rule

DIGITS = 60

# Squares beyond 10 to this power, or below its inverse, are not given to a rule as they are.
LARGEST_EXPONENT = 150

Weights = list[Decimal]


def exactly(values: Sequence[float] | np.ndarray) -> Weights:
    return [Decimal(float(value)) for value in values]


def inner(a: Weights, b: Weights) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def length(a: Weights) -> Decimal:
    return inner(a, a).sqrt()


def distance(a: Weights, b: Weights) -> Decimal:
    return length([x - y for x, y in zip(a, b, strict=True)])


@dataclass
class Replay:
    """One hypothesis, w = sum of coefficients times examples, as the rule moves it."""

    rule: Rule
    params: Any
    w: Weights
    coef_sum: Decimal = Decimal(0)
    state: tuple[float, ...] = field(default=())

    def margin(self, example: Weights) -> Decimal:
        return inner(self.w, example)

    def learn(self, example: Weights, factor: float) -> None:
        """Take one step, multiplied by the factor of its row."""
        margin, sq_w, sq_x = self.margin(example), inner(self.w, self.w), inner(example, example)
        unit = Decimal(1)
        if self.rule.scale_free and sq_w and abs(sq_w.adjusted()) > LARGEST_EXPONENT:
            # From c w and c Lambda such a rule moves in the same direction: keeps its scalars within float64.
            unit = Decimal(10) ** (sq_w.adjusted() // 2)
        keep, add, self.state = self.rule(
            float(margin / unit),
            float(sq_w / unit**2),
            float(sq_x),
            float(self.coef_sum / unit),
            self.state,
            self.params,
        )
        kept, added = Decimal(keep), Decimal(add) * Decimal(factor) * unit
        self.w = [kept * weight + added * value for weight, value in zip(self.w, example, strict=True)]
        self.coef_sum = kept * self.coef_sum + added if any(self.w) else Decimal(0)


def weight_factors(weights: Sequence[float]) -> Iterator[float]:
    """What the steps of rows are multiplied by: each weight relative to the mean of those so far, within a range."""
    mean = 0.0
    for n, weight in enumerate(weights, start=1):
        mean += (weight - mean) / n
        yield min(max(weight / mean, 1e-12), 1e12)


@dataclass
class AverageError:
    """How far an averaged hypothesis is from the average; all as parts of the length of the average."""

    error: float
    wobble: float
    """How far the steps of the model are from those of the replay: no average is closer than that."""
    cancelled: float
    """The mean of the lengths of the hypotheses."""


def average_error(
    averaged: np.ndarray, own: Sequence[np.ndarray], replayed: Sequence[Weights], free: bool
) -> AverageError:
    """Compare an averaged hypothesis with the mean of those replayed; `own` are the model's at the same times.

    If `free`, lengths mean nothing, and hypotheses are compared at the lengths that fit best.
    """
    with localcontext() as context:
        context.prec = DIGITS
        total = [sum(column, Decimal(0)) for column in zip(*replayed, strict=True)]
        norm = length(total)
        if not norm:
            return AverageError(0.0, float("inf"), float("inf"))
        wobble = sum((_misfit(exactly(w), right, free) for w, right in zip(own, replayed, strict=True)), Decimal(0))
        rounds = Decimal(1 if free else len(replayed))
        error = _misfit([weight * rounds for weight in exactly(averaged)], total, free)
        lengths = sum(map(length, replayed), Decimal(0))
        return AverageError(*(float(value / norm) for value in (error, wobble, lengths)))


def _misfit(w: Weights, right: Weights, free: bool) -> Decimal:
    square = inner(w, w)
    if free and square:
        fit = inner(w, right) / square
        w = [fit * weight for weight in w]
    return distance(w, right)
