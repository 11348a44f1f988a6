"""Damaged files are refused; files with changed content are refused, or give a model that works."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import maxcosine
from maxcosine.model_file import BadModelFile, container
from tests.model_file.tampering import file_of, parts, real_file, refused_or_works, setting

FUZZED = ["binary", "joint", "averaged", "names", "ids", "sparsified", "merged", "waiting"]


def damaged(n_examples):
    @settings(max_examples=n_examples, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(FUZZED), st.data())
    def test(tmp_path_factory, setup, data):
        raw = bytearray(real_file(setup))
        header = 8 + int.from_bytes(raw[:8], "little")
        if data.draw(st.booleans(), "cut"):
            del raw[data.draw(st.integers(0, len(raw) - 1)) :]
        else:
            end = data.draw(st.sampled_from([header, len(raw)]))
            for at in data.draw(st.lists(st.integers(0, end - 1), min_size=1, max_size=4, unique=True)):
                raw[at] ^= data.draw(st.integers(1, 255))
        path = tmp_path_factory.getbasetemp() / "damaged"
        path.write_bytes(raw)
        with pytest.raises(BadModelFile):  # the checksum covers everything
            maxcosine.load(path)

    return test


test_damaged_files_are_refused = damaged(100)
test_many_damaged_files_are_refused = pytest.mark.slow(damaged(3000))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner))
ENTRIES = [
    "format", "rule", "rule/name", "rule/own", "rule/params", "rule/state", "multiclass", "average", "closed",
    "fit_intercept", "classes", "classes/dtype", "features", "features/kind", "features/columns",
    "features/bits", "features/hashed", "merge", "provenance", "estimator", "estimator/class", "estimator/params",
    "more", "estimator/params/rule", "estimator/params/class_weight", "estimator/params/average",
]  # fmt: skip


def tampered_tensor(draw, array):
    """A tensor with other values, another shape or another type."""
    how = draw(st.sampled_from(["value", "shape", "type", "order"]))
    flat = array.reshape(-1).copy()
    if how == "value" and array.size:
        whole = array.dtype.kind in "iu"
        extremes = [0, 1, -1, 2**31, 2**62, 2**63 - 1] if whole else [0.0, -1.0, 1e300, 1e-320, np.inf]
        with np.errstate(all="ignore"):
            value = np.array(draw(st.sampled_from(extremes))).astype(array.dtype)
        flat[draw(st.integers(0, array.size - 1))] = value
    elif how == "shape":
        return np.resize(flat, draw(st.lists(st.integers(0, 12), max_size=3)))
    elif how == "type":
        with np.errstate(all="ignore"):
            return array.astype(draw(st.sampled_from(list(container.CODES))))
    elif how == "order":
        flat = flat[::-1]
    return flat.reshape(array.shape)


def tampered(n_examples):
    @settings(max_examples=n_examples, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(FUZZED), st.data())
    def test(tmp_path_factory, setup, data):
        described, tensors = parts(real_file(setup))
        for _ in range(data.draw(st.integers(1, 3))):
            if data.draw(st.integers(0, 4)) == 0:
                try:
                    setting(data.draw(st.sampled_from(ENTRIES)), data.draw(JSON))(described, tensors)
                except (KeyError, TypeError):
                    continue  # an earlier change removed the entry
            else:
                name = data.draw(st.sampled_from(sorted(tensors)))
                tensors[name] = tampered_tensor(data.draw, tensors[name])
        path = tmp_path_factory.getbasetemp() / "tampered"
        path.write_bytes(file_of(described, tensors))
        refused_or_works(path)

    return test


test_files_with_a_right_checksum_are_refused_or_work = tampered(80)
test_many_files_with_a_right_checksum_are_refused_or_work = pytest.mark.slow(tampered(3000))
