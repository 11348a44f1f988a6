"""docs/how-to/migration.md: both cells of every line are run, and what the third one says is checked."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "migration.md").read_text(encoding="utf-8")

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEAD = re.compile(r"^\| \S+ \| maxcosine \| what differs \|$", re.MULTILINE)
ROW = re.compile(r"^\| `([^`|]+)` \| `([^`|]+)` \| ([^|]+) \|$", re.MULTILINE)

# Rounding, as between two programs that do the same sums in another order.
ROUNDING = {"rtol": 1e-9, "atol": 1e-12}
# Two classes by chance: 0.5; ten: 0.1.
BETTER_THAN_CHANCE = 0.75

pytestmark = pytest.mark.filterwarnings(
    "ignore:Class PassiveAggressiveClassifier is deprecated:FutureWarning"
)


@dataclass(frozen=True)
class Line:
    section: str
    theirs: str
    ours: str
    differs: str


def sections():
    """The text under each heading."""
    parts = re.split(r"^## (.*)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def code_of(text):
    """The blocks of a section that are no doctests: they define the names of its table."""
    return [block for block in BLOCK.findall(text) if ">>>" not in block]


LINES = [Line(title, *row) for title, text in sections().items() for row in ROW.findall(text)]
TABLES = {line.section for line in LINES}
MISSING = {
    "From PassiveAggressiveClassifier": None
    if hasattr(sklearn.linear_model, "PassiveAggressiveClassifier")
    else "scikit-learn has no PassiveAggressiveClassifier any more",
}


@cache
def names_for(section):
    """The names that the page defines for the table of a section."""
    names = {}
    for title, text in sections().items():
        if title == section or title not in TABLES:
            for block in code_of(text):
                exec(block, names)
    return names


def value_of(cell, names):
    """The value of the last of the statements in a cell."""
    *before, last = ast.parse(cell).body
    assert isinstance(last, ast.Expr), f"a cell ends with an expression: {cell}"
    exec(compile(ast.Module(before, []), cell, "exec"), names)
    return eval(compile(ast.Expression(last.value), cell, "eval"), names)


def learn(model, names, *, one_by_one):
    """Models that a cell leaves unfitted learn as the page says."""
    if one_by_one:
        for x, label in zip(names["examples"], names["labels"], strict=True):
            model.learn_one(x, label)
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        model.fit(names["X"], names["y"])


class Outcome:
    """What came of a cell: a model and what it predicts, or a value."""

    def __init__(self, cell, section):
        self.names = dict(names_for(section))
        self.value = value_of(cell, self.names)
        self.by_dicts = "examples" in self.names
        self.is_model = hasattr(self.value, "predict_one" if self.by_dicts else "predict")
        if self.is_model:
            learn(self.value, self.names, one_by_one=self.by_dicts)

    def predictions(self):
        """Classes of the held-out rows; of a value, what it says itself."""
        if not self.is_model:
            return np.asarray(self.value)
        if self.by_dicts:
            return np.array([self.value.predict_one(x) for x in self.names["examples_new"]])
        return self.value.predict(self.names["X_new"])

    def numbers(self):
        """Weights by feature, intercept included; None for a model that has none. Of a value, itself."""
        if isinstance(self.value, dict):
            return {str(key): weight for key, weight in self.value.items()}
        if not self.is_model:
            return {"": np.asarray(self.value)}
        if hasattr(self.value, "coef_"):
            coef, keys = self.value.coef_, getattr(self.value, "features_", None)
            coef = coef if isinstance(coef, np.ndarray) else coef.toarray()
            keys = range(coef.shape[1]) if keys is None else keys
            return {"intercept": self.value.intercept_} | {
                str(key): weights for key, weights in zip(keys, coef.T, strict=True)
            }
        if hasattr(self.value, "weights"):
            return {"intercept": self.value.intercept} | dict(self.value.weights)
        return None

    def accuracy(self):
        """On rows held out; None where a cell predicts nothing, or one example."""
        if hasattr(self.value, "works_with"):  # one of River's metrics
            return self.value.get()
        predicted = self.predictions()
        if predicted.ndim == 2 and len(predicted) == len(self.names["X_new"]):
            predicted = predicted.argmax(axis=1)  # scores or probabilities of classes 0, 1, ...
        elif predicted.dtype.kind == "f":
            predicted = predicted > 0.5  # the probability of the second class
        if predicted.shape != self.names["y_new"].shape:
            return None
        several = len(np.unique(predicted)) > 2
        return np.mean(predicted == self.names["Y_new" if several else "y_new"])


def close(one, other):
    if one.keys() != other.keys():
        return False
    return all(np.allclose(one[key], other[key], **ROUNDING) for key in one)


@pytest.mark.parametrize("line", LINES, ids=[line.theirs for line in LINES])
def test_line(line):
    if MISSING.get(line.section):
        pytest.skip(MISSING[line.section])
    theirs, ours = (Outcome(cell, line.section) for cell in (line.theirs, line.ours))
    accuracy = ours.accuracy()
    if line.differs.startswith("same predictions"):
        assert np.array_equal(theirs.predictions(), ours.predictions())
    elif line.differs.startswith(("same weights", "same scores")):
        assert close(theirs.numbers(), ours.numbers())
    else:
        assert accuracy is not None, "nothing of this line can be checked"
        if theirs.is_model and ours.is_model and theirs.numbers() and ours.numbers():
            assert not close(theirs.numbers(), ours.numbers()), "they do not differ"
    assert accuracy is None or accuracy > BETTER_THAN_CHANCE


def test_no_line_of_the_page_is_left_out():
    rows = [row for row in BLOCK.sub("", PAGE).splitlines() if "|" in row]
    assert len(HEAD.findall(PAGE)) == rows.count("|---|---|---|") == len(TABLES) == 3
    assert len(rows) == len(LINES) + 2 * 3
    assert len({line.theirs for line in LINES}) == len(LINES)
    for section in TABLES:
        assert len(HEAD.findall(sections()[section])) == 1
        assert 8 <= sum(line.section == section for line in LINES) <= 14


def test_sections_that_may_be_skipped_are_on_the_page():
    assert MISSING.keys() <= TABLES
