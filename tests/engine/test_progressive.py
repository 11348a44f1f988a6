"""What a sweep predicts before it learns is what the model would have predicted then."""

import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES, OnlineClassifier
from maxcosine.engine import Heads, joint, learn, one_vs_rest


def examples(n_classes, n=120, n_features=12):
    random = np.random.default_rng(3)
    X = random.normal(size=(n, n_features)) * (random.random((n, n_features)) < 0.5)
    X[5] = 0.0  # a row without features is predicted, too
    return X, (X @ random.normal(size=(n_features, n_classes))).argmax(axis=1)


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("n_classes", "multiclass"), [(2, "ovr"), (4, "ovr"), (2, "joint"), (4, "joint")])
@pytest.mark.parametrize("rule", ["pa1", "mcp", "aggressive_romma"])
def test_progressive_predictions_are_those_of_the_model_so_far(
    rule, n_classes, multiclass, fit_intercept, storage
):
    X, y = examples(n_classes)
    learner = OnlineClassifier(rule, fit_intercept=fit_intercept, multiclass=multiclass)
    expected = []
    for k in range(len(y)):
        expected.append(learner.predict(X[k : k + 1])[0] if k else 0)
        learner.partial_fit(X[k : k + 1], y[k : k + 1], classes=np.arange(n_classes))
    table = (
        joint(n_classes)
        if multiclass == "joint"
        else one_vs_rest([1] if n_classes == 2 else range(n_classes))
    )
    heads = Heads.create(
        RULES[rule],
        RULES[rule].make_params(),
        table,
        X.shape[1],
        X.dtype,
        fit_intercept=fit_intercept,
        average=False,
    )
    predicted = np.full(len(y), -1)
    learn(heads, storage(X), y, predicted=predicted)
    assert predicted.tolist() == expected
    assert np.array_equal(heads.weights()[0], learner._model.heads.weights()[0])
