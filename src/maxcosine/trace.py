"""The steps that heads take, recorded while they learn."""

from __future__ import annotations

import numpy as np

# What one head did with one example, laid out as `struct TracedStep` in core/trace.hpp.
STEP = np.dtype(
    [
        ("example", np.int64),
        ("row", np.int64),
        ("head", np.int32),
        ("mistake", np.bool_),
        ("margin", np.float64),
        ("keep", np.float64),
        ("add", np.float64),
        ("norm", np.float64),
        ("coef_sum", np.float64),
        ("ell", np.float64),
    ],
    align=True,
)


class Trace:
    """Receives the steps that heads take, in their order: example by example, and head by head.

    Parameters
    ----------
    room : int
        The largest number of steps: how many rows will be visited, in all passes, times the number of heads.
        Each takes 72 bytes; memory that is not used is not touched.
    """

    def __init__(self, room: int) -> None:
        self._buffer = np.empty(room, STEP)
        self._n = 0

    @property
    def steps(self) -> np.ndarray:
        """The steps so far, of type STEP."""
        return self._buffer[: self._n]

    @property
    def free(self) -> np.ndarray:
        """The room that is left, as the core takes it: rows of 8-byte words."""
        room = self._buffer[self._n :]
        return room.view(np.int64).reshape(len(room), STEP.itemsize // 8)

    def extend(self, n: int) -> None:
        """Count n steps that the core has written to `free`."""
        self._n += n
