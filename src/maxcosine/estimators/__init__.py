"""The rules as scikit-learn classifiers. Only this package and the packages above it import scikit-learn."""

from maxcosine.estimators.base import OnlineBase
from maxcosine.estimators.classifiers import (
    AggressiveROMMAClassifier,
    ALMAClassifier,
    CMCPClassifier,
    DampedMCPClassifier,
    MCPClassifier,
    MCPExactClassifier,
    NAROMMAClassifier,
    NORMAClassifier,
    OnlineClassifier,
    PAClassifier,
    PerceptronClassifier,
    ROMMAClassifier,
    SoftMCPClassifier,
)
from maxcosine.estimators.labels import SortedLabelsWarning
from maxcosine.estimators.onepass import OnePassClassifier
from maxcosine.estimators.record_encoder import RecordEncoder
from maxcosine.estimators.trace_display import TraceDisplay

__all__ = [
    "ALMAClassifier",
    "AggressiveROMMAClassifier",
    "CMCPClassifier",
    "DampedMCPClassifier",
    "MCPClassifier",
    "MCPExactClassifier",
    "NAROMMAClassifier",
    "NORMAClassifier",
    "OnePassClassifier",
    "OnlineBase",
    "OnlineClassifier",
    "PAClassifier",
    "PerceptronClassifier",
    "ROMMAClassifier",
    "RecordEncoder",
    "SoftMCPClassifier",
    "SortedLabelsWarning",
    "TraceDisplay",
]
