"""How one-vs-rest heads compare: as w, as w / Lambda, or as w / norm(w); test accuracy on MNIST, one pass.

``python benchmarks/head_scale.py DIR``, with a folder as for run.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from datasets import mnist

from maxcosine import RULES, OnlineClassifier


def main(folder: Path) -> None:
    X, y, X_test, y_test = mnist(folder)
    X, X_test = X / 255, X_test / 255
    print(f"{'rule':26}{'norms spread':>12}{'w':>9}{'w/Lambda':>9}{'w/norm':>9}   compared as")
    for name, rule in RULES.items():
        for average in (False, True):
            learner = OnlineClassifier(name, average=average).fit(X, y)
            scores = X_test @ learner.coef_.T + learner.intercept_
            scores /= np.linalg.norm(np.column_stack([learner.coef_, learner.intercept_]), axis=1)
            certificate = learner.certificate_
            spread = certificate.norm.max() / certificate.norm.min()
            accuracies = [
                100 * np.mean((scores * length).argmax(axis=1) == y_test)
                for length in (certificate.norm, 1 / certificate.bound, 1.0)
            ]
            cells = "".join(f"{value:9.2f}" for value in accuracies)
            title = f"averaged {name}" if average else name
            print(f"{title:26}{spread:12.2f}{cells}   {'w / Lambda' if rule.scale_free else 'w'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
