"""The learners as scikit-learn classifiers; the only part that imports scikit-learn."""

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
from maxcosine.estimators.online import OnlineBase, OnlineClassifier

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
