"""Learning from streams: passes, checkpoints, evaluation and comparison."""

from maxcosine.training.checkpoint import BadCheckpoint, SideFile, clear_partial_files
from maxcosine.training.evaluation import (
    evaluate,
    open_for_model,
    probabilities,
    read_options_of,
    score,
)
from maxcosine.training.explanation import Explanation, explain, names_of, rows_and_names
from maxcosine.training.learner import OnePassSettings, Settings, StreamLearner, rows_of
from maxcosine.training.outcome import Status, json_value, outcome, provenance
from maxcosine.training.scoring import RecordScorer, TopShare
from maxcosine.training.stopping import Stopping
from maxcosine.training.training import Training

__all__ = [
    "BadCheckpoint",
    "Explanation",
    "OnePassSettings",
    "RecordScorer",
    "Settings",
    "SideFile",
    "Status",
    "Stopping",
    "StreamLearner",
    "TopShare",
    "Training",
    "clear_partial_files",
    "evaluate",
    "explain",
    "json_value",
    "names_of",
    "open_for_model",
    "outcome",
    "probabilities",
    "provenance",
    "read_options_of",
    "rows_and_names",
    "rows_of",
    "score",
]
