"""``maxcosine compare``: all rules on the same data, which are parsed once."""

from __future__ import annotations

import json as json_module
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.options import (
    Data,
    Examples,
    Json,
    Reading,
    check_outputs,
    command_line,
    flatten_options,
)

if TYPE_CHECKING:
    from maxcosine.data import Stream


@flatten_options
def compare(
    data: Data,
    reading: Reading,
    examples: Examples,
    test: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Test on these examples.", show_default=False)
    ] = None,
    split: Annotated[
        float | None, typer.Option(min=0.0, max=0.5, help="Hold out this share of the data for a test.")
    ] = None,
    rules: Annotated[str, typer.Option(help="Which rules, separated by commas; or all.")] = "all",
    average: Annotated[bool, typer.Option("--average", help="Predict with the mean of all hypotheses.")] = False,
    intercept: Annotated[bool, typer.Option(help="Learn a constant, too.")] = True,
    report: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write a report, HTML to open in a browser.")
    ] = None,
    json: Json = False,
) -> None:
    """Learn with every rule at once, and see which one suits the data.

    All rules see the same examples in the same order; the data are read and parsed once. Without --test and
    --split, rules are compared by their progressive error: each example is predicted before it is learnt.

    \b
    maxcosine compare clicks.svm --split 0.2
    maxcosine compare train.vw --test test.vw --rules mcp,pa1,perceptron --average
    maxcosine compare clicks.svm --split 0.2 --report clicks.html
    """
    from maxcosine.cli.display import tell
    from maxcosine.data import MAX_REPORTED, STANDARD_INPUT, ReadOptions, Stream
    from maxcosine.training import Settings
    from maxcosine.training.comparison import Comparison

    if test and split:
        raise ValueError("--test and --split are two ways to test; give one of them")
    chosen = _rules(rules)
    if report is not None:
        _check_report(report, [*data, *(test or [])])
    date, started = datetime.now(UTC), time.perf_counter()
    stream = Stream(data, ReadOptions(**reading.fields(), **examples.fields(), purpose="learn"))
    if split and STANDARD_INPUT in stream.inputs.names:
        raise ValueError("--split reads the data twice, which standard input does not allow; write it to a file")
    hold_out = round(1.0 / split) if split else None
    first = chosen[0]
    comparison = Comparison.of(
        chosen, Settings(first, first.make_params(), average, intercept, dtype=stream.options.dtype)
    )
    comparison.learn(stream, hold_out)
    n_bad, messages = stream.n_bad, stream.bad.messages
    if test or hold_out:
        tested = stream.like(test or data, threads=reading.threads, purpose="evaluate" if test else "learn")
        comparison.test(tested, hold_out)
        if test:
            n_bad, messages = n_bad + tested.n_bad, messages + tested.bad.messages
    found = {**comparison.as_dict(), "bad_lines": n_bad, "first_bad_lines": messages[:MAX_REPORTED]}
    if json:
        typer.echo(json_module.dumps(found))
    else:
        _show(found)
    if report is not None:
        _write_report(found, report, stream, test, hold_out, date, time.perf_counter() - started)
        tell(f"report   {report}  (open it in a browser)")


def _check_report(report: Path, inputs: list[str]) -> None:
    """Refuse a report that cannot be written, before anything is learnt."""
    from maxcosine.experiments.charts import renderer

    check_outputs({"report": report}, inputs)
    renderer()


def _write_report(
    found: dict[str, Any],
    report: Path,
    stream: Stream,
    test: list[str] | None,
    hold_out: int | None,
    date: datetime,
    seconds: float,
) -> None:
    from maxcosine.data import describe_inputs, expand
    from maxcosine.experiments import comparison_report

    details = {
        "data": describe_inputs(stream.inputs.names),
        "test_data": describe_inputs(expand(test)) if test else [],
        "held_out": hold_out,
        "options": {name: getattr(stream.options, name) for name in comparison_report.OPTIONS},
        "command": command_line(),
        "started": date.isoformat(timespec="seconds"),
        "seconds": seconds,
    }
    comparison_report.write({**found, **details}, report)


def _show(found: dict[str, Any]) -> None:
    """Print a table of the rules, the best one first."""
    from rich import box
    from rich.table import Table

    from maxcosine.cli.display import console
    from maxcosine.cli.tables import report_bad_lines
    from maxcosine.experiments.rule_styles import title_of

    tested = f", tested on {found['test_examples']:,}" if found["test_examples"] else ""
    bad = f", {found['bad_lines']:,} bad lines skipped" if found["bad_lines"] else ""
    title = f"{found['examples']:,} examples{tested}{bad}"
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("rule")
    for name in ("progressive error", "test error", "updates", "margin ceiling", "seconds"):
        if name != "test error" or tested:
            table.add_column(name, justify="right")
    for row in found["rules"]:
        ceilings = [one for one in row["margin_ceilings"] if one is not None]
        cells = [f"{row['progressive_error']:.3%}"]
        cells += [f"{row['test_error']:.3%}"] if tested else []
        cells += [f"{row['updates']:,}", f"{min(ceilings):.4g}" if ceilings else "-", f"{row['seconds']:.2f}"]
        table.add_row(("averaged " if row["average"] else "") + title_of(row["rule"]), *cells)
    console().print(table)
    report_bad_lines(found)


def _rules(names: str) -> list[Any]:
    from maxcosine.rules import RULES

    chosen = list(RULES) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in RULES:
            raise ValueError(f"there is no rule {name!r}; the rules are {', '.join(RULES)}")
    if not chosen:
        raise ValueError("no rule is given; name some, for example mcp,pa1")
    return [RULES[name] for name in chosen]
