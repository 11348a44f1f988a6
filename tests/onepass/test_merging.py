"""Models of the one-pass learner are merged as in the reference, and the result is proven on all rows."""

import itertools

import numpy as np
import pytest

import maxcosine
from maxcosine import MCPClassifier, OnePassClassifier, model_file
from maxcosine.features import Features
from maxcosine.onepass_merging import merge
from maxcosine.onepass_model import OnePassModel
from tests.contract.streams import separable, signs
from tests.onepass.learning import assert_equals_reference, distance
from tests.onepass.streams import STREAMS, binary, joint, late_classes
from tests.onepass_reference import CONSTANT, OnePassReference, squash
from tests.onepass_reference import merge as merge_references
from tests.reference import maximal_margin

TOLERANCE = 1e-9


def both(X, codes, weights=None, *, n_classes=0, start=(None, None)):
    """A model and a reference that learn the same rows; classes are known from the start, or come in their order."""
    model, reference = start
    if model is None:
        classes = np.arange(max([n_classes, *(np.asarray(codes) + 1)]))
        model = OnePassModel.create(classes, Features(X.shape[1]), X.dtype, closed=n_classes > 0)
        reference = OnePassReference(X.shape[1], n_classes)
    model, reference = model.copy(), reference.copy()
    model.learn(np.ascontiguousarray(X), np.asarray(codes), weights=weights)
    for x, code, weight in zip(X, codes, np.ones(len(X)) if weights is None else weights, strict=True):
        reference.learn(x.astype(float), code, weight)
    return model, reference


def shards(X, codes, weights, sizes, **options):
    spans = itertools.starmap(slice, itertools.pairwise(np.cumsum([0, *sizes])))
    found = [both(X[s], codes[s], None if weights is None else weights[s], **options) for s in spans]
    return [list(column) for column in zip(*found, strict=True)]


FROM_THE_START = [name for name, (n_classes, _) in STREAMS.items() if n_classes]


@pytest.mark.parametrize("name", FROM_THE_START)
@pytest.mark.parametrize("sizes", [[500], [250, 250], [100, 7, 300, 1, 92]], ids=str)
def test_merged_models_are_those_of_the_reference(name, sizes):
    n_classes, make = STREAMS[name]
    models, references = shards(*make(), sizes, n_classes=n_classes)
    merged, expected = merge(models), merge_references(references)
    assert_equals_reference(merged.state, expected, TOLERANCE)
    X, codes, weights = make()
    merged, expected = both(X[:64], codes[:64], None if weights is None else weights[:64], start=(merged, expected))
    assert_equals_reference(merged.state, expected, TOLERANCE)


@pytest.mark.parametrize("name", ["binary", "weighted", "late features", "joint", "joint weighted", "counts"])
@pytest.mark.parametrize("sizes", [[300], [150, 150], [100, 7, 101, 1, 91]], ids=str)
def test_models_that_go_on_from_a_base_count_it_once(name, sizes):
    n_classes, make = STREAMS[name]
    X, codes, weights = make(600)
    rest = slice(300, 600)
    start = both(X[:300], codes[:300], None if weights is None else weights[:300], n_classes=n_classes)
    models, references = shards(X[rest], codes[rest], None if weights is None else weights[rest], sizes, start=start)
    merged, expected = merge(models, start[0]), merge_references(references, start[1])
    assert_equals_reference(merged.state, expected, TOLERANCE)
    scores = np.array([expected.margins(x) for x in X])
    assert distance(merged.margins(X), scores) <= TOLERANCE


# The codes in the merged model of each part's classes, in the order of their first rows: those of the parts in turn.
CODES = {
    "one class and the other": [[0] * 40, [1] * 60],
    "two orders of two classes": [[0, 1] * 30, [1, 0] * 20],
    "binary and joint": [[0, 1] * 40, [2, 1, 0] * 30],
    "one class of three": [[0] * 30, [1, 2] * 30, [0, 2] * 20],
    "disjoint classes": [[0, 1] * 30, [2, 3] * 30, [4] * 9],
}


@pytest.mark.parametrize("name", CODES)
def test_classes_that_only_some_models_have(name):
    parts = [np.array(codes) for codes in CODES[name]]
    n_classes = 1 + max(codes.max() for codes in parts)
    X = joint(sum(map(len, parts)))[0]
    edges, models, references = np.cumsum([0, *map(len, parts)]), [], []
    for codes, start, stop in zip(parts, edges[:-1], edges[1:], strict=True):
        models.append(OnePassClassifier().partial_fit(X[start:stop], codes))
        places = list(dict.fromkeys(codes.tolist()))
        reference = OnePassReference(7)
        for x, code in zip(X[start:stop], codes.tolist(), strict=True):
            reference.learn(x, places.index(code))
        references.append(reference.arranged(places, n_classes))
    merged, expected = maxcosine.merge(models), merge_references(references)
    assert merged.classes_.tolist() == list(range(n_classes))
    assert merged.model_.blocks.tolist() == list(range(n_classes))
    assert_equals_reference(merged.model_.state, expected, TOLERANCE)
    merged.partial_fit(X, np.arange(len(X)) % n_classes)
    assert merged.score(X, np.arange(len(X)) % n_classes) > 1 / (n_classes + 1)


def test_classes_that_come_after_the_base():
    """The base knows one class; each of two models then meets another one."""
    X = joint(200)[0]
    start = both(X[:40], [0] * 40)
    start[0].add_classes(np.array([1, 2]), waiting=True)
    one, _ = both(X[40:100], [0, 1] * 30, start=start)
    other = start[0].copy()
    other.learn(X[100:160], np.array([2, 0] * 30))
    merged = merge([one, other], start[0])
    assert merged.blocks.tolist() == [0, 1, 2]
    assert merged.n_seen == 160
    # What was learnt against "the other" is shared between the classes that it became: all coefficients are >= 0.
    assert np.abs(merged.state.arrays.blocks["s"][:3].sum(axis=0)).max() < 1e-9
    assert 0.0 < merged.certificate().norm / merged.certificate().coef_sum < merged.certificate().margin_ceiling


def test_features_that_only_some_models_have():
    X, codes, _ = binary(300)
    spans, columns = [slice(0, 90), slice(90, 200), slice(200, 300)], [[0, 2, 3], [3, 1], [6, 5, 4, 3]]
    models, references = [], []
    for span, own in zip(spans, columns, strict=True):
        learner = OnePassClassifier()
        for x, code in zip(X[span], codes[span].tolist(), strict=True):
            learner.learn_one({f"x{j}": x[j] for j in own}, code)
        models.append(learner)
        kept = np.zeros_like(X[span])
        kept[:, own] = X[span][:, own]
        first = int(codes[span][0])
        references.append(both(kept, np.abs(codes[span] - first))[1].arranged([first, 1 - first], 2))
    merged = maxcosine.merge(models)
    assert merged.n_seen_ == 300
    expected = merge_references(references)
    order = [int(name[1:]) for name in merged.features_]
    rows = [dict(zip((f"x{j}" for j in range(7)), x, strict=True)) for x in X.tolist()]
    scores = np.array([expected.margins(x)[0] for x in X])
    assert distance(merged.decision_function(rows), scores) <= TOLERANCE
    np.testing.assert_allclose(merged.center_, expected.geometry.mu[order], rtol=TOLERANCE)
    wide = [OnePassClassifier().fit(X[:100, :4], codes[:100]), OnePassClassifier().fit(X[100:], codes[100:])]
    assert maxcosine.merge(wide).n_features_in_ == 7


@pytest.mark.parametrize("make", [binary, joint])
def test_a_tree_of_merges_is_one_merge(make):
    X, codes, _ = make(400)
    n_classes = int(codes.max()) + 1
    start = both(X[:200], codes[:200], n_classes=n_classes)
    for base in (None, start[0]):
        options = {"n_classes": n_classes} if base is None else {"start": start}
        models, _ = shards(X[200:], codes[200:], None, [60, 30, 10, 100], **options)
        once = merge(models, base)
        tree = merge([merge(models[:2], base), merge(models[2:], base)], base)
        assert tree.n_seen == once.n_seen
        scores = once.margins(X)
        np.testing.assert_allclose(tree.margins(X), scores, rtol=0, atol=1e-9 * np.abs(scores).max())
        for name in ("rows", "mistakes", "errors"):
            assert np.array_equal(tree.state.scalars[name], once.state.scalars[name])
        for name in ("count", "next_fix"):
            assert np.array_equal(tree.state.arrays.features[name], once.state.arrays.features[name])


# What is proven


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("with_base", [False, True])
def test_no_separator_of_all_rows_has_a_margin_above_the_ceiling(dtype, with_base):
    X, codes, _ = separable(160, 4, margin=0.3, dtype=dtype)
    start, done = ((None, None), 0) if not with_base else (both(X[:40], codes[:40], n_classes=2), 40)
    options = {"start": start} if with_base else {"n_classes": 2}
    models, references, radii = [], [], []
    if with_base:
        radii += lengths(OnePassReference(4, 2), X[:40], codes[:40])
    for a, b in [(done, 70), (70, 90), (90, 160)]:
        model, reference = both(X[a:b], codes[a:b], **options)
        radii += lengths(start[1].copy() if with_base else OnePassReference(4, 2), X[a:b], codes[a:b])
        models.append(model)
        references.append(reference)
    merged, g = merge(models, start[0]), merge_references(references, start[1]).geometry
    rows = (squash(X) - g.mu) / np.array(radii)[:, None] * np.sqrt(g.D)
    rows = np.column_stack([rows, np.full(len(X), CONSTANT * np.sqrt(g.constant_metric))])
    margin = maximal_margin(rows, signs(codes))
    assert 0 < margin <= merged.certificate().margin_ceiling * (1 + TOLERANCE)


def lengths(reference, X, codes):
    """The divisor R that each row gets on arrival."""
    found = []
    for x, code in zip(X, codes, strict=True):
        reference.learn(x.astype(float), code)
        found.append(reference.geometry.row(squash(x))[1])
    return found


@pytest.mark.parametrize("with_base", [False, True])
def test_rounding_in_float32_is_in_the_ceiling(with_base):
    """Most features have one row, so the merge writes their weights as often as learning did."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 300)) * (rng.random((400, 300)) < 0.01)).astype(np.float32)
    codes = (X @ rng.normal(size=300) > 0).astype(int)
    claims = []
    for dtype in (np.float32, np.float64):
        rows = X.astype(dtype)
        start = both(rows[:200], codes[:200], n_classes=2) if with_base else None
        options = {"start": start} if with_base else {"n_classes": 2}
        models = [both(rows[s], codes[s], **options)[0] for s in (slice(200, 310), slice(310, 400))]
        claims.append(merge(models, start[0] if with_base else None).state.claim())
    rounded, exact = claims
    assert rounded.ceiling > exact.norm / exact.coef_sum
    assert rounded.norm / rounded.coef_sum < rounded.ceiling < 1.01 * exact.ceiling
    assert exact.norm / exact.coef_sum < exact.ceiling <= exact.norm / exact.coef_sum * (1 + 1e-9)


def test_squared_coefficients_are_not_underestimated():
    """sq_steps bounds what the claim needs: the sum of the parts, and the roundings of the merge."""
    X, codes, _ = joint(300)
    models, _ = shards(X, codes, None, [100, 200], n_classes=4)
    parts = np.array([model.state.scalars["sq_steps"] for model in models])
    found = merge(models).state.scalars["sq_steps"]
    assert (found >= parts.sum(axis=0)).all()
    assert (found >= 4 * (np.array([1, 2]) / 3) @ parts * (1 - 1e-12)).all()
    alone = merge(models[:1]).state.scalars["sq_steps"]
    np.testing.assert_allclose(alone, 4 * parts[0])


# What its users see


def test_classifiers_stay_unchanged_and_give_the_same_bits_again(tmp_path):
    X, codes, _ = late_classes(300)
    models = [OnePassClassifier(n_jobs=2).partial_fit(X[s], codes[s]) for s in (slice(0, 180), slice(180, 300))]
    before = [model_file.to_bytes(model.model_) for model in models]
    merged, again = maxcosine.merge(models), maxcosine.merge(iter(models))
    assert merged.get_params() == models[0].get_params()
    assert merged.mistakes_ == sum(model.mistakes_ for model in models)
    assert merged.n_seen_ == 300
    maxcosine.save(merged, tmp_path / "merged")
    loaded = maxcosine.load(tmp_path / "merged")
    for learner in (merged, again, loaded):
        learner.partial_fit(X, codes)
    assert model_file.to_bytes(merged.model_) == model_file.to_bytes(again.model_) == model_file.to_bytes(loaded.model_)
    assert [model_file.to_bytes(model.model_) for model in models] == before
    values = maxcosine.merge([model.model_ for model in models])
    assert type(values) is OnePassModel
    np.testing.assert_allclose(maxcosine.merge(models).predict_proba(X).sum(axis=1), 1.0)


def test_a_model_without_rows_adds_nothing():
    X, codes, _ = binary(100)
    model, _ = both(X, codes, n_classes=2)
    empty, _ = both(X[:0], codes[:0], n_classes=2)
    assert model_file.to_bytes(merge([model, empty])) == model_file.to_bytes(merge([model]))
    nothing = merge([empty, empty])
    assert (nothing.n_seen, nothing.certificate().margin_ceiling) == (0, np.inf)
    nothing.learn(X, codes)
    assert model_file.to_bytes(nothing) == model_file.to_bytes(model)


def test_what_cannot_be_merged():
    X, codes, _ = binary(60)
    learner = OnePassClassifier().fit(X, codes)
    for models, options, message in [
        ([learner, learner], {"how": "mean"}, "how='mean' does not apply to models of OnePassClassifier.*leave it out"),
        (
            [learner, learner],
            {"weights": [1, 2]},
            "weights do not apply to models of OnePassClassifier.*leave them out",
        ),
        ([learner, MCPClassifier().fit(X, codes)], {}, "model 0 is of OnePassClassifier and model 1 of a rule"),
        ([learner, OnePassClassifier()], {}, "model 1 is not fitted"),
        ([learner, OnePassClassifier().fit(X, codes.astype(str))], {}, "agree in labels: it is 'numbers' for model 0"),
        (
            [learner, OnePassClassifier(dtype="float32").fit(X, codes)],
            {},
            "agree in dtype: it is 'float64' for model 0",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            maxcosine.merge(models, **options)
    with pytest.raises(ValueError, match="nothing to merge"):
        merge([])
    other = OnePassClassifier().fit(X[:30], codes[:30])
    with pytest.raises(ValueError, match="model 0 has not gone on from the base; merge it without one"):
        merge([other.model_], learner.model_)
