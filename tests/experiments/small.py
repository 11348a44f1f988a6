"""A small data set, small results, and what tests read from reports."""

import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np

from maxcosine.experiments.datasets import Dataset
from maxcosine.experiments.results import Results, Run

PAPER = ("pa", "aggressive_romma", "mcp")
MANY = ("mcp", "pa", "alma", "norma", "mine", "romma", "avg_mcp", "avg_pa")
CLOTHES = ("T-shirt", "Bag", "Ankle boot")
EXAMPLES = [100, 200, 300, 400]
HOSTILE = """</script><script>alert(1)</script><img src=x onerror=alert(2)> "'&<!--"""


def small_dataset(n_train=120, n_test=50, n_features=20, n_labels=3, buckets=6):
    """Overlapping classes around random centres."""
    random = np.random.default_rng(0)
    centres = random.integers(0, 200, (n_labels, n_features))
    y = random.integers(0, n_labels, n_train + n_test)
    X = np.clip(centres[y] + random.normal(0, 60, (len(y), n_features)), 0, 255).astype(np.uint8)
    arrays = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    return Dataset("small", "Small", *arrays, tuple("abcdefghij"[:n_labels]), buckets, "5" * 64, "a test")


def results_of(counts, labels=None):
    """Results with these test mistakes: for each rule an array of shape (labels, permutations)."""
    arrays = {rule: np.asarray(found) for rule, found in counts.items()}
    n_labels, n = next(iter(arrays.values())).shape
    runs = [
        Run(rule, label, permutation, int(found[label, permutation]), 5, 7, 0.5, 2.0, 0.01)
        for label, permutation in itertools.product(range(n_labels), range(n))
        for rule, found in arrays.items()
    ]
    dataset = {"name": "small", "title": "Small", "train": 400, "test": 1000, "features": 5}
    dataset |= {
        "labels": labels or [str(k) for k in range(n_labels)],
        "sha256": "ab" * 32,
        "source": "a folder",
    }
    protocol = {"rules": list(arrays), "permutations": n, "buckets": 4, "bucket_size": 100, "seed": 7}
    return Results(dataset, protocol, versions={"maxcosine": "0.1.0"}, runs=runs, command="maxcosine reproduce")


def small_results(rules=PAPER, labels=CLOTHES, permutations=4):
    """Results with random counts, and with curves; for the first label nothing is proven at first."""
    random = np.random.default_rng(1)
    counts = {rule: random.integers(50, 950, (len(labels), permutations)) for rule in rules}
    results = results_of(counts, list(labels))
    curves = {
        rule: {
            str(label): {
                "mistakes": [10.0 + k, 18.0 + k, 24.0 + k + label, 28.0 + k + label],
                "bound": [0.01, 0.02, 0.03, 0.04 + k / 100],
                "margin_ceiling": [None if label == 0 else 100.0, 50.0, 33.0, 25.0 - k],
                "cosine": [0.4, 0.6, 0.8 + k / 100, 1.0],
            }
            for label in range(len(labels))
        }
        for k, rule in enumerate(rules)
    }
    results.curves = {"examples": EXAMPLES, "rules": curves}
    return results


class Page(HTMLParser):
    """The elements of a page with their attributes, its scripts, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.words = [], [], ""
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.words += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self):
        """The JSON that the script reads."""
        return json.loads(self.scripts[0])


def table(html, title):
    """The cells of a table, as text."""
    found = re.search(rf'<table aria-label="{re.escape(title)}">.*?</table>', html, re.DOTALL)
    return [
        [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", found[0])
    ]
