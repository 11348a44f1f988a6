"""Learning from streams: passes, checkpoints, evaluation and comparison."""

from maxcosine.training.checkpoint import BadCheckpoint, SideFile, clear_partial_files
from maxcosine.training.evaluation import evaluate, open_for_model, read_options_of, score
from maxcosine.training.learner import OnePassSettings, Settings, StreamLearner
from maxcosine.training.outcome import Status, json_value, outcome, provenance
from maxcosine.training.stopping import Stopping
from maxcosine.training.training import Training

__all__ = [
    "BadCheckpoint",
    "OnePassSettings",
    "Settings",
    "SideFile",
    "Status",
    "Stopping",
    "StreamLearner",
    "Training",
    "clear_partial_files",
    "evaluate",
    "json_value",
    "open_for_model",
    "outcome",
    "provenance",
    "read_options_of",
    "score",
]
