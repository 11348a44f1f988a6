"""Models of every kind, and how each goes on learning."""

import numpy as np

import maxcosine
from maxcosine import OnlineClassifier, merge, model_file
from maxcosine.estimators.fitted import with_model
from tests.learners import learnt


def points(n_classes=2, n=60, seed=0, dtype=np.float64, n_columns=9):
    """Rows that differ by class; most columns are 0."""
    random = np.random.default_rng([seed, 7])
    y = random.permutation(np.arange(n) % n_classes)
    centres = np.random.default_rng(n_classes).normal(size=(n_classes, n_columns))
    X = (2.0 * centres[y] + random.normal(size=(n, n_columns))) * (random.random((n, n_columns)) < 0.4)
    return X.astype(dtype), y


def by_name(X, late=False):
    """Rows as dicts of names; half of the names are new if `late`."""
    names = [f"naïve {'new' if late and j % 2 else 'old'} {j}" for j in range(X.shape[1])]
    return [{names[j]: float(x[j]) for j in np.flatnonzero(x)} for x in X]


def by_id(X, late=False):
    """Rows as dicts of small and very large ids."""
    ids = [j if j % 2 else 2**64 - 1 - j - 100 * late for j in range(X.shape[1])]
    return [{ids[j]: float(x[j]) for j in np.flatnonzero(x)} for x in X]


def columns(n_classes=2, dtype=np.float64, **params):
    def make(name):
        return OnlineClassifier(name, **params).partial_fit(*points(n_classes, dtype=dtype))

    def go_on(learner):
        learner.partial_fit(*points(n_classes, seed=1, dtype=dtype))

    return make, go_on


def keys(keyed, n_classes=3, **params):
    def make(name):
        learner, (X, y) = OnlineClassifier(name, **params), points(n_classes)
        learner.learn_many(keyed(X), y)
        return learner

    def go_on(learner):
        X, y = points(n_classes, seed=1, n_columns=40)
        for x, label in zip(keyed(X, late=True), y.tolist(), strict=True):
            learner.learn_one(x, label)

    return make, go_on


def sparsified(name):
    X, y = points(n_columns=30, n=12)
    X[:, ::3] = 0.0
    return OnlineClassifier(name, average=True).partial_fit(X, y).sparsify()


def weighted(name):
    X, y = points(3)
    learner = OnlineClassifier(name, class_weight={0: 2.0, 1: np.float64(0.5)})
    return learner.partial_fit(X, y, sample_weight=np.linspace(0.0, 2.0, len(y)))


def merged(n_classes):
    def make(name):
        parts = [OnlineClassifier(name, average=n_classes > 2) for _ in range(2)]
        return merge([part.partial_fit(*points(n_classes, seed=seed)) for seed, part in enumerate(parts)])

    return make


def waiting(name):
    """Two classes are known and have not occurred: their heads have not begun."""
    model = OnlineClassifier(name).partial_fit(*points(3)).model_
    model.add_classes(np.array([-1, 9]), waiting=True)
    return with_model(OnlineClassifier(name), model)


def go_on_waiting(learner):
    X, y = points(3, seed=1)
    y[20::4] = 9
    learner.partial_fit(X, y)


SETUPS = {
    "binary": columns(),
    "no intercept": columns(fit_intercept=False),
    "one-vs-rest": columns(5),
    "joint": columns(4, multiclass="joint", average=True),
    "joint binary": columns(2, multiclass="joint"),
    "averaged": columns(3, average=True),
    "float32": columns(3, dtype=np.float32, average=True),
    "names": keys(by_name, average=True),
    "ids": keys(by_id, 2, average=True, dtype="float32"),
    "sparsified": (sparsified, lambda learner: learner.partial_fit(*points(n_columns=30, seed=1))),
    "weighted": (weighted, columns(3)[1]),
    "merged": (merged(2), columns()[1]),
    "merged, averaged": (merged(3), columns(3)[1]),
    "waiting": (waiting, go_on_waiting),
    "probability": columns(2, probability=True),
    "probability, three classes": columns(3, probability=True, average=True, multiclass="joint"),
}


def restored(learner, path):
    maxcosine.save(learner, path)
    return maxcosine.load(path)


def bits(learner):
    """The tensors and the JSON of a model, and what its user sees."""
    return model_file.to_bytes(learner.model_), learnt(learner), learner.get_params()
