"""OnePassClassifier beside the rules of the paper's experiment."""

import re

import numpy as np

from maxcosine import OnePassClassifier
from maxcosine.experiments import datasets
from maxcosine.experiments.beside import onepass_mistakes
from maxcosine.experiments.protocol import Protocol, learners_of
from tests.cli.examples import succeed


def test_rows_come_in_the_first_order_of_each_label():
    data = datasets.load("digits")
    protocol = Protocol(learners_of(["mcp"]), data.buckets, 1, seed=3)
    size = len(data.y_train) // data.buckets
    X, X_test = (np.asarray(rows, np.float32) for rows in (data.X_train, data.X_test))
    expected = []
    for label in range(10):
        order = np.concatenate([np.arange(size) + size * k for k in protocol.order(label, 0)])
        learner = OnePassClassifier().partial_fit(X[order], data.y_train[order] == label, classes=[False, True])
        expected.append(int(np.sum(learner.predict(X_test) != (data.y_test == label))))
    assert onepass_mistakes(data, protocol, jobs=2) == expected


def test_reproduce_shows_it_after_the_summary(tmp_path):
    found = succeed(tmp_path, "reproduce", "digits", "--permutations", 2, "--onepass")
    words = " ".join(found.split())
    assert re.search(r"OnePassClassifier, which needs no choices, makes \d+\.\d test mistakes per label", words)
    assert re.search(r"the rules make: PA \d+\.\d, A-ROMMA \d+\.\d and MCP \d+\.\d\.", words), words
