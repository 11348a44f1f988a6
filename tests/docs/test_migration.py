"""docs/how-to/migration.md: both code cells of every line run, and the third column is true."""

import ast
import doctest
import re
import subprocess
import sys
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
COMMANDS = re.compile(r"\| (fastText|`fasttext [^|]+`) \| (maxcosine|`maxcosine [^|]+`) \||\|---\|---\|")
ROW = re.compile(r"^\| `([^`|]+)` \| `([^`|]+)` \| ([^|]+) \|$", re.MULTILINE)

# Two programs may sum in different orders.
ROUNDING = {"rtol": 1e-9, "atol": 1e-12}
# Guessing gives 0.5 for two classes and 0.1 for ten.
BETTER_THAN_CHANCE = 0.75

pytestmark = pytest.mark.filterwarnings("ignore:Class PassiveAggressiveClassifier is deprecated:FutureWarning")


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
    """The code blocks without a prompt: they define the names that the table uses."""
    return [block for block in BLOCK.findall(text) if ">>>" not in block]


LINES = [Line(title, *row) for title, text in sections().items() for row in ROW.findall(text)]
TABLES = {line.section for line in LINES}
MISSING = {
    "From PassiveAggressiveClassifier": None
    if hasattr(sklearn.linear_model, "PassiveAggressiveClassifier")
    else "this version of scikit-learn has no PassiveAggressiveClassifier",
}


@cache
def names_for(section):
    """The names that the page defines for the table of this section."""
    names = {}
    for title, text in sections().items():
        if title == section or title not in TABLES:
            for block in code_of(text):
                exec(block, names)
    return names


def value_of(cell, names):
    """Run a cell and return the value of its last expression."""
    *before, last = ast.parse(cell).body
    assert isinstance(last, ast.Expr), f"a cell ends with an expression: {cell}"
    exec(compile(ast.Module(before, []), cell, "exec"), names)
    return eval(compile(ast.Expression(last.value), cell, "eval"), names)


def learn(model, names, *, one_by_one):
    """Train the model of a cell that does not train it."""
    if one_by_one:
        for x, label in zip(names["examples"], names["labels"], strict=True):
            model.learn_one(x, label)
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        model.fit(names["X"], names["y"])


class Outcome:
    """The result of a cell: a trained model, or another value."""

    def __init__(self, cell, section):
        self.names = dict(names_for(section))
        self.value = value_of(cell, self.names)
        self.by_dicts = "examples" in self.names
        self.is_model = hasattr(self.value, "predict_one" if self.by_dicts else "predict")
        if self.is_model:
            learn(self.value, self.names, one_by_one=self.by_dicts)

    def predictions(self):
        """The predicted classes of the held-out rows; a value is its own prediction."""
        if not self.is_model:
            return np.asarray(self.value)
        if self.by_dicts:
            return np.array([self.value.predict_one(x) for x in self.names["examples_new"]])
        return self.value.predict(self.names["X_new"])

    def numbers(self):
        """The weights by feature, with the intercept; None for a model without weights; a value itself."""
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
        """The accuracy on the held-out rows; None if the cell predicts nothing or only one example."""
        if hasattr(self.value, "works_with"):  # a metric of River
            return self.value.get()
        predicted = self.predictions()
        if predicted.ndim == 2 and len(predicted) == len(self.names["X_new"]):
            predicted = predicted.argmax(axis=1)  # scores or probabilities of the classes
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
        assert accuracy is not None, "this line cannot be checked"
        if theirs.is_model and ours.is_model and theirs.numbers() and ours.numbers():
            assert not close(theirs.numbers(), ours.numbers()), "the models do not differ"
    assert accuracy is None or accuracy > BETTER_THAN_CHANCE


def test_every_line_of_the_page_is_tested():
    rows = [row for row in BLOCK.sub("", PAGE).splitlines() if "|" in row and not COMMANDS.fullmatch(row)]
    assert len(HEAD.findall(PAGE)) == rows.count("|---|---|---|") == len(TABLES) == 4
    assert len(rows) == len(LINES) + 2 * 4
    assert len({line.theirs for line in LINES}) == len(LINES)
    for section in TABLES:
        assert len(HEAD.findall(sections()[section])) == 1
        assert 8 <= sum(line.section == section for line in LINES) <= 14


def test_commands_in_place_of_fasttext_run(tmp_path):
    commands = re.findall(r"^\| `fasttext [^|]+ \| `maxcosine ([^|]+)` \|$", PAGE, re.MULTILINE)
    assert len(commands) == 6
    text = sections()["From fastText"]
    examples = doctest.DocTestParser().get_doctest(text, {"open": open}, "fastText", None, None)
    code = "".join(example.source for example in examples.examples)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    records = (tmp_path / "train.jsonl").read_text()
    for name in ("test.jsonl", "new.jsonl"):
        (tmp_path / name).write_text(records)
    for command in commands:
        line = f'"{sys.executable}" -m maxcosine {command}'
        ran = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, input=records)
        assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["spam", "ham"] * 20


def test_skipped_sections_exist():
    assert MISSING.keys() <= TABLES
