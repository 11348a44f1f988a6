"""What commands show while they work: live on a terminal, a line now and then elsewhere.

What a command is doing goes to standard error, what it found to standard output (`tables`). Rich, which takes
a while to be imported, is only asked where a line of text does not do.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import typer

from maxcosine.compiled import store

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 110
"""Columns where there is no terminal."""

SECONDS_BETWEEN_LINES = 5.0
"""Where there is no terminal, so often a line says how far it is."""
SECONDS_BETWEEN_FRAMES = 0.2
"""And so often on a terminal."""
SECONDS_TO_MEASURE = 2.0
"""What is left is not told before it has been measured for so long."""


@cache
def console(*, stderr: bool = False) -> Console:
    """Where Rich prints to."""
    from rich.console import Console

    made = Console(stderr=stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDE
    return made


def on_terminal() -> bool:
    """Whether somebody watches what is going on, on something that can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def tell(text: str, style: str = "") -> None:
    """Say what is going on."""
    if style and on_terminal():
        console(stderr=True).print(text, style=style, markup=False, highlight=False, soft_wrap=True)
    else:
        typer.echo(text, err=True)


class _Shown:
    """What is on the screen from the beginning of a `with` to its end."""

    def start(self) -> None:
        """Nothing is shown before there is something to show."""

    def stop(self) -> None:
        """Leave the screen as it was."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Download(_Shown):
    """A bar for each file that is fetched; nothing when nothing is."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if self._bar is None:
            self._bar = _download_bar()
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=None)
        self._bar.update(self._tasks[what], completed=done, total=total)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _download_bar() -> Any:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
    )


class ConversionWatch(_Shown):
    """How many examples have been written, and how much of the data has been read."""

    def __init__(self, source: Any) -> None:
        self._source, self._told = source, time.monotonic()
        self._bar = _conversion_bar() if on_terminal() else None
        if self._bar is not None:
            self._task = self._bar.add_task("", total=source.total_bytes)

    def update(self, n_examples: int) -> None:
        """So many examples have been written."""
        text, total = f"{n_examples:,} examples", self._source.total_bytes
        if self._bar is not None:
            self._bar.update(self._task, description=text, completed=self._source.read_bytes)
        elif time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            tell(f"{text}, {self._source.read_bytes / total:.0%}" if total else text)

    def start(self) -> None:
        if self._bar is not None:
            self._bar.start()

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _conversion_bar() -> Any:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )


class Watch(_Shown):
    """How far an experiment is, and the mean mistakes of each rule so far."""

    def __init__(self, total: int, rules: list[str]) -> None:
        from maxcosine.experiments.looks import title_of

        self._title_of = title_of
        self.done, self._total = 0, total
        self._mistakes: dict[str, int] = dict.fromkeys(rules, 0)
        self._live: Any = None
        self._begun = self._told = time.monotonic()

    def add(self, unit: dict[str, Any]) -> None:
        """One label has been learnt in one order."""
        self.done += 1
        for run in unit["runs"]:
            self._mistakes[run["rule"]] += run["test_mistakes"]
        now = time.monotonic()
        if self.done == 1:
            self._begun = now  # it may have compiled: the others are the measure
        if self._live is not None:
            self._bar.advance(self._task)
            self._live.update(self._frame())
        elif now - self._told > SECONDS_BETWEEN_LINES:
            self._told = now
            parts = [f"{self.done} of {self._total}", *self._left(now)]
            tell(f"{', '.join(parts)}; mean mistakes so far: {self._best()}")

    def _left(self, now: float) -> list[str]:
        """How long it still takes, if that is known."""
        seconds = now - self._begun
        if seconds < SECONDS_TO_MEASURE:
            return []
        return [f"{seconds / (self.done - 1) * (self._total - self.done):.0f} s left"]

    def _best(self) -> str:
        """The mean mistakes of the best few rules."""
        means = sorted((total / self.done, self._title_of(rule)) for rule, total in self._mistakes.items())
        told = ", ".join(f"{title} {mean:.1f}" for mean, title in means[:4])
        return told if len(means) <= 4 else f"{told}, ..."

    def _frame(self) -> Any:
        from rich.console import Group

        return Group(self._bar, self._means())

    def _means(self) -> Table:
        from rich.table import Table

        table = Table(box=None, show_header=False, padding=(0, 2))
        # The rules side by side while that fits a screen.
        columns = 4 if len(self._mistakes) > 6 else len(self._mistakes)
        cells = [f"{self._title_of(rule)} {total / self.done:.1f}" for rule, total in self._mistakes.items()]
        for start in range(0, len(cells), columns):
            table.add_row(*cells[start : start + columns])
        return table

    def start(self) -> None:
        if not on_terminal():
            return
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("learning"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("orders,"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console(stderr=True),
        )
        self._task = self._bar.add_task("learning", total=self._total)
        self._live = Live(console=console(stderr=True), refresh_per_second=8, transient=True)
        self._live.start()

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()


class TrainingWatch(_Shown):
    """How far a training is: examples, progressive error, speed, and what is left."""

    def __init__(self) -> None:
        self._begun = self._told = time.monotonic()
        self._live = on_terminal()

    def update(self, training: Any) -> None:
        """Some rows have been learnt."""
        now = time.monotonic()
        if now - self._told > (SECONDS_BETWEEN_FRAMES if self._live else SECONDS_BETWEEN_LINES):
            self._told = now
            parts = self._parts(training, now)
            if self._live:
                _write_over(_fitted(parts, _terminal_width()))
            else:
                tell(", ".join(long for long, _ in parts))

    def _parts(self, training: Any, now: float) -> list[tuple[str, str]]:
        """What there is to say, each in full and in short; the last is what can be left out first."""
        status, source = training.status, training.stream.source
        seconds = max(now - self._begun, 1e-9)
        table = training.model.heads.table
        # As the sweep has it; the certificate at the end adds up all weights anew, which takes longer.
        lengths = np.sqrt(table["sq_v"])
        bounds = np.divide(table["claim_v"], lengths, out=np.zeros(len(table)), where=lengths > 0.0)
        error, speed = status.wrong / max(1, status.judged), (status.examples - training.resumed_at) / seconds
        parts = [
            (f"{status.examples:,} examples", f"{status.examples:,} ex."),
            (f"progressive error {error:.2%}", f"error {error:.2%}"),
        ]
        total = source.total_bytes
        if total:
            bytes_a_second = max(training.read_bytes + source.read_bytes - source.skipped_bytes, 1) / seconds
            left = total * (training.passes - status.passes) - source.read_bytes
            parts.append((f"{left / bytes_a_second:.0f} s left",) * 2)
            parts.append((f"{bytes_a_second / 1e6:.0f} MB/s",) * 2)
        updates = int(table["updates"].sum())
        return [
            *parts,
            (f"{speed:,.0f} examples/s", f"{speed:.3g} ex./s"),
            (f"{updates:,} updates", f"{updates:,} upd."),
            (f"bound {bounds.min():.3g}",) * 2,
        ]

    def stop(self) -> None:
        if self._live:
            _write_over("")


def _fitted(parts: list[tuple[str, str]], width: int) -> str:
    """As many of the parts as there is room for, in full if that fits."""
    in_full, in_short = (", ".join(part[k] for part in parts) for k in (0, 1))
    if len(in_full) <= width:
        return in_full
    return in_short if len(in_short) <= width or len(parts) == 1 else _fitted(parts[:-1], width)


def _terminal_width() -> int:
    """A line as wide as the terminal would go on in the next, and could not be taken back."""
    return shutil.get_terminal_size().columns - 1


def _write_over(text: str) -> None:
    """Put one line of the terminal in the place of what is there."""
    sys.stderr.write(f"\r{text[: _terminal_width()]}\x1b[K")
    sys.stderr.flush()


def _tell_of_compiling() -> None:
    """Before the first use on a machine there are some seconds in which nothing else is to be seen."""
    if on_terminal():
        _write_over("compiling for this machine, which is done once ...")


store.before_compiling = _tell_of_compiling
