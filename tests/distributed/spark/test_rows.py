"""Rows out of Arrow's columns, without a cluster."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine import BadRow
from maxcosine.distributed.spark.rows import CheckedRows

pytestmark = pytest.mark.spark

VECTOR = pa.struct(
    [
        ("type", pa.int8()),
        ("size", pa.int32()),
        ("indices", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
    ]
)


def dense(values):
    return {"type": 1, "size": None, "indices": None, "values": values}


def sparse(values):
    used = [j for j, value in enumerate(values) if value]
    return {"type": 0, "size": len(values), "indices": used, "values": [values[j] for j in used]}


def chunks(features, labels=None, weights=None, kind=VECTOR, skip=True, dtype=None):
    rows = CheckedRows(3, 2, dtype, skip=skip)
    labels = [1.0] * len(features) if labels is None else labels
    columns = {"features": pa.array(features, kind), "labels": pa.array(labels)}
    if weights is not None:
        columns["weights"] = pa.array(weights, pa.float64())
    return rows, list(rows.chunks([pa.RecordBatch.from_pydict(columns)]))


@given(
    st.lists(st.tuples(st.lists(st.sampled_from([0.0, 1.0, -2.5]), min_size=2, max_size=2), st.booleans()))
)
def test_dense_and_sparse_vectors_are_the_same_rows(given_rows):
    features = [sparse(values) if is_sparse else dense(values) for values, is_sparse in given_rows]
    _, [(X, y, weights)] = chunks(features, np.ones(len(features)))
    X = X.toarray() if hasattr(X, "toarray") else X
    np.testing.assert_array_equal(X, np.array([values for values, _ in given_rows]).reshape(-1, 2))
    assert len(y) == len(given_rows)
    assert weights is None


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        (None, "its features are null"),
        (dense([1.0]), "it has 1 features, and there are 2"),
        ({**sparse([1.0, 0.0]), "size": 3}, "it has 3 features, and there are 2"),
        (dense([np.nan, 1.0]), "its features hold NaN or null"),
        (sparse([0.0, np.inf]), "its features hold infinity, or a value too large for float64"),
        (dense([1e200, 1.0]), "its norm is 1e+200"),
    ],
)
def test_bad_features_are_told_by_row_and_reason(features, reason):
    good = dense([1.0, 2.0])
    with pytest.raises(BadRow) as caught:
        chunks([good, features, good], skip=False)
    assert str(caught.value).startswith(f"partition 3, row 1: {reason}")
    rows, [(X, y, _)] = chunks([good, features, good], [5.0, 6.0, 7.0])
    X = X.toarray() if hasattr(X, "toarray") else X
    np.testing.assert_array_equal(X, [[1.0, 2.0]] * 2)
    assert y.tolist() == [5.0, 7.0]
    assert rows.n_bad == 1
    assert rows.first_bad[0].startswith(f"partition 3, row 1: {reason}")


def test_values_beyond_the_type_of_the_weights_are_bad():
    rows, [(X, _, _)] = chunks([dense([1e60, 1.0]), dense([1.0, 1.0])], dtype="float32")
    assert X.dtype == np.float32
    assert len(X) == 1
    assert "too large for float32" in rows.first_bad[0]


@pytest.mark.parametrize("label", [None, float("nan"), float("inf"), 0.5])
def test_bad_labels(label):
    rows, [(_, y, _)] = chunks([dense([1.0, 1.0])] * 2, [label, 2.0])
    assert y.tolist() == [2.0]
    assert rows.first_bad[0].startswith("partition 3, row 0: its label is")


def test_labels_may_be_strings():
    _, [(_, y, _)] = chunks([dense([1.0, 1.0])] * 3, ["no", None, "yes"])
    assert y.tolist() == ["no", "yes"]


@pytest.mark.parametrize("weight", [None, float("nan"), -1.0, 1e300])
def test_bad_weights(weight):
    rows, [(_, _, weights)] = chunks([dense([1.0, 1.0])] * 2, weights=[0.0, weight])
    assert weights.tolist() == [0.0]
    assert rows.first_bad[0].startswith("partition 3, row 1: its weight is")


def test_nulls_in_arrays_are_bad():
    rows, [(X, _, _)] = chunks([[1.0, None], [1.0, 2.0]], kind=pa.list_(pa.float32()))
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, [[1.0, 2.0]])
    assert rows.n_bad == 1
