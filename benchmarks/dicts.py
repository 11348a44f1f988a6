"""Learning from dicts, one by one, beside River; and what the exact index adds to a pass."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from datasets import Missing, log_uniform, newsgroup_dicts, newsgroups
from timing import best_of

from maxcosine import RULES, FeatureIndex, PAClassifier
from maxcosine.engine import Heads, learn, one_vs_rest

LEAST, AIM = 5.0, 10.0
MOST_INDEX = 1.0
INDEX_ROWS, INDEX_FEATURES = 100_000, 2**20

PEER = "river.linear_model.PAClassifier(C=1, mode=1), learn_one"
OURS = "PAClassifier('pa1', C=1), learn_one"


def measure(folder: Path | None, repeats: int) -> dict[str, Any]:
    return {"learn_one": _learn_one(folder, repeats), "index": _index(folder, repeats)}


def _learn_one(folder: Path | None, repeats: int) -> dict[str, Any]:
    """Both learn 20 Newsgroups from scratch, example by example: words to counts."""
    what = {"data": "20 Newsgroups as dicts", "ours": OURS, "peer": PEER, "least": LEAST, "aim": AIM}
    try:
        from river.linear_model import PAClassifier as River

        examples, labels = newsgroup_dicts(folder)
    except ImportError:
        return {**what, "missing": "river"}
    except Missing as missing:
        return {**what, "missing": str(missing)}

    def ours() -> None:
        learner = PAClassifier("pa1")
        for x, y in zip(examples, labels, strict=True):
            learner.learn_one(x, y)

    def peer() -> None:
        learner = River(C=1.0, mode=1)
        for x, y in zip(examples, labels, strict=True):
            learner.learn_one(x, y)

    ours_s, peer_s = best_of(repeats, ours, peer)
    n = len(examples)
    return {**what, "ours_us": ours_s / n * 1e6, "peer_us": peer_s / n * 1e6, "ratio": peer_s / ours_s}


def _index(folder: Path | None, repeats: int) -> list[dict[str, Any]]:
    """Mapping ids to slots beside the pass itself, both over the same rows.

    The ids are column numbers, and once more, for comparison, random numbers of 64 bits in their place.
    """
    found = []
    for name, load in (
        ("20 Newsgroups, CSR float32", lambda: newsgroups(folder)),
        (f"synthetic, {INDEX_FEATURES:,} features", lambda: log_uniform(INDEX_ROWS, INDEX_FEATURES)),
    ):
        try:
            X, y = load()
        except Missing as missing:
            found.append({"data": name, "missing": str(missing), "most": MOST_INDEX})
            continue
        random = np.random.default_rng(0).integers(0, 2**64 - 1, X.shape[1], np.uint64)
        for data, ids, most in ((name, None, MOST_INDEX), (f"{name}, 64-bit ids", random, None)):
            found.append({"data": data, "most": most, **_index_beside_pass(X, ids, y > 0, repeats)})
    return found


def _index_beside_pass(X: Any, ids: Any, codes: Any, repeats: int) -> dict[str, Any]:
    rule, codes = RULES["pa1"], codes.astype("int64")
    keys = X.indices.view(np.uint32) if ids is None else ids[X.indices]
    index = FeatureIndex("ids")
    indptr, slots, data = index.map_rows(X.indptr, keys, X.data, grow=True)
    rows = scipy.sparse.csr_array((data, slots.view(np.int32), indptr), shape=(X.shape[0], len(index)))
    assert rows.indices.dtype == X.indices.dtype

    def find() -> None:
        FeatureIndex("ids").map_rows(X.indptr, keys, X.data, grow=True)

    def one_pass() -> None:
        heads = Heads.create(
            rule,
            rule.make_params(),
            one_vs_rest([1]),
            len(index),
            X.dtype,
            fit_intercept=False,
            average=False,
        )
        learn(heads, rows, codes, mapped=True)

    index_s, pass_s = best_of(repeats, find, one_pass)
    nanoseconds = {"index_ns": index_s / X.nnz * 1e9, "pass_ns": pass_s / X.nnz * 1e9}
    return {
        **nanoseconds,
        "ratio": index_s / pass_s,
        "bytes_a_feature": index.nbytes / len(index),
    }


def river_version() -> str:
    try:
        return version("river")
    except PackageNotFoundError:
        return "not installed"
