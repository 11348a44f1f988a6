"""The hypothesis of the one-pass learner: its weights, what is proven of it, and what features add to a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxcosine.certificate_text import rounded_up
from maxcosine.onepass import LANES, OnePassState
from maxcosine.rows import csr_array

# As in core/onepass.hpp.
CONSTANT = 0.5
LOGISTIC_GAIN = 8.0


class OnePassCertificate(NamedTuple):
    """What is proven of the rows seen, in the geometry as it is now.

    The geometry moves with the stream, so a certificate says nothing about earlier ones.

    Parameters
    ----------
    margin_ceiling : float
        No separator keeps all rows seen further than this from its boundary: distances are measured with today's
        centres and scales, in the space of the squashed rows, each divided by the length that it got on arrival and
        with a constant 1/2 appended. Rounding is bounded.
    norm : float
        The norm of the hypothesis that predicts.
    coef_sum : float
        Lambda, the sum of its coefficients.
    seen : int
        The rows that the hypothesis was learnt from: all, or those since a fresh learner began because of a drift.

    Examples
    --------
    >>> from maxcosine import OnePassClassifier
    >>> learner = OnePassClassifier().fit([[2.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> learner.certificate_.margin_ceiling >= learner.certificate_.norm / learner.certificate_.coef_sum
    True
    """

    margin_ceiling: float
    norm: float
    coef_sum: float
    seen: int

    @property
    def bound(self) -> float:
        """The bound ell, 1 / margin_ceiling: the cosine to a separator of margin gamma is at least gamma ell."""
        return 1.0 / self.margin_ceiling

    def __str__(self) -> str:
        return (
            "Certificate of the one-pass hypothesis\n"
            f"  proven: no separator of the {self.seen:,} examples learnt has a margin above "
            f"{rounded_up(self.margin_ceiling, 4)}\n"
            "  in the centred and scaled space that the stream has fixed, as it is now"
        )


class Contributions(NamedTuple):
    """What the features of rows add to a score.

    Parameters
    ----------
    of_features : sparse array of shape (n_samples, n_features)
        What each feature of a row adds; of the one-pass learner, beside the mean of the feature over all rows seen.
    rest : array of shape (n_samples,)
        What is left of each score: the constant and, of the one-pass learner, the features that the row does not have.
    """

    of_features: Any
    rest: np.ndarray


def hypothesis_of(state: OnePassState, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights of shape (blocks, features), constants of shape (blocks,), centres and scales of the features."""
    a, factors, n_blocks = state.arrays, _lane_factors(state), state.n_blocks
    features, blocks = a.features[:n_features], a.blocks[:n_blocks]
    centre = state.centre[:n_features]
    u = a.weights[:n_features, : LANES * n_blocks].reshape(n_features, n_blocks, LANES) @ factors
    weights = features["metric"] * (u.T - np.outer(blocks["s"] @ factors, centre))
    constants = CONSTANT / np.sqrt(max(1, state.rows)) * (blocks["beta"] @ factors)
    with np.errstate(divide="ignore"):
        scale = 1.0 / np.sqrt(features["inverse_scale"])
    return weights, constants, centre, scale


def _lane_factors(state: OnePassState) -> np.ndarray:
    """What the four numbers of a weight count in the mixture; see lane_factors in core/onepass_claim.hpp."""
    s, rows = state.scalars, state.rows
    least = s["errors"].min()
    shares = np.exp(-(s["errors"] - least) / (2.0 * np.sqrt(1.0 + least)))
    shares = shares / shares.sum() * (1 + rows) / (1.0 + s["sizes"])
    shares[:2] *= LOGISTIC_GAIN * np.sqrt(max(1, rows) / s["energy"][0])
    weight = rows * (rows + 1) / 2.0
    lacking = -shares[[1, 3]] / weight if weight else np.zeros(2)
    return np.array([shares[0] + shares[1], lacking[0], shares[2] + shares[3], lacking[1]])


def contributions(z: Any, weights: np.ndarray, constant: float, mu: np.ndarray, scale: np.ndarray) -> Contributions:
    """What the features of rows add to a score; the sums run over non-zeros only. The CSR array z is changed."""
    z.data = np.sign(z.data) * np.log1p(np.abs(z.data))
    inverse_scale = 1.0 / np.square(scale)
    # sum N^-2 (z - mu)^2, expanded
    spread = z.multiply(z) @ inverse_scale - 2.0 * (z @ (inverse_scale * mu)) + inverse_scale @ np.square(mu)
    lengths = np.sqrt(1.0 + np.maximum(0.0, spread))
    z.data = weights[z.indices] * (z.data - mu[z.indices]) / np.repeat(lengths, np.diff(z.indptr))
    present = csr_array((np.ones_like(z.data), z.indices, z.indptr), z.shape)
    rest = constant - (weights @ mu - present @ (weights * mu)) / lengths
    return Contributions(z, rest)
