"""w = scale * v: the split changes no bit of w, and sq_v is refreshed by events of the data only."""

import importlib

import numpy as np
import pytest

from maxcosine.compiled import JIT_ENABLED
from tests.contract.streams import both_types, csr, every_rule, new_model, stacked, stream, taught, teach

books = importlib.import_module("maxcosine.engine.books")


@both_types
@pytest.mark.parametrize("exponent", [-20, -1, 1, 33])
@pytest.mark.parametrize("name", ["mcp", "norma"])
def test_rescaling_by_powers_of_two_is_exact(name, dtype, exponent):
    X, codes = stream(60, 7, dtype=dtype)
    heads = taught(name, X, codes, average=True, fit_intercept=True).heads
    before = [*heads.weights(), *heads.averaged_weights(), heads.coef_sum, heads.averaged_proven().coef_sum]
    scale = heads.table["scale"][0]
    books.rescale(heads.arrays, 0, exponent)
    assert heads.table["scale"][0] == scale * 2.0**exponent
    after = [*heads.weights(), *heads.averaged_weights(), heads.coef_sum, heads.averaged_proven().coef_sum]
    assert [a.tobytes() for a in after] == [b.tobytes() for b in before]


@every_rule
def test_rescaling_changes_no_step_to_come(name):
    X, codes = stream(100, 7)
    expected = taught(name, X, codes, fit_intercept=True).heads
    model = teach(new_model(name, X, fit_intercept=True), X[:50], codes[:50])
    books.rescale(model.heads.arrays, 0, 11)
    heads = teach(model, X[50:], codes[50:]).heads
    np.testing.assert_array_equal(stacked(heads.weights()), stacked(expected.weights()))
    assert heads.coef_sum == expected.coef_sum


def long_stream(monkeypatch):
    """More non-zeros than a refresh waits for."""
    if JIT_ENABLED:
        shape = (14_000, 256)
    else:
        shape = (120, 20)
        monkeypatch.setattr(books, "REFRESH_FROM", 500)
    X, codes = stream(*shape, noise=0.5, density=1.0, dtype=np.float32)
    return csr(X), codes


@pytest.mark.parametrize("name", ["pa", "mcp", "naromma", "perceptron"])
@pytest.mark.parametrize("chunk", [1.0, 0.3, 0.0007])
def test_chunks_do_not_move_a_refresh(name, chunk, monkeypatch):
    X, codes = long_stream(monkeypatch)
    expected = taught(name, X, codes).heads
    written = expected.table["updates"][0] * X.shape[1]
    assert written > books.REFRESH_FROM  # so there was one
    assert expected.table["written"][0] < written
    size = max(1, int(chunk * len(codes)))
    model = new_model(name, X)
    for start in range(0, len(codes), size):
        teach(model, X[start : start + size], codes[start : start + size])
    assert model.heads.table.tobytes() == expected.table.tobytes()
    np.testing.assert_array_equal(stacked(model.heads.weights()), stacked(expected.weights()))


@every_rule
@both_types
def test_a_refresh_restores_the_exact_norm(name, dtype):
    X, codes = stream(200, 7, dtype=dtype, noise=0.4)
    heads = taught(name, X, codes, fit_intercept=True).heads
    arrays, v = heads.arrays, heads.arrays.v[:, 0].astype(np.float64)
    exact = np.dot(v, v) + float(arrays.bias[0]) ** 2
    assert books.exact_square_norm(arrays, 0) == pytest.approx(exact, rel=1e-14)
