"""Large text files: the same examples as svmlight text, as Vowpal Wabbit's, and with words as features."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

FEATURES, IDS_PER_ROW, NAMESPACES = 2**20, 60, "abc"
ROWS_AT_ONCE = 20_000
DESCRIPTION = f"{IDS_PER_ROW} log-uniform ids out of {FEATURES:,}, similar to words; labels of a noisy separator"


def write(folder: Path, megabytes: int) -> dict[str, Path]:
    """Write this many megabytes of svmlight text, and the same examples in other formats; keep old files."""
    paths = {kind: folder / f"{megabytes}.{kind}" for kind in ("svm", "vw", "words.vw")}
    if not all(path.exists() for path in paths.values()):
        # In another process: the peak memory of this one counts for those that it starts.
        writer = multiprocessing.Process(target=_write_files, args=(paths, megabytes))
        writer.start()
        writer.join()
        if writer.exitcode:
            raise SystemExit(f"the files in {folder} could not be written")
    return paths


def _write_files(paths: dict[str, Path], megabytes: int) -> None:
    with ExitStack() as stack:
        files = {kind: stack.enter_context(open(f"{path}.part", "w")) for kind, path in paths.items()}
        _write_examples(files, megabytes * 1_000_000)
    for path in paths.values():
        Path(f"{path}.part").replace(path)


def _write_examples(files: dict[str, Any], size: int) -> None:
    random = np.random.default_rng(0)
    truth = random.normal(size=FEATURES)
    ids = [f" {k}" for k in range(FEATURES)]
    values = [f":{k / 10_000:g}" for k in range(10_000)]
    written = 0
    while written < size:
        for label, row, numbers in _examples(random, truth):
            pairs = list(zip((ids[i] for i in row), (values[v] for v in numbers), strict=True))
            features = "".join(itertools.chain.from_iterable(pairs))
            written += files["svm"].write(f"{label}{features}\n")
            files["vw"].write(f"{label} |{features}\n")
            third = len(pairs) // 3
            parts = (pairs[:third], pairs[third : 2 * third], pairs[2 * third :])
            words = [
                f"|{name}" + "".join(f" word{i[1:]}{v}" for i, v in part)
                for name, part in zip(NAMESPACES, parts, strict=True)
            ]
            files["words.vw"].write(f"{label} {' '.join(words)}\n")


def _examples(random: np.random.Generator, truth: np.ndarray) -> Iterator[tuple[int, list[int], list[int]]]:
    ids = np.exp(random.random((ROWS_AT_ONCE, IDS_PER_ROW)) * np.log(FEATURES)).astype(np.int64) - 1
    ids.sort(axis=1)
    numbers = random.integers(1, 10_000, ids.shape)
    noise = 5e3 * random.normal(size=len(ids))
    labels = np.where((truth[ids] * numbers).sum(axis=1) + noise > 0, 1, -1)
    for label, row, of_row in zip(labels.tolist(), ids, numbers, strict=True):
        row, first = np.unique(row, return_index=True)
        yield label, row.tolist(), of_row[first].tolist()
