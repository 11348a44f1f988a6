"""One random case from a seed: rows, labels and weights, how they are learnt, and by which models.

Rows are made to be hard: nearly equal rows of opposite labels, contradictions, whole numbers that cancel, norms and
weights of very different size. The models of a case learn the same rows in the same order, so that they share one
exact geometry.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from maxcosine import RULES, OnlineClassifier, Rule
from tests.engine.own_rule import rescaling

MODELS_PER_CASE = 4

# Rows are refused whose norm is outside of these; see LIMITS in core/head.hpp.
NORMS = {"float32": (1e-9, 1e9), "float64": (1e-48, 1e48)}

# Exponents of the relative differences of nearly equal rows: norms cancel, but are not computed anew; any; a few units
# in the last place of float32; of float64.
DIFFERENCES = ((-2.5, -0.5), (-16.0, -1.0), (-7.5, -6.2), (-16.0, -15.0))

# The most features: joint learning has as many weights for each class.
FEATURES = {"two": 6, "ovr": 4, "joint": 3}


@dataclass(frozen=True)
class ModelSpec:
    """A rule with its parameters, and whether its hypotheses are averaged."""

    rule: str
    params: dict[str, float]
    average: bool

    @property
    def function(self) -> Rule:
        return rescaling if self.rule == rescaling.name else RULES[self.rule]


@dataclass(frozen=True)
class Plan:
    """In which pieces the rows are learnt: chunks of row numbers.

    `base` is learnt by one model. The models of `parts` go on from it, or begin anew if it is empty, and are merged
    if they are several; the result learns `rest`.
    """

    base: tuple[tuple[int, ...], ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]
    rest: tuple[tuple[int, ...], ...]
    how: str = "certified"
    passes: int = 0
    """Above 0: the first chunk is learnt by `fit` in so many passes, otherwise by `partial_fit`."""
    named: bool = False
    """Whether the first call of `partial_fit` names all classes."""
    saved: bool = False
    """Whether each model is saved and loaded after its first chunk."""

    @property
    def merges(self) -> bool:
        return len(self.parts) > 1

    def without(self, row: int) -> Plan:
        """The same plan where one row never comes."""

        def left(chunks: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
            shorter = (tuple(i for i in chunk if i != row) for chunk in chunks)
            return tuple(chunk for chunk in shorter if chunk)

        parts = tuple(part for part in map(left, self.parts) if part)
        return replace(self, base=left(self.base), parts=parts, rest=left(self.rest))

    @property
    def rows(self) -> set[int]:
        chunks = [*self.base, *self.rest, *(chunk for part in self.parts for chunk in part)]
        return {i for chunk in chunks for i in chunk}


@dataclass(frozen=True)
class Case:
    """Rows, labels and weights, how they are learnt, and by which models."""

    seed: int
    X: np.ndarray
    """The rows, in the type of the models."""
    y: np.ndarray
    plan: Plan
    models: tuple[ModelSpec, ...]
    fit_intercept: bool
    learning: str
    """"two", "ovr" or "joint"."""
    weights: np.ndarray | None = None
    class_weight: dict[int, float] | None = None
    kinds: tuple[str, ...] = field(default=())
    """What is special about the rows."""

    @property
    def joint(self) -> bool:
        return self.learning == "joint"

    @property
    def dtype(self) -> str:
        return str(self.X.dtype)

    @property
    def clear(self) -> bool:
        """Whether the first row of each class that a model learns is an example, and `fit` has two classes."""
        enough = not self.plan.passes or len(set(self.y[sorted(self.plan.rows)])) > 1
        return enough and bool(self.examples[_first_of_class(self.y, self.plan)].all())

    @property
    def weight_of(self) -> np.ndarray:
        """The weight of each row, that of its class included."""
        weights = np.ones(len(self.y)) if self.weights is None else self.weights.copy()
        for label, weight in (self.class_weight or {}).items():
            weights[self.y == label] *= weight
        return weights

    @property
    def examples(self) -> np.ndarray:
        """Which rows are examples: those of positive weight that have a direction."""
        used: np.ndarray = self.weight_of > 0
        return used if self.fit_intercept else used & self.X.any(axis=1)

    def classifier(self, model: ModelSpec, **options: object) -> OnlineClassifier:
        """A classifier of one of the models, that has seen nothing."""
        return OnlineClassifier(
            **{
                "rule": model.function,
                "rule_params": model.params or None,
                "average": model.average,
                "fit_intercept": self.fit_intercept,
                "multiclass": "joint" if self.joint else "ovr",
                "dtype": self.dtype,
                "class_weight": self.class_weight,
                "passes": max(1, self.plan.passes),
                **options,
            }
        )

    def describe(self, model: ModelSpec) -> str:
        """All that is needed to see it again: the seed, and the rows as they are learnt."""
        rows = sorted(self.plan.rows)
        number = {row: k for k, row in enumerate(rows)}

        def renumbered(chunks: tuple[tuple[int, ...], ...]) -> list[list[int]]:
            return [[number[i] for i in chunk] for chunk in chunks]

        plan = self.plan
        lines = [
            f"seed {self.seed} ({', '.join(self.kinds)}), {self.learning}, dtype {self.dtype}",
            f"rule {model.rule!r}, params {model.params}, average {model.average}, intercept {self.fit_intercept}",
            f"X = {[[float(value) for value in self.X[i]] for i in rows]}",
            f"y = {[int(self.y[i]) for i in rows]}",
            f"base {renumbered(plan.base)}, parts {[renumbered(part) for part in plan.parts]}, "
            f"rest {renumbered(plan.rest)}, how {plan.how!r}, passes {plan.passes}, named {plan.named}, "
            f"saved {plan.saved}",
        ]
        if self.weights is not None:
            lines.append(f"weights = {[float(self.weights[i]) for i in rows]}")
        if self.class_weight is not None:
            lines.append(f"class_weight = {self.class_weight}")
        return "\n".join(lines)


def generate(seed: int) -> Case:
    """The case of a seed."""
    random = np.random.default_rng([seed, 2017])
    learning = str(random.choice(["two", "ovr", "joint"], p=[0.65, 0.2, 0.15]))
    dtype = str(random.choice(["float32", "float64"]))
    X, y, kinds = _rows(random, learning, dtype)
    fit_intercept = bool(random.random() < 0.4)
    plan = _plan(random, y, kinds)
    may_be_skipped = ~_first_of_class(y, plan)
    weights, class_weight = _weights(random, y, may_be_skipped, kinds)
    if random.random() < 0.2:
        kinds.append("zeros")
        X[may_be_skipped & (random.random(len(y)) < 0.2)] = 0.0
    models = tuple(_model(random) for _ in range(MODELS_PER_CASE))
    return Case(
        seed=seed,
        X=X,
        y=y,
        plan=plan,
        models=models,
        fit_intercept=fit_intercept,
        learning=learning,
        weights=weights,
        class_weight=class_weight,
        kinds=tuple(kinds),
    )


# Rows


def _rows(random: np.random.Generator, learning: str, dtype: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Rows and labels in random order, and what is special about them."""
    n_features = int(random.integers(1, FEATURES[learning] + 1))
    n_rows = int(random.integers(2, 31)) if learning != "joint" else int(random.integers(3, 16))
    if learning == "two" and random.random() < 0.05:
        n_rows = int(random.integers(31, 201))
    n_classes = 2 if learning == "two" else int(random.integers(2 if learning == "joint" else 3, 5))
    base = str(random.choice(["apart", "noise", "grid"], p=[0.55, 0.2, 0.25]))
    kinds = [base]
    centres = random.normal(size=(n_classes, n_features))
    y = random.integers(0, n_classes, n_rows)
    if base == "grid":
        X = random.integers(-3, 4, size=(n_rows, n_features)).astype(float)
        X[~X.any(axis=1)] = 1.0
    else:
        X = random.normal(size=(n_rows, n_features))
    if base == "apart":
        y = np.argmax(X @ centres.T, axis=1)
    for name, change, chance in (
        ("near_duplicates", _near_duplicates, 0.5),
        ("contradictions", _contradictions, 0.1),
        ("duplicates", _duplicates, 0.15),
    ):
        if random.random() < chance:
            kinds.append(name)
            X, y = change(random, X, y, n_classes)
    X = _at_scale(random, X, dtype, kinds)
    order = random.permutation(len(y))
    return X[order].astype(dtype), y[order], kinds


def _near_duplicates(
    random: np.random.Generator, X: np.ndarray, y: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Add rows that nearly equal others and have another label; sometimes there are no other rows."""
    if random.random() < 0.6:
        kept = int(random.integers(1, 3))
        X, y = X[:kept, :3], y[:kept]
    copied = random.integers(0, len(y), size=int(random.integers(1, 4)))
    low, high = random.choice(DIFFERENCES, p=[0.5, 0.3, 0.1, 0.1])
    differences = 10.0 ** random.uniform(low, high, size=(len(copied), 1))
    near = X[copied] * (1.0 + differences * random.normal(size=(len(copied), X.shape[1])))
    labels = (y[copied] + random.integers(1, n_classes, len(copied))) % n_classes
    return np.vstack([X, near]), np.append(y, labels)


def _contradictions(
    random: np.random.Generator, X: np.ndarray, y: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Add the opposite of a row with its label, or the row itself with another label."""
    copied = random.integers(0, len(y), size=int(random.integers(1, 3)))
    opposite = random.random() < 0.5
    labels = y[copied] if opposite else (y[copied] + 1) % n_classes
    return np.vstack([X, -X[copied] if opposite else X[copied]]), np.append(y, labels)


def _duplicates(
    random: np.random.Generator, X: np.ndarray, y: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    copied = random.integers(0, len(y), size=int(random.integers(1, 5)))
    return np.vstack([X, X[copied]]), np.append(y, y[copied])


def _at_scale(random: np.random.Generator, X: np.ndarray, dtype: str, kinds: list[str]) -> np.ndarray:
    """Multiply all rows by one number, or each by its own, within what the type carries."""
    low, high = (np.log10(norm) for norm in NORMS[dtype])
    chance = random.random()
    if chance < 0.2:
        kinds.append("scales")
        X = X * 10.0 ** random.uniform(-8, 8, size=(len(X), 1))
    elif chance < 0.25:
        kinds.append("limits")
        X = X * 10.0 ** random.choice([low, high, 0.0], size=(len(X), 1))
    elif chance < 0.45:
        X = X * 10.0 ** random.uniform(-3, 3)
    norms = np.linalg.norm(X, axis=1)
    within = np.clip(norms, 10**low * 1.001, 10**high * 0.999)
    return np.where(norms == within, 1.0, within / norms)[:, None] * X


def _weights(
    random: np.random.Generator, y: np.ndarray, may_be_skipped: np.ndarray, kinds: list[str]
) -> tuple[np.ndarray | None, dict[int, float] | None]:
    weights = class_weight = None
    if random.random() < 0.15:
        kinds.append("weights")
        size = random.choice([5.0, 9.5], p=[0.8, 0.2])  # and 2 more by the class
        weights = 10.0 ** random.uniform(-size, size, size=len(y))
        weights[may_be_skipped & (random.random(len(y)) < 0.1)] = 0.0
    if random.random() < 0.05:
        kinds.append("class_weight")
        class_weight = {int(label): float(10.0 ** random.uniform(-2, 2)) for label in np.unique(y)}
    return weights, class_weight


def _first_of_class(y: np.ndarray, plan: Plan) -> np.ndarray:
    """Which rows are the first ones of their classes that a model learns.

    They are never skipped, so that it is plain with which row a late class begins.
    """
    first = np.zeros(len(y), bool)
    for chunks in (plan.base, *plan.parts):
        rows = np.array([i for chunk in chunks for i in chunk], int)
        first[rows[np.unique(y[rows], return_index=True)[1]]] = True
    return first


# Plans and models


def _chunks(random: np.random.Generator, rows: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Cut rows into up to five chunks."""
    cuts = np.sort(random.choice(len(rows) + 1, size=int(random.integers(0, 5))))
    pieces = np.split(rows, cuts)
    return tuple(tuple(map(int, piece)) for piece in pieces if len(piece))


def _plan(random: np.random.Generator, y: np.ndarray, kinds: list[str]) -> Plan:
    rows, named, saved = np.arange(len(y)), bool(random.random() < 0.3), bool(random.random() < 0.1)
    again = tuple(chunk for _ in range(int(random.integers(0, 4))) for chunk in _chunks(random, rows))
    chance, one_class = random.random(), len(set(y.tolist())) < 2
    named &= not one_class
    if chance < 0.15 and not one_class:
        kinds.append("fit")
        return Plan((), ((tuple(map(int, rows)),),), again, passes=int(random.integers(1, 4)))
    if chance < 0.65 or len(rows) < 4:
        return Plan((), (_chunks(random, rows),), again, passes=0, named=named, saved=saved)
    kinds.append("merge")
    n_base = 0
    if random.random() < 0.35:
        kinds.append("rounds")
        n_base = int(random.integers(1, len(rows) // 2 + 1))
    n_parts = int(random.integers(2, min(4, len(rows) - n_base) + 1))
    shards = [rows[n_base:][k::n_parts] for k in range(n_parts)]
    how = str(random.choice(["certified", "mean"]))
    parts = tuple(_chunks(random, shard) for shard in shards)
    return Plan(_chunks(random, rows[:n_base]) if n_base else (), parts, again, how, 0, named, saved)


def _model(random: np.random.Generator) -> ModelSpec:
    names = [*RULES, rescaling.name]
    name = str(random.choice(names))
    rule = rescaling if name == rescaling.name else RULES[name]
    params: dict[str, float] = {}
    if rule.params and (not rule.builtin or random.random() < 0.5):
        params = _params(random, rule)
    return ModelSpec(name, params, bool(random.random() < 0.5))


def _params(random: np.random.Generator, rule: Rule) -> dict[str, float]:
    """Random parameters that the rule accepts."""
    if not rule.builtin:
        # While it makes no mistake, w decays until its squares, and at last its weights, underflow.
        return {"keep": float(10.0 ** random.uniform(-12, 1)), "always": float(random.integers(0, 2))}
    size = random.choice([3.0, 11.0], p=[0.8, 0.2])
    while True:
        params = {}
        for name, param in rule.params.items():
            if param.low >= 0.0 and param.high <= 1.0:
                params[name] = float(random.uniform(max(param.low, 1e-3), 1.0))
            else:
                usual = 1.0 if callable(param.default) else param.default
                params[name] = float(usual * 10.0 ** random.uniform(-size, size))
                if 0.0 in param and random.random() < 0.3:
                    params[name] = 0.0
        try:
            rule.make_params(params)
        except ValueError:
            continue
        return params
