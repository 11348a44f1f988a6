"""The tracked square norm is computed from scratch now and then, at rows that only the data determine."""

import numpy as np
import pytest

from maxcosine import OnlineClassifier
from tests.contract.streams import csr, stream
from tests.engine.own_rule import adding
from tests.learners import tensors

REFRESH_FROM = 2**20
"""So many weights are written before the norm is computed from scratch."""


@pytest.mark.parametrize(
    "name",
    ["mcp", pytest.param("naromma", marks=pytest.mark.slow), pytest.param("pa", marks=pytest.mark.slow)],
)
def test_chunks_do_not_move_a_refresh(name):
    X, codes = stream(11_000, 256, noise=0.5, density=1.0, dtype=np.float32)
    X = csr(X)
    whole = OnlineClassifier(name, fit_intercept=False).fit(X, codes)
    expected = tensors(whole)
    written = whole.updates_ * 256
    assert written > REFRESH_FROM  # so there was one
    assert expected["head.written"][0] < written
    chunked = OnlineClassifier(name, fit_intercept=False)
    for start in range(0, len(codes), 700):
        chunked.partial_fit(X[start : start + 700], codes[start : start + 700], classes=[0, 1])
    found = tensors(chunked)
    for tensor in expected:
        np.testing.assert_array_equal(found[tensor], expected[tensor], err_msg=tensor)


def test_cancellation_to_nothing_starts_anew():
    """An example and its opposite: the sum is 0 exactly, nothing separates, and learning goes on."""
    X = np.array([[1.0, 2.0, 0.5], [1.0, 2.0, 0.5], [3.0, 0.0, 1.0]])
    for dtype in ("float32", "float64"):
        learner = OnlineClassifier("perceptron", fit_intercept=False, average=True)
        learner.partial_fit(X[:2].astype(dtype), [1, 0], classes=[0, 1])
        certificate = learner.certificate_
        assert certificate.last.norm == 0.0
        assert certificate.margin_ceiling <= 10 * np.finfo(dtype).eps * np.linalg.norm(X[0])
        learner.partial_fit(X[2:].astype(dtype), [1])
        model = tensors(learner)
        np.testing.assert_allclose(model["head.scale"] * model["v"][:, 0], X[2], rtol=1e-6)
        np.testing.assert_allclose(learner.coef_[0], (X[0] + X[2]) / 3, rtol=1e-6)


def test_weights_that_cancel_down_to_subnormal_floats_stay_finite():
    """What is left of v is 1e-42, and the factor that makes it about 1 is above the largest float32."""
    X = np.array([[0.9e9, 0.0], [0.0, 1.1e-9], [0.9e9, 0.0]], np.float32)
    learner = OnlineClassifier(adding, fit_intercept=False)
    for x, code, step in zip(X, [1, 1, 0], [1e12, 1e-12, 1e12], strict=True):
        learner.set_params(rule_params={"add": step}).partial_fit(x[None], [code], classes=[0, 1])
    np.testing.assert_allclose(learner.coef_[0], [0.0, 1.1e-21], rtol=1e-2)
    assert all(np.isfinite(array).all() for array in tensors(learner).values())
