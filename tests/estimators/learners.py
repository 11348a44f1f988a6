"""Every learner, small data for them, and two looks at an estimator that tests compare."""

import numpy as np
import scipy.sparse

import maxcosine
from maxcosine import RULES, FeatureIndex, OnlineClassifier, PAClassifier, Rule
from maxcosine.engine.heads import Arrays
from maxcosine.features import Features
from maxcosine.record import Record

NAMED = [getattr(maxcosine, name) for name in maxcosine.__all__ if name.endswith("Classifier")]
NAMED.remove(OnlineClassifier)

PLAIN = {cls().rule_name: cls for cls in NAMED if cls is not PAClassifier}


def named(rule, **params):
    """The learner that goes by the name of the rule."""
    return PLAIN[rule](**params) if rule in PLAIN else PAClassifier(rule, **params)


def every_learner():
    """Each named class, and OnlineClassifier with each rule."""
    return [make(rule) for make in (named, OnlineClassifier) for rule in RULES]


def points(n_classes=2, n_rows=120, n_columns=6, dtype=np.float64, seed=0):
    """Rows around as many centres as classes, overlapping a little, in mixed order."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n_rows) % n_classes)
    centres = 2.0 * random.normal(size=(n_classes, n_columns))
    X = centres[y] + random.normal(size=(n_rows, n_columns))
    return np.where(random.random(X.shape) < 0.3, 0.0, X).astype(dtype), y


STORAGES = {"dense": np.array, "csr": scipy.sparse.csr_array}


def learnt(learner):
    """All that an estimator has learnt, as a user can see it, to the bit."""
    return contents(
        (learner.coef_, learner.intercept_, learner.classes_, learner.n_seen_, learner.certificate_)
    )


def everything(learner):
    """All that an estimator holds, deeply, to the bit."""
    return contents(vars(learner)), learnt(learner)


def contents(value):
    """A value that compares equal exactly when all that it is made of does."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    if isinstance(value, Rule):
        return value
    if isinstance(value, np.random.RandomState):
        return contents(value.get_state())
    if isinstance(value, FeatureIndex):
        return value.kind, value.keys().tolist()
    if isinstance(value, Arrays):
        value = value._replace(scratch=None)  # what the last sweep left there means nothing
    if isinstance(value, Record | Features):
        value = vars(value)
    if isinstance(value, dict):
        return {
            key: contents(item)
            for key, item in value.items()
            if key not in ("_read", "_learner", "_prepared_for")
        }
    if isinstance(value, list | tuple):
        return [contents(item) for item in value]
    return value
