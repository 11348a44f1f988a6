"""Explore a family of rules: prove each member, find the best ones on one part of the data, judge them on another.

Choosing the best of many members on some examples flatters it on these examples. So members are chosen by their
mistakes on a part of the training examples, and the chosen ones are judged on the test examples, which the search does
not see.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from maxcosine.derive import Derivation, MistakeBound
from maxcosine.derive.symbols import Parameter, exact
from maxcosine.experiments import datasets
from maxcosine.experiments.datasets import Dataset
from maxcosine.experiments.protocol import PERMUTATIONS, Experiment, Learner, Protocol
from maxcosine.experiments.results import Results
from maxcosine.experiments.run import run
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule

RIVALS = ("mcp", "mcp_exact", "damped_mcp", "soft_mcp", "naromma", "pa")
"""The built-in rules that the members are compared with."""
PROVEN, UNPROVEN = "best_proven", "best_unproven"
"""The names under which the two winners are judged."""
POINTS = {1: 21, 2: 9}
"""By the number of parameters: how many values of each are tried, unless a grid is given."""
MAX_MEMBERS = 500
SEARCH_PERMUTATIONS = 3
HELD_OUT = 6
"""Of the buckets of training examples, one in so many tests the members."""

Grid = Mapping[str, Sequence[Any]]
Watch = Callable[[str, int, int], object]
"""Called with what is being done, how much of it is finished, and how much there is."""


@dataclass(frozen=True)
class Member:
    """One rule of a family.

    Parameters
    ----------
    values : dict of str to Fraction
        The values of its parameters.
    rule : Rule
        The rule.
    bound : MistakeBound
        Its proven mistake bound, or the claim that failed.
    mistakes : float
        Its mean mistakes on the examples that the search tests on.
    """

    values: dict[str, Fraction]
    rule: Rule
    bound: MistakeBound
    mistakes: float = float("nan")

    @property
    def proven(self) -> bool:
        """Whether it has a proven mistake bound."""
        return self.bound.m is not None

    def __str__(self) -> str:
        return ", ".join(f"{name} = {float(value):g}" for name, value in self.values.items())


@dataclass(frozen=True)
class Exploration:
    """What was found out about a family of rules; made by `explore`.

    Parameters
    ----------
    family : Derivation
        The family.
    members : list of Member
        All that were tried, with their mistakes in the search.
    rivals : dict of str to float
        By name of a built-in rule: its mistakes in the search.
    judged : Results
        The winners and the built-in rules, under the paper's protocol, on examples that the search has not seen.
    searched : dict
        What the search learnt and tested: `train` and `test` examples, `permutations`.
    """

    family: Derivation
    members: list[Member]
    rivals: dict[str, float]
    judged: Results
    searched: dict[str, int]

    @property
    def parameters(self) -> list[str]:
        """The parameters of the grid."""
        return list(self.members[0].values)

    @property
    def winners(self) -> dict[str, Member]:
        """The best proven and the best unproven member of the search, by the name under which each was judged."""
        return winners_of(self.members)


def explore(
    family: Derivation,
    data: str | Dataset,
    *,
    grid: Grid | None = None,
    rivals: Sequence[str] = RIVALS,
    permutations: int = PERMUTATIONS,
    search_permutations: int = SEARCH_PERMUTATIONS,
    seed: int = 0,
    jobs: int | None = None,
    command: str = "",
    watch: Watch = lambda what, done, total: None,
) -> Exploration:
    """Derive and prove every member of a family on a grid, run all side by side, and judge the best.

    Parameters
    ----------
    family : Derivation
        A rule with one or two parameters made by `param`, or more if the grid names one or two of them.
    data : str or Dataset
        "digits", "mnist" or "fashion", or a data set from `maxcosine.experiments.datasets`.
    grid : mapping of str to sequence of numbers, optional
        By parameter, the values to try; the others keep their defaults. Without it, evenly spaced values over
        the interval of each parameter.
    rivals : sequence of str
        Built-in rules to compare with.
    permutations, search_permutations : int
        Orders of the training examples for each label: for judging, and for searching.
    seed : int
        Which random orders.
    jobs : int, optional
        The number of threads; all processors by default.
    command : str
        The command that repeats it, for reports.
    watch : callable
        Called with a stage, how much of it is done, and how much there is.

    Returns
    -------
    Exploration
        Every member with its proof and its mistakes, the winners, and how they were judged.

    Examples
    --------
    >>> from maxcosine.derive import Abs, curve, param, v
    >>> from maxcosine.experiments.exploring import explore
    >>> a = param("a", 1, low=0, high=8)
    >>> found = explore(curve(1 / (1 + a * Abs(v))), "digits", grid={"a": [0, 2, 8]}, permutations=2)
    >>> [str(member.bound.m) for member in found.members]
    ['1', '1', '1/4']
    """
    if isinstance(data, str):
        data = datasets.load(data)
    values = full_grid(family, grid)
    family = family.at(**{one.name: one.start for one in family.parameters if one.name not in values})
    members = _members(family, values, watch)
    others = [RULES[name] for name in rivals]
    part = search_part(data)
    mistakes = _mean_mistakes(part, [one.rule for one in members] + others, search_permutations, seed, jobs, watch)
    members = [replace(one, mistakes=found) for one, found in zip(members, mistakes, strict=False)]
    winners = [replace(member.rule, name=name) for name, member in winners_of(members).items()]
    protocol = Protocol([Learner(rule) for rule in [*winners, *others]], data.buckets, permutations, seed, curves=False)
    total, done = len(data.labels) * permutations, itertools.count(1)
    judged = run(
        data, protocol, jobs=jobs, command=command, on_unit=lambda unit: watch("judging the best", next(done), total)
    )
    judged.protocol["focus"] = winners[0].name
    searched = {"train": len(part.y_train), "test": len(part.y_test), "permutations": search_permutations}
    return Exploration(family, members, dict(zip(rivals, mistakes[len(members) :], strict=True)), judged, searched)


def full_grid(family: Derivation, grid: Grid | None) -> dict[str, list[Any]]:
    """Return the values to try of each parameter in the grid, exact and in rising order."""
    known = {one.name: one for one in family.parameters}
    if not known:
        raise ValueError(f"{family.name} has no parameter to explore; make one with param() (--param NAME=...)")
    named = {name: sorted({exact(one) for one in values}) for name, values in (grid or {}).items()}
    for name, values in named.items():
        if name not in known:
            raise ValueError(f"{family.name} has no parameter {name!r}; its parameters: {', '.join(known)}")
        if not values:
            raise ValueError(f"the grid has no value of {name}; give at least one")
    found = named or {name: _evenly(one, POINTS.get(len(known), 0)) for name, one in known.items()}
    if len(found) > 2:
        raise ValueError(
            f"a map has one or two parameters, and {family.name} has {len(found)}: {', '.join(found)}; give the values "
            "of those to explore in a grid (--grid), the others keep their defaults"
        )
    n = np.prod([len(values) for values in found.values()])
    if n > MAX_MEMBERS:
        raise ValueError(f"the grid has {n:,} members, and {MAX_MEMBERS} can be explored at once; try fewer values")
    return found


def _evenly(parameter: Parameter, n: int) -> list[Any]:
    low, high = parameter.low, parameter.high
    if not (low.is_finite and high.is_finite):
        raise ValueError(
            f"{parameter.name} lies between {low} and {high}, and no even spacing covers that; give its values in a "
            "grid (--grid), or a bounded interval"
        )
    return [low + (high - low) * k / (n - 1) for k in range(n)]


def _members(family: Derivation, grid: dict[str, list[Any]], watch: Watch) -> list[Member]:
    """Derive and prove every member. All run the code of the family, which is compiled once."""
    points = list(itertools.product(*grid.values()))
    members = []
    for done, point in enumerate(points):
        watch("proving", done, len(points))
        values = dict(zip(grid, point, strict=True))
        numbers = {name: Fraction(value.p, value.q) for name, value in values.items()}
        derived = family.at(**values)
        shared = family.rule.with_params({name: float(value) for name, value in numbers.items()})
        proven = {trait: getattr(derived.rule, trait) for trait in ("conservative", "gain", "own_bound")}
        rule = replace(shared, name=f"{family.name}_{done}", **proven)
        members.append(Member(numbers, rule, derived.mistake_bound()))
    return members


def search_part(data: Dataset) -> Dataset:
    """Return the part of the training examples that the search learns from, and the part that it tests on."""
    size = len(data.y_train) // data.buckets
    held_out = max(1, data.buckets // HELD_OUT)
    learnt, end = size * (data.buckets - held_out), size * data.buckets
    return replace(
        data,
        X_train=data.X_train[:learnt],
        y_train=data.y_train[:learnt],
        X_test=data.X_train[learnt:end],
        y_test=data.y_train[learnt:end],
        buckets=data.buckets - held_out,
    )


def _mean_mistakes(
    data: Dataset, rules: Sequence[Rule], permutations: int, seed: int, jobs: int | None, watch: Watch
) -> list[float]:
    """Return the mean mistakes of each rule; all learn side by side, in one sweep for each label and order."""
    protocol = Protocol([Learner(rule) for rule in rules], data.buckets, permutations, seed, curves=False)
    experiment = Experiment(data, protocol)
    totals = np.zeros(len(rules))
    units = experiment.units
    for done, unit in enumerate(experiment.run(units, jobs), start=1):
        totals += [one["test_mistakes"] for one in unit["runs"]]
        watch("searching", done, len(units))
    return [float(total) / len(units) for total in totals]


def winners_of(members: Sequence[Member]) -> dict[str, Member]:
    """Return the best proven and the best unproven member, if there are any; of equals, the first."""
    groups = {PROVEN: [one for one in members if one.proven], UNPROVEN: [one for one in members if not one.proven]}
    return {name: min(group, key=lambda one: one.mistakes) for name, group in groups.items() if group}
