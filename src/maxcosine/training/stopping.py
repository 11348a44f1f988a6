"""When a training stops before the end of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maxcosine.training.outcome import Status

LOOK_EVERY = 1000


@dataclass(frozen=True)
class Stopping:
    """Rules for stopping; without any, a training goes to the end.

    Parameters
    ----------
    error : float, optional
        Stop as soon as it is proven, with 95 % confidence, that the mean true error is at most this. One may look at
        the error as often as one likes, so the proof holds although its time was chosen. Looked at every 1,000
        examples of the first pass.
    patience : int, optional
        Stop after a stretch of so many examples in which no fewer predictions were wrong than in the one before.
    """

    error: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.error is not None and not 0.0 < self.error < 1.0:
            raise ValueError(f"error={self.error:g} cannot be proven; give a share between 0 and 1, such as 0.05")

    @property
    def intervals(self) -> list[int]:
        """After how many examples to look: it must not depend on where batches end."""
        return [LOOK_EVERY] * (self.error is not None) + ([] if self.patience is None else [self.patience])

    def look(self, status: Status) -> None:
        """Set `status.stopped` to the reason if it is time to stop."""
        if self.error is not None and not status.passes and status.examples % LOOK_EVERY == 0:
            proven = status.error
            if proven.high <= self.error:
                status.stopped = f"the error is at most {self.error:g}: it lies between {proven.ends}"
        if self.patience is not None and status.examples % self.patience == 0:
            before, now = status.last_stretch, status.wrong - status.stretch_start
            if before is not None and now >= before:
                status.stopped = (
                    f"the last {self.patience:,} examples had {now:,} wrong predictions, those before {before:,}"
                )
            status.stretch_start, status.last_stretch = status.wrong, now
