"""How long a user waits: the first commands, the first `fit`, and a rule written in Python."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from datasets import Missing, find
from table import Result, Section
from timing import compile_bytecode, maxcosine_command, run

FIRST_TRAIN_S, FIRST_FIT_S, TINY_TRAIN_S, HELP_S = 1.0, 0.1, 0.5, 0.5

FIRST_FIT = """
import json, time
import numpy, scipy.sparse
from maxcosine import OnlineClassifier
X = scipy.sparse.random_array((100, 50), density=0.2, format="csr", dtype="float32", rng=0)
y = numpy.arange(100) % 2
started = time.perf_counter()
OnlineClassifier("pa1").fit(X, y)
print(json.dumps(time.perf_counter() - started))
"""

OWN_RULE = """
import json, time
import numpy, scipy.sparse
from maxcosine import OnlineClassifier, rule

@rule(params={"C": 1.0})
def mine(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, min(params.C, max(0.0, 1.0 - margin) / sq_x), state

started = time.perf_counter()
mine.compiled
times = {"compile": time.perf_counter() - started}
X = scipy.sparse.random_array((200_000, 1000), density=0.05, format="csr", dtype="float32", rng=0)
y = numpy.arange(200_000) % 2
for _ in range(5):
    for name, r in (("own", mine), ("builtin", "pa1")):
        started = time.perf_counter()
        OnlineClassifier(r).fit(X, y)
        times[name] = min(times.get(name, 9.0), time.perf_counter() - started)
print(json.dumps(times))
"""


def measure(folder: Path | None, repeats: int) -> Section:
    """Measure; each process has a new, empty home folder, and must leave it empty."""
    compile_bytecode()
    results, missing = [], []
    with tempfile.TemporaryDirectory() as scratch:
        tiny, model = Path(scratch) / "tiny.svm", Path(scratch) / "model"
        tiny.write_text("1 1:1 2:0.5\n-1 3:1\n1 2:2\n")
        commands = [
            ("maxcosine train, three lines", TINY_TRAIN_S, ["train", tiny, "--model", model]),
            ("maxcosine --help", HELP_S, ["--help"]),
        ]
        try:
            news = find(folder, "sparse/20news_train.svm.gz")
            commands.insert(0, ("maxcosine train, 20 Newsgroups", FIRST_TRAIN_S, ["train", news, "--model", model]))
        except Missing as error:
            missing.append(f"maxcosine train, 20 Newsgroups: {error}")
        for name, most, arguments in commands:
            seconds = min(_run_in_new_home(maxcosine_command(*arguments)).seconds for _ in range(repeats + 1))
            results.append(Result(name, seconds, "s", most=most))
    first_fit = min(_run_python(FIRST_FIT) for _ in range(repeats + 1))
    results.append(Result("first fit after the import", first_fit, "s", most=FIRST_FIT_S))
    own = _run_python(OWN_RULE)
    results.append(Result("compiling a user's rule", own["compile"], "s"))
    results.append(Result("learning with it; peer: the built-in", own["own"], "s", own["builtin"]))
    notes = [
        "each in a new process with an empty home folder; bytecode and files are in the system's cache",
        f"data: 20 Newsgroups as svmlight text, gzip; the best of {repeats + 1}",
    ]
    return Section("Start-up", notes, results, missing)


def _run_in_new_home(command: list[str | Path]) -> Any:
    with tempfile.TemporaryDirectory() as home:
        found = run(command, env={"HOME": home, "XDG_CACHE_HOME": home, "MAXCOSINE_CACHE": home})
        assert not list(Path(home).iterdir()), "a cache was written"
    return found


def _run_python(code: str) -> Any:
    return json.loads(_run_in_new_home([sys.executable, "-c", code]).printed)
