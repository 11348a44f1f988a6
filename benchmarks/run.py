"""Speed compared with scikit-learn and River: ``make bench``, or ``python benchmarks/run.py --data DIR``.

Both sides run here and now, in turns, and the best of several runs counts: look at ratios, not at seconds.
DIR has mnist/*.gz (four idx files), sparse/20news_train.svm.gz (svmlight) and sparse/20news.vocab.gz (one
word a line). Measurements whose data are missing are left out and listed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# One thread each, before NumPy is imported: neither side may use more processors through a library.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import derived
import dicts
import engine
import one_pass
import protocol
import startup
import tracing
from table import write_json
from timing import environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--repeats", type=int, default=9, help="runs of each side (default: 9)")
    parser.add_argument("--only", help="measure these only, separated by commas")
    parser.add_argument("--json", type=Path, help="results file to write")
    options = parser.parse_args()
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: there is no such folder")
    benchmarks = {
        "one_pass": lambda: one_pass.measure(options.data, options.repeats),
        "dicts": lambda: dicts.measure(options.data, options.repeats),
        "startup": lambda: startup.measure(options.data, min(options.repeats, 5)),
        "derived": lambda: derived.measure(options.data, options.repeats),
        "engine": lambda: engine.measure(min(options.repeats, 5)),
        "tracing": lambda: tracing.measure(options.data, options.repeats),
        "protocol": lambda: protocol.measure(options.data, min(options.repeats, 3)),
    }
    chosen = options.only.split(",") if options.only else list(benchmarks)
    if unknown := set(chosen) - set(benchmarks):
        parser.error(f"--only {','.join(unknown)}: choose from {', '.join(benchmarks)}")
    found = environment()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    sections = []
    for name in chosen:
        print(f"... {name}", file=sys.stderr)
        sections.append(benchmarks[name]())
        sections[-1].show()
    if options.json is not None:
        write_json(options.json, "bench", found, sections)


if __name__ == "__main__":
    main()
