"""The rules as scikit-learn classifiers. Only this package and the packages above it import scikit-learn."""

from maxcosine.estimators.base import OnlineBase
from maxcosine.estimators.labels import SortedLabelsWarning
from maxcosine.estimators.named import (
    AggressiveROMMAClassifier,
    ALMAClassifier,
    CMCPClassifier,
    MCPClassifier,
    MCPExactClassifier,
    NAROMMAClassifier,
    NORMAClassifier,
    PAClassifier,
    PerceptronClassifier,
    ROMMAClassifier,
)
from maxcosine.estimators.online import OnlineClassifier

__all__ = [
    "ALMAClassifier",
    "AggressiveROMMAClassifier",
    "CMCPClassifier",
    "MCPClassifier",
    "MCPExactClassifier",
    "NAROMMAClassifier",
    "NORMAClassifier",
    "OnlineBase",
    "OnlineClassifier",
    "PAClassifier",
    "PerceptronClassifier",
    "ROMMAClassifier",
    "SortedLabelsWarning",
]
