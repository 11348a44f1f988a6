"""What a process notices of the engine: light imports, other threads running, kernels cached on disk."""

import ctypes
import os
import threading
import time

import numpy as np
import pytest

from maxcosine.compiled import JIT_ENABLED
from tests.contract.streams import new_model, stream, teach
from tests.engine.processes import copy_package, run_python

compiled_only = pytest.mark.skipif(not JIT_ENABLED, reason="about compiled kernels")


def test_import_is_light():
    imported = run_python("-c", "import json, sys, maxcosine; print(json.dumps(list(sys.modules)))")
    for heavy in ("sklearn", "pandas", "matplotlib", "pyarrow", "sympy"):
        assert heavy not in imported


@compiled_only
def test_other_threads_run_while_a_kernel_does():
    X, codes = stream(2000, 256, density=1.0, dtype=np.float32, noise=0.3)
    teach(new_model("pa1", X), X[:10], codes[:10])  # compile
    X, codes = np.tile(X, (100, 1)), np.tile(codes, 100)
    model, span = new_model("pa1", X), []

    def fit():
        span.append(time.perf_counter())
        teach(model, X, codes)
        span.append(time.perf_counter())

    worker = threading.Thread(target=fit)
    ticks = []
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        ticks.append(time.perf_counter())
    start, stop = span
    middle = [tick for tick in ticks if start + 0.1 * (stop - start) < tick < stop - 0.1 * (stop - start)]
    assert len(middle) >= 10


LEARN = """
import json, sys, time
import numpy as np, scipy.sparse
import maxcosine
from maxcosine.engine import Heads, learn, one_vs_rest
start = time.perf_counter()
rule = maxcosine.RULES["pa1"]
X = np.eye(6, 4) - 0.5
options = {"fit_intercept": True, "average": False}
heads = Heads.create(rule, rule.make_params(), one_vs_rest([1]), 4, X.dtype, **options)
learn(heads, X if sys.argv[1] == "dense" else scipy.sparse.csr_array(X), np.array([0, 1] * 3))
print(json.dumps({
    "file": maxcosine.__file__,
    "compiled": "numba" in sys.modules or "llvmlite" in sys.modules,
    "seconds": round(time.perf_counter() - start, 2),
}))
"""


def learn_in_a_process(folder, storage, env=None, **options):
    clean = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": "", "NUMBA_DISABLE_JIT": "0", **(env or {})}
    found = run_python("-c", LEARN, storage, env=clean, cwd=folder, **options)
    assert found["file"].startswith(str(folder))
    print(found)
    return found


@compiled_only
@pytest.mark.parametrize("storage", ["sparse", pytest.param("dense", marks=pytest.mark.slow)])
def test_second_process_compiles_nothing(storage, tmp_path):
    copy_package(tmp_path)
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (learn_in_a_process(tmp_path, storage, env=env) for _ in range(2))
    assert (first["compiled"], second["compiled"]) == (True, False)
    assert second["seconds"] < first["seconds"]


@pytest.mark.slow
@compiled_only
def test_editing_any_file_makes_the_cache_stale(tmp_path):
    package = copy_package(tmp_path)
    assert learn_in_a_process(tmp_path, "sparse")["compiled"]
    assert not learn_in_a_process(tmp_path, "sparse")["compiled"]
    with (package / "maximise.py").open("a") as file:
        file.write("# an edit far from the kernels\n")
    assert learn_in_a_process(tmp_path, "sparse")["compiled"]


def obey_permissions():
    """Root overrides permissions by a capability: give it up in the process to be started."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0:
        raise OSError("cannot give up CAP_DAC_OVERRIDE")


@pytest.mark.slow
@compiled_only
@pytest.mark.skipif(os.name != "posix", reason="about permissions of files")
def test_read_only_installations_cache_in_the_users_folder(tmp_path):
    folder, cache = tmp_path / "installed", tmp_path / "cache"
    package = copy_package(folder)
    cache.mkdir()
    for path in (*package.rglob("*"), package, folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    env = {"XDG_CACHE_HOME": str(cache), "HOME": str(tmp_path)}
    first, second = (
        learn_in_a_process(folder, "sparse", env=env, preexec_fn=obey_permissions) for _ in range(2)
    )
    assert (first["compiled"], second["compiled"]) == (True, False)
    assert {path.name.split("-")[0] for path in cache.rglob("*.kernel")} == {
        "maxcosine.engine.sweep.sweep",
        "maxcosine.rules.pa.pa1_adapter",
    }
    assert not list(package.rglob("__pycache__"))
