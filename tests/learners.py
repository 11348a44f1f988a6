"""Classifiers for tests: every setting, small data, and two snapshots of a classifier that tests compare."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse
from safetensors.numpy import load

import maxcosine
from maxcosine import RULES, OnePassClassifier, OnlineClassifier, PAClassifier, model_file

NAMED = [getattr(maxcosine, name) for name in maxcosine.__all__ if name.endswith("Classifier")]
NAMED.remove(OnlineClassifier)
NAMED.remove(OnePassClassifier)  # it has no rule

_OF_ONE_RULE = {cls().rule_name: cls for cls in NAMED if cls is not PAClassifier}

# `save` waits until a disk has the file; a thousand small files are faster in memory.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

STORAGES = {"dense": np.array, "csr": scipy.sparse.csr_array}


@dataclass(frozen=True)
class Setting:
    """How to learn: everything but the rule."""

    learning: str  # binary, ovr or joint
    average: bool
    fit_intercept: bool
    dtype: str

    @property
    def n_classes(self):
        return 2 if self.learning == "binary" else 4

    @property
    def multiclass(self):
        return "joint" if self.learning == "joint" else "ovr"

    def classifier(self, rule, **options):
        """A classifier that has seen nothing; other `options` than those of the setting may be given."""
        return OnlineClassifier(
            rule,
            average=self.average,
            fit_intercept=self.fit_intercept,
            multiclass=self.multiclass,
            dtype=self.dtype,
            **options,
        )


ALL_SETTINGS = [
    Setting(learning, average, fit_intercept, dtype)
    for learning, average, fit_intercept, dtype in itertools.product(
        ("binary", "ovr", "joint"), (False, True), (False, True), ("float32", "float64")
    )
]

# Every pair of two options occurs in one of these.
PAIRWISE_SETTINGS = [
    Setting("binary", False, False, "float32"),
    Setting("binary", True, True, "float64"),
    Setting("ovr", False, True, "float64"),
    Setting("ovr", True, False, "float32"),
    Setting("joint", False, False, "float64"),
    Setting("joint", True, True, "float32"),
]


@maxcosine.rule(params={"limit": 40.0})
def breaks_late(margin, sq_w, sq_x, coef_sum, state, params):
    """A user's rule that asks for a negative step once Lambda has reached the limit."""
    return 1.0, (1.0 if coef_sum < params.limit else -1.0), state


def named(rule, **params):
    """The classifier that bears the name of the rule."""
    return _OF_ONE_RULE[rule](**params) if rule in _OF_ONE_RULE else PAClassifier(rule, **params)


def every_learner():
    """Each named class, and OnlineClassifier with each rule."""
    return [make(rule) for make in (named, OnlineClassifier) for rule in RULES]


def points(n_classes=2, n_rows=120, n_columns=6, dtype=np.float64, seed=0):
    """Rows around one centre a class, which overlap a little, in mixed order."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n_rows) % n_classes)
    centres = 2.0 * random.normal(size=(n_classes, n_columns))
    X = centres[y] + random.normal(size=(n_rows, n_columns))
    return np.where(random.random(X.shape) < 0.3, 0.0, X).astype(dtype), y


# Snapshots


def learnt(learner):
    """What a classifier has learnt, as its user sees it, to the bit."""
    return (
        _bits(learner.coef_),
        _bits(learner.intercept_),
        learner.classes_.tolist(),
        learner.n_seen_,
        learner.mistakes_,
        learner.certificate_,
    )


def attributes(learner):
    """All attributes but the lock, which a classifier gets with its first call."""
    return {name: value for name, value in vars(learner).items() if name != "_lock"}


def _bits(array):
    array = array.toarray() if scipy.sparse.issparse(array) else array
    return array.dtype.str, array.shape, array.tobytes()


def tensors(learner):
    """The arrays of its model file: weights, sums of averages, every scalar of every head, features."""
    return load(model_file.to_bytes(learner.model_))


def everything(learner):
    """Parameters and all that is needed to go on learning, to the bit; None if nothing was learnt."""
    if not learner.__sklearn_is_fitted__():
        return learner.get_params(), None
    model = {name: _bits(array) for name, array in tensors(learner).items()}
    return learner.get_params(), learnt(learner), learner.n_features_in_, model
