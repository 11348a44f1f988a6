"""Kernels are compiled once, kept on disk, loaded without the compiler, and called by address."""

import ctypes
import os
import pickle
import threading

import numpy as np
import pytest

from maxcosine.compiled import JIT_ENABLED, Kernel, code, store
from maxcosine.framework import maximise
from maxcosine.rules.alma import alma
from maxcosine.rules.rule import rule
from tests.engine.kernels import Pair, fill, is_positive, sum_by_a_copy, twice, weighted
from tests.engine.processes import run_python

compiled_only = pytest.mark.skipif(not JIT_ENABLED, reason="about machine code")


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Where kernels are kept: what is kept for the package need not notice that a test has changed."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arguments_and_results_of_every_kind(dtype):
    pair = Pair(np.array([1.0, 2.0, 4.0], dtype), np.zeros(2, dtype))
    table = np.zeros(2, np.dtype([("x", np.float64), ("n", np.int64)]))
    found = weighted(pair, table, 0.5, -7, True, np.uint64(2**64 - 2))
    assert found == (6, 7.0, True, 2**64 - 1)
    assert pair.second.tolist() == [7.0, 0.0]
    assert table["n"].tolist() == [0, -7]


def test_matrices_are_handed_over_with_their_shape():
    matrix = np.zeros((3, 2), np.int32)
    assert fill(matrix) is None
    assert matrix.tolist() == [[0, 1], [10, 11], [20, 21]]


@pytest.mark.parametrize(("x", "positive"), [(1, True), (-1, False), (2.5, True), (np.uint64(3), True)])
def test_one_result_is_no_tuple(x, positive):
    assert is_positive(x) is positive or is_positive(x) is np.bool_(positive)


def test_read_only_arrays_can_be_read():
    values = np.arange(5.0)
    values.flags.writeable = False
    assert sum_by_a_copy(values, 5) == 10.0


def test_arrays_in_files_can_be_read(tmp_path):
    values = np.memmap(tmp_path / "values", np.float64, "w+", shape=5)
    values[:] = 2.0
    assert sum_by_a_copy(values, 5) == 10.0


@compiled_only
def test_memory_of_a_kernel_is_given_back():
    before = _resident()
    for _ in range(2000):
        assert sum_by_a_copy(np.ones(3), 2**17) == 3.0  # 1 MB
    assert _resident() - before < 200e6


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@compiled_only
def test_no_memory_is_an_error():
    with pytest.raises(MemoryError, match="sum_by_a_copy"):
        sum_by_a_copy(np.ones(3), 2**58)


@compiled_only
@pytest.mark.parametrize("wrong", [np.zeros((4, 4))[:, 1], np.zeros((4, 4)).T[1:]])
def test_arrays_with_gaps_are_refused(wrong):
    with pytest.raises(TypeError, match="C-contiguous"):
        fill(wrong)


@compiled_only
@pytest.mark.parametrize("wrong", [[1.0], "text", None, np.float32(1)])
def test_other_objects_are_refused(wrong):
    with pytest.raises(TypeError, match=type(wrong).__name__):
        is_positive(wrong)


def test_helpers_can_be_called_from_python():
    assert twice(1.5) == 3.0


def test_compiled_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(maximise)) is maximise
    assert pickle.loads(pickle.dumps(weighted)) is weighted


@compiled_only
def test_threads_that_call_a_new_kernel_compile_it_once(folder):
    new, found = Kernel(is_positive.py_func), []
    threads = [threading.Thread(target=lambda: found.append(new(3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert len(list(folder.rglob("*.kernel"))) == 1


@pytest.fixture
def stored(folder):
    """The file of a kernel that has just been compiled."""
    assert Kernel(is_positive.py_func)(3) is True
    (file,) = folder.rglob("*.kernel")
    return file


@compiled_only
@pytest.mark.parametrize(
    "damaged",
    [
        lambda good: b"",
        lambda good: b"garbage",
        lambda good: b"{}\n" + good.split(b"\n", 1)[1],
        lambda good: good.replace(b'"stamp": "', b'"stamp": "another'),
        lambda good: good[:-100],
        lambda good: good[:-1] + b"!",
        lambda good: good.replace(b'"results": "?"', b'"results": "q"'),
        lambda good: b"[]\n" + good.split(b"\n", 1)[1],
    ],
)
def test_files_that_are_damaged_or_stale_are_made_anew(stored, damaged):
    good = stored.read_bytes()
    stored.write_bytes(damaged(good))
    assert Kernel(is_positive.py_func)(-3) is False
    assert stored.read_bytes()[:100] == good[:100]


@compiled_only
def test_what_cannot_be_kept_is_compiled_all_the_same(folder):
    (folder / "maxcosine").write_text("not a folder")
    assert Kernel(is_positive.py_func)(3) is True


@compiled_only
def test_settings_of_the_compiler_make_another_kernel(stored, folder, monkeypatch):
    store._machine.cache_clear()
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert Kernel(is_positive.py_func)(3) is True
    store._machine.cache_clear()
    assert len(list(folder.rglob("*.kernel"))) == 2


@compiled_only
def test_nobody_at_home(monkeypatch, folder):
    """Where there is no user's folder, kernels are found beside the package."""
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(store.files, "user_cache", _no_home)
    monkeypatch.setattr(store, "_PACKAGE", folder)
    assert Kernel(is_positive.py_func)(3) is True
    assert len(list(folder.rglob("*.kernel"))) == 1


def _no_home():
    raise RuntimeError("Could not determine home directory.")


@compiled_only
def test_a_rule_made_of_a_built_in_function_has_machine_code_of_its_own(folder):
    given = (0.1, 1.0, 1.0, 1.0)
    numbers = {"alpha": 0.9, "B": 3.0, "C": 1.5}
    for params in (dict(reversed(numbers.items())), numbers):
        made = rule(alma.function, params=params, state=alma.state)
        state, params = np.array(made.initial_state()), np.array(made.make_params())
        move = np.full(2, np.nan)
        step = ctypes.CFUNCTYPE(None, *[ctypes.c_double] * 4, *[ctypes.c_void_p] * 3)(made.entry)
        step(*given, state.ctypes.data, params.ctypes.data, move.ctypes.data)
        keep, add, _ = made(*given, made.initial_state(), made.make_params())
        assert move.tolist() == pytest.approx([keep, add])
    assert len(list(folder.rglob("*.kernel"))) == 2


@compiled_only
def test_both_loaders_run_the_same_code(monkeypatch):
    """What is not Linux on x86-64 has its code loaded by LLVM."""
    pair = Pair(np.ones(3), np.zeros(1))
    table = np.zeros(2, np.dtype([("x", np.float64), ("n", np.int64)]))
    given = (pair, table, 2.0, 1, False, np.uint64(0))
    here = Kernel(weighted.py_func)(*given)
    monkeypatch.setattr(code.platform, "machine", lambda: "another")
    there = Kernel(weighted.py_func)(*given)
    assert here == there == (6, 12.0, False, 1)
    assert Kernel(sum_by_a_copy.py_func)(np.ones(3), 4) == 3.0


@compiled_only
def test_out_of_bounds_is_noticed_where_it_is_asked_for(folder):
    program = (
        "import json, numpy as np\n"
        "from tests.engine.kernels import sum_by_a_copy\n"
        "try:\n    sum_by_a_copy(np.ones(3), 2)\n    print(json.dumps('nothing'))\n"
        "except MemoryError as error:\n    print(json.dumps(str(error)))\n"
    )
    env = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder)}
    assert "out of an array" in run_python("-c", program, env=env)


CALLS_OURS = """
import json, numba
from maxcosine import maximise

@numba.njit
def best(r):
    return maximise(r, 1.0, 1.0, 1.0, 0.0).argmax

print(json.dumps(best(1.0)))
"""


@compiled_only
def test_functions_of_others_call_ours():
    assert run_python("-c", CALLS_OURS) == 1.0


@compiled_only
def test_files_that_all_have_one_old_time_are_told_apart_by_what_is_in_them(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_PACKAGE", tmp_path)
    source, stamps = tmp_path / "heads.py", set()
    for content, time in (("SHARE = 8", 1), ("SHARE = 4", 1), ("SHARE = 4", 2e9), ("SHARE = 8", 2.1e9)):
        source.write_text(content)
        os.utime(source, (time, time))
        stamps.add(store.stamp.__wrapped__())
    assert len(stamps) == 4
