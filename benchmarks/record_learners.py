"""One pass over a file of raw records: ours, scikit-learn's and fastText's, with seconds and test errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from record_data import SEED, read_json_lines
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

LABEL = "label"
BLOCK_LINES = 1000
MMAP_BYTES = 65536
FASTTEXT = """
import json, sys, time
import fasttext

train, test, options = sys.argv[1:]
start = time.process_time()
model = fasttext.train_supervised(train, thread=1, verbose=0, **json.loads(options))
seconds = time.process_time() - start
n_tested, precision, _ = model.test(test)
print(json.dumps([seconds, n_tested * precision]))
"""


class Learnt(NamedTuple):
    """The processor's seconds of one pass, and how the share of wrong labels on the test file is found."""

    seconds: float
    test: Callable[[], float]


class Timed(NamedTuple):
    """The shortest of several passes, and the test error of the first."""

    seconds: float
    error: float


def best_passes(repeats: int, sides: Mapping[str, Callable[[], Learnt]]) -> dict[str, Timed]:
    """Return the shortest pass of each side; they take turns."""
    best: dict[str, Timed] = {}
    for _ in range(repeats):
        for name, side in sides.items():
            found = side()
            print(f"    {name}: {found.seconds:.2f} s", file=sys.stderr, flush=True)
            if name not in best:
                best[name] = Timed(found.seconds, found.test())
            best[name] = best[name]._replace(seconds=min(best[name].seconds, found.seconds))
    return best


def read_frame(path: Path) -> pd.DataFrame:
    """Return a test file, JSON lines or Parquet."""
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_json(path, lines=True, dtype=False)


def learn_records(classifier: Any, train: Path, test: Path, **options: Any) -> Learnt:
    """Learn a file of records with `fit_records`, in one thread."""
    classifier = clone(classifier)
    start = process_time()
    classifier.fit_records(str(train), label=LABEL, threads=1, **options)
    seconds = process_time() - start

    def error() -> float:
        frame = read_frame(test)
        labels = frame.pop(LABEL).to_numpy(dtype=object)
        return float(np.mean(classifier.predict(frame) != labels))

    return Learnt(seconds, error)


def blocks(items: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield consecutive lists of at most `size` items."""
    iterator = iter(items)
    while block := list(islice(iterator, size)):
        yield block


def learn_json_lines(train: Path, test: Path, classes: Sequence[str]) -> Learnt:
    """Read JSON lines once: json.loads of each line, HashingVectorizer and SGDClassifier.partial_fit of each block."""
    start = process_time()
    vectorizer = HashingVectorizer()
    classifier = SGDClassifier(random_state=SEED)
    with train.open(encoding="utf-8") as lines:
        for block in blocks(lines, BLOCK_LINES):
            records = [json.loads(line) for line in block]
            rows = vectorizer.transform([record["text"] for record in records])
            classifier.partial_fit(rows, [record[LABEL] for record in records], classes=classes)
    seconds = process_time() - start

    def error() -> float:
        texts, labels = read_json_lines(test, LABEL)
        return float(1 - classifier.score(vectorizer.transform(texts), labels))

    return Learnt(seconds, error)


def learn_parquet(
    train: Path,
    test: Path,
    numbers: Sequence[str],
    categories: Sequence[str],
    text: str | None = None,
    **sgd_options: Any,
) -> Learnt:
    """Read a Parquet file with pandas, transform its columns, fit SGDClassifier."""
    columns = ColumnTransformer(
        [
            ("numbers", Pipeline([("impute", SimpleImputer()), ("scale", StandardScaler())]), list(numbers)),
            ("categories", OneHotEncoder(handle_unknown="ignore"), list(categories)),
            *([("text", HashingVectorizer(), text)] if text else []),
        ]
    )
    pipeline = Pipeline([("columns", columns), ("classify", SGDClassifier(random_state=SEED, **sgd_options))])
    start = process_time()
    frame = pd.read_parquet(train)
    pipeline.fit(frame, frame[LABEL].to_numpy(dtype=object))
    seconds = process_time() - start

    def error() -> float:
        frame = read_frame(test)
        return float(1 - pipeline.score(frame, frame[LABEL].to_numpy(dtype=object)))

    return Learnt(seconds, error)


def learn_fasttext(train: Path, test: Path, **options: Any) -> Learnt:
    """Train fastText in one thread, from a file in its format; the seconds include its reading, not its start.

    It runs in a process of its own. With one thread, fasttext-numpy2 0.10.4 initialises a tenth of its input matrix and
    leaves the rest as malloc returns it, so that equal runs differ or fail with "Encountered NaN". Allocations above
    the mmap threshold start as zeros, at no cost.
    """
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(MMAP_BYTES)}
    command = [sys.executable, "-c", FASTTEXT, str(train), str(test), json.dumps(options)]
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    seconds, n_right = json.loads(child.stdout)
    with test.open(encoding="utf-8") as file:
        n_lines = sum(1 for _ in file)  # fastText leaves out lines without a known word
    return Learnt(seconds, lambda: 1 - n_right / n_lines)
