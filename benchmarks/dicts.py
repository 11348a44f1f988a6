"""Learning from dicts, one example at a time, compared with River."""

from __future__ import annotations

from pathlib import Path

from datasets import Missing, newsgroup_dicts
from table import Result, Section
from timing import best_of, version_of

from maxcosine import PAClassifier

LEAST, AIM = 8.0, 12.0


def measure(folder: Path | None, repeats: int) -> Section:
    notes = [
        "data: 20 Newsgroups, training part, as dicts of words and counts",
        'ours: PAClassifier("pa1").learn_one(x, y)',
        f"peer: {version_of('river')}, linear_model.PAClassifier(C=1, mode=1).learn_one(x, y)",
    ]
    title = "One example at a time, from scratch: time per example"
    try:
        from river.linear_model import PAClassifier as RiverClassifier

        examples, labels = newsgroup_dicts(folder)
    except (ImportError, Missing) as error:
        return Section(title, notes, [], [str(error)])

    def learn(learner: object) -> None:
        for x, y in zip(examples, labels, strict=True):
            learner.learn_one(x, y)  # type: ignore[attr-defined]

    seconds = best_of(repeats, lambda: learn(PAClassifier("pa1")), lambda: learn(RiverClassifier(C=1.0, mode=1)))
    ours, peer = (1e6 * one / len(examples) for one in seconds)
    return Section(title, notes, [Result("learn_one from dicts", ours, "us", peer, least=LEAST, aim=AIM)])
