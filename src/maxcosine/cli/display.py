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

from maxcosine.cli.terminal import is_quiet, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

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
def console() -> Console:
    """Return the console that Rich prints to."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # as other output does

    made = _Console()
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDE
    return made


class ProgressLine:
    """The line of progress, shown while a `with` statement runs."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not is_quiet()
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._overwrite("")

    def update(self, text: Callable[[], str]) -> None:
        """Show a line if enough time has passed since the last one; only then is the text made."""
        now = time.monotonic()
        if not is_quiet() and now - self._shown > (SECONDS_BETWEEN_FRAMES if self._live else SECONDS_BETWEEN_LINES):
            self._shown = now
            (self._overwrite if self._live else tell)(text())

    def _overwrite(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1  # a line that wraps could not be overwritten
        sys.stderr.write(f"\r{text[:width]}\x1b[K")
        sys.stderr.flush()


class ExperimentProgress(ProgressLine):
    """Progress of an experiment, and the mean mistakes of the best rules so far."""

    def __init__(self, total: int, rules: list[str]) -> None:
        super().__init__()
        self.done, self._total = 0, total
        self._mistakes = dict.fromkeys(rules, 0)
        self._started = 0.0

    def add(self, unit: Mapping[str, Any]) -> None:
        """Count a finished unit: one label, learnt in one order."""
        self.done += 1
        for run in unit["runs"]:
            self._mistakes[run["rule"]] += run["test_mistakes"]
        if self.done == 1:
            self._started = time.monotonic()  # the first unit also prepares the data
        self.update(self._text)

    def _text(self) -> str:
        from maxcosine.experiments.rule_styles import title_of

        seconds, left = time.monotonic() - self._started, ""
        if seconds >= SECONDS_TO_MEASURE:
            left = f", {seconds / (self.done - 1) * (self._total - self.done):.0f} s left"
        means = sorted((total / self.done, title_of(rule)) for rule, total in self._mistakes.items())
        best = [f"{title} {mean:.1f}" for mean, title in means[:BEST_RULES]] + ["..."] * (len(means) > BEST_RULES)
        return f"{self.done} of {self._total}{left}; mean mistakes so far: {', '.join(best)}"


def training_progress(training: Training, started: float) -> str:
    """Describe a training that `time.perf_counter` saw start; a narrow terminal cuts the last figures."""
    from maxcosine.model import Model

    status, inputs, model = training.status, training.stream.inputs, training.learner.model
    seconds = time.perf_counter() - started
    parts = [f"{status.examples:,} examples", f"progressive error {status.error.rate:.2%}"]
    if inputs.total_bytes:
        speed = max(training.read_bytes + inputs.read_bytes - inputs.skipped_bytes, 1) / seconds
        left = inputs.total_bytes * (training.passes - status.passes) - inputs.read_bytes
        parts += [f"{left / speed:.0f} s left", f"{speed / 1e6:.0f} MB/s"]
    parts.append(f"{(status.examples - training.resumed_at) / seconds:,.0f} examples/s")
    if not status.passes:
        parts.append(f"true error {status.error.low:.2%} to {status.error.high:.2%}")
    if isinstance(model, Model):
        parts.append(f"{model.heads.table['updates'].sum():,} updates")
    return ", ".join(parts)
