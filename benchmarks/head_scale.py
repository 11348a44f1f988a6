"""How one-vs-rest heads compare: as w, as w / Lambda, as w / norm(w). Accuracy on MNIST, one pass.

``python benchmarks/head_scale.py DIR`` (DIR as in run.py).
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
    print(f"{'rule':24}{'norms spread':>13}{'as w':>9}{'w/Lambda':>10}{'w/norm':>9}   compared as")
    for name, rule in RULES.items():
        for average in (False, True):
            model = OnlineClassifier(name, average=average).fit(X, y)._model
            w, constant = model.heads.averaged_weights() if average else model.heads.weights()
            coef_sum = model.heads.exact_coef_sum
            norms = np.linalg.norm(np.column_stack([w, constant]), axis=1)
            scores = X_test @ w.T + constant
            right = [np.mean((scores / unit).argmax(1) == y_test) for unit in (1.0, coef_sum, norms)]
            cells = "".join(f"{100 * value:9.2f}" for value in right)
            print(
                f"{'averaged ' * average + name:24}{norms.max() / norms.min():13.2f}{cells}   "
                f"{'w / Lambda' if rule.scale_free else 'w'}"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
