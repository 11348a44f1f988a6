"""What commands show: live on a terminal, a line now and then elsewhere, and tables at the end.

What a command is doing goes to standard error, what it found to standard output. Rich, which takes a while to
be imported, is only asked where a line of text does not do.
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
    from rich.text import Text

    from maxcosine.experiment.results import Results

WIDE = 110
"""Columns where there is no terminal."""

MOST_COLUMNS = 5
"""More rules than this are rows of the table, and not columns."""

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
        from maxcosine.experiment.looks import title_of

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


def _show_pairs(rows: dict[str, str | None]) -> None:
    """Names, and beside them what there is to say."""
    width = max(map(len, rows))
    for name, value in rows.items():
        if value:
            typer.echo(f"{name:{width}}  {value}")


def show_outcome(outcome: dict[str, Any]) -> None:
    """What a training came to."""
    classes = outcome["classes"]
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    speed = outcome["megabytes_per_second"]
    _show_pairs(
        {
            "examples": f"{outcome['examples']:,}",
            "classes": f"{len(classes)}: {shown}",
            "features": f"{outcome['features']:,}",
            "rule": outcome["rule"],
            "progressive error": f"{outcome['progressive_error']:.3%}",
            "test error": _test_error(outcome),
            "updates": f"{int(np.sum(outcome['updates'])):,}",
            "margin ceiling": _numbers(outcome["margin_ceiling"]),
            "bad lines": f"{outcome['bad_lines']:,}" if outcome["bad_lines"] else None,
            "speed": f"{outcome['examples_per_second']:,.0f} examples/s"
            + (f", {speed:.0f} MB/s" if speed is not None else ""),
            "time": f"{outcome['seconds']:.2f} s",
            "model": outcome["model"],
        }
    )
    tell_of_bad_lines(outcome)


def _test_error(outcome: dict[str, Any]) -> str | None:
    if "test_examples" not in outcome:
        return None
    if not outcome["test_examples"]:
        return "there is no example to test on"
    error, n_bad = outcome["test_error"], outcome["test_bad_lines"]
    return f"{error:.3%}" + (f", {n_bad:,} bad lines skipped" if n_bad else "")


def tell_of_bad_lines(outcome: dict[str, Any]) -> None:
    """What was wrong with the first of them, and how many more there are."""
    told = outcome["first_bad_lines"]
    for line in told:
        tell(f"skipped {line}")
    if outcome["bad_lines"] > len(told) > 0:
        tell(f"skipped {outcome['bad_lines'] - len(told):,} more")


def show_conversion(outcome: dict[str, Any]) -> None:
    """What a cache holds."""
    from rich.filesize import decimal

    size = outcome["bytes_read"]
    _show_pairs(
        {
            "examples": f"{outcome['examples']:,}",
            "labels": f"{outcome['labels']:,}",
            "bad lines": f"{outcome['bad_lines']:,}" if outcome["bad_lines"] else None,
            "read": None if size is None else decimal(size),
            "written": decimal(outcome["bytes_written"]),
            "time": f"{outcome['seconds']:.2f} s",
            "cache": outcome["output"],
        }
    )
    tell_of_bad_lines(outcome)


def _numbers(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    shown = ", ".join("none" if one is None else f"{one:.4g}" for one in values[:10])
    return shown + (", ..." if len(values) > 10 else "")


def show(results: Results) -> None:
    """The table of an experiment, and what it says."""
    from maxcosine.experiment.verdict import verdict

    console().print(_mistakes_table(results))
    for paragraph in verdict(results):
        console().print(paragraph, markup=False, highlight=False)
        console().print()


def _mistakes_table(results: Results) -> Table:
    """Labels by rules with the best in bold; rules by labels if there are many rules."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from maxcosine.experiment import statistics
    from maxcosine.experiment.looks import title_of

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
        return cell(f"{value:.0f}", is_best)[: -1 if console().is_terminal else None]

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
    console().print(", ".join(summary), style="bold", markup=False, highlight=False)
    n_known = len(found["precision"])
    matrix = _confusion(found)
    # A matrix that would be cut tells nothing.
    without_end = console().options.update(width=sys.maxsize)
    fits = console().measure(matrix, options=without_end).maximum <= console().width
    console().print(matrix if n_known <= MOST_CONFUSED and fits else _mistaken(found))


def _confusion(found: dict[str, Any]) -> Table:
    """All labels by what they were predicted as."""
    from rich import box
    from rich.table import Table

    n_known = len(found["precision"])
    table = Table(title="label, and as what it was predicted", box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("label", *found["classes"][:n_known], "precision", "recall"):
        table.add_column(name, justify="left" if name == "label" else "right", no_wrap=True)
    for k, label in enumerate(found["classes"][: MOST_CONFUSED + 10]):
        table.add_row(label, *(f"{n:,}" for n in found["confusion"][k][:n_known]), *_measures(found, k))
    return table


def _mistaken(found: dict[str, Any]) -> Table:
    """Of each label, what it was most often mistaken for."""
    from rich import box
    from rich.table import Table

    table = Table(
        title="labels; --json has all that they were predicted as", box=box.SIMPLE_HEAD, title_justify="left"
    )
    for name in ("label", "examples", "precision", "recall", "most often mistaken for"):
        is_number = name in ("examples", "precision", "recall")
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for k, label in enumerate(found["classes"]):
        counts = np.array(found["confusion"][k])
        others = np.where(np.arange(len(counts)) == k, 0, counts)
        most = int(np.argmax(others))
        mistaken = f"{found['classes'][most]} ({others[most]:,})" if others[most] else ""
        table.add_row(label, f"{counts.sum():,}", *_measures(found, k), mistaken)
    return table


def _measures(found: dict[str, Any], k: int) -> list[str]:
    """Precision and recall of a label."""
    known = k < len(found["precision"])
    return [_percent(found[name][k]) if known else "unknown" for name in ("precision", "recall")]


MOST_CONFUSED = 12


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def show_model(found: dict[str, Any], certificate: Any) -> None:
    """What a model is."""
    features, classes = found["features"], found["classes"]
    parameters = ", ".join(f"{name} = {value:g}" for name, value in found["parameters"].items())
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    rows: dict[str, str | None] = {
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
    _show_pairs(rows)
    typer.echo(f"\n{certificate}")
    for title, heaviest in list(found["heaviest"].items())[:MOST_CONFUSED]:
        if heaviest:
            typer.echo(f"\nheaviest features for {title}\n")
            width = max(len("feature"), *(len(name) for name, _ in heaviest))
            for name, weight in [("feature", "weight"), *((name, f"{w:+.4g}") for name, w in heaviest)]:
                typer.echo(f"  {name:{width}}  {weight:>10}")
