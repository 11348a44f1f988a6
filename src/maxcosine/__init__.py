"""maxcosine: single-pass linear classifiers that carry a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxcosine.bound import cosine_bound, phi
from maxcosine.certificate import Certificate, Merge
from maxcosine.engine import BadRow, BadStep
from maxcosine.index import FeatureIndex
from maxcosine.maximise import Maximum, maximise
from maxcosine.merge import merge
from maxcosine.rule import Param, Rule, rule
from maxcosine.rules import RULES

if TYPE_CHECKING:
    from maxcosine.estimator import (
        AggressiveROMMAClassifier,
        ALMAClassifier,
        CMCPClassifier,
        MCPClassifier,
        MCPExactClassifier,
        NAROMMAClassifier,
        NORMAClassifier,
        OnlineBase,
        OnlineClassifier,
        PAClassifier,
        PerceptronClassifier,
        ROMMAClassifier,
        SortedLabelsWarning,
    )

__version__ = "0.1.0"

__all__ = [
    "RULES",
    "ALMAClassifier",
    "AggressiveROMMAClassifier",
    "BadRow",
    "BadStep",
    "CMCPClassifier",
    "Certificate",
    "FeatureIndex",
    "MCPClassifier",
    "MCPExactClassifier",
    "Maximum",
    "Merge",
    "NAROMMAClassifier",
    "NORMAClassifier",
    "OnlineBase",
    "OnlineClassifier",
    "PAClassifier",
    "Param",
    "PerceptronClassifier",
    "ROMMAClassifier",
    "Rule",
    "SortedLabelsWarning",
    "cosine_bound",
    "maximise",
    "merge",
    "phi",
    "rule",
]


def __getattr__(name: str) -> Any:
    # The estimators bring scikit-learn along, which takes over a second: only when asked for.
    if name in __all__:
        from maxcosine import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
