"""Learning from streams: passes, checkpoints, evaluation and comparison."""

from maxcosine.labels import label_text
from maxcosine.training.checkpoint import BadCheckpoint, SideFile, clear_partial_files
from maxcosine.training.evaluation import (
    Evaluation,
    count_mistakes,
    open_for_model,
    read_options_of,
    score_stream,
)
from maxcosine.training.learner import Settings, StreamLearner
from maxcosine.training.outcome import Status, json_value, outcome, provenance
from maxcosine.training.training import Training

__all__ = [
    "BadCheckpoint",
    "Evaluation",
    "Settings",
    "SideFile",
    "Status",
    "StreamLearner",
    "Training",
    "clear_partial_files",
    "count_mistakes",
    "json_value",
    "label_text",
    "open_for_model",
    "outcome",
    "provenance",
    "read_options_of",
    "score_stream",
]
