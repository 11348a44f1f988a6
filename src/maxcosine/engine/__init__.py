"""The engine: the only loops over examples. It owns w, its scale, norm(w)^2 and Lambda."""

from maxcosine.engine.heads import Heads, Proven, joint, norms, one_vs_rest
from maxcosine.engine.learn import BadStep, learn
from maxcosine.engine.rows import (
    UNKNOWN,
    BadRow,
    SlotRows,
    canonical,
    check_indices,
    check_rows,
    csr_array,
    packed,
)
from maxcosine.engine.score import score

__all__ = [
    "UNKNOWN",
    "BadRow",
    "BadStep",
    "Heads",
    "Proven",
    "SlotRows",
    "canonical",
    "check_indices",
    "check_rows",
    "csr_array",
    "joint",
    "learn",
    "norms",
    "one_vs_rest",
    "packed",
    "score",
]
