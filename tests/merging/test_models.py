"""Merged models as their users see them: counts, classes, features, and refused models."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

import maxcosine
from maxcosine import OnlineClassifier, merge
from maxcosine.certificate import HOW
from maxcosine.certificate_text import rounded_down
from maxcosine.merging import NotSeparable, nearest_point
from maxcosine.model import Model
from tests.contract.streams import augmented, csr, separable, signs, stream
from tests.learners import everything, learnt, named
from tests.merging.models import (
    assert_same_points,
    averaged_or_not,
    both_kinds,
    clusters,
    of_one_example,
    parts,
    points,
    some_rules,
)
from tests.reference import maximal_margin

# What a merged model says of itself


def test_both_bounds_are_shown():
    models = parts("mcp", *separable(120, 4)[:2], 3)
    proven = {how: merge(models, how).certificate_ for how in HOW}
    for how in HOW:
        shown = proven[how].merge
        assert (shown.how, shown.models) == (how, 3)
        assert shown.certified == pytest.approx(proven["certified"].bound, rel=1e-12)
        assert shown.mean == pytest.approx(proven["mean"].bound, rel=1e-12)
        bounds = [rounded_down(bound, 6) for bound in (shown.certified, shown.mean)]
        text = f"by '{how}'; bounds at the merge: certified {bounds[0]}, mean {bounds[1]}"
        assert f"merged from 3 models {text}" in repr(proven[how])
    several = merge(parts("mcp", *clusters()[:2])).certificate_
    assert several.merge.certified == pytest.approx(several.bound, rel=1e-12)
    low, high = (rounded_down(bound, 6) for bound in (several.merge.certified.min(), several.merge.certified.max()))
    assert f"certified {low} to {high}, mean" in repr(several)
    assert models[0].certificate_.merge is None
    assert "merged" not in repr(models[0].certificate_)


@both_kinds
def test_counts_add_up_and_weights_are_remembered(multiclass):
    X, y, _ = clusters()
    models = parts("mcp", X, y, 3, multiclass=multiclass)
    merged = merge(models)
    assert merged.n_seen_ == len(X)
    for count in ("seen", "mistakes", "updates"):
        total = np.sum([getattr(model.certificate_, count) for model in models], axis=0)
        assert np.array_equal(getattr(merged.certificate_, count), total)
    assert merged.mistakes_ == sum(model.mistakes_ for model in models)
    assert not merged.certificate_.weighted
    models[1].partial_fit(X, y, sample_weight=np.full(len(X), 2.0))
    merged = merge(models)
    assert merged.certificate_.weighted
    # The mean weight is that of all rows, so that merged models go on as one that has seen them.
    (scalars,) = merged.model_.heads.arrays.scalars
    assert scalars["weighed_rows"] == 2 * len(X)
    assert scalars["mean_weight"] == pytest.approx(1.5, rel=1e-12)


@some_rules
def test_models_stay_unchanged_and_give_the_same_bits_again(name):
    X, y, _ = clusters()
    models = parts(name, X, y, average=True)
    models[1].sparsify()
    before = [everything(model) for model in models]
    for how in HOW:
        merged, again = merge(models, how), merge(iter(models), how)
        assert everything(merged) == everything(again) == everything(pickle.loads(pickle.dumps(merged)))
        merged.partial_fit(X, y)
        assert [everything(model) for model in models] == before


def test_a_merged_model_has_the_type_and_the_parameters_of_the_first():
    X, y, _ = separable(60, 3)
    first, second = (
        named("pa1", C=0.1, passes=2).fit(X, y),
        OnlineClassifier("pa1", dtype="float32").fit(X, y),
    )
    merged = merge([first, second])
    assert type(merged) is type(first)
    assert merged.get_params() == first.get_params()
    assert (merged.model_.heads.arrays.params[0, 0], merged.coef_.dtype) == (0.1, np.float64)
    assert type(merge([second, first])) is OnlineClassifier
    assert np.isfinite(merge([second, first]).partial_fit(X, y).coef_).all()


@both_kinds
def test_models_as_values_are_merged_alike(multiclass):
    X, y, _ = clusters()
    learners = parts("mcp", X, y, 2, multiclass=multiclass)
    merged = merge([learner.model_ for learner in learners])
    assert type(merged) is Model
    assert merged.certificate() == merge(learners).certificate_
    assert type(merge([learners[0], learners[1].model_])) is OnlineClassifier


# Classes


@some_rules
@averaged_or_not
def test_a_class_has_the_merged_heads_of_the_models_that_know_it(name, average):
    X, y, _ = clusters()
    chosen = [y < 2, y > 0]  # classes 0 and 1, classes 1 and 2
    first, second = (OnlineClassifier(name, average=average).partial_fit(X[c], y[c]) for c in chosen)
    merged = merge([first, second])
    assert merged.classes_.tolist() == [0, 1, 2]
    zero, one, two = points(merged)
    (u_first,), (u_second,) = points(first), points(second)  # each for its second class
    assert zero == pytest.approx(-u_first, rel=1e-12)
    assert two == pytest.approx(u_second, rel=1e-12)
    hull = np.array([u_first, -u_second])
    assert one == pytest.approx(nearest_point(hull @ hull.T) @ hull, rel=1e-9)
    n_first, n_second = (np.count_nonzero(c) for c in chosen)
    assert merged.certificate_.seen.tolist() == [n_first, n_first + n_second, n_second]
    for code in range(3):
        know = [c for c in chosen if code in y[c]]
        rows, labels = np.vstack([X[c] for c in know]), np.concatenate([y[c] for c in know])
        best = maximal_margin(augmented(rows, True), signs(labels == code))
        assert merged.certificate_.margin_ceiling[code] >= best * (1 - 1e-9)


@some_rules
def test_models_of_one_class_each(name):
    X, y, margins = clusters()
    merged = merge([OnlineClassifier(name).partial_fit(X[y == c], y[y == c]) for c in (2, 0, 1)])
    assert merged.classes_.tolist() == [0, 1, 2]
    assert merged.score(X, y) > 0.9
    assert np.all(merged.certificate_.margin_ceiling >= margins["ovr"] * (1 - 1e-9))
    X, y, _ = separable(60, 4)
    alone, told = (
        [OnlineClassifier(name).partial_fit(X[y == c], y[y == c], classes=classes) for c in (0, 1)]
        for classes in (None, [0, 1])
    )
    assert_same_points(merge(alone), merge(told))
    assert_same_points(merge([alone[1], told[0]]), merge(told))


@some_rules
def test_joint_models_of_some_classes_are_joined_block_by_block(name):
    X, y, margins = clusters()
    chosen = [y < 2, y > 0, y == 0]  # one class alone teaches nothing
    models = [OnlineClassifier(name, multiclass="joint").partial_fit(X[c], y[c]) for c in chosen]
    merged = merge(models)
    (u,) = points(merged).reshape(1, 3, -1)
    blocks = np.zeros((2, 3, u.shape[1]))
    blocks[0, :2], blocks[1, 1:] = (points(model).reshape(2, -1) for model in models[:2])
    hull = blocks.reshape(2, -1)
    assert u.ravel() == pytest.approx(nearest_point(hull @ hull.T) @ hull, rel=1e-9, abs=1e-12)
    assert merged.certificate_.margin_ceiling >= margins["joint"] * (1 - 1e-9)
    assert merged.n_seen_ == sum(map(np.count_nonzero, chosen))


@both_kinds
def test_new_classes_and_labels_of_any_length(multiclass):
    X, y, _ = clusters()
    labels = np.array(["a", "long", "longer still"])[y]
    two = y < 2
    models = [OnlineClassifier(multiclass=multiclass).partial_fit(X[two][i::2], labels[two][i::2]) for i in range(2)]
    merged = merge(models)
    assert merged.classes_.tolist() == ["a", "long"]
    assert merged.partial_fit(X, labels).score(X, labels) > 0.8
    closed = merge(parts("mcp", X[two], labels[two], multiclass=multiclass))  # whose classes were named
    with pytest.raises(ValueError, match="not among the classes"):
        closed.partial_fit(X, labels)
    assert not merge([models[0], closed]).model_.closed


# Features


def assert_same_weights(learner, other):
    """Compare the weights of each feature that has any."""

    def weights(learner):
        coef = learner.coef_.toarray() if scipy.sparse.issparse(learner.coef_) else learner.coef_
        columns = zip(learner.features_.tolist(), coef.T, strict=True)
        return {key: column.tolist() for key, column in columns if column.any()}

    found, expected = weights(learner), weights(other)
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key], rel=1e-9, abs=1e-12) for key in expected)
    assert learner.intercept_ == pytest.approx(other.intercept_, rel=1e-9)
    assert np.allclose(learner.certificate_.bound, other.certificate_.bound, rtol=1e-9)


def dicts(X, names=None):
    names = range(X.shape[1]) if names is None else names
    return [{key: value for key, value in zip(names, row, strict=True) if value} for row in X.tolist()]


def of_dicts(X, y, names=None, **options):
    learner = OnlineClassifier(**options)
    learner.learn_many(dicts(X, names), y)
    return learner


@averaged_or_not
def test_columns_that_a_model_lacks_have_no_weight(average):
    X, y = stream(90, 8, n_classes=3, noise=0.0)
    X[:40, 5:] = 0.0
    narrow, padded, wide = (
        OnlineClassifier(average=average).partial_fit(rows, labels, classes=[0, 1, 2])
        for rows, labels in ((X[:40, :5], y[:40]), (X[:40], y[:40]), (X[40:], y[40:]))
    )
    for models, expected in (([narrow, wide], [padded, wide]), ([wide, narrow], [wide, padded])):
        merged = merge(models)
        assert merged.n_features_in_ == 8
        assert_same_points(merged, merge(expected))


@averaged_or_not
def test_named_columns_are_joined_by_name(average):
    X, y = stream(90, 5, noise=0.0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[:39, "a"] = 0.0
    frame.loc[40:, "e"] = 0.0
    rows = (slice(40), slice(40, 90))
    models = [
        OnlineClassifier(average=average).partial_fit(frame[names][r], y[r])
        for names, r in zip((list("dbce"), list("abcd")), rows, strict=True)
    ]
    whole = [OnlineClassifier(average=average).partial_fit(frame[r], y[r]) for r in rows]
    merged = merge(models)
    assert merged.feature_names_in_.tolist() == list("dbcea")
    assert_same_weights(merged, merge(whole))
    assert np.array_equal(merged.predict(frame[list("dbcea")]), merge(whole).predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        merged.partial_fit(frame, y)


@pytest.mark.parametrize("names", [None, list("abcdef")], ids=["ids", "names"])
def test_features_of_dicts_are_joined_by_key(names):
    X, y = stream(90, 6, noise=0.0)
    X[:40, :2], X[40:, 4:] = 0.0, 0.0  # neither model knows all
    halves = (slice(40), slice(40, None))
    models = [of_dicts(X[rows], y[rows], names, average=True) for rows in halves]
    frame = X if names is None else pd.DataFrame(X, columns=names)
    columns = [OnlineClassifier(average=True).partial_fit(frame[rows], y[rows]) for rows in halves]
    for some in (models, [models[0], columns[1]], [columns[0], models[1]]):
        assert_same_weights(merge(some), merge(columns))
    going = merge(models)
    going.learn_one({("z" if names else 77): 1.0}, 1)
    assert going.n_features_in_ == 7


@averaged_or_not
def test_sparse_models_are_merged_as_dense_ones(average):
    X, y = stream(90, 12, n_classes=3, noise=0.0)
    X[:, 3:7] = 0.0
    X[:45, 9], X[45:, 10] = 0.0, 0.0
    dense = parts("mcp", X, y, 2, average=average)
    thin = [model.sparsify() for model in parts("mcp", X, y, 2, average=average)]
    for models in (thin, [thin[0], dense[1]], [dense[0], thin[1]]):
        merged = merge(models)
        assert scipy.sparse.issparse(merged.coef_) == (models[0] is thin[0])
        assert_same_weights(merged, merge(dense))
        merged.partial_fit(csr(X), y)


# Models that cannot be merged


@some_rules
@averaged_or_not
def test_opposite_models_are_refused(name, average):
    X, y, _ = separable(60, 4, dtype="float32")
    models = [OnlineClassifier(name, average=average).fit(X, labels) for labels in (y, 1 - y)]
    for how in HOW:
        with pytest.raises(NotSeparable, match=r"cannot be merged.*nothing separates the examples of all") as caught:
            merge(models, how)
        assert isinstance(caught.value, ValueError)
        assert 0.0 <= caught.value.margin_ceiling < 1e-3
        assert repr(caught.value.margin_ceiling) in str(caught.value)


def test_an_origin_in_the_hull_is_refused():
    for a, length in itertools.product(np.random.default_rng(0).normal(size=(10, 5)), (1e-3, 0.7, 42.0)):
        with pytest.raises(ValueError, match="the origin lies in the hull"):
            merge([of_one_example("mcp", a), of_one_example("mcp", -length * a)])
    model = OnlineClassifier("perceptron", average=True, fit_intercept=False)
    model.partial_fit(np.ones((3, 1)), [1, 0, 0])  # w is 1, 0, -1: the average is 0
    with pytest.raises(ValueError, match="the origin lies in the hull"):
        merge([model, model])


def test_models_that_learnt_nothing_change_nothing():
    X, y, _ = clusters()
    options = {"average": True, "fit_intercept": False}
    model = OnlineClassifier(**options).fit(X, y)
    empty = OnlineClassifier(**options).partial_fit(np.zeros((5, 3)), [0, 1, 2, 0, 1])
    for models in ([model, empty], [empty, model]):
        assert_same_points(merge(models), model)
        assert merge(models).n_seen_ == len(X) + 5
    nothing = merge([empty, empty]).certificate_
    assert np.all(np.isinf(nothing.margin_ceiling))
    assert np.all(nothing.merge.certified == 0.0)
    undecided, other = OnlineClassifier(), of_dicts(np.eye(2), [0, 1])
    undecided.learn_one({0: 1.0}, 0, w=0.0)
    assert_same_weights(merge([other, undecided]), other)


def fitted(rule="mcp", X=None, y=(0, 1, 0, 1), **options):
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 2.0]]) if X is None else X
    return OnlineClassifier(rule, **options).fit(X, list(y))


def mine(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 if margin <= 0.0 else 0.0), state


@pytest.mark.parametrize(
    ("models", "match"),
    [
        ([], "nothing to merge: give at least one"),
        ([fitted(), OnlineClassifier("pa")], r"model 1 is not fitted: OnlineClassifier\(rule='pa'\)"),
        ([fitted(), None], "model 1 is not fitted: None"),
        ([fitted(), fitted(), fitted("pa")], "agree in rule: it is 'mcp' for model 0 and 'pa' for model 2"),
        ([fitted(maxcosine.rule(mine)), fitted(maxcosine.rule(mine))], "agree in rule"),
        ([fitted(), fitted(multiclass="joint")], "agree in multiclass: it is 'ovr' for model 0 and 'joint'"),
        ([fitted(), fitted(fit_intercept=False)], "agree in fit_intercept: it is True for model 0 and False"),
        ([fitted(), fitted(average=True)], "agree in average: it is False for model 0 and True"),
        ([fitted(), fitted(y="abab")], "agree in labels: it is 'numbers' for model 0 and 'strings'"),
        ([fitted(), of_dicts(np.eye(2), [0, 1], "ab")], "model 1 .* features by name and model 0 by number"),
    ],
)
def test_models_that_do_not_fit_together_are_refused(models, match):
    with pytest.raises(ValueError, match=match):
        merge(models)


def test_other_ways_and_weights_are_refused():
    for how in ("best", "Mean", None):
        with pytest.raises(ValueError, match=r"is not a way of merging; it is one of certified, mean"):
            merge([fitted()], how)
    for weights in ([1.0, 2.0], [0.0], [np.nan]):
        with pytest.raises(ValueError, match="weights must be 1 positive numbers"):
            merge([fitted()], weights=weights)


def test_the_bits_do_not_depend_on_the_threads_of_blas():
    X = np.random.default_rng(0).normal(size=(6, 100_001))  # so long that BLAS divides a sum
    models = [maxcosine.MCPClassifier().partial_fit(X[k : k + 2], [0, 1]) for k in (0, 2, 4)]

    def merged(n_threads):
        with threadpool_limits(n_threads):
            return [learnt(merge(models, how)) for how in HOW]

    assert merged(1) == merged(2)
