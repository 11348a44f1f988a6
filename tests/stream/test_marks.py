"""Where tokens end: colons, spaces and what is below a space."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from maxcosine.compiled import JIT_ENABLED, kernel
from maxcosine.stream.marks import MOST_MARKS, SEGMENT, find_marks
from maxcosine.stream.numbers import U
from maxcosine.stream.parsed import PADDING, padded

ALPHABETS = {
    "text": b"0123456789.:: \n",
    "few": b"abcdefgh:",
    "all": b": \t\n\0\x1f",
    "any": bytes(range(256)),
}


@kernel
def marks_of(text, p, n, at):
    return find_marks(text, p, n, at)


def text_of(alphabet, n, seed):
    dice = random.Random(f"{alphabet} {n} {seed}")
    letters = ALPHABETS[alphabet]
    return bytes(
        dice.choices(letters, weights=[20, *[1] * (len(letters) - 1)] if alphabet == "few" else None, k=n)
    )


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT])
@pytest.mark.parametrize("start", [0, 1, 37])
def test_all_marks_of_a_segment(alphabet, n, start):
    start = min(start, n - 1)
    content = text_of(alphabet, n, start)
    block = padded(content)
    text = np.lib.stride_tricks.as_strided(block, (n + PADDING,), (1,))
    at = np.full(MOST_MARKS + 8, 2**40, np.uint64)
    count = int(marks_of(text, U(start), U(n), at[:MOST_MARKS]))
    stop = min(start + SEGMENT, start + -(-(n - start) // 64) * 64)
    expected = [
        k for k, byte in enumerate(content[:stop]) if k >= start and (byte <= ord(" ") or byte == ord(":"))
    ]
    found = at[:count].tolist()
    assert [k for k in found if k < n] == expected
    assert [k for k in found if k >= n] == list(range(n, stop))  # the zeros behind the text
    assert (at[MOST_MARKS:] == 2**40).all()


@pytest.mark.slow
@pytest.mark.skipif(not JIT_ENABLED, reason="about what is compiled")
@pytest.mark.parametrize("few", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}])
def test_processors_that_have_few_instructions_find_the_same(tmp_path, few):
    environment = {**os.environ, **few, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    tests = ["tests/stream/test_marks.py", "tests/stream/test_svmlight.py"]
    ran = subprocess.run([*command, *tests], env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert " passed" in ran.stdout
