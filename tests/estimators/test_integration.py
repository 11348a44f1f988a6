"""Inside scikit-learn's own tools, and with data frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxcosine import RULES, MCPClassifier, OnlineClassifier, PAClassifier
from tests.learners import learnt, points

FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names, orient="row"),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]


def test_pipeline_is_its_steps(learner):
    X, y = points(3)
    X = 100.0 + 10.0 * X
    pipeline = make_pipeline(StandardScaler(), clone(learner)).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    assert learnt(pipeline[-1]) == learnt(learner.fit(scaled, y))
    assert pipeline.score(X, y) == learner.score(scaled, y)


def test_text_pipeline(learner):
    texts = ["a cosine is a margin", "bread and butter", "margin over norm", "butter the warm bread"] * 3
    y = ["maths", "food"] * 6
    pipeline = make_pipeline(CountVectorizer(), TfidfTransformer(), learner).fit(texts, y)
    assert pipeline.score(texts, y) == 1.0
    assert pipeline.predict(["warm bread", "the norm of a cosine margin"]).tolist() == ["food", "maths"]
    assert len(pipeline[:-1].get_feature_names_out()) == learner.n_features_in_


def test_grid_search_over_rules_and_their_parameters():
    X, y = points(3)
    grid = [
        {"rule": list(RULES)},
        {"rule": ["pa1", "pa2"], "rule_params": [{"C": 0.01}, {"C": 10.0}], "average": [False, True]},
    ]
    search = GridSearchCV(OnlineClassifier(), grid, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == len(RULES) + 8
    best = OnlineClassifier(**search.best_params_).fit(X, y)
    assert learnt(search.best_estimator_) == learnt(best)


def test_grid_search_over_the_aggressiveness_of_pa():
    X, y = points(3)
    search = GridSearchCV(PAClassifier(fit_intercept=False), {"C": [1e-3, 0.1, 10.0]}, error_score="raise").fit(X, y)
    fitted = [PAClassifier(C=C, fit_intercept=False).fit(X, y) for C in (1e-3, 0.1, 10.0)]
    assert len({learner.coef_.tobytes() for learner in fitted}) == 3
    assert learnt(search.best_estimator_) == learnt(PAClassifier(**search.best_params_, fit_intercept=False).fit(X, y))
    once = {"fit_intercept": False, "shuffle": False, "max_iter": 1, "tol": None}
    theirs = SGDClassifier("hinge", penalty=None, learning_rate="pa1", eta0=0.1, **once).fit(X, y)
    assert np.allclose(fitted[1].coef_, theirs.coef_, rtol=1e-12)


def test_calibration_gives_probabilities(learner):
    X, y = points(3)
    calibrated = CalibratedClassifierCV(learner, ensemble=False).fit(X, y)
    assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.7


@pytest.mark.parametrize("rule", RULES)
def test_heads_are_those_of_one_vs_rest(rule):
    X, y = points(3)
    for average in (False, True):
        learner = OnlineClassifier(rule, average=average).fit(X, y)
        heads = OneVsRestClassifier(OnlineClassifier(rule, average=average)).fit(X, y).estimators_
        for k, head in enumerate(heads):
            # Heads whose length means nothing are published as points of the hull, w / Lambda.
            unit = head.certificate_.coef_sum if RULES[rule].scale_free else 1.0
            np.testing.assert_allclose(learner.coef_[k], head.coef_[0] / unit, rtol=1e-9)
            np.testing.assert_allclose(learner.intercept_[k], head.intercept_[0] / unit, rtol=1e-9)
            for field in ("coef_sum", "norm", "bound", "best_bound", "margin_ceiling", "mistakes", "updates"):
                assert getattr(learner.certificate_, field)[k] == getattr(head.certificate_, field)


def test_cross_validation(learner, storage):
    X, y = points()
    assert cross_val_score(learner, storage(X), y, error_score="raise").mean() > 0.6


def test_clone_has_the_parameters_and_learns_the_same(learner):
    X, y = points()
    learner.set_params(average=True, passes=2).fit(X, y)
    copied = clone(learner)
    assert not copied.__sklearn_is_fitted__()
    assert copied.get_params() == learner.get_params()
    assert learnt(copied.fit(X, y)) == learnt(learner)


@pytest.mark.slow
def test_predicts_in_other_processes():
    X, y = points(3, n_rows=2000)
    learner = MCPClassifier().fit(X, y)
    predicted = Parallel(
        n_jobs=2, backend="loky", max_nbytes=1000
    )(  # rows travel as memory maps
        delayed(learner.predict)(half) for half in (X[:1000], X[1000:])
    )
    assert np.array_equal(np.concatenate(predicted), learner.predict(X))


# Data frames


def test_frames_learn_as_arrays_do(learner, frame):
    X, y = points()
    names = list("abcdef")
    from_array = learnt(clone(learner).fit(X, y))
    labels = frame(y[:, None], ["label"])["label"]
    learner.fit(frame(X, names), labels)
    assert learnt(learner) == from_array
    assert learner.feature_names_in_.tolist() == names
    assert np.array_equal(learner.predict(frame(X, names)), clone(learner).fit(X, y).predict(X))


@pytest.mark.parametrize("names", ["fedcba", "abcdex"])
def test_frames_with_other_columns_are_refused(frame, names):
    X, y = points()
    learner = OnlineClassifier().fit(frame(X, list("abcdef")), y)
    for call in ("partial_fit", "predict", "decision_function", "score"):
        labels = [y] if call in ("partial_fit", "score") else []
        with pytest.raises(ValueError, match="feature names should match"):
            getattr(learner, call)(frame(X, list(names)), *labels)


def test_names_of_classes_may_be_a_pandas_type():
    X, y = points()
    names = np.where(y, "spam", "ham")
    expected = OnlineClassifier().fit(X, names)
    for dtype in ("string", "category", object):
        learner = OnlineClassifier().fit(X, pd.Series(names, dtype=dtype))
        assert learner.classes_.tolist() == ["ham", "spam"]
        assert np.array_equal(learner.coef_, expected.coef_)
        assert learner.predict(X).tolist() == expected.predict(X).tolist()
