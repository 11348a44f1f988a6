"""What commands show: live on a terminal, a line now and then elsewhere, and tables at the end.

What a command is doing goes to standard error, what it found to standard output.
"""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from maxcosine.experiment.results import Results

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
SECONDS_BETWEEN_FRAMES = 0.2
"""And so often on a terminal."""


def tell(text: str, style: str = "") -> None:
    """Say what is going on."""
    progress_console.print(Text(text, style=style), soft_wrap=True)


class Download:
    """A bar for each file that is fetched; nothing when nothing is."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

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


class ConversionWatch:
    """How many examples have been written, and how much of the data has been read."""

    def __init__(self, source: Any) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        self._source, self._told = source, time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=progress_console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=source.total_bytes)

    def update(self, n_examples: int) -> None:
        """So many examples have been written."""
        text, total = f"{n_examples:,} examples", self._source.total_bytes
        if progress_console.is_terminal:
            self._bar.update(self._task, description=text, completed=self._source.read_bytes)
        elif time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            tell(f"{text}, {self._source.read_bytes / total:.0%}" if total else text)

    def __enter__(self) -> ConversionWatch:
        if progress_console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if progress_console.is_terminal:
            self._bar.stop()


class Watch:
    """How far an experiment is, and the mean mistakes of each rule so far."""

    def __init__(self, total: int, rules: list[str]) -> None:
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        from maxcosine.experiment.figures import title_of

        self._title_of = title_of
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
        means = sorted((total / self.done, self._title_of(rule)) for rule, total in self._mistakes.items())
        told = ", ".join(f"{title} {mean:.1f}" for mean, title in means[:4])
        return told if len(means) <= 4 else f"{told}, ..."

    def _means(self) -> Table:
        table = Table(box=None, show_header=False, padding=(0, 2))
        # The rules side by side while that fits a screen.
        columns = 4 if len(self._mistakes) > 6 else len(self._mistakes)
        cells = [f"{self._title_of(rule)} {total / self.done:.1f}" for rule, total in self._mistakes.items()]
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


class TrainingWatch:
    """How far a training is: examples, progressive error, speed, and what is left."""

    def __init__(self) -> None:
        self._begun = self._told = time.monotonic()
        self._live: Any = None
        if progress_console.is_terminal:
            from rich.live import Live

            self._live = Live(console=progress_console, refresh_per_second=5, transient=True)

    def update(self, training: Any) -> None:
        """Some rows have been learnt."""
        now = time.monotonic()
        if self._live is not None:
            if now - self._told > SECONDS_BETWEEN_FRAMES:
                self._told = now
                self._live.update(Text(self._line(training, now)))
        elif now - self._told > SECONDS_BETWEEN_LINES:
            self._told = now
            tell(self._line(training, now))

    def _line(self, training: Any, now: float) -> str:
        status, source = training.status, training.stream.source
        seconds = max(now - self._begun, 1e-9)
        table = training.model.heads.table
        # As the sweep has it; the certificate at the end adds up all weights anew, which takes longer.
        lengths = np.sqrt(table["sq_v"])
        bounds = np.divide(table["claim_v"], lengths, out=np.zeros(len(table)), where=lengths > 0.0)
        parts = [
            f"{status.examples:,} examples",
            f"progressive error {status.wrong / max(1, status.judged):.2%}",
            f"{int(table['updates'].sum()):,} updates",
            f"bound {bounds.min():.3g}",
            f"{(status.examples - training.resumed_at) / seconds:,.0f} examples/s",
        ]
        total = source.total_bytes
        if total:
            speed = max(training.read_bytes + source.read_bytes - source.skipped_bytes, 1) / seconds
            left = total * (training.passes - status.passes) - source.read_bytes
            parts.append(f"{speed / 1e6:.0f} MB/s")
            parts.append(f"{left / speed:.0f} s left")
        return ", ".join(parts)

    def __enter__(self) -> TrainingWatch:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def show_outcome(outcome: dict[str, Any]) -> None:
    """What a training came to."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    classes = outcome["classes"]
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    speed = outcome["megabytes_per_second"]
    rows = {
        "examples": f"{outcome['examples']:,}",
        "classes": f"{len(classes)}: {shown}",
        "features": f"{outcome['features']:,}",
        "rule": outcome["rule"],
        "progressive error": f"{outcome['progressive_error']:.3%}",
        "test error": f"{outcome['test_error']:.3%}" if outcome.get("test_error") is not None else None,
        "updates": f"{int(np.sum(outcome['updates'])):,}",
        "margin ceiling": _numbers(outcome["margin_ceiling"]),
        "bad lines": f"{outcome['bad_lines']:,}" if outcome["bad_lines"] else None,
        "speed": f"{outcome['examples_per_second']:,.0f} examples/s"
        + (f", {speed:.0f} MB/s" if speed is not None else ""),
        "time": f"{outcome['seconds']:.2f} s",
        "model": outcome["model"],
    }
    for name, value in rows.items():
        if value is not None:
            table.add_row(name, value)
    console.print(table)
    for line in outcome["first_bad_lines"]:
        tell(f"skipped {line}")


def show_conversion(outcome: dict[str, Any]) -> None:
    """What a cache holds."""
    from rich.filesize import decimal

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    size = outcome["bytes_read"]
    rows = {
        "examples": f"{outcome['examples']:,}",
        "labels": f"{outcome['labels']:,}",
        "bad lines": f"{outcome['bad_lines']:,}" if outcome["bad_lines"] else None,
        "read": None if size is None else decimal(size),
        "written": decimal(outcome["bytes_written"]),
        "time": f"{outcome['seconds']:.2f} s",
        "cache": outcome["output"],
    }
    for name, value in rows.items():
        if value is not None:
            table.add_row(name, value)
    console.print(table)
    for line in outcome["first_bad_lines"]:
        tell(f"skipped {line}")


def _numbers(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    shown = ", ".join("none" if one is None else f"{one:.4g}" for one in values[:10])
    return shown + (", ..." if len(values) > 10 else "")


def show(results: Results) -> None:
    """The table of an experiment, and what it says."""
    from maxcosine.experiment.verdict import verdict

    console.print(_mistakes_table(results))
    for paragraph in verdict(results):
        console.print(Text(paragraph))
        console.print()


def _mistakes_table(results: Results) -> Table:
    """Labels by rules with the best in bold; rules by labels if there are many rules."""
    from maxcosine.experiment import statistics
    from maxcosine.experiment.figures import title_of

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
            short = title_of(rule).replace("averaged", "avg")
            table.add_row(short, *cells, f"{grid[k].mean():.1f}", f"{ranks[rule]:.1f}")
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


def show_evaluation(found: dict[str, Any]) -> None:
    """How well a model predicts."""
    summary = [f"{found['examples']:,} examples"]
    if found["error"] is not None:
        summary.append(f"error {found['error']:.3%}")
    if found["auc"] is not None:
        summary.append(f"AUC {found['auc']:.4f}")
    if found["bad_lines"]:
        summary.append(f"{found['bad_lines']:,} bad lines skipped")
    console.print(Text(", ".join(summary), style="bold"))
    n_known = len(found["precision"])
    shown = found["classes"][:n_known][:MOST_CONFUSED]
    table = Table(title="label, and as what it was predicted", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("label")
    for label in shown:
        table.add_column(label, justify="right")
    table.add_column("precision", justify="right")
    table.add_column("recall", justify="right")
    for k, label in enumerate(found["classes"][: MOST_CONFUSED + 10]):
        known = k < n_known
        measures = [_percent(found[name][k]) if known else "unknown" for name in ("precision", "recall")]
        table.add_row(label, *(f"{n:,}" for n in found["confusion"][k][: len(shown)]), *measures)
    console.print(table)
    if n_known > MOST_CONFUSED:
        tell(f"{n_known - MOST_CONFUSED} more classes are left out here; --json has all")


MOST_CONFUSED = 12


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def show_model(found: dict[str, Any], certificate: Any) -> None:
    """What a model is."""
    features, classes = found["features"], found["classes"]
    parameters = ", ".join(f"{name} = {value:g}" for name, value in found["parameters"].items())
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    rows = {
        "rule": found["rule"]
        + (f" ({parameters})" if parameters else "")
        + (", averaged" if found["averaged"] else ""),
        "classes": f"{len(classes)}: {shown}" + (f" ({found['multiclass']})" if len(classes) > 2 else ""),
        "features": f"{features['count']:,} {features['kind']}",
        "weights": found["weights"] + (", with an intercept" if found["intercept"] else ""),
    }
    trained = found["trained"] or {}
    if trained:
        rows["command"] = trained.get("command")
        data = trained.get("data") or []
        rows["data"] = ", ".join(
            one["name"] + ("" if one["bytes"] is None else f" ({one['bytes']:,} bytes)") for one in data
        )
        if "examples" in trained:
            rows["examples"] = f"{trained['examples']:,} in {trained['passes']} pass(es)"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in rows.items():
        if value:
            table.add_row(name, value)
    console.print(table)
    console.print()
    console.print(Text(str(certificate)), soft_wrap=True)
    for title, heaviest in list(found["heaviest"].items())[:MOST_CONFUSED]:
        if heaviest:
            console.print(Text(f"\nheaviest features for {title}"))
            weights = Table(box=box.SIMPLE_HEAD)
            weights.add_column("feature")
            weights.add_column("weight", justify="right")
            for name, weight in heaviest:
                weights.add_row(name, f"{weight:+.4g}")
            console.print(weights)
