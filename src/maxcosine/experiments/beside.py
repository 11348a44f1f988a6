"""OnePassClassifier beside the rules of the paper's experiment: each label against the rest, in the first order.

It is no part of the experiment: it has an intercept and a geometry of its own, and one order for each label shows
nothing about how certain a difference is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from maxcosine.experiments.datasets import Dataset
from maxcosine.experiments.protocol import Protocol
from maxcosine.experiments.results import Results
from maxcosine.experiments.rule_styles import join_words, title_of
from maxcosine.features import Features
from maxcosine.onepass_model import OnePassModel
from maxcosine.rows import csr_array

FIRST = 0


def onepass_mistakes(data: Dataset, protocol: Protocol, jobs: int | None = None) -> list[int]:
    """Return the test mistakes of OnePassClassifier on each label, after the rows in the first order of the label."""
    train, test = (csr_array(X, dtype=np.dtype(np.float32)) for X in (data.X_train, data.X_test))
    size = train.shape[0] // protocol.buckets

    def mistakes(label: int) -> int:
        starts = size * protocol.order(label, FIRST)
        order = (starts[:, None] + np.arange(size)).ravel()
        model = OnePassModel.create(np.array([False, True]), Features(train.shape[1]), train.dtype)
        model.learn(train, (data.y_train == label).astype(np.int64), order)
        return int(np.count_nonzero(model.predict(test) != (data.y_test == label)))

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(mistakes, range(len(data.labels))))


def compare_in_words(mistakes: list[int], results: Results) -> str:
    """Compare these mistakes with those of the rules in the same orders."""
    rules = {
        rule: np.mean([run.test_mistakes for run in results.runs if run.rule == rule and run.permutation == FIRST])
        for rule in results.rules
    }
    others = join_words([f"{title_of(rule)} {mean:.1f}" for rule, mean in rules.items()])
    return (
        f"Beside the paper: OnePassClassifier, which needs no choices, makes {np.mean(mistakes):.1f} test mistakes per "
        f"label on average in one pass over the first order of each label. In these orders, the rules make: {others}."
    )
