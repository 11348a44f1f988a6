"""The certificate of the one-pass learner on hard rows: its ceiling is above the margin of a separator that exists.

The rows of a case are learnt one by one, so that the length R which each of them gets is known. Afterwards all rows are
brought into the geometry as it is then, and the point of their convex hull nearest to the origin is computed. The
hyperplane across it has a margin, so a ceiling below this margin would be false.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from maxcosine import OnePassClassifier, merge
from maxcosine.onepass import OnePassState
from tests.adversarial.generator import Case, generate
from tests.onepass_reference import CONSTANT, squash

# R is computed here from the geometry, and in the core from sums that are kept: they differ by rounding.
TOLERANCE = 1e-6


@dataclass
class Found:
    """What was found in the cases of some seeds."""

    false: list[str] = field(default_factory=list)
    separable: int = 0
    """Cases in which a separator exists, so that the claim says something."""
    tight: int = 0
    """Those of them in which the ceiling is less than four times the margin."""
    merged: int = 0

    def check(self, seeds: Iterable[int]) -> Found:
        """Check the cases of these seeds."""
        for seed in seeds:
            case = generate(seed)
            learner, lengths = learn(case)
            if learner is None or len(learner.classes_) < 2:
                continue
            margin, ceiling = best_margin(learner, case, lengths), learner.certificate_.margin_ceiling
            self.separable += margin > 0.0
            self.tight += margin > 0.0 and ceiling < 4.0 * margin
            self.merged += case.plan.merges
            if not ceiling >= margin * (1.0 - TOLERANCE):
                self.false.append(f"seed {seed}: a separator has the margin {margin!r}, and the ceiling is {ceiling!r}")
        return self


def learn(case: Case) -> tuple[OnePassClassifier | None, list[tuple[int, float]]]:
    """Learn a case as its plan says; return the learner, and each row that counted with its length."""
    lengths: list[tuple[int, float]] = []

    def go_on(learner: OnePassClassifier, chunks: Iterable[Iterable[int]]) -> OnePassClassifier:
        for row in (row for chunk in chunks for row in chunk):
            weight = case.weight_of[row]
            learner.partial_fit(case.X[row : row + 1], case.y[row : row + 1], sample_weight=[weight])
            if weight > 0.0:
                lengths.append((row, length_of(learner.model_.state, case.X[row])))
        return learner

    parts = [
        go_on(OnePassClassifier(dtype=case.dtype, on_drift="ignore"), [*(case.plan.base if k == 0 else ()), *part])
        for k, part in enumerate(case.plan.parts or ((),))
    ]
    parts = [part for part in parts if hasattr(part, "model_") and part.n_seen_]
    if not parts:
        return None, lengths
    return go_on(merge(parts) if len(parts) > 1 else parts[0], case.plan.rest), lengths


def length_of(state: OnePassState, x: np.ndarray) -> float:
    z = squash(x.astype(np.float64)) * (state.arrays.features["count"] > 0)
    return float(np.sqrt(1.0 + np.sum(state.arrays.features["inverse_scale"] * (z - state.centre) ** 2)))


def best_margin(learner: OnePassClassifier, case: Case, lengths: list[tuple[int, float]]) -> float:
    """Return the margin of a separator of all rows in the geometry as it is now, or a number <= 0 if none is found."""
    model = learner.model_
    state = model.state
    metric = np.sqrt(np.append(state.arrays.features["metric"], 1.0 / np.sqrt(state.rows)))
    blocks = dict(zip(learner.classes_.tolist(), model.blocks.tolist(), strict=True))
    n_blocks = state.n_blocks
    signed = []
    for row, length in lengths:
        z = squash(case.X[row].astype(np.float64)) * (state.arrays.features["count"] > 0)
        a = metric * np.append((z - state.centre) / length, CONSTANT)
        own = blocks[case.y[row]]
        if n_blocks == 1:
            signed.append(a if own == 1 else -a)
            continue
        for other in range(n_blocks):
            if other != own:
                difference = np.eye(n_blocks)[own] - np.eye(n_blocks)[other]
                signed.append(np.outer(difference, a).ravel())
    points = np.array(signed)
    size = np.abs(points).max()
    # The nearest point of the hull: least squares with coefficients >= 0 whose sum is all but forced to be 1.
    coefs, _ = nnls(np.vstack([points.T / size, np.full(len(points), 1e3)]), np.append(np.zeros(points.shape[1]), 1e3))
    w = coefs @ points
    return float((points @ (w / max(np.linalg.norm(w), 1e-300))).min())
