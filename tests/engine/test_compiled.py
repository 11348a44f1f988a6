"""The compiled kernels and the plain Python they are written in give the same bits."""

from maxcosine.compiled import JIT_ENABLED
from tests.engine.fingerprint import fingerprints
from tests.engine.processes import run_python


def test_compiled_and_plain_python_give_the_same_bits():
    here = fingerprints()
    there = run_python("-m", "tests.engine.fingerprint", env={"NUMBA_DISABLE_JIT": str(int(JIT_ENABLED))})
    assert [case for case in here if here[case] != there[case]] == []
