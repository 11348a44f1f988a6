"""What is counted while shards are learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_TOLD = 5


@dataclass(frozen=True)
class Tally:
    """Of one round, over one shard or many."""

    examples: int = 0
    mistakes: int = 0
    """Examples that were predicted wrongly just before they were learnt, by what their shard knew then."""
    bad: int = 0
    """Lines that were left out."""
    first_bad: tuple[str, ...] = ()
    """What was wrong with the first few of these."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.examples + other.examples,
            self.mistakes + other.mistakes,
            self.bad + other.bad,
            (*self.first_bad, *other.first_bad)[:MOST_TOLD],
        )

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> Tally:
        return cls(**{**said, "first_bad": tuple(said["first_bad"])})
