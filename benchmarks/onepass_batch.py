"""The batch learners of ``benchmarks/onepass.py``, tuned by cross-validation on the training rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from onepass_problems import Problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

FOLDS, SEED = 5, 0
STRENGTHS = {"LinearSVC": (0.1, 1.0, 10.0, 100.0, 1e3), "LogisticRegression": (1.0, 10.0, 100.0, 1e3, 1e4)}
"""C times the mean squared length of a row, so that one grid serves views of any scale."""
CHOICE_ITERATIONS = {"LinearSVC": 20, "LogisticRegression": 50}
FINAL_ITERATIONS = {"LinearSVC": 200, "LogisticRegression": 200}
TOLERANCE = 1e-6
"""Of LogisticRegression: its default, 1e-4, ends before the log loss on text is at its least."""


@dataclass(frozen=True)
class Candidate:
    """A view and a strength, with the means over the folds."""

    view: str
    strength: float
    error: float
    log_loss: float | None


def views(problem: Problem) -> dict[str, Any]:
    """Return the transformers that a batch learner may choose from."""
    sparse = hasattr(problem.X, "tocsr")
    found = {"raw": FunctionTransformer(accept_sparse=True), "l2": Normalizer()}
    if problem.word_counts:
        found["tf-idf"] = TfidfTransformer(sublinear_tf=True)
    return found | {"standardised": StandardScaler(with_mean=not sparse)}


def measure(problem: Problem, name: str) -> dict[str, Any]:
    """Choose view and C by cross-validation, fit all training rows, and count test mistakes.

    The parameters with the smallest error give the mistakes, those with the smallest log loss the log loss.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # iterations are limited
        candidates = cross_validate(problem, name)
        best = min(candidates, key=lambda one: one.error)
        found: dict[str, Any] = {
            "candidates": [vars(one) for one in candidates],
            "chosen": best.view,
            "strength": best.strength,
            "cv_error": best.error,
        }
        final = _Final(problem, name, best)
        found |= {"seconds": final.seconds, "mistakes": [int(np.sum(final.predicted != problem.y_test))]}
        if problem.rest_title is not None:
            found["rest_mistakes"] = final.rest_mistakes()
        if name == "LogisticRegression":
            sharpest = min(candidates, key=lambda one: one.log_loss or 0.0)
            if sharpest is not best:
                final = _Final(problem, name, sharpest)
            found["log_loss"] = float(log_loss(problem.y_test, final.probabilities()))
            found |= {"log_loss_chosen": sharpest.view, "log_loss_strength": sharpest.strength}
    return found


def cross_validate(problem: Problem, name: str) -> list[Candidate]:
    """Return every view and strength with its mean error, and log loss, of the folds."""
    X, y = problem.X, problem.y
    if problem.choice_rows is not None:
        rows = np.random.default_rng(SEED).permutation(len(y))[: problem.choice_rows]
        X, y = X[rows], y[rows]
        X = X[:, X.getnnz(axis=0) > 0]  # the other features have no influence, but cost time
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(X, y))
    found = []
    for view, transformer in views(problem).items():
        scores = np.array([_fold_scores(name, transformer, X, y, *fold) for fold in folds]).mean(axis=0)
        for strength, (error, loss) in zip(STRENGTHS[name], scores.tolist(), strict=True):
            found.append(Candidate(view, strength, error, loss if name == "LogisticRegression" else None))
    return found


def _fold_scores(name: str, transformer: Any, X: Any, y: np.ndarray, train: np.ndarray, held_out: np.ndarray) -> Any:
    seen, unseen = transformer.fit_transform(X[train]), transformer.transform(X[held_out])
    model = _model(name, CHOICE_ITERATIONS[name])
    scores = []
    for strength in STRENGTHS[name]:  # LogisticRegression goes on from the weights of the last
        model.set_params(C=strength / mean_sq_length(seen)).fit(seen, y[train])
        error = np.mean(model.predict(unseen) != y[held_out])
        probabilities = model.predict_proba(unseen) if name == "LogisticRegression" else None
        scores.append([error, np.nan if probabilities is None else log_loss(y[held_out], probabilities)])
    return scores


def mean_sq_length(X: Any) -> float:
    """Return the mean squared length of the rows."""
    return float(np.mean((X.multiply(X) if hasattr(X, "multiply") else X * X).sum(axis=1)))


def _model(name: str, max_iter: int) -> Any:
    if name == "LinearSVC":
        return LinearSVC(dual="auto", max_iter=max_iter, random_state=SEED)
    return LogisticRegression(max_iter=max_iter, tol=TOLERANCE, warm_start=True)


class _Final:
    """The model of the chosen parameters, fitted to all training rows."""

    def __init__(self, problem: Problem, name: str, chosen: Candidate) -> None:
        self.problem, self.name = problem, name
        transformer = views(problem)[chosen.view]
        started = time.process_time()
        self.X = transformer.fit_transform(problem.X)
        self.C = chosen.strength / mean_sq_length(self.X)
        self.model = _model(name, FINAL_ITERATIONS[name]).set_params(C=self.C).fit(self.X, problem.y)
        self.seconds = time.process_time() - started
        self.X_test = transformer.transform(problem.X_test)
        self.predicted = self.model.predict(self.X_test)

    def probabilities(self) -> np.ndarray:
        return self.model.predict_proba(self.X_test)

    def rest_mistakes(self) -> list[int]:
        """Return the test mistakes of each label against the rest, with the parameters chosen for all classes."""
        model = self.model
        if self.name == "LogisticRegression":
            model = OneVsRestClassifier(_model(self.name, FINAL_ITERATIONS[self.name]).set_params(C=self.C))
            model.fit(self.X, self.problem.y)
        wins = model.decision_function(self.X_test) > 0
        return np.sum(wins != (self.problem.y_test[:, None] == np.arange(self.problem.n_classes)), axis=0).tolist()
