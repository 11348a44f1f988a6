"""What the wrong predictions so far prove about the true error, at every moment at once.

Each example is predicted before it is learnt. Let p_i be the probability of an error on example i, given what came
before it. For any fixed lambda, exp(lambda S_t - sum of psi(p_i)) with psi(p) = log(1 - p + p e^lambda) is a martingale
that starts at 1, where S_t counts the errors. psi is concave, so the sum is at most t psi(p) for the mean p of the p_i.
By Ville's inequality, the mean over several lambda exceeds 2 / alpha at some time with probability at most alpha / 2.
The p for which it does not, for positive and for negative lambda, are an interval that covers the mean of the p_i at
all times at once with probability 1 - alpha: one may look after every example, and stop when one likes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maxcosine.certificate_text import rounded_down, rounded_up

LAMBDAS = 2.0 ** np.arange(-8, 3)
"""The lambdas of one side, with equal weights; they must not depend on the errors."""
BISECTIONS = 60
DIGITS = 3


def log_wealth(wrong: Any, judged: Any, p: Any, lambdas: np.ndarray) -> Any:
    """Return the logarithm of the mean over lambda of exp(lambda wrong - judged psi(p)); arrays are taken as well."""
    wrong, judged, p = (np.asarray(one, float)[..., None] for one in (wrong, judged, p))
    logs = lambdas * wrong - judged * np.log1p(p * np.expm1(lambdas))
    most = logs.max(axis=-1, keepdims=True)
    return most[..., 0] + np.log(np.mean(np.exp(logs - most), axis=-1))


@dataclass(frozen=True)
class ProgressiveError:
    """The share of wrong predictions, and an interval for the mean true error of the hypotheses that made them.

    Parameters
    ----------
    wrong : int
        Wrong predictions.
    judged : int
        Predictions, each made before its example was learnt.
    confidence : float, default=0.95
        The probability with which the interval covers, at all times at once.

    Examples
    --------
    >>> from maxcosine import ProgressiveError
    >>> error = ProgressiveError(wrong=410, judged=10_000)
    >>> print(error)
    error so far 4.1 %; with 95 % confidence the mean true error of the hypotheses used lies between 3.44 % and 4.83 %,
    if examples come independently
    >>> error.low < error.rate < error.high
    True
    """

    wrong: int
    judged: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.wrong <= self.judged:
            raise ValueError(f"{self.wrong} of {self.judged} predictions cannot be wrong; give 0 <= wrong <= judged")
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence={self.confidence!r} is not between 0 and 1; give for example 0.95")

    @property
    def rate(self) -> float:
        """The share of wrong predictions; 0 before the first."""
        return self.wrong / max(1, self.judged)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._interval[1]

    @cached_property
    def _interval(self) -> tuple[float, float]:
        if not self.judged:
            return 0.0, 1.0
        return self._end(0.0, LAMBDAS), self._end(1.0, -LAMBDAS)

    def _end(self, outside: float, lambdas: np.ndarray) -> float:
        """The end of the interval between the rate, which is inside, and 0 or 1; a little outside of it."""
        limit, inside = math.log(2.0 / (1.0 - self.confidence)), self.rate
        for _ in range(BISECTIONS):
            p = (inside + outside) / 2.0
            if log_wealth(self.wrong, self.judged, p, lambdas) < limit:
                inside = p
            else:
                outside = p
        return outside

    def __str__(self) -> str:
        return (
            f"error so far {100 * self.rate:.{DIGITS}g} %; with {100 * self.confidence:g} % confidence the mean true "
            f"error of the hypotheses used lies between {self.ends}, if examples come independently"
        )

    @property
    def ends(self) -> str:
        """The ends of the interval in percent, rounded outwards."""
        return f"{rounded_down(100 * self.low, DIGITS)} % and {rounded_up(100 * self.high, DIGITS)} %"
