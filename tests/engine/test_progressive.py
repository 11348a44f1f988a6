"""What a sweep predicts before it learns is what the model would have predicted then."""

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from maxcosine.engine import learn
from maxcosine.heads import Heads, joint, one_vs_rest
from tests.contract.streams import csr, stream


@pytest.mark.parametrize("rule", ["pa1", "mcp", "aggressive_romma"])
@pytest.mark.parametrize(("n_classes", "multiclass"), [(2, "ovr"), (4, "ovr"), (2, "joint"), (4, "joint")])
def test_progressive_predictions_are_those_of_the_model_so_far(rule, n_classes, multiclass):
    X, y = stream(60, 12, n_classes=n_classes)
    learner = OnlineClassifier(rule, multiclass=multiclass)
    expected = []
    for k in range(len(y)):
        expected.append(learner.predict(X[k : k + 1])[0] if k else 0)
        learner.partial_fit(X[k : k + 1], y[k : k + 1], classes=np.arange(n_classes))
    for storage in (np.asarray, csr):
        table = one_vs_rest([1] if n_classes == 2 else range(n_classes))
        heads = Heads.create(
            RULES[rule],
            RULES[rule].make_params(),
            joint(n_classes) if multiclass == "joint" else table,
            X.shape[1],
            X.dtype,
            fit_intercept=True,
            average=False,
        )
        predicted = np.full(len(y), -1)
        learn(heads, storage(X), y, predicted=predicted)
        assert predicted.tolist() == expected
