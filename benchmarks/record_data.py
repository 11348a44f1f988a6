"""Raw records for the benchmarks: SMS spam, 20 Newsgroups and Adult, and files of them in several formats."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

SEED = 0
SMS_TRAIN_SHARE = 0.8
ADULT_LABEL = "income"
PUNCTUATION = re.compile(r"([.!?,'/()])")  # the tokens that fastText's tutorial on classification separates
ACCENTS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
CYRILLIC = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "абцдефгхийклмнопярстужвьызАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗ"
)


class Split(NamedTuple):
    """Training and test records with their labels."""

    train: Any
    train_labels: np.ndarray
    test: Any
    test_labels: np.ndarray


# Reading


def open_text(path: Path) -> IO[str]:
    """Open a UTF-8 text file, gzipped if its name ends in .gz."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def read_json_lines(path: Path, label: str) -> tuple[list[str], np.ndarray]:
    """Return the column `text` and the labels of a file of JSON lines."""
    with open_text(path) as lines:
        records = [json.loads(line) for line in lines]
    return [record["text"] for record in records], np.array([record[label] for record in records])


def load_sms(data: Path) -> Split:
    """Load SMS spam; the first 80 % of a seeded permutation train."""
    texts, labels = read_json_lines(data / "sms_spam.jsonl.gz", "label")
    order = np.random.default_rng(SEED).permutation(len(texts))
    train, test = np.split(order, [int(SMS_TRAIN_SHARE * len(texts))])
    return Split([texts[i] for i in train], labels[train], [texts[i] for i in test], labels[test])


def load_newsgroups(data: Path) -> Split:
    """Load 20 Newsgroups with its 20 groups as labels, in the given split."""
    train, train_labels = read_json_lines(data / "20news_train.jsonl.gz", "group")
    test, test_labels = read_json_lines(data / "20news_test.jsonl.gz", "group")
    return Split(train, train_labels, test, test_labels)


def load_adult(data: Path) -> Split:
    """Load Adult as two data frames, in the given split."""
    train, test = (pd.read_csv(data / f"adult_{part}.csv.gz") for part in ("train", "test"))
    train_labels, test_labels = (frame.pop(ADULT_LABEL).to_numpy(dtype=object) for frame in (train, test))
    return Split(train, train_labels, test, test_labels)


# Writing


def write_json_lines(path: Path, texts: Iterable[str], labels: Iterable[str], copies: int = 1) -> Path:
    """Write one JSON object a record, with the keys `text` and `label`; all records again for each copy."""
    pairs = zip(texts, labels, strict=True)
    lines = "".join(json.dumps({"text": text, "label": str(label)}) + "\n" for text, label in pairs)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for _ in range(copies):
            file.write(lines)
    return path


def write_fasttext(path: Path, texts: Iterable[str], labels: Iterable[str], copies: int = 1) -> Path:
    """Write one fastText line a record: lower case, punctuation as separate tokens, white space folded."""
    lines = []
    for text, label in zip(texts, labels, strict=True):
        words = PUNCTUATION.sub(r" \1 ", text.lower()).split()
        lines.append(" ".join([f"__label__{label}", *words]) + "\n")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for _ in range(copies):
            file.writelines(lines)
    return path


def newsgroups_frame(texts: Sequence[str], labels: Sequence[str]) -> pd.DataFrame:
    """Return a number, a category, the text and the label: the lines of a message and its sender's top-level domain.

    Both are parsed from the headers inside the text, and missing where no header gives them.
    """
    text = pd.Series(texts)
    lines = pd.to_numeric(text.str.extract(r"\bLines: (\d+)", expand=False))
    domain = text.str.extract(r"@[\w.-]+\.([A-Za-z]+)", expand=False).str.lower()
    return pd.DataFrame({"lines": lines, "domain": domain, "text": text, "label": list(map(str, labels))})


def write_parquet(path: Path, frame: pd.DataFrame, copies: int = 1) -> Path:
    """Write a data frame as Parquet; all rows again for each copy."""
    pd.concat([frame] * copies, ignore_index=True).to_parquet(path)
    return path


def megabytes(path: Path) -> float:
    """Return the size of a file."""
    return path.stat().st_size / 1e6
