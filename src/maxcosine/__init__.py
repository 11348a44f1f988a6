"""maxcosine: single-pass linear classifiers that carry a proof."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxcosine.bound import cosine_bound, phi
    from maxcosine.certificate import Certificate, Merge
    from maxcosine.engine import BadRow, BadStep
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
    from maxcosine.estimator.files import load, save
    from maxcosine.index import FeatureIndex
    from maxcosine.maximise import Maximum, maximise
    from maxcosine.merge import merge
    from maxcosine.rule import Param, Rule, rule
    from maxcosine.rules import RULES

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
    "load",
    "maximise",
    "merge",
    "phi",
    "rule",
    "save",
]


# Where each name comes from; all others are estimators.
_HOMES = {
    "RULES": "rules",
    "BadRow": "engine",
    "BadStep": "engine",
    "Certificate": "certificate",
    "FeatureIndex": "index",
    "Maximum": "maximise",
    "Merge": "certificate",
    "Param": "rule",
    "Rule": "rule",
    "cosine_bound": "bound",
    "load": "estimator.files",
    "maximise": "maximise",
    "merge": "merge",
    "phi": "bound",
    "rule": "rule",
    "save": "estimator.files",
}


class _Package(ModuleType):
    """Imports what it is asked for, when it is asked: Numba takes half a second, and scikit-learn one."""

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'estimator')}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # The import of a module called as a function in it is would put the one in the place of the other.
        if isinstance(value, ModuleType) and name in _HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *__all__})


sys.modules[__name__].__class__ = _Package
