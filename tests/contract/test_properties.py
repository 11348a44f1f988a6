"""All laws at once, on streams that Hypothesis makes up."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.streams import augmented, bits, csr, every_rule, new_model, signs, stacked, taught, teach
from tests.contract.test_finite import assert_finite, assert_norm_is_tracked
from tests.reference import attained_margin


@st.composite
def streams(draw):
    """Rows of mixed norms and density, zero rows among them, with labels that are more or less noise.

    Returns X, codes, the directions that made the labels, and cuts into chunks.
    """
    n, n_features = draw(st.integers(1, 250)), draw(st.integers(1, 40))
    decades, density, noise = draw(st.floats(0, 5)), draw(st.floats(0.05, 1)), draw(st.floats(0, 1))
    n_classes, dtype = draw(st.integers(2, 6)), draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density)
    X = (X * 10.0 ** rng.uniform(-decades, decades, (n, 1))).astype(dtype)
    truth = rng.normal(size=(n_classes, n_features))
    codes = (X @ truth.T).argmax(axis=1)
    codes = np.where(rng.random(n) < max(0.0, noise - 0.5), rng.integers(0, n_classes, n), codes)
    return X, codes, truth, [0, *sorted(draw(st.lists(st.integers(0, n), max_size=6))), n]


def assert_ceilings_hold(model, X, codes, truth):
    """Nothing attains a margin above the ceiling: neither what was learnt nor what made the labels."""
    Z = augmented(X, True).astype(np.float64)[X.any(axis=1)]
    Z[:, -1] *= model.heads.fit_intercept
    if len(Z) == 0:
        return
    heads, certificate = model.heads, model.certificate()
    rounding = 1e2 * np.finfo(X.dtype).eps * np.linalg.norm(Z, axis=1).max()
    for head, positive in enumerate(heads.table["positive"]):
        rivals = [stacked(heads.weights())[head], np.append(truth[positive] - truth[positive - 1], 0.0)]
        rivals += [stacked(heads.averaged_weights())[head]] if heads.average else []
        Y = signs(codes[X.any(axis=1)] == positive)
        margin = max(attained_margin(w, Z, Y) for w in rivals)
        assert margin <= np.atleast_1d(certificate.margin_ceiling)[head] + rounding


@pytest.mark.slow
@every_rule
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=streams(), average=st.booleans(), fit_intercept=st.booleans())
def test_every_law_on_any_stream(name, made, average, fit_intercept):
    X, codes, truth, cuts = made
    options = {"n_classes": len(truth), "average": average, "fit_intercept": fit_intercept}
    model = taught(name, X, codes, **options)
    chunked = new_model(name, X, **options)
    for start, stop in itertools.pairwise(cuts):
        teach(chunked, csr(X[start:stop]), codes[start:stop])
    assert bits(chunked) == bits(model)
    assert_finite(model)
    assert np.all(model.heads.table["seen"] == len(X))
    assert np.all(model.heads.table["mistakes"] <= np.count_nonzero(X.any(axis=1)))
    assert_norm_is_tracked(model.heads)
    assert_ceilings_hold(model, X, codes, truth)
