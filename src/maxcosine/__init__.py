"""maxcosine: single-pass linear classifiers that carry a proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxcosine.certificate import Certificate, Merge
    from maxcosine.core import FeatureIndex
    from maxcosine.drift import Drift, DriftWarning
    from maxcosine.engine import BadStep
    from maxcosine.estimators import (
        AggressiveROMMAClassifier,
        ALMAClassifier,
        CMCPClassifier,
        DampedMCPClassifier,
        MCPClassifier,
        MCPExactClassifier,
        NAROMMAClassifier,
        NORMAClassifier,
        OnePassClassifier,
        OnlineBase,
        OnlineClassifier,
        PAClassifier,
        PerceptronClassifier,
        ROMMAClassifier,
        SoftMCPClassifier,
        SortedLabelsWarning,
        TraceDisplay,
    )
    from maxcosine.estimators.files import load, save
    from maxcosine.estimators.merging import merge
    from maxcosine.framework import Maximum, cosine_bound, maximise, phi
    from maxcosine.onepass_hypothesis import Contributions, OnePassCertificate
    from maxcosine.progressive_error import ProgressiveError
    from maxcosine.rows import BadRow
    from maxcosine.rules import RULES
    from maxcosine.rules.rule import Param, Rule, rule

__version__ = "0.1.0"

__all__ = [
    "RULES",
    "ALMAClassifier",
    "AggressiveROMMAClassifier",
    "BadRow",
    "BadStep",
    "CMCPClassifier",
    "Certificate",
    "Contributions",
    "DampedMCPClassifier",
    "Drift",
    "DriftWarning",
    "FeatureIndex",
    "MCPClassifier",
    "MCPExactClassifier",
    "Maximum",
    "Merge",
    "NAROMMAClassifier",
    "NORMAClassifier",
    "OnePassCertificate",
    "OnePassClassifier",
    "OnlineBase",
    "OnlineClassifier",
    "PAClassifier",
    "Param",
    "PerceptronClassifier",
    "ProgressiveError",
    "ROMMAClassifier",
    "RecordEncoder",
    "Rule",
    "SoftMCPClassifier",
    "SortedLabelsWarning",
    "TraceDisplay",
    "cosine_bound",
    "load",
    "maximise",
    "merge",
    "phi",
    "rule",
    "save",
]


# The module of each public name that is not an estimator.
_MODULES = {
    "RULES": "rules",
    "BadRow": "rows",
    "BadStep": "engine",
    "Certificate": "certificate",
    "Contributions": "onepass_hypothesis",
    "Drift": "drift",
    "DriftWarning": "drift",
    "FeatureIndex": "core",
    "Maximum": "framework",
    "Merge": "certificate",
    "OnePassCertificate": "onepass_hypothesis",
    "Param": "rules.rule",
    "ProgressiveError": "progressive_error",
    "Rule": "rules.rule",
    "cosine_bound": "framework",
    "load": "estimators.files",
    "maximise": "framework",
    "merge": "estimators.merging",
    "phi": "framework",
    "rule": "rules.rule",
    "save": "estimators.files",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: scikit-learn alone takes a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'estimators')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
