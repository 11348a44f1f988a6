"""From text files to a model on disk, beside Vowpal Wabbit and scikit-learn: ``make bench-streams``.

Every side is a process of its own, its start included, and writes its model; the files lie in memory, in the
system's file cache. The sides take turns, the best of several counts. Vowpal Wabbit runs with hinge loss and
2^20 weights, and a thread of its own that parses, on the same examples in its format. Files are written to
--folder, about 20 GB, and stay there for the next time.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import text
from timing import environment

RULE = "pa1"
MEGABYTES, SMALL_MEGABYTES = 2000, 200
SHORT_TURNS = 3  # What is short is more at the mercy of whatever else the machine does: more turns for both.
MEMORY_MEGABYTES, MEMORY_TIMES = 1000, 4
MOST_RSS_MB, MOST_GROWTH = 250, 1.05
MOST_TINY_S, MOST_HELP_S = 1.0, 0.3
HERE = Path(__file__).parent

VOWPAL_WABBIT = """
import sys
from vowpalwabbit import Workspace
Workspace(arg_list=["-b", "20", "--loss_function", "hinge", "--quiet", *sys.argv[1:]]).finish()
"""

SCIKIT_LEARN = """
import pickle, sys
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
learner = SGDClassifier(learning_rate="pa1", eta0=1.0, loss="hinge", penalty=None, max_iter=1, tol=None,
                        shuffle=False, fit_intercept=False)
with open(sys.argv[2], "wb") as file:
    pickle.dump(learner.fit(X, y), file)
"""


class Ran(NamedTuple):
    seconds: float
    peak_mb: float
    printed: bytes


def run(command: Sequence[str | Path]) -> Ran:
    """Run a process to its end; what it took."""
    started = time.perf_counter()
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        printed, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{command[:4]} failed: {errors.decode()[-2000:]}")
    return Ran(seconds, usage.ru_maxrss * 1024 / 1e6, printed)


def ours(*arguments: str | Path) -> list[str | Path]:
    return [Path(sys.executable).with_name("maxcosine"), *arguments]


def compile_package() -> None:
    """Have Python's bytecode of the package on disk, as pip leaves all that it installs but what is editable.

    Where PYTHONDONTWRITEBYTECODE is set, it would else be compiled anew in each process.
    """
    package = find_spec("maxcosine")
    assert package is not None
    assert package.origin is not None
    compileall.compile_dir(Path(package.origin).parent, quiet=1)


def train(data: Path, model: Path, *more: str) -> list[str | Path]:
    return ours("train", data, "--rule", RULE, "--model", model, "--json", *more)


def vowpal_wabbit(model: Path, *arguments: str | Path) -> list[str | Path]:
    return [sys.executable, "-c", VOWPAL_WABBIT, "-f", model, *arguments]


def in_turns(repeats: int, sides: dict[str, list[str | Path]]) -> dict[str, Ran]:
    """The shortest run of each side; one unmeasured turn of each first."""
    best: dict[str, Ran] = {}
    for turn in range(repeats + 1):
        for name, command in sides.items():
            ran = run(command)
            if turn and (name not in best or ran.seconds < best[name].seconds):
                best[name] = ran
            print(f"    {name}: {ran.seconds:.2f} s", file=sys.stderr, flush=True)
    return best


def compared(
    title: str, data: Path, ran: dict[str, Ran], peer: str, wanted: dict[str, Any]
) -> dict[str, Any]:
    ours = min((name for name in ran if name != peer), key=lambda name: ran[name].seconds)
    return {
        "work": title,
        "data": data.name,
        "megabytes": data.stat().st_size / 1e6,
        "peer": peer,
        "ours_s": ran[ours].seconds,
        "peer_s": ran[peer].seconds,
        "ratio": ran[peer].seconds / ran[ours].seconds,
        "progressive_error": json.loads(ran[ours].printed)["progressive_error"],
        **wanted,
    }


def measure(folder: Path, repeats: int, megabytes: int, small: int) -> list[dict[str, Any]]:
    files, small_files = text.write(folder, megabytes), text.write(folder, small)
    m, theirs = folder / "ours.model", folder / "theirs.model"
    found = []

    print("svmlight text", file=sys.stderr)
    ran = in_turns(
        repeats,
        {
            "all threads": train(files["svm"], m),
            "one thread": train(files["svm"], m, "--threads", "1"),
            "Vowpal Wabbit": vowpal_wabbit(theirs, "-d", files["vw"]),
        },
    )
    for side, least, aim in (("all threads", 3.0, 6.0), ("one thread", 1.5, 3.0)):
        sides = {side: ran[side], "Vowpal Wabbit": ran["Vowpal Wabbit"]}
        wanted = {"least": least, "aim": aim}
        found.append(compared(f"svmlight text, {side}", files["svm"], sides, "Vowpal Wabbit", wanted))

    print("scikit-learn", file=sys.stderr)
    script = [sys.executable, "-c", SCIKIT_LEARN, small_files["svm"], theirs]
    ran = in_turns(SHORT_TURNS * repeats, {"ours": train(small_files["svm"], m), "scikit-learn": script})
    wanted = {"least": 30.0, "aim": 100.0}
    found.append(
        compared("svmlight text, load_svmlight_file and fit", small_files["svm"], ran, "scikit-learn", wanted)
    )

    print("caches", file=sys.stderr)
    cache, their_cache = folder / f"{megabytes}.cache", folder / f"{megabytes}.vwcache"
    run(ours("convert", files["svm"], "--output", cache))
    run(vowpal_wabbit(theirs, "-d", files["vw"], "--cache_file", their_cache, "-k"))
    ran = in_turns(
        SHORT_TURNS * repeats,
        {
            "ours": train(cache, m),
            "Vowpal Wabbit": vowpal_wabbit(theirs, "-d", files["vw"], "--cache_file", their_cache),
        },
    )
    wanted = {"least": 4.0, "aim": 8.0}
    found.append(compared("each from its own cache", cache, ran, "Vowpal Wabbit", wanted))

    print("words", file=sys.stderr)
    ran = in_turns(
        repeats,
        {
            "ours": train(files["words.vw"], m, "--bits", "20"),
            "Vowpal Wabbit": vowpal_wabbit(theirs, "-d", files["words.vw"]),
        },
    )
    wanted = {"least": 1.5, "aim": 3.0}
    found.append(compared("words in namespaces", files["words.vw"], ran, "Vowpal Wabbit", wanted))
    return found


def of_size(path: Path, megabytes: int) -> Path:
    """A file of so many megabytes, with the lines of another one, as often as it takes."""
    made = path.with_name(f"of-size-{megabytes}.svm")
    if not made.exists():
        part = made.with_suffix(".part")
        with open(path, "rb") as lines, open(part, "wb") as file:
            while file.tell() < megabytes * 1e6:
                file.writelines(lines.readlines(1 << 20))
                if lines.tell() == path.stat().st_size:
                    lines.seek(0)
        part.replace(made)
    return made


def measure_memory(folder: Path, written: int, megabytes: int) -> dict[str, Any]:
    """Peak memory on a file, and on one that is several times as long."""
    lines, model = text.write(folder, written)["svm"], folder / "ours.model"
    runs = {
        times: run(ours("train", of_size(lines, megabytes * times), "--rule", RULE, "--model", model))
        for times in (1, MEMORY_TIMES)
    }
    weights_mb = model.stat().st_size / 1e6
    once, many = (runs[times].peak_mb for times in (1, MEMORY_TIMES))
    return {
        "megabytes": megabytes,
        "times": MEMORY_TIMES,
        "peak_mb": once,
        "peak_many_mb": many,
        "weights_mb": weights_mb,
        "growth": many / once,
        "most_growth": MOST_GROWTH,
        "most_mb": MOST_RSS_MB,
    }


def measure_start(folder: Path, repeats: int) -> dict[str, Any]:
    """How long the commands take that have nothing to do."""
    tiny = folder / "tiny.svm"
    tiny.write_text("1 1:1 2:0.5\n-1 3:1\n1 2:2\n")
    ran = in_turns(
        max(repeats, 5),
        {"tiny": train(tiny, folder / "ours.model"), "help": ours("train", "--help")},
    )
    return {
        "tiny_s": ran["tiny"].seconds,
        "help_s": ran["help"].seconds,
        "most_tiny_s": MOST_TINY_S,
        "most_help_s": MOST_HELP_S,
    }


def show(results: dict[str, Any]) -> None:
    print(f"\n{'work':46}{'ours':>9}{'peer':>9}{'ratio':>8}{'least':>7}{'aim':>6}  reached")
    for row in results["works"]:
        print(
            f"{row['work']:46}{row['ours_s']:7.2f} s{row['peer_s']:7.2f} s{row['ratio']:8.2f}"
            f"{row['least']:7.1f}{row['aim']:6.0f}  {'yes' if row['ratio'] >= row['least'] else 'NO'}"
        )
    memory, start = results["memory"], results["start"]
    print(
        f"peak memory: {memory['peak_mb']:.0f} MB on {memory['megabytes']:,} MB, "
        f"{memory['peak_many_mb']:.0f} MB on {memory['times']} times as much, "
        f"of which the weights take {memory['weights_mb']:.0f} MB"
    )
    print(f"train on a tiny file: {start['tiny_s']:.2f} s; train --help: {start['help_s']:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the files are, or are written")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--small-megabytes", type=int, default=SMALL_MEGABYTES)
    parser.add_argument("--json", type=Path, help="results file to write")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    compile_package()
    results = {
        "environment": {
            **environment(),
            "vowpalwabbit": version("vowpalwabbit"),
            "processors": os.cpu_count(),
            "load_before": os.getloadavg()[0],
        },
        "repeats": given.repeats,
        "short_repeats": SHORT_TURNS * given.repeats,
        "start": measure_start(given.folder, given.repeats),
        "works": measure(given.folder, given.repeats, given.megabytes, given.small_megabytes),
        "memory": measure_memory(given.folder, given.megabytes, min(MEMORY_MEGABYTES, given.megabytes)),
    }
    show(results)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
