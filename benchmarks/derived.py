"""Deriving and proving, in seconds, and what a derived rule costs beside the built-in rule that it equals."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from datasets import Missing, log_uniform, mnist
from table import Result, Section
from timing import best_of, version_of

from maxcosine import RULES, OnlineClassifier
from maxcosine.derive import Abs, Derivation, Max, curve, derive, ell, g, param, sq_x, sqrt, v, x

MOST_DERIVING, MOST_DERIVING_WITH_PARAMETER, MOST_PROVING = 2.0, 5.0, 20.0
LARGEST_FACTOR = 1.2

WITHOUT_PROJECTION = (ell + x) / sqrt(1 + sq_x * x**2)
MCP_BOUND = sqrt(ell**2 + (1 - 2 * ell * Max(0, g)) / sq_x)
A = param("a", 1, low=0, high=2)

DERIVED: dict[str, Callable[[], Derivation]] = {
    "cmcp": lambda: derive(WITHOUT_PROJECTION, when=g <= 0, account="paper", name="cmcp"),
    "naromma": lambda: derive((ell + x) / sqrt(1 + sq_x * x**2 + 2 * g * x), name="naromma"),
    "mcp": lambda: derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), next_bound=MCP_BOUND, name="mcp"),
    "mcp_exact": lambda: derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), name="mcp_exact"),
    "damped_mcp": lambda: curve(1 / (1 + Abs(v)), theta=0.7, name="damped_mcp"),
    "soft_mcp": lambda: curve(1, 1 - v, 1, name="soft_mcp"),
}
DAMPED_BOUND = (ell + x) / sqrt(1 + sq_x * (1 + A * ell * Max(g, -g)) * x**2)


def measure(folder: Path | None, repeats: int) -> Section:
    results = []
    for name, make in DERIVED.items():
        results += _seconds(name, make, MOST_DERIVING)
    results += _seconds(
        "damped, one parameter", lambda: derive(DAMPED_BOUND, when=g <= 1 / (2 * ell)), MOST_DERIVING_WITH_PARAMETER
    )
    data, missing = _data(folder)
    for title, (X, y) in data.items():
        for name, make in DERIVED.items():
            results.append(_pass(f"{name}, {title}; peer: built in", make(), RULES[name], X, y, repeats))
    notes = [
        f"{version_of('sympy')}, {version_of('numba')}; times of a pass are those of fit, after compiling",
        f"at most {LARGEST_FACTOR} times the time of the built-in rule: a ratio of {1 / LARGEST_FACTOR:.2f} or more",
    ]
    return Section("Derived rules", notes, results, missing)


def _seconds(name: str, make: Callable[[], Derivation], most: float) -> list[Result]:
    started = time.perf_counter()
    derivation = make()
    derived = time.perf_counter()
    m = derivation.mistake_bound().m
    proved = time.perf_counter()
    assert m == 1, f"{name}: the mistake bound must be proven"
    return [
        Result(f"deriving {name}", derived - started, "s", most=most),
        Result(f"proving {name}", proved - derived, "s", most=MOST_PROVING),
    ]


def _data(folder: Path | None) -> tuple[dict[str, tuple[Any, Any]], list[str]]:
    found = {"synthetic CSR": log_uniform(100_000, 2**18)}
    try:
        X, y, _, _ = mnist(folder)
    except Missing as error:
        return found, [f"MNIST: {error}"]
    dense = np.ascontiguousarray(X)
    return {
        **found,
        "MNIST dense, digit 3": (dense, y == 3),
        "MNIST CSR, digit 3": (scipy.sparse.csr_array(X), y == 3),
    }, []


def _pass(work: str, derivation: Derivation, builtin: Any, X: Any, y: Any, repeats: int) -> Result:
    rules = (derivation.rule, builtin)
    fits = [lambda rule=rule: OnlineClassifier(rule, fit_intercept=False).fit(X, y) for rule in rules]
    ours, peer = (fit().certificate_.updates for fit in fits)
    assert ours == peer, "both must have done the same work"
    seconds = [1e3 * one for one in best_of(repeats, *fits)]
    return Result(work, seconds[0], "ms", seconds[1], least=round(1 / LARGEST_FACTOR, 2))
