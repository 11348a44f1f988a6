"""Large text files to read: the same examples in svmlight's format, in Vowpal Wabbit's, and with words."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

FEATURES, IDS_A_ROW, NAMESPACES = 2**20, 60, "abc"
ROWS_AT_ONCE = 20_000


def write(folder: Path, megabytes: int, seed: int = 0) -> dict[str, Path]:
    """About so many megabytes of svmlight text, log-uniform ids as words are, labels of a noisy separator."""
    paths = {kind: folder / f"{megabytes}.{kind}" for kind in ("svm", "vw", "words.vw")}
    if all(path.exists() for path in paths.values()):
        return paths
    # In a process of its own: the peak of memory of one counts for those that it starts, too.
    writer = multiprocessing.Process(target=_write_files, args=(paths, megabytes, seed))
    writer.start()
    writer.join()
    if writer.exitcode:
        raise SystemExit(f"{folder}: the files could not be written")
    return paths


def _write_files(paths: dict[str, Path], megabytes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random.normal(size=FEATURES)
    with ExitStack() as stack:
        files = {kind: stack.enter_context(open(f"{path}.part", "w")) for kind, path in paths.items()}
        _write(files, megabytes, random, truth)
    for path in paths.values():
        Path(f"{path}.part").replace(path)


def _write(files: dict[str, Any], megabytes: int, random: np.random.Generator, truth: np.ndarray) -> None:
    ids = [f" {k}" for k in range(FEATURES)]
    values = [f":{k / 10_000:g}" for k in range(10_000)]
    written = 0
    while written < megabytes * 1_000_000:
        for label, row, numbers in _rows(random, truth):
            pairs = list(zip((ids[i] for i in row), (values[v] for v in numbers), strict=True))
            text = "".join(itertools.chain.from_iterable(pairs))
            line = f"{label}{text}\n"
            written += files["svm"].write(line)
            files["vw"].write(f"{label} |{text}\n")
            third = len(pairs) // 3
            parts = (pairs[:third], pairs[third : 2 * third], pairs[2 * third :])
            files["words.vw"].write(
                f"{label} "
                + " ".join(
                    f"|{name}" + "".join(f" word{i[1:]}{v}" for i, v in part)
                    for name, part in zip(NAMESPACES, parts, strict=True)
                )
                + "\n"
            )


def _rows(random: np.random.Generator, truth: np.ndarray) -> Iterator[tuple[int, list[int], list[int]]]:
    ids = np.exp(random.random((ROWS_AT_ONCE, IDS_A_ROW)) * np.log(FEATURES)).astype(np.int64) - 1
    ids.sort(axis=1)
    numbers = random.integers(1, 10_000, ids.shape)
    labels = np.where((truth[ids] * numbers).sum(axis=1) + 5e3 * random.normal(size=len(ids)) > 0, 1, -1)
    for label, row, of_row in zip(labels.tolist(), ids, numbers, strict=True):
        row, first = np.unique(row, return_index=True)
        yield label, row.tolist(), of_row[first].tolist()
