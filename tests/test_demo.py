"""The demo prints what its learners do."""

import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxcosine import demo
from tests.reference import run


@pytest.fixture(scope="module")
def printed():
    ran = subprocess.run([sys.executable, "-m", "maxcosine.demo"], capture_output=True, text=True, check=True)
    return ran.stdout


@pytest.fixture(scope="module")
def counts():
    return demo.count_mistakes(list(demo.LEARNERS), demo.PERMUTATIONS, demo.SEED)


def test_table_has_ten_labels_and_the_three_learners_of_the_paper(printed, counts):
    lines = printed.splitlines()
    header = next(k for k, line in enumerate(lines) if line.startswith("label"))
    assert lines[header].split() == ["label", "PA", "A-ROMMA", "MCP"]
    table = [
        [float(cell) for cell in re.findall(r"[\d.]+", line)] for line in lines[header + 1 : header + 11]
    ]
    assert [row[0] for row in table] == list(range(10))
    assert np.allclose([row[1:] for row in table], counts.mean(axis=2), atol=0.005)


def test_fewest_mistakes_of_each_label_are_marked(counts):
    for line, row in zip(
        demo.table(counts.mean(axis=2)).splitlines()[1:11], counts.mean(axis=2), strict=True
    ):
        marked = [cell.endswith("*") for cell in line.split()[1:]]
        assert marked == (row == row.min()).tolist()


@pytest.mark.parametrize("rule", demo.LEARNERS)
def test_mistakes_are_those_of_the_reference(rule, counts):
    X, y = load_digits(return_X_y=True)
    train, test = slice(None, -demo.N_TEST), slice(-demo.N_TEST, None)
    order = np.random.default_rng(demo.SEED).permutation(len(X) - demo.N_TEST)
    w = run(rule, X[train][order], np.where(y[train][order] == 0, 1, -1)).w
    mistakes = np.count_nonzero((X[test] @ w > 0) != (y[test] == 0))
    assert counts[0, list(demo.LEARNERS).index(rule), 0] == mistakes


def test_learners_are_compared_on_the_same_orders(counts):
    alone = demo.count_mistakes(["mcp"], demo.PERMUTATIONS, demo.SEED)
    assert np.array_equal(alone[:, 0], counts[:, list(demo.LEARNERS).index("mcp")])
