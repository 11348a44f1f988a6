"""Pipelines that a good practitioner writes by hand with scikit-learn: the peers of accuracy.

Cross-validation on the training records makes every choice in their grids. The test records are used once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from record_data import SEED, Split
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

ADULT_SKEWED = ["capital_gain", "capital_loss"]

Grid = dict[str, list]


class PipelineResult(NamedTuple):
    """What cross-validation chose; errors are shares of wrong labels."""

    parameters: dict[str, Any]
    cv_error: float
    test_error: float


def evaluate(pipeline: Pipeline, grid: list[Grid], folds: int, split: Split) -> PipelineResult:
    """Choose parameters by cross-validation, fit again on all training records, and test once."""
    cv = StratifiedKFold(folds, shuffle=True, random_state=SEED)
    search = GridSearchCV(pipeline, grid, scoring="accuracy", cv=cv, n_jobs=1, error_score="raise")
    search.fit(split.train, split.train_labels)
    test_error = float(1 - search.score(split.test, split.test_labels))
    return PipelineResult(search.best_params_, float(1 - search.best_score_), test_error)


def classifier_grids(shared: Grid, svc_c: Sequence[float], logistic_c: Sequence[float]) -> list[Grid]:
    """Try a linear SVM and a logistic regression, each with its own values of C, on every combination in `shared`."""
    svc = {"classify": [LinearSVC(random_state=SEED)], "classify__C": list(svc_c)}
    logistic = {"classify": [LogisticRegression(max_iter=1000)], "classify__C": list(logistic_c)}
    return [shared | svc, shared | logistic]


def sms_pipeline(split: Split) -> PipelineResult:
    """SMS spam: tf-idf of words, or of words and bigrams, and a linear classifier; 5 folds."""
    pipeline = Pipeline([("tfidf", TfidfVectorizer()), ("classify", LinearSVC())])
    features = {
        "tfidf__ngram_range": [(1, 1), (1, 2)],
        "tfidf__sublinear_tf": [False, True],
        "tfidf__min_df": [1, 2],
    }
    grid = classifier_grids(features, svc_c=(0.1, 0.3, 1, 3, 10, 30), logistic_c=(1, 10, 100, 1000, 10_000))
    return evaluate(pipeline, grid, 5, split)


def newsgroups_pipeline(split: Split) -> PipelineResult:
    """20 Newsgroups, 20 groups: tf-idf of words and a linear classifier; 3 folds."""
    pipeline = Pipeline([("tfidf", TfidfVectorizer(sublinear_tf=True)), ("classify", LinearSVC())])
    grid = classifier_grids({}, svc_c=(0.1, 0.3, 1, 3, 10), logistic_c=(10, 100, 1000))
    return evaluate(pipeline, grid, 3, split)


def adult_pipeline(split: Split) -> PipelineResult:
    """Adult: one-hot categories, scaled numbers, logistic regression; log1p of the capital columns if it helps."""
    numbers = split.train.select_dtypes("number").columns.difference(ADULT_SKEWED)
    categories = split.train.select_dtypes(exclude="number").columns
    scale = [("impute", SimpleImputer(strategy="median")), ("scale", StandardScaler())]
    log = FunctionTransformer(np.log1p)
    columns = ColumnTransformer(
        [
            ("numbers", Pipeline(scale), list(numbers)),
            ("skewed", Pipeline([("log", log), *scale]), ADULT_SKEWED),
            ("categories", OneHotEncoder(handle_unknown="ignore"), list(categories)),  # missing is a category, too
        ]
    )
    pipeline = Pipeline([("columns", columns), ("classify", LogisticRegression(max_iter=1000))])
    grid = {"columns__skewed__log": [log, "passthrough"], "classify__C": [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]}
    return evaluate(pipeline, [grid], 5, split)
