"""``maxcosine compare``: all rules on one file, in one parse."""

from __future__ import annotations

import json as json_module
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.cli.options import Data, Examples, Json, Reading, check_outputs, command_line, one_by_one


@one_by_one
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
    average: Annotated[
        bool, typer.Option("--average", help="Predict with the mean of all hypotheses.")
    ] = False,
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
    from maxcosine.stream.chunks import MOST_TOLD, Stream
    from maxcosine.stream.comparison import Comparison
    from maxcosine.stream.learner import Settings

    if test and split:
        raise ValueError("--test and --split are two ways to test; give one of them")
    chosen = _rules(rules)
    if report is not None:
        _check_report(report, [*data, *(test or [])])
    started, begun = datetime.now(UTC), time.perf_counter()
    stream = Stream(data, **reading.of_stream(), **examples.of_stream(), labelled=True)
    if split and "-" in stream.source.names:
        raise ValueError(
            "--split reads the data twice, which standard input does not allow; write it to a file"
        )
    held_out = round(1.0 / split) if split else None
    first = chosen[0]
    comparison = Comparison.of(
        chosen, Settings(first, first.make_params(), average, intercept, dtype=stream.dtype)
    )
    comparison.learn(stream, held_out)
    n_bad, first_bad = stream.n_bad, stream.first_bad
    if test or held_out:
        tested = stream.like(test or data, threads=reading.threads, labelled=True)
        comparison.test(tested, held_out)
        if test:
            n_bad, first_bad = n_bad + tested.n_bad, first_bad + tested.first_bad
    found = {**comparison.as_dict(), "bad_lines": n_bad, "first_bad_lines": first_bad[:MOST_TOLD]}
    if json:
        typer.echo(json_module.dumps(found))
    else:
        _show(found)
    if report is not None:
        _write_report(found, report, stream, test, held_out, started, time.perf_counter() - begun)
        tell(f"report   {report}  (open it in a browser)")


def _check_report(report: Path, inputs: list[str]) -> None:
    """Whether a report can be written is known before anything is learnt."""
    from maxcosine.experiments.charts import renderer

    check_outputs({"report": report}, inputs)
    renderer()


def _write_report(
    found: dict[str, Any],
    report: Path,
    stream: Any,
    test: list[str] | None,
    held_out: int | None,
    started: datetime,
    seconds: float,
) -> None:
    from maxcosine.experiments import comparison_report
    from maxcosine.experiments.surroundings import processor, versions
    from maxcosine.stream.source import described, expand

    how = comparison_report.Circumstances(
        data=described(stream.source.names),
        test_data=described(expand(test)) if test else [],
        held_out=held_out,
        options={name: getattr(stream, name) for name in comparison_report.OPTIONS},
        command=command_line(),
        versions=versions(),
        processor=processor(),
        started=started.isoformat(timespec="seconds"),
        seconds=seconds,
    )
    comparison_report.write(found, how, report)


def _show(found: dict[str, Any]) -> None:
    """The rules, best first."""
    from rich import box
    from rich.table import Table

    from maxcosine.cli.display import console
    from maxcosine.cli.tables import tell_of_bad_lines
    from maxcosine.experiments.looks import title_of

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
    tell_of_bad_lines(found)


def _rules(names: str) -> list[Any]:
    from maxcosine.rules import RULES

    chosen = list(RULES) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in RULES:
            raise ValueError(f"there is no rule {name!r}; the rules are {', '.join(RULES)}")
    if not chosen:
        raise ValueError("no rule is given; name some, for example mcp,pa1")
    return [RULES[name] for name in chosen]
