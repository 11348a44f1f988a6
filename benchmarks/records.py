"""Reading raw records, compared with scikit-learn and fastText: ``make bench-records DATA=DIR``.

This runs ``python benchmarks/records.py --data DIR --json docs/results/records.json``, and then
``python docs/generate_records.py`` for the page. DIR or DIR/raw contains sms_spam.jsonl.gz, 20news_train.jsonl.gz,
20news_test.jsonl.gz, adult_train.csv.gz and adult_test.csv.gz.

Each side has one thread and reads a file in the system's file cache. The sides take turns, and the best of several
turns counts. Seconds of learners are those of the processor, so that other work does not count. Parts that are not run
keep their figures in the results file. --folder names the folder of the files that are written; they are deleted at
the end.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import record_data as data
import record_memory as memory
import record_pipelines as pipelines
from record_learners import (
    LABEL,
    Learnt,
    Timed,
    best_passes,
    learn_fasttext,
    learn_json_lines,
    learn_parquet,
    learn_records,
)
from sklearn.feature_extraction.text import HashingVectorizer
from table import Result, Section, write_json
from threadpoolctl import threadpool_limits
from timing import best_of, compile_bytecode, environment, version_of

from maxcosine import OnePassClassifier, OnlineClassifier, RecordEncoder
from maxcosine.records import RecordOptions
from maxcosine.records.encoding import HowEncoded, encode
from maxcosine.records.inference import infer_schema

ORDERS = 3
POINTS = 0.3  # by which our error may exceed that of a pipeline
FLAT = 1.1  # times the peak for a tenth of the data
NEWS_COPIES, SMS_COPIES, ADULT_COPIES = 3, 130, 20
BLOCK_BYTES = 2 << 20  # of text that is encoded at once, as for files
ONEPASS, RULE = OnePassClassifier(), OnlineClassifier("pa1", average=True)
ONE_EPOCH = {"max_iter": 1, "tol": None}

Sides = dict[str, Callable[[], Learnt]]


class Benchmarks:
    """The benchmarks, with the folders of data and of files that are written."""

    def __init__(self, folder: Path, scratch: Path, repeats: int, gigabytes: Sequence[float]) -> None:
        self.folder = folder / "raw" if (folder / "raw").is_dir() else folder
        self.scratch, self.repeats, self.gigabytes = scratch, repeats, gigabytes

    # From texts to hashed features

    def hashing(self) -> Section:
        """Measure texts in memory to hashed features, beside HashingVectorizer."""
        news, sms = data.load_newsgroups(self.folder).train, data.load_sms(self.folder).train
        ascii_news, ascii_sms = ([text for text in texts if text.isascii()] for texts in (news, sms))
        results = [
            *self._hashing("20 Newsgroups, ASCII", ascii_news, least=10.0),
            *self._hashing("SMS, ASCII", ascii_sms, least=10.0),
            *self._hashing("20 Newsgroups, accents", [text.translate(data.ACCENTS) for text in news]),
            *self._hashing("20 Newsgroups, Cyrillic", [text.translate(data.CYRILLIC) for text in news]),
            *self._hashing("SMS as they are", sms),
        ]
        notes = [
            "ours: Arrow strings in memory to rows of 2^20 hashed features, in blocks of 2 MB as in fit_records, "
            "which keeps the names of the columns in addition",
            "RecordEncoder: RecordEncoder().transform of the same strings, to one sparse matrix",
            f"peer: {version_of('scikit-learn')}, HashingVectorizer().transform of the documents as Python strings; it "
            "scales rows to length 1 in addition",
            "ASCII: the documents that are ASCII; accents: a, e, i, o, u replaced by á, é, í, ó, ú in every document; "
            "Cyrillic: every Latin letter replaced by a Cyrillic one",
        ]
        return Section("Text to hashed features", notes, results)

    def _hashing(self, name: str, texts: list[str], least: float | None = None) -> list[Result]:
        megabytes = sum(len(text.encode()) for text in texts) / 1e6
        table = pa.table({"text": texts})
        schema = infer_schema(table, RecordOptions(label=None, text=("text",)))
        n_blocks = max(1, round(megabytes * 1e6 / BLOCK_BYTES))
        cuts = np.linspace(0, len(texts), n_blocks + 1).astype(int).tolist()
        blocks = [table["text"].slice(start, stop - start).combine_chunks() for start, stop in pairwise(cuts)]
        encoder = RecordEncoder(text="text").fit(table)

        def encode_blocks() -> None:
            for block in blocks:
                encode({"text": block}, schema, len(block), HowEncoded(20, "float32"))

        ours, whole, peer = best_of(
            self.repeats,
            encode_blocks,
            lambda: encoder.transform(table),
            lambda: HashingVectorizer().transform(texts),
        )
        return [
            Result(f"{name}, {megabytes:.1f} MB", ours, "s", peer, least=least),
            Result(f"{name}, RecordEncoder", whole, "s", peer),
        ]

    # From JSON lines to a learner

    def json_lines(self) -> list[Section]:
        """Measure one pass over JSON lines of text, beside fastText and scikit-learn."""
        news, sms = data.load_newsgroups(self.folder), data.load_sms(self.folder)
        files = self._json_files("news", news, NEWS_COPIES)
        fasttext_files = [
            data.write_fasttext(self.scratch / "news_train.txt", news.train, news.train_labels, NEWS_COPIES),
            data.write_fasttext(self.scratch / "news_test.txt", news.test, news.test_labels),
        ]
        sides = self._ours(*files) | {
            "OnePassClassifier, exact": partial(learn_records, ONEPASS, *files, exact=True),
            "scikit-learn": partial(learn_json_lines, *files, sorted(set(news.train_labels))),
            "fastText": partial(learn_fasttext, *fasttext_files),
            "fastText, epoch=1": partial(learn_fasttext, *fasttext_files, epoch=1),
        }
        found = best_passes(self.repeats, sides)
        size = f"{NEWS_COPIES} times the training part of 20 Newsgroups, 20 groups, {data.megabytes(files[0]):.0f} MB"
        ours = [name for name in sides if "fastText" not in name and name != "scikit-learn"]
        fasttext = [_timed(name, found[name], found["fastText"], least=1.0) for name in ours]
        fasttext += [_timed(f"{name}; peer: epoch=1", found[name], found["fastText, epoch=1"]) for name in ours]
        notes = [
            f"data: {size}; the errors are of the test part",
            'ours: fit_records(FILE, label="label", threads=1), hashed to 2^20 columns, or exact',
            f"peer: {version_of('fasttext-numpy2')}, train_supervised with its defaults (5 epochs) and thread=1, from "
            "the same documents in its format, in lower case and with punctuation apart",
            "the peer runs in a process with MALLOC_MMAP_THRESHOLD_=65536, because it leaves memory uninitialised with "
            "one thread; its start does not count",
        ]
        against_sklearn = [
            _timed(f"20 Newsgroups, {name}", found[name], found["scikit-learn"], least=10.0) for name in ours
        ]
        return [
            Section("JSON lines of text, beside fastText", notes, fasttext),
            self._against_scikit_learn(size, against_sklearn, sms),
        ]

    def _against_scikit_learn(self, size: str, results: list[Result], sms: data.Split) -> Section:
        files = self._json_files("sms", sms, SMS_COPIES)
        sides = self._ours(*files) | {"scikit-learn": partial(learn_json_lines, *files, ["ham", "spam"])}
        found = best_passes(self.repeats, sides)
        peer = found.pop("scikit-learn")
        notes = [
            f"data: {size}; {SMS_COPIES} times the training part of SMS spam, two classes, "
            f"{data.megabytes(files[0]):.0f} MB",
            'ours: fit_records(FILE, label="label", threads=1)',
            f"peer: {version_of('scikit-learn')}; json.loads of each line, HashingVectorizer and "
            "SGDClassifier.partial_fit of each 1,000",
        ]
        results = [*results, *(_timed(f"SMS, {name}", one, peer, least=10.0) for name, one in found.items())]
        return Section("JSON lines of text, beside scikit-learn", notes, results)

    def _json_files(self, name: str, split: data.Split, copies: int) -> tuple[Path, Path]:
        return (
            data.write_json_lines(self.scratch / f"{name}_train.jsonl", split.train, split.train_labels, copies),
            data.write_json_lines(self.scratch / f"{name}_test.jsonl", split.test, split.test_labels),
        )

    def _ours(self, train: Path, test: Path) -> Sides:
        return {
            "OnePassClassifier": partial(learn_records, ONEPASS, train, test),
            "averaged PA-I": partial(learn_records, RULE, train, test),
        }

    # From Parquet to a learner

    def parquet(self) -> Section:
        """Measure one pass over Parquet, beside pandas and a ColumnTransformer."""
        news, adult = data.load_newsgroups(self.folder), data.load_adult(self.folder)
        numbers = list(adult.train.select_dtypes("number").columns)
        categories = list(adult.train.columns.difference(numbers))
        results = self._parquet(
            "20 Newsgroups",
            data.newsgroups_frame(news.train, news.train_labels),
            data.newsgroups_frame(news.test, news.test_labels),
            NEWS_COPIES,
            {"numbers": ["lines"], "categories": ["domain"], "text": "text"},
        )
        results += self._parquet(
            "Adult",
            adult.train.assign(label=adult.train_labels),
            adult.test.assign(label=adult.test_labels),
            ADULT_COPIES,
            {"numbers": numbers, "categories": categories},
        )
        notes = [
            f"20 Newsgroups: {NEWS_COPIES} times its training part; the text, the number of lines and the sender's "
            "top-level domain, both read off the text; 20 groups",
            f"Adult: {ADULT_COPIES} times its training part; 6 numbers and 8 categories, two classes",
            'ours: fit_records(FILE, label="label", threads=1)',
            f"peer: {version_of('pandas')} and {version_of('scikit-learn')}; read_parquet, a ColumnTransformer of "
            "imputed and scaled numbers, OneHotEncoder and HashingVectorizer, and SGDClassifier with its defaults",
            "one epoch: SGDClassifier with max_iter=1, tol=None",
        ]
        return Section("Parquet with numbers, categories and text", notes, results)

    def _parquet(
        self, name: str, train: pd.DataFrame, test: pd.DataFrame, copies: int, columns: dict[str, Any]
    ) -> list[Result]:
        train_file = data.write_parquet(self.scratch / "train.parquet", train, copies)
        files = train_file, data.write_parquet(self.scratch / "test.parquet", test)
        sides = self._ours(*files) | {
            "defaults": partial(learn_parquet, *files, **columns),
            "one epoch": partial(learn_parquet, *files, **columns, **ONE_EPOCH),
        }
        found = best_passes(self.repeats, sides)
        defaults, one_epoch = found.pop("defaults"), found.pop("one epoch")
        results = []
        for learner, one in found.items():
            results.append(_timed(f"{name}, {learner}", one, defaults, least=3.0))
            results.append(_timed(f"{name}, {learner}; peer: one epoch", one, one_epoch, least=3.0))
        return results

    # Accuracy

    def accuracy(self) -> Section:
        """Measure the test error with no option but the label, beside cross-validated pipelines."""
        results, chosen = [], []
        for name, load, pipeline in (
            ("SMS spam", data.load_sms, pipelines.sms_pipeline),
            ("20 Newsgroups", data.load_newsgroups, pipelines.newsgroups_pipeline),
            ("Adult", data.load_adult, pipelines.adult_pipeline),
        ):
            split = load(self.folder)
            errors = [100 * self._error(split, order) for order in range(ORDERS)]
            peer = pipeline(split)
            percent = 100 * peer.test_error
            found = Result(name, float(np.mean(errors)), "%", percent, most=round(percent + POINTS, 4))
            found.detail = "orders: " + ", ".join(f"{error:.2f} %" for error in errors)
            results.append(found)
            chosen.append(f"{name}: {peer.parameters}, cross-validated error {100 * peer.cv_error:.2f} %")
        notes = [
            "SMS spam: the first 80 % of np.random.default_rng(0).permutation train; others: their given parts",
            f'ours: OnePassClassifier().fit_records(FILE, label="label"), the mean over {ORDERS} orders: as given, and '
            "shuffled with two seeds",
            f"peer: {version_of('scikit-learn')}, tf-idf and a linear SVM or logistic regression; for Adult, scaled "
            "numbers, one-hot categories and logistic regression; cross-validation on the training part chooses",
            *(f"chosen for {one}" for one in chosen),
        ]
        return Section("Error with no option but the label", notes, results)

    def _error(self, split: data.Split, order: int) -> float:
        n_rows = len(split.train_labels)
        rows = np.random.default_rng(order).permutation(n_rows) if order else np.arange(n_rows)
        labels = split.train_labels[rows]
        if isinstance(split.train, pd.DataFrame):
            train = self.scratch / "train.csv"
            split.train.iloc[rows].assign(label=labels).to_csv(train, index=False)
            test = split.test
        else:
            train = data.write_json_lines(self.scratch / "train.jsonl", [split.train[k] for k in rows], labels)
            test = pd.DataFrame({"text": split.test})
        learner = OnePassClassifier().fit_records(str(train), label=LABEL)
        return float(np.mean(learner.predict(test) != split.test_labels))

    # Memory

    def peak_memory(self) -> Section:
        """Measure the peak memory of training on files of two sizes."""
        split = data.load_newsgroups(self.folder)
        records = memory.real_records(split.train, split.train_labels)
        results = []
        for name, write in memory.WRITERS.items():
            peaks: list[float] = []
            for gigabytes in self.gigabytes:
                file = self.scratch / f"memory.{name}"
                write(file, records, int(gigabytes * 1e9))
                found, model_mb = memory.train(file)
                size = data.megabytes(file)
                file.unlink()
                most = FLAT * peaks[0] if peaks else None
                peaks.append(found.peak_mb)
                detail = f"{found.seconds:.0f} s, {size / found.seconds:.0f} MB/s, model {model_mb:.0f} MB"
                results.append(Result(f"{name}, {gigabytes:g} GB", found.peak_mb, "MB", most=most, detail=detail))
        notes = [
            "data: records of 20 Newsgroups drawn at random with a seed: text, number, category and one of 20 labels; "
            "each text has a word of its own, so that there are ever more different words",
            "Parquet without compression, in groups of rows of 60 MB",
            "ours: maxcosine train FILE --label label --threads 2 --model MODEL, OnePassClassifier with 2^20 columns",
            "peak of the process, with its weights and the names of columns that it keeps; the model grows with the "
            "columns that occur, up to 2^20, and while its arrays grow, there are two of them",
            f"the target for more data is {FLAT:g} times the peak of the first size",
        ]
        return Section("Peak memory", notes, results)


def _timed(work: str, ours: Timed, peer: Timed, least: float | None = None) -> Result:
    return Result(work, ours.seconds, "s", peer.seconds, least=least, error=ours.error, peer_error=peer.error)


PARTS: dict[str, Callable[[Benchmarks], Section | list[Section]]] = {
    "hashing": Benchmarks.hashing,
    "json": Benchmarks.json_lines,
    "parquet": Benchmarks.parquet,
    "accuracy": Benchmarks.accuracy,
    "memory": Benchmarks.peak_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the raw records")
    parser.add_argument("--folder", type=Path, help="where files are written, and deleted at the end")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=PARTS, help="run one part")
    parser.add_argument("--size", type=float, default=1.0, help="GB of the files that memory is measured with")
    parser.add_argument("--large", action="store_true", help="measure memory with ten times as much, too")
    parser.add_argument("--json", type=Path, help="results file to write")
    options = parser.parse_args()
    compile_bytecode()
    sizes = [options.size, 10 * options.size] if options.large else [options.size]
    for name in [options.only] if options.only else PARTS:
        found = environment()
        if options.folder is not None:
            options.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch, threadpool_limits(1):
            measured = PARTS[name](Benchmarks(options.data, Path(scratch), options.repeats, sizes))
        sections = measured if isinstance(measured, list) else [measured]
        for section in sections:
            section.show()
        if options.json is not None:
            write_json(options.json, name, found, sections)


if __name__ == "__main__":
    main()
