"""The same rows give the same bits: whatever the storage, the chunks, the room and the level of the processor."""

import hashlib
import itertools
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from maxcosine import core
from maxcosine.core import FeatureIndex
from maxcosine.onepass import OnePassState
from tests.onepass.learning import assert_same_bits, learn, learn_dict, learnt, margins_of
from tests.onepass.streams import STREAMS


@pytest.fixture(params=["weighted", "counts", "short rows", "joint", "late classes weighted"])
def example(request):
    n_classes, make = STREAMS[request.param]
    return n_classes, *make()


def in_chunks(state, cuts, X, codes, weights, **options):
    learnt_rows = [
        learn(state, X[a:b], codes[a:b], None if weights is None else weights[a:b], **options)
        for a, b in itertools.pairwise([0, *cuts, len(X)])
    ]
    margins, predicted = zip(*learnt_rows, strict=True)
    return margins, np.concatenate(predicted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_rows(example, dtype):
    n_classes, X, codes, weights = example
    states = [OnePassState.create(X.shape[1], dtype, n_classes=n_classes) for _ in range(2)]
    results = [learn(state, X, codes, weights, sparse=sparse) for state, sparse in zip(states, (0, 1), strict=True)]
    assert_same_bits(*states)
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(margins_of(states[0], X), margins_of(states[1], X, sparse=True))


@pytest.mark.parametrize("cuts", [range(1, 500), (250,), (0, 7, 7, 63, 64, 65, 400)])
def test_chunks(example, cuts):
    n_classes, X, codes, weights = example
    whole = learnt(X, codes, weights, n_classes=n_classes)
    state = OnePassState.create(X.shape[1], n_classes=n_classes)
    _, predicted = in_chunks(state, cuts, X, codes, weights)
    assert_same_bits(state, whole)
    judged = slice(None) if weights is None else weights > 0
    assert state.mistakes == np.sum((predicted != codes)[judged])


def test_room_for_more_features_and_classes(example):
    n_classes, X, codes, weights = example
    roomy = OnePassState.create(X.shape[1] + 100, n_classes=n_classes)
    growing = OnePassState.create(1, n_classes=n_classes)
    X = X[:, np.argsort((X != 0).argmax(axis=0))]  # features in the order of their first rows
    in_chunks(roomy, range(10, 500, 10), X, codes, weights)
    for t, row in enumerate(X):
        seen = np.flatnonzero(row)[-1:] + 1
        part = slice(t, t + 1)
        width = max([growing.n_features, *seen])
        learn(growing, X[part, :width], codes[part], None if weights is None else weights[part])
    assert_same_bits(roomy, growing)


def test_copies_and_pickles_go_on_alike(example):
    n_classes, X, codes, weights = example
    whole = learnt(X, codes, weights, n_classes=n_classes)
    half = learnt(X[:250], codes[:250], None if weights is None else weights[:250], n_classes=n_classes)
    for state in (half.copy(), pickle.loads(pickle.dumps(half))):
        learn(state, X[250:], codes[250:], None if weights is None else weights[250:])
        assert_same_bits(state, whole)


def test_dicts(example):
    """Slots of an index are in the order of the features' first rows."""
    n_classes, X, codes, weights = example
    if weights is not None:
        X, codes, weights = (part[weights > 0] for part in (X, codes, weights))
    first = np.where(X.any(axis=0), (X != 0).argmax(axis=0), len(X))
    X = X[:, np.argsort(first, kind="stable")]
    whole = OnePassState.create(X.shape[1], n_classes=n_classes)
    margins, predicted = learn(whole, X, codes, weights)
    state, index = OnePassState.create(0, n_classes=n_classes), FeatureIndex("ids")
    for t, (row, code) in enumerate(zip(X, codes, strict=True)):
        x = {f: value for f, value in enumerate(row.tolist()) if value}
        fault, guess, own = learn_dict(state, index, x, int(code), 1.0 if weights is None else weights[t])
        assert fault == 0
        assert guess == predicted[t]
        np.testing.assert_array_equal(own, margins[t, : len(own)])
    assert_same_bits(whole, state)
    x = {f: value for f, value in enumerate(X[3].tolist()) if value}
    np.testing.assert_array_equal(state.engine.score_dict(index, {**x, 10**6: 2.0}), margins_of(whole, X[3:4])[0])


def digest_of_all_streams():
    digest = hashlib.sha256()
    for n_classes, make in STREAMS.values():
        for dtype in (np.float32, np.float64):
            with np.errstate(over="ignore"):
                X, codes, weights = make()
            X = np.clip(X, -1e30, 1e30)
            for array in learnt(X, codes, weights, dtype=dtype, n_classes=n_classes).arrays:
                digest.update(array.tobytes())
    return digest.hexdigest()


@pytest.mark.skipif(core.LEVEL == "base", reason="this processor has one module")
def test_levels_of_the_processor():
    program = "from tests.onepass.test_same_bits import digest_of_all_streams; print(digest_of_all_streams())"
    environment = {**os.environ, "MAXCOSINE_CPU": "v2"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == digest_of_all_streams()
