"""Progress of commands: one line that is overwritten on a terminal, and printed from time to time elsewhere.

Progress goes to standard error, results go to standard output (`tables`). Rich is imported only for tables,
because importing it takes time.
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
    from collections.abc import Mapping

    from rich.console import Console

    from maxcosine.data.inputs import Inputs
    from maxcosine.training import Training

WIDE = 110
"""Width of the output where there is no terminal."""
SECONDS_BETWEEN_LINES = 5.0
"""Where there is no terminal."""
SECONDS_BETWEEN_FRAMES = 0.2
"""On a terminal."""
SECONDS_TO_MEASURE = 2.0
"""The remaining time is estimated from this time on."""
BEST_RULES = 4
"""The progress of an experiment names this many rules."""


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


class ProgressLine:
    """The line of progress, shown while a `with` statement runs."""

    def __init__(self) -> None:
        self._live = on_terminal()
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            _overwrite("")

    def is_due(self) -> bool:
        """Return whether enough time has passed since the line was shown."""
        seconds = SECONDS_BETWEEN_FRAMES if self._live else SECONDS_BETWEEN_LINES
        return time.monotonic() - self._shown > seconds

    def show(self, text: str) -> None:
        """Show a line."""
        self._shown = time.monotonic()
        if self._live:
            _overwrite(text)
        else:
            tell(text)


class Download(ProgressLine):
    """Progress of a download."""

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Show how many bytes of a file have arrived."""
        if self.is_due():
            of_total = "" if total is None else f" of {total / 1e6:.1f}"
            self.show(f"downloading {what}: {done / 1e6:.1f}{of_total} MB")


class ConversionWatch(ProgressLine):
    """Progress of a conversion: examples written, and the share of the data that was read."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self._inputs = inputs

    def update(self, n_examples: int) -> None:
        """Show the number of examples that have been written."""
        if self.is_due():
            total = self._inputs.total_bytes
            share = f", {self._inputs.read_bytes / total:.0%}" if total else ""
            self.show(f"{n_examples:,} examples{share}")


class Watch(ProgressLine):
    """Progress of an experiment, and the mean mistakes of the best rules so far."""

    def __init__(self, total: int, rules: list[str]) -> None:
        super().__init__()
        self.done, self._total = 0, total
        self._mistakes: dict[str, int] = dict.fromkeys(rules, 0)
        self._started = time.monotonic()

    def add(self, unit: Mapping[str, Any]) -> None:
        """Count a finished unit: one label, learnt in one order."""
        self.done += 1
        for run in unit["runs"]:
            self._mistakes[run["rule"]] += run["test_mistakes"]
        if self.done == 1:
            self._started = time.monotonic()  # the first unit also prepares the data
        if self.is_due():
            parts = [f"{self.done} of {self._total}", *self._left()]
            self.show(f"{', '.join(parts)}; mean mistakes so far: {self._best()}")

    def _left(self) -> list[str]:
        """Return the remaining time, if it is known."""
        seconds = time.monotonic() - self._started
        if seconds < SECONDS_TO_MEASURE:
            return []
        return [f"{seconds / (self.done - 1) * (self._total - self.done):.0f} s left"]

    def _best(self) -> str:
        """Return the mean mistakes of the best rules."""
        from maxcosine.experiments.rule_styles import title_of

        means = sorted((total / self.done, title_of(rule)) for rule, total in self._mistakes.items())
        shown = ", ".join(f"{title} {mean:.1f}" for mean, title in means[:BEST_RULES])
        return shown if len(means) <= BEST_RULES else f"{shown}, ..."


class TrainingWatch(ProgressLine):
    """Progress of a training: examples, progressive error, speed and remaining time."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.monotonic()

    def update(self, training: Training) -> None:
        """Show the state of a training, if enough time has passed."""
        if self.is_due():
            self.show(_fit(self._parts(training), _terminal_width() if self._live else sys.maxsize))

    def _parts(self, training: Training) -> list[tuple[str, str]]:
        """Return the figures, each in a long and a short form; the last ones are omitted first."""
        status, inputs = training.status, training.stream.inputs
        assert training.learner.model is not None
        seconds = max(time.monotonic() - self._started, 1e-9)
        table = training.learner.model.heads.table
        # The running values; a certificate would add up all weights again, which takes longer.
        norms = np.sqrt(table["sq_v"])
        bounds = np.divide(table["claim_v"], norms, out=np.zeros(len(table)), where=norms > 0.0)
        error, speed = status.progressive_error, (status.examples - training.resumed_at) / seconds
        parts = [
            (f"{status.examples:,} examples", f"{status.examples:,} ex."),
            (f"progressive error {error:.2%}", f"error {error:.2%}"),
        ]
        total = inputs.total_bytes
        if total:
            bytes_per_second = max(training.read_bytes + inputs.read_bytes - inputs.skipped_bytes, 1) / seconds
            left = total * (training.passes - status.passes) - inputs.read_bytes
            parts += [
                (f"{left / bytes_per_second:.0f} s left",) * 2,
                (f"{bytes_per_second / 1e6:.0f} MB/s",) * 2,
            ]
        updates = int(table["updates"].sum())
        return [
            *parts,
            (f"{speed:,.0f} examples/s", f"{speed:.3g} ex./s"),
            (f"{updates:,} updates", f"{updates:,} upd."),
            (f"bound {bounds.min():.3g}",) * 2,
        ]


def _fit(parts: list[tuple[str, str]], width: int) -> str:
    """Return as many of the parts as fit, in their long form if all of it fits."""
    long, short = (", ".join(part[k] for part in parts) for k in (0, 1))
    if len(long) <= width:
        return long
    return short if len(short) <= width or len(parts) == 1 else _fit(parts[:-1], width)


def _terminal_width() -> int:
    """Return the longest line that the terminal does not wrap: a wrapped line cannot be overwritten."""
    return shutil.get_terminal_size().columns - 1


def _overwrite(text: str) -> None:
    """Overwrite the current line of the terminal."""
    sys.stderr.write(f"\r{text[: _terminal_width()]}\x1b[K")
    sys.stderr.flush()
