"""One pass with nothing to tune comes close to a logistic regression that was tuned on scaled features."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxcosine import OnePassClassifier

ORDERS = 3


def divide(load):
    X, y = load(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def tuned(X, y):
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    return GridSearchCV(model, {"logisticregression__C": [0.01, 0.1, 1.0]}, cv=5).fit(X, y)


# The bounds are shares of the test examples, and nats. Digits has 1,257 examples for ten classes, too few for one pass.
@pytest.mark.parametrize(
    ("load", "more_errors", "more_log_loss"),
    [pytest.param(load_digits, 0.035, 0.1, marks=pytest.mark.slow), (load_breast_cancer, 0.015, 0.03)],
)
def test_error_and_log_loss_are_near_those_of_a_tuned_logistic_regression(load, more_errors, more_log_loss):
    X, X_test, y, y_test = divide(load)
    batch = tuned(X, y)
    errors, losses = [], []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(y))
        learner = OnePassClassifier().fit(X[order], y[order])
        errors.append(1 - learner.score(X_test, y_test))
        losses.append(log_loss(y_test, learner.predict_proba(X_test)))
    assert np.mean(errors) <= 1 - batch.score(X_test, y_test) + more_errors
    assert np.mean(losses) <= log_loss(y_test, batch.predict_proba(X_test)) + more_log_loss
