"""The state of the one-pass learner, as the arrays that the core learns into.

core/onepass_geometry.hpp says what they mean. Four numbers belong together everywhere and lie side by side, in this
order: those of the logistic head's last dual and of what its average lacks, and the same two of the mcp_exact head. The
weights of one feature are neighbours, four for each block. A feature takes 68 bytes, and 4 numbers for each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from maxcosine import core
from maxcosine.calibration import probabilities

LANES = 4
"""Numbers that belong together: two heads, each with its last dual and its average."""

# One feature, laid out as `struct Feature` in core/onepass_geometry.hpp.
FEATURE = np.dtype(
    [
        ("count", np.int64),
        ("total", np.float64),
        ("square", np.float64),
        ("centre", np.float64),
        ("inverse_scale", np.float64),
        ("metric", np.float64),
        ("next_fix", np.int64),
        ("period", np.int64),
    ],
    align=True,
)

# What the duals have in one block beside their weights, laid out as `struct Block` there.
BLOCK = np.dtype([(name, np.float64, LANES) for name in ("s", "beta", "centred")], align=True)

# Laid out as `struct OnePassScalars` there.
SCALARS = np.dtype(
    [
        ("rows", np.int64),
        ("n_classes", np.int64),
        ("mistakes", np.int64),
        ("slots_used", np.int64),
        ("n_visited", np.int64),
        ("visits", np.int64),
        ("stale", np.int64),
        ("mean_weight", np.float64),
        ("sq_centre", np.float64),
        ("scaled_centre", np.float64),
        ("peak", np.float64),
        ("sq_u", np.float64),
        ("coef_sum", np.float64, LANES),
        ("energy", np.float64, 2),
        ("sq_steps", np.float64, 2),
        ("errors", np.float64, LANES),
        ("sizes", np.float64, LANES),
        ("calibration", np.float64, 2),
        ("curvature", np.float64, 3),
    ],
    align=True,
)


class OnePassArrays(NamedTuple):
    """The arrays of one learner, in the order in which the core takes them."""

    weights: np.ndarray
    """float32 or float64, of shape (features, 4 * room for blocks)."""
    features: np.ndarray
    """The statistics and the geometry of each feature, of type FEATURE."""
    visited: np.ndarray
    """uint32: slots of the rows since their number was last a power of two; room for all features."""
    blocks: np.ndarray
    """Of type BLOCK, one for each block that there is room for."""
    scalars: np.ndarray
    """One record of type SCALARS."""


class Claim(NamedTuple):
    """What is proven of the hypothesis that predicts, in today's geometry; core/onepass_claim.hpp says how."""

    norm: float
    coef_sum: float
    """Lambda."""
    ceiling: float
    """No separator of the rows seen has a larger margin: norm / Lambda, and what rounding may have done to it."""


@dataclass(eq=False)
class OnePassState:
    """A one-pass learner as a value.

    Up to two classes have one block, the second class against the first; more have one block each.
    """

    arrays: OnePassArrays
    _engine: tuple[OnePassArrays, core.OnePassEngine] | None = field(default=None, init=False, repr=False)

    @classmethod
    def create(cls, n_features: int, dtype: Any = np.float64, *, n_classes: int = 0) -> OnePassState:
        """A learner that has seen nothing; `n_classes` classes are known and may be predicted."""
        n_blocks = _n_blocks(n_classes)
        scalars = np.zeros(1, SCALARS)
        scalars["n_classes"], scalars["energy"] = n_classes, 1.0
        scalars["calibration"], scalars["curvature"] = (2.0, 0.0), (1.0, 0.0, 1.0)
        return cls(
            OnePassArrays(
                weights=np.zeros((n_features, LANES * n_blocks), dtype),
                features=np.zeros(n_features, FEATURE),
                visited=np.zeros(n_features, np.uint32),
                blocks=np.zeros(n_blocks, BLOCK),
                scalars=scalars,
            )
        )

    @property
    def engine(self) -> core.OnePassEngine:
        """The core's view of the arrays as they are now."""
        if self._engine is None or self._engine[0] is not self.arrays:
            a = self.arrays
            engine = core.OnePassEngine(a.weights, _words(a.features), a.visited, _words(a.blocks), _words(a.scalars))
            self._engine = a, engine
        return self._engine[1]

    # What it is

    @property
    def dtype(self) -> np.dtype:
        """The type of the weights."""
        return self.arrays.weights.dtype

    @property
    def n_features(self) -> int:
        """How many features there is room for."""
        return len(self.arrays.features)

    @property
    def scalars(self) -> Any:
        """The record of scalars."""
        return self.arrays.scalars[0]

    @property
    def n_classes(self) -> int:
        """How many classes are known."""
        return int(self.scalars["n_classes"])

    @property
    def n_blocks(self) -> int:
        """One for up to two classes, else one for each class."""
        return _n_blocks(self.n_classes)

    @property
    def rows(self) -> int:
        """Rows learnt."""
        return int(self.scalars["rows"])

    @property
    def mistakes(self) -> int:
        """How many of them were predicted wrongly before they were learnt; wrong, too, is one before any class."""
        return int(self.scalars["mistakes"])

    @property
    def centre(self) -> np.ndarray:
        """Mu of each feature."""
        return np.asarray(self.arrays.features["centre"] / 2.0 ** max(self.rows.bit_length() - 1, 0))

    def claim(self) -> Claim:
        """What is proven now, computed from the weights; the geometry moves, so older claims say nothing of today's."""
        return Claim(*self.engine.claim())

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, of shape (rows, classes), for margins of shape (rows, blocks)."""
        slope, offset = self.scalars["calibration"]
        return probabilities(slope, offset, margins)

    def copy(self) -> OnePassState:
        """An independent learner of the same values."""
        return replace(self, arrays=OnePassArrays(*(array.copy() for array in self.arrays)))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_engine": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # joblib may have loaded the arrays as read-only memory maps.
        self.arrays = OnePassArrays(*(np.require(np.asarray(array), requirements="W") for array in self.arrays))

    def fix_geometry(self) -> None:
        """Fix mu, N and D of all features from their statistics, as after changing these, and keep the duals."""
        features, T = self.arrays.features, self.rows
        seen = np.flatnonzero(features["count"])
        n, total, square = (features[name][seen] for name in ("count", "total", "square"))
        # The centre is mu in units of a power of two, see core/onepass_geometry.hpp.
        features["centre"][seen] = total * (2.0 ** (T.bit_length() - 1) / T) if T else 0.0
        variation = np.maximum(square - total**2 / (T + 1), square / (T + 1))
        features["inverse_scale"][seen] = n / (np.sqrt(square) * np.sqrt(variation))
        features["metric"][seen] = features["inverse_scale"][seen] / np.sqrt(n)
        features["next_fix"][seen] = np.maximum(n + 1, np.floor(1.25 * n).astype(np.int64))
        # At the next power of two, the mu of every feature differs from half of today's.
        features["period"][seen] = T.bit_length()
        self.arrays.visited[: len(seen)] = seen
        self.arrays.scalars["n_visited"] = len(seen)
        self.arrays.scalars["slots_used"] = seen[-1] + 1 if len(seen) else 0
        self.engine.refresh()

    # Other layouts. Each replaces arrays and changes none.

    def reserve(self, n_features: int) -> None:
        """Make room for at least this many features, and for some more to come."""
        if n_features > self.n_features:
            self.grow(n_features + n_features // (2 if n_features < 2**18 else 8))

    def make_ready(self, n_features: int, n_classes: int) -> None:
        """Make room for this many features, and know this many classes, at least."""
        if n_features > self.n_features:
            self.grow(n_features)
        if n_classes > self.n_classes:
            self.add_classes(n_classes)

    def grow(self, n_features: int) -> None:
        """Make room for more features; known features keep their slots."""
        a, n_new = self.arrays, n_features - self.n_features
        self.arrays = a._replace(
            weights=np.concatenate([a.weights, np.zeros((n_new, a.weights.shape[1]), a.weights.dtype)]),
            features=np.concatenate([a.features, np.zeros(n_new, FEATURE)]),
            visited=np.concatenate([a.visited, np.zeros(n_new, np.uint32)]),
        )

    def select(self, slots: np.ndarray, n_features: int) -> None:
        """Move features: feature f gets what slots[f] has, or nothing where that is -1.

        Every slot that a row has had must be among them.
        """
        a, kept = self.arrays, np.flatnonzero(slots >= 0)
        moved = self.arrays._replace(
            weights=np.zeros((n_features, a.weights.shape[1]), a.weights.dtype),
            features=np.zeros(n_features, FEATURE),
            visited=np.zeros(n_features, np.uint32),
            scalars=a.scalars.copy(),
        )
        moved.weights[kept], moved.features[kept] = a.weights[slots[kept]], a.features[slots[kept]]
        new_slots = np.zeros(self.n_features, np.uint32)
        new_slots[slots[kept]] = kept
        n_visited = self.scalars["n_visited"]
        moved.visited[:n_visited] = new_slots[a.visited[:n_visited]]
        used = np.flatnonzero(moved.features["count"])
        moved.scalars["slots_used"] = used[-1] + 1 if len(used) else 0
        self.arrays = moved

    def rearrange(self, sources: Sequence[int], expected: int = 0) -> None:
        """Give classes other codes, and add classes: new class c is class sources[c], or a new one where that is -1.

        If arrays must grow, they grow for this many `expected` classes at least.

        When one block becomes many, the dual d becomes -d/2 for the first class and d/2 for the second, with Lambda/2.
        Errors, energies and sizes keep their values: the scores of the two blocks differ by the score of the one. If
        one class was known, what it was learnt against becomes the first new class.
        """
        n_old, n_new = self.n_classes, len(sources)
        if sorted(c for c in sources if c >= 0) != list(range(n_old)):
            raise ValueError(f"each of the {n_old} known classes must be named once in {list(sources)}")
        sources = _with_the_other(sources) if n_old == 1 else sources
        if n_new <= 2:
            factors = [(0, -1.0 if list(sources) == [1, 0] else 1.0)]
        elif n_old <= 2:
            factors = [(0 if c >= 0 else -1, 0.5 if c == 1 else -0.5) for c in sources]
        else:
            factors = [(c, 1.0) for c in sources]
        self.arrays = self._with_blocks(factors, expected, split=n_old <= 2 < n_new)
        self.scalars["n_classes"] = n_new

    def add_classes(self, n_classes: int, expected: int = 0) -> None:
        """Add classes behind the known ones until there are this many, of so many that are expected."""
        self.rearrange([*range(self.n_classes), *[-1] * (n_classes - self.n_classes)], expected)

    def _with_blocks(self, factors: Sequence[tuple[int, float]], expected: int, *, split: bool) -> OnePassArrays:
        """Arrays of which block c is a factor times a block of these, (block, factor) = factors[c], or empty for -1."""
        a, n, scalars = self.arrays, self.n_features, self.arrays.scalars.copy()
        room = len(a.blocks)
        if len(factors) <= room and not split and _adds_at_the_end(factors):
            return a._replace(scalars=scalars)  # blocks that were never in use are empty
        if len(factors) > room:
            room = max(len(factors), expected, 2 * room if room > 2 else 0)
        weights, blocks = np.zeros((n, LANES * room), a.weights.dtype), np.zeros(room, BLOCK)
        seen = np.flatnonzero(a.features["count"])  # others have no weights, and often there are many more of them
        for new, (old, factor) in enumerate(factors):
            if old < 0:
                continue
            columns = slice(LANES * new, LANES * (new + 1))
            # Added to 0, so that weights never written are 0 and not -0.
            weights[seen, columns] += a.weights[seen, LANES * old : LANES * (old + 1)] * a.weights.dtype.type(factor)
            for name in BLOCK.names or ():
                blocks[name][new] += a.blocks[name][old] * factor
        if split:
            for name in ("coef_sum", "sq_u", "sq_steps"):
                scalars[name] /= 2.0
            scalars["calibration"][:, 1] = 0.0
            scalars["curvature"][:, 1:] = 0.0, 1.0
        elif factors[0][1] < 0.0:
            scalars["calibration"][:, 1] *= -1.0
            scalars["curvature"][:, 1] *= -1.0
        return a._replace(weights=weights, blocks=blocks, scalars=scalars)


def _adds_at_the_end(factors: Sequence[tuple[int, float]]) -> bool:
    """Return whether known blocks stay as they are, and new ones follow."""
    n_old = sum(old >= 0 for old, _ in factors)
    return all(factor == 1.0 and old == new for new, (old, factor) in enumerate(factors[:n_old]))


def _n_blocks(n_classes: int) -> int:
    return 1 if n_classes <= 2 else n_classes


def _with_the_other(sources: Sequence[int]) -> list[int]:
    """Names the first new class as the second one."""
    new = [c for c, source in enumerate(sources) if source < 0]
    return [1 if new and c == new[0] else source for c, source in enumerate(sources)]


def _words(records: np.ndarray) -> np.ndarray:
    """Records of 8-byte fields as rows of integers."""
    return records.view(np.int64).reshape(len(records), records.dtype.itemsize // 8)
