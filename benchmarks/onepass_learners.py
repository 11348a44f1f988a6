"""The learners of ``benchmarks/onepass.py`` that read a stream once, each with its defaults."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onepass_problems import Stream
from river import compose, linear_model, multiclass, preprocessing
from scipy.special import expit
from sklearn.linear_model import Perceptron, SGDClassifier

from maxcosine import RULES, OnePassClassifier, OnlineClassifier

ONE_PASS = {"max_iter": 1, "tol": None, "shuffle": False}
VW_BITS = 18  # Vowpal Wabbit's default


@dataclass(frozen=True)
class Outcome:
    """What a learner says of the test rows after one pass."""

    seconds: float
    """Of processor time."""
    predicted: np.ndarray
    probabilities: np.ndarray | None
    against_rest: np.ndarray | None
    """For each row and class, whether the class wins against the rest; None if classes are learnt jointly."""


@dataclass(frozen=True)
class OnePassLearner:
    """A learner that sees the training rows once, in the order given."""

    name: str
    title: str
    family: str
    run: Callable[[Stream], Outcome]
    small_only: bool = False


def learners() -> list[OnePassLearner]:
    """Return all learners; ours is the first."""
    found = [OnePassLearner("onepass", "OnePassClassifier", "onepass", estimator_run(OnePassClassifier))]
    for rule in RULES:
        for average in (False, True):
            name, title = (f"avg_{rule}", f"`{rule}`, averaged") if average else (rule, f"`{rule}`")
            found.append(OnePassLearner(name, title, "rules", estimator_run(OnlineClassifier, rule, average=average)))
    for loss in ("hinge", "log_loss"):
        for average in (False, True):
            name, title = f"sgd_{loss}", f"scikit-learn SGD, {loss}"
            if average:
                name, title = f"avg_{name}", f"{title}, averaged"
            run = estimator_run(SGDClassifier, loss=loss, average=average, **ONE_PASS)
            found.append(OnePassLearner(name, title, "scikit-learn", run))
    run = estimator_run(Perceptron, **ONE_PASS)
    found.append(OnePassLearner("sklearn_perceptron", "scikit-learn Perceptron", "scikit-learn", run))
    for name, title, arguments in (
        ("vw_logistic", "Vowpal Wabbit, logistic", ["--loss_function", "logistic"]),
        ("vw_hinge", "Vowpal Wabbit, hinge", ["--loss_function", "hinge"]),
        ("vw_coin", "Vowpal Wabbit, --coin", ["--coin", "--loss_function", "logistic"]),
    ):
        found.append(OnePassLearner(name, title, "vw", vowpal_wabbit_run(arguments)))
    found.append(OnePassLearner("river", "River, scaled logistic regression", "river", run_river, small_only=True))
    return found


def estimator_run(make: Callable[..., Any], *args: Any, **params: Any) -> Callable[[Stream], Outcome]:
    """Return how to measure an estimator in scikit-learn's manner."""

    def run(stream: Stream) -> Outcome:
        problem, X, y = stream.problem, stream.X, stream.y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a single pass
            started = time.process_time()
            model = make(*args, **params).fit(X, y)
            seconds = time.process_time() - started
        probabilities = against_rest = None
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(problem.X_test)
        if problem.n_classes > 2 and make is not OnePassClassifier:
            against_rest = model.decision_function(problem.X_test) > 0
        return Outcome(seconds, model.predict(problem.X_test), probabilities, against_rest)

    return run


def vowpal_wabbit_run(arguments: list[str]) -> Callable[[Stream], Outcome]:
    """Return how to measure Vowpal Wabbit; many classes are learnt one against all (``--oaa``).

    The seconds include those of the thread that reads the text. Two classes are -1 and 1. The table of
    weights has room for every feature and class, so that none share a weight.
    """

    def run(stream: Stream) -> Outcome:
        from vowpalwabbit import Workspace  # not among the packages of the tests

        problem = stream.problem
        n_weights = (problem.X.shape[1] + 1) * (problem.n_classes if problem.n_classes > 2 else 1)
        setting = [*arguments, "-b", str(max(VW_BITS, (n_weights - 1).bit_length()))]
        labels = problem.y + 1 if problem.n_classes > 2 else 2 * problem.y - 1
        if problem.n_classes > 2:
            setting += ["--oaa", str(problem.n_classes)]
        rows, test_rows = problem.vw_rows
        with tempfile.TemporaryDirectory() as folder:
            train, test, model, predicted, raw = (Path(folder) / name for name in ("train", "test", "model", "p", "r"))
            train.write_text("".join(f"{labels[row]} {rows[row]}\n" for row in stream.order.tolist()))
            test.write_text("\n".join(test_rows) + "\n")
            started = time.process_time()
            Workspace(arg_list=["--quiet", "-d", str(train), "-f", str(model), *setting]).finish()
            seconds = time.process_time() - started
            options = ["-d", str(test), "-i", str(model), "-p", str(predicted), "-r", str(raw)]
            Workspace(arg_list=["--quiet", "-t", *options]).finish()
            classes = np.loadtxt(predicted)
            lines = [line.split() for line in raw.read_text().splitlines() if line]
        scores = np.array([[float(cell.rpartition(":")[2]) for cell in line] for line in lines])
        logistic = "logistic" in arguments
        if problem.n_classes > 2:
            shares = expit(scores)
            probabilities = shares / shares.sum(axis=1, keepdims=True) if logistic else None
            return Outcome(seconds, classes.astype(np.int64) - 1, probabilities, scores > 0)
        positive = expit(scores[:, 0])
        probabilities = np.column_stack([1.0 - positive, positive]) if logistic else None
        return Outcome(seconds, (scores[:, 0] > 0).astype(np.int64), probabilities, None)

    return run


def run_river(stream: Stream) -> Outcome:
    """Measure River's scaler and logistic regression; its scaler needs all features of a row, zeros too."""
    problem = stream.problem
    train, test = dense_dicts(problem.X), dense_dicts(problem.X_test)
    labels = problem.y.tolist()
    learner = linear_model.LogisticRegression()
    if problem.n_classes > 2:
        learner = multiclass.OneVsRestClassifier(learner)
    else:
        labels = [label == 1 for label in labels]
    model = compose.Pipeline(preprocessing.StandardScaler(), learner)
    started = time.process_time()
    for row in stream.order.tolist():
        model.learn_one(train[row], labels[row])
    seconds = time.process_time() - started
    predicted = [model.predict_proba_one(row) for row in test]
    probabilities = np.array([[shares.get(code, 0.0) for code in range(problem.n_classes)] for shares in predicted])
    return Outcome(seconds, probabilities.argmax(axis=1), probabilities, None)


def dense_dicts(X: Any) -> list[dict[int, float]]:
    """Return the rows as dicts with a value for each feature."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    return [dict(enumerate(row)) for row in dense.tolist()]
