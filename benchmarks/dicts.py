"""Learning from dicts, one by one, beside River; and what the exact index adds to a pass."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from datasets import Missing, log_uniform, newsgroup_dicts, newsgroups
from timing import best_of

from maxcosine import RULES, FeatureIndex, PAClassifier
from maxcosine.engine import Heads, learn, one_vs_rest
from maxcosine.features import Features

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
    """Mapping ids to slots beside the pass itself, both over the same rows."""
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
        found.append({"data": name, "most": MOST_INDEX, **_index_beside_pass(X, y > 0, repeats)})
    return found


def _index_beside_pass(X: Any, codes: Any, repeats: int) -> dict[str, Any]:
    rule, codes = RULES["pa1"], codes.astype("int64")
    features = Features(None, index=FeatureIndex("ids"))
    rows = features.map(X, grow=True)

    def index() -> None:
        Features(None, index=FeatureIndex("ids")).map(X, grow=True)

    def one_pass() -> None:
        heads = Heads.create(
            rule,
            rule.make_params(),
            one_vs_rest([1]),
            features.n_slots,
            X.dtype,
            fit_intercept=False,
            average=False,
        )
        learn(heads, rows, codes, mapped=True)

    index_s, pass_s = best_of(repeats, index, one_pass)
    nanoseconds = {"index_ns": index_s / X.nnz * 1e9, "pass_ns": pass_s / X.nnz * 1e9}
    return {
        **nanoseconds,
        "ratio": index_s / pass_s,
        "bytes_a_feature": features.index.nbytes / len(features.index),
    }


def river_version() -> str:
    try:
        return version("river")
    except PackageNotFoundError:
        return "not installed"
