"""Progress of commands: live on a terminal, a line from time to time elsewhere.

Progress goes to standard error, results go to standard output (`tables`). Rich is imported only where plain
text does not suffice, because importing it takes time.
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

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from maxcosine.data.inputs import Inputs
    from maxcosine.training import Training

WIDE = 110
"""Width of the output where there is no terminal."""

SECONDS_BETWEEN_LINES = 5.0
"""Between two lines of progress, where there is no terminal."""
SECONDS_BETWEEN_FRAMES = 0.2
"""Between two updates on a terminal."""
SECONDS_TO_MEASURE = 2.0
"""The remaining time is estimated from this time on."""


@cache
def console(*, stderr: bool = False) -> Console:
    """Return the console that Rich prints to."""
    from rich.console import Console

    made = Console(stderr=stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDE
    return made


def on_terminal() -> bool:
    """Return whether standard error is a terminal whose lines can be overwritten."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def tell(text: str, style: str = "") -> None:
    """Print a line of progress."""
    if style and on_terminal():
        console(stderr=True).print(text, style=style, markup=False, highlight=False, soft_wrap=True)
    else:
        typer.echo(text, err=True)


class _Shown:
    """A display that a `with` statement starts and stops."""

    def start(self) -> None:
        """Start; by default, nothing is shown yet."""

    def stop(self) -> None:
        """Clear the display."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Download(_Shown):
    """A bar for each file that is downloaded."""

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
    """Progress of a conversion: examples written, and bytes read."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs, self._told = inputs, time.monotonic()
        self._bar = _conversion_bar() if on_terminal() else None
        if self._bar is not None:
            self._task = self._bar.add_task("", total=inputs.total_bytes)

    def update(self, n_examples: int) -> None:
        """Show the number of examples that have been written."""
        text, total = f"{n_examples:,} examples", self._inputs.total_bytes
        if self._bar is not None:
            self._bar.update(self._task, description=text, completed=self._inputs.read_bytes)
        elif time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            tell(f"{text}, {self._inputs.read_bytes / total:.0%}" if total else text)

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
    """Progress of an experiment, and the mean mistakes of each rule so far."""

    def __init__(self, total: int, rules: list[str]) -> None:
        from maxcosine.experiments.rule_styles import title_of

        self._title_of = title_of
        self.done, self._total = 0, total
        self._mistakes: dict[str, int] = dict.fromkeys(rules, 0)
        self._live: Any = None
        self._started = self._told = time.monotonic()

    def add(self, unit: dict[str, Any]) -> None:
        """Count a finished unit: one label, learnt in one order."""
        self.done += 1
        for run in unit["runs"]:
            self._mistakes[run["rule"]] += run["test_mistakes"]
        now = time.monotonic()
        if self.done == 1:
            self._started = now  # the first unit also prepares the data
        if self._live is not None:
            self._bar.advance(self._task)
            self._live.update(self._frame())
        elif now - self._told > SECONDS_BETWEEN_LINES:
            self._told = now
            parts = [f"{self.done} of {self._total}", *self._left(now)]
            tell(f"{', '.join(parts)}; mean mistakes so far: {self._best()}")

    def _left(self, now: float) -> list[str]:
        """Return the remaining time, if it is known."""
        seconds = now - self._started
        if seconds < SECONDS_TO_MEASURE:
            return []
        return [f"{seconds / (self.done - 1) * (self._total - self.done):.0f} s left"]

    def _best(self) -> str:
        """Return the mean mistakes of the best rules."""
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
    """Progress of a training: examples, progressive error, speed and remaining time."""

    def __init__(self) -> None:
        self._started = self._told = time.monotonic()
        self._live = on_terminal()

    def update(self, training: Training) -> None:
        """Show the state of a training, if enough time has passed."""
        now = time.monotonic()
        if now - self._told > (SECONDS_BETWEEN_FRAMES if self._live else SECONDS_BETWEEN_LINES):
            self._told = now
            parts = self._parts(training, now)
            if self._live:
                _overwrite(_fitted(parts, _terminal_width()))
            else:
                tell(", ".join(long for long, _ in parts))

    def _parts(self, training: Training, now: float) -> list[tuple[str, str]]:
        """Return the figures, each in a long and a short form; the last ones are omitted first."""
        status, inputs = training.status, training.stream.inputs
        assert training.learner.model is not None
        seconds = max(now - self._started, 1e-9)
        table = training.learner.model.heads.table
        # The running values; a certificate would add up all weights again, which takes longer.
        lengths = np.sqrt(table["sq_v"])
        bounds = np.divide(table["claim_v"], lengths, out=np.zeros(len(table)), where=lengths > 0.0)
        error, speed = status.progressive_error, (status.examples - training.resumed_at) / seconds
        parts = [
            (f"{status.examples:,} examples", f"{status.examples:,} ex."),
            (f"progressive error {error:.2%}", f"error {error:.2%}"),
        ]
        total = inputs.total_bytes
        if total:
            bytes_a_second = max(training.read_bytes + inputs.read_bytes - inputs.skipped_bytes, 1) / seconds
            left = total * (training.passes - status.passes) - inputs.read_bytes
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
            _overwrite("")


def _fitted(parts: list[tuple[str, str]], width: int) -> str:
    """Return as many of the parts as fit, in their long form if all of it fits."""
    in_full, in_short = (", ".join(part[k] for part in parts) for k in (0, 1))
    if len(in_full) <= width:
        return in_full
    return in_short if len(in_short) <= width or len(parts) == 1 else _fitted(parts[:-1], width)


def _terminal_width() -> int:
    """Return the longest line that the terminal does not wrap: a wrapped line cannot be overwritten."""
    return shutil.get_terminal_size().columns - 1


def _overwrite(text: str) -> None:
    """Overwrite the current line of the terminal."""
    sys.stderr.write(f"\r{text[: _terminal_width()]}\x1b[K")
    sys.stderr.flush()
