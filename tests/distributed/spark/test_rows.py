"""Rows are read from Arrow columns and checked."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine import BadRow
from maxcosine.distributed.spark.rows import RowReader

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


def read(features, labels=None, weights=None, kind=VECTOR, skip_bad=True, dtype=None):
    """Read one batch; return the reader, X, y and weights."""
    reader = RowReader(3, 2, dtype, skip_bad=skip_bad)
    labels = [1.0] * len(features) if labels is None else labels
    columns = {"features": pa.array(features, kind), "labels": pa.array(labels)}
    if weights is not None:
        columns["weights"] = pa.array(weights, pa.float64())
    [(X, y, weights)] = reader.chunks([pa.RecordBatch.from_pydict(columns)])
    return reader, X.toarray() if hasattr(X, "toarray") else X, y, weights


@given(st.lists(st.tuples(st.lists(st.sampled_from([0.0, 1.0, -2.5]), min_size=2, max_size=2), st.booleans())))
def test_dense_and_sparse_vectors_give_the_same_rows(rows):
    features = [sparse(values) if is_sparse else dense(values) for values, is_sparse in rows]
    _, X, y, weights = read(features, np.ones(len(features)))
    np.testing.assert_array_equal(X, np.array([values for values, _ in rows]).reshape(-1, 2))
    assert len(y) == len(rows)
    assert weights is None


def test_bad_features_are_reported_or_skipped():
    good = dense([1.0, 2.0])
    for features, reason in [
        (None, "its features are null"),
        (dense([1.0]), "it has 1 features instead of 2"),
        ({**sparse([1.0, 0.0]), "size": 3}, "it has 3 features instead of 2"),
        (dense([np.nan, 1.0]), "its features contain NaN or null"),
        (sparse([0.0, np.inf]), "its features contain infinity, or a value too large for float64"),
        (dense([1e200, 1.0]), r"its norm is 1e\+200"),
    ]:
        with pytest.raises(BadRow, match=f"^partition 3, row 1: {reason}"):
            read([good, features, good], skip_bad=False)
        reader, X, y, _ = read([good, features, good], [5.0, 6.0, 7.0])
        np.testing.assert_array_equal(X, [[1.0, 2.0]] * 2)
        assert y.tolist() == [5.0, 7.0]
        assert reader.n_bad == 1
        assert reader.first_bad[0].startswith("partition 3, row 1: ")


def test_values_beyond_the_type_of_the_weights_are_bad():
    reader, X, _, _ = read([dense([1e60, 1.0]), dense([1.0, 1.0])], dtype="float32")
    assert X.dtype == np.float32
    assert len(X) == 1
    assert "too large for float32" in reader.first_bad[0]


def test_nulls_in_arrays_are_bad():
    reader, X, _, _ = read([[1.0, None], [1.0, 2.0]], kind=pa.list_(pa.float32()))
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, [[1.0, 2.0]])
    assert reader.n_bad == 1


def test_bad_labels_and_weights_are_skipped():
    rows = [dense([1.0, 1.0])] * 6
    reader, _, y, _ = read(rows, [None, 2.0, np.nan, np.inf, 0.5, 3.0])
    assert y.tolist() == [2.0, 3.0]
    assert [message.split(": ")[1] for message in reader.first_bad] == [
        "its label is null",
        "its label is nan, not a whole number",
        "its label is inf, not a whole number",
        "its label is 0.5, not a whole number",
    ]
    assert read(rows[:3], ["no", None, "yes"])[2].tolist() == ["no", "yes"]
    reader, _, _, weights = read(rows[:5], weights=[0.0, None, np.nan, -1.0, 1e300])
    assert weights.tolist() == [0.0]
    assert reader.n_bad == 4
    assert reader.first_bad[2].startswith("partition 3, row 3: its weight is -1; weights are 0, or between")
