"""Draw the pictures of the tutorial's first lesson: ``python docs/generate_first_minutes.py``; it needs matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

from maxcosine import OnePassClassifier

FOLDER = Path(__file__).parent / "tutorial"
matplotlib.rcParams.update({"svg.hashsalt": "maxcosine", "svg.fonttype": "none", "font.size": 10})


def error_so_far(X: np.ndarray, y: np.ndarray) -> Figure:
    """Draw the progressive error and its interval."""
    learner, rows, errors = OnePassClassifier(), range(25, len(y) + 1, 25), []
    for stop in rows:
        learner.partial_fit(X[stop - 25 : stop], y[stop - 25 : stop])
        errors.append(learner.error_)
    figure, axes = _new("examples learnt", "error, %")
    axes.fill_between(rows, [100 * one.low for one in errors], [100 * one.high for one in errors], alpha=0.25)
    axes.plot(rows, [100 * one.rate for one in errors])
    axes.set_ylim(0, 60)
    return figure


def pixels_of_a_digit(X: np.ndarray, y: np.ndarray) -> Figure:
    """Draw what each pixel of an image adds to two scores."""
    learner, image = OnePassClassifier().fit(X[:1297], y[:1297]), X[1297:][y[1297:] == 3][:1]
    figure = Figure(figsize=(7, 2.4), layout="constrained")
    axes = figure.subplots(1, 3)
    axes[0].imshow(image.reshape(8, 8), cmap="gray_r")
    axes[0].set_title("the image")
    for ax, label in zip(axes[1:], (3, 8), strict=True):
        parts = learner.contributions(image, label).of_features.toarray().reshape(8, 8)
        ax.imshow(parts, cmap="RdBu", vmin=-abs(parts).max(), vmax=abs(parts).max())
        ax.set_title(f"for or against {label}")
    for ax in axes:
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def changed_stream(X: np.ndarray, y: np.ndarray) -> Figure:
    """Draw the wrong predictions of learners of a stream whose labels are renamed in the middle."""
    labels = np.where(np.arange(len(y)) < 900, y, (y + 1) % 10)
    figure, axes = _new("examples learnt", "wrong predictions")
    for on_drift in ("ignore", "restart"):
        learner, wrong = OnePassClassifier(on_drift=on_drift), []
        for row, label in zip(X, labels, strict=True):
            learner.partial_fit(row[None], [label], classes=range(10))
            wrong.append(learner.mistakes_)
        axes.plot(range(1, len(y) + 1), wrong, label=f'on_drift="{on_drift}"')
    axes.axvline(900, color="grey", linestyle=":")
    axes.legend(frameon=False)
    return figure


def _new(x: str, y: str) -> tuple[Figure, matplotlib.axes.Axes]:
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def main() -> None:
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    for draw in (error_so_far, pixels_of_a_digit, changed_stream):
        draw(X, y).savefig(FOLDER / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
