"""What commands show: live on a terminal, a line now and then elsewhere, and tables at the end.

What a command is doing goes to standard error, what it found to standard output.
"""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Any

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from maxcosine.experiment import statistics
from maxcosine.experiment.figures import title_of
from maxcosine.experiment.results import Results
from maxcosine.experiment.verdict import verdict

WIDE = 110
"""Columns where there is no terminal."""


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


progress_console, console = _console(stderr=True), _console(stderr=False)

MOST_COLUMNS = 5
"""More rules than this are rows of the table, and not columns."""

SECONDS_BETWEEN_LINES = 5.0
"""Where there is no terminal, so often a line says how far it is."""


def tell(text: str, style: str = "") -> None:
    """Say what is going on."""
    progress_console.print(Text(text, style=style), soft_wrap=True)


class Download:
    """A bar for each file that is fetched; nothing when nothing is."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=progress_console,
        )
        self._tasks: dict[str, Any] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            if not self._tasks:
                self._bar.start()
            self._tasks[what] = self._bar.add_task(what, total=None)
        self._bar.update(self._tasks[what], completed=done, total=total)

    def __enter__(self) -> Download:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tasks:
            self._bar.stop()


class Watch:
    """How far an experiment is, and the mean mistakes of each rule so far."""

    def __init__(self, total: int, rules: list[str]) -> None:
        self.done, self._total = 0, total
        self._mistakes: dict[str, int] = dict.fromkeys(rules, 0)
        self._bar = Progress(
            TextColumn("learning"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("orders,"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=progress_console,
        )
        self._task = self._bar.add_task("learning", total=total)
        self._live = Live(console=progress_console, refresh_per_second=8, transient=True)
        self._first = self._told = time.monotonic()

    def add(self, unit: dict[str, Any]) -> None:
        """One label has been learnt in one order."""
        self.done += 1
        if self.done == 1:
            self._first = time.monotonic()  # it may have compiled: the others are the measure
        for run in unit["runs"]:
            self._mistakes[run["rule"]] += run["test_mistakes"]
        self._bar.advance(self._task)
        if progress_console.is_terminal:
            self._live.update(Group(self._bar, self._means()))
        elif self.done > 1 and time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            left = (self._told - self._first) / max(1, self.done - 1) * (self._total - self.done)
            tell(f"{self.done} of {self._total}, {left:.0f} s left; mean mistakes so far: {self._best()}")

    def _best(self) -> str:
        """The mean mistakes of the best few rules."""
        means = sorted((total / self.done, title_of(rule)) for rule, total in self._mistakes.items())
        told = ", ".join(f"{title} {mean:.1f}" for mean, title in means[:4])
        return told if len(means) <= 4 else f"{told}, ..."

    def _means(self) -> Table:
        table = Table(box=None, show_header=False, padding=(0, 2))
        # The rules side by side while that fits a screen.
        columns = 4 if len(self._mistakes) > 6 else len(self._mistakes)
        cells = [f"{title_of(rule)} {total / self.done:.1f}" for rule, total in self._mistakes.items()]
        for start in range(0, len(cells), columns):
            table.add_row(*cells[start : start + columns])
        return table

    def __enter__(self) -> Watch:
        if progress_console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if progress_console.is_terminal:
            self._live.stop()


def show(results: Results) -> None:
    """The table of an experiment, and what it says."""
    console.print(_mistakes_table(results))
    for paragraph in verdict(results):
        console.print(Text(paragraph))
        console.print()


def _mistakes_table(results: Results) -> Table:
    """Labels by rules with the best in bold; rules by labels if there are many rules."""
    means, spreads = statistics.means(results), statistics.spreads(results)
    ranks, wins = statistics.mean_ranks(results), statistics.wins(results)
    grid = np.array([means[rule] for rule in results.rules])
    best = grid == grid.min(axis=0)
    table = Table(
        title=f"Test mistakes of {results.dataset['test']:,}, one label against the rest, one pass, "
        f"mean of {results.protocol['permutations']} orders",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )

    def cell(text: str, is_best: bool) -> Text:
        return Text(f"{text}*" if is_best else f"{text} ", style="bold" if is_best else "")

    def narrow(value: float, is_best: bool) -> Text:
        # A terminal of 80 columns has no room for stars, and needs none: it shows what is bold.
        return cell(f"{value:.0f}", is_best)[: -1 if console.is_terminal else None]

    if len(results.rules) > MOST_COLUMNS:
        table.padding = (0, 1, 0, 0)
        table.add_column("rule", no_wrap=True)
        for label in results.labels:
            table.add_column(label[:4], justify="right", no_wrap=True)
        table.add_column("mean", justify="right", no_wrap=True)
        table.add_column("rank", justify="right", no_wrap=True)
        for k in np.argsort(grid.mean(axis=1), kind="stable"):
            rule = results.rules[k]
            cells = [narrow(value, is_best) for value, is_best in zip(grid[k], best[k], strict=True)]
            table.add_row(_short(rule), *cells, f"{grid[k].mean():.1f}", f"{ranks[rule]:.1f}")
        return table
    table.add_column("label")
    for rule in results.rules:
        table.add_column(title_of(rule), justify="right")
    for j, label in enumerate(results.labels):
        cells = [
            cell(f"{value:.1f} ± {spreads[rule][j]:.1f}", is_best)
            for rule, value, is_best in zip(results.rules, grid[:, j], best[:, j], strict=True)
        ]
        table.add_row(label, *cells, end_section=j + 1 == len(results.labels))
    table.add_row("mean", *(f"{row.mean():.1f} " for row in grid))
    table.add_row("mean rank", *(f"{ranks[rule]:.2f} " for rule in results.rules))
    table.add_row("labels won", *(f"{wins[rule]:.3g} " for rule in results.rules))
    return table


def _short(rule: str) -> str:
    return title_of(rule).replace("averaged", "avg")
