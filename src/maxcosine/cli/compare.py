"""``maxcosine compare``: all rules on the same data, which are parsed once."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.cli.options import (
    AnyLabels,
    Average,
    Data,
    Examples,
    Intercept,
    Json,
    Reading,
    Records,
    check_outputs,
    command_line,
    flatten_options,
)
from maxcosine.cli.rules import Params, compile_rules, params_of, refuse_same_names, rule_named
from maxcosine.cli.terminal import Quiet, tell


@flatten_options
def compare(
    data: Data,
    reading: Reading,
    records: Records,
    examples: Examples,
    test: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Test on these examples.", show_default=False)
    ] = None,
    split: Annotated[
        float | None, typer.Option(min=0.0, max=0.5, help="Hold out this share of the data for a test.")
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            help="Which rules, separated by commas, or all; onepass is the one-pass learner, FILE.py:NAME is your rule."
        ),
    ] = "all",
    param: Params = None,
    average: Average = False,
    intercept: Intercept = True,
    any_labels: AnyLabels = False,
    report: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write a report, HTML to open in a browser.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn with every rule at once, and see which one suits the data.

    All rules see the same examples in the same order; the data are read and parsed once. Without --test and
    --split, rules are compared by their progressive error: each example is predicted before it is learnt.

    \b
    maxcosine compare clicks.svm --split 0.2
    maxcosine compare train.vw --test test.vw --rules mcp,pa1,perceptron --average
    maxcosine compare clicks.svm --split 0.2 --report clicks.html
    maxcosine compare clicks.csv --label clicked --split 0.2
    maxcosine compare clicks.svm --rules mcp,pa1,my_rules.py:mine --param pa1.C=0.1 --param mine.step=2
    """
    from maxcosine.cli.tables import print_outcome
    from maxcosine.data import MAX_REPORTED, STANDARD_INPUT, ReadOptions, Stream, describe_inputs, expand
    from maxcosine.experiments import charts, comparison_report
    from maxcosine.onepass_model import ONEPASS
    from maxcosine.rules import RULES
    from maxcosine.training import OnePassSettings, Settings
    from maxcosine.training.comparison import Comparison

    if test and split:
        raise ValueError("--test and --split are two ways to test; give one of them")
    names = [name.strip() for name in rules.split(",") if name.strip()]
    names = [ONEPASS, *RULES] if names == ["all"] else names
    if not names:
        raise ValueError("no rule is given; name some, for example onepass,mcp,pa1")
    chosen = [rule_named(name, "--rules") for name in names if name != ONEPASS]
    refuse_same_names(chosen)
    params = params_of(chosen, param)
    settings: list[Any] = [Settings(one, one.make_params(params[one.name]), average, intercept) for one in chosen]
    if ONEPASS in names:
        settings.insert(names.index(ONEPASS), OnePassSettings())
    compile_rules(chosen)
    if report is not None:
        check_outputs({"report": report}, [*data, *(test or [])])
        charts.renderer()  # raises an error if it is not installed
    date, started = datetime.now(UTC), time.perf_counter()
    about_data = {**vars(reading), **examples.fields(), "records": records.options()}
    read = ReadOptions(**about_data, any_labels=any_labels, purpose="learn")
    stream = Stream(data, read)
    if split and STANDARD_INPUT in stream.inputs.names:
        raise ValueError("--split reads the data twice, which standard input does not allow; write it to a file")
    hold_out = round(1.0 / split) if split else None
    dtype = stream.options.dtype
    comparison = Comparison([replace(one, dtype=dtype) for one in settings])
    comparison.learn(stream, hold_out)
    n_bad, messages = stream.n_bad, stream.bad.messages
    if test or hold_out:
        tested = stream.like(test or data, threads=reading.threads, purpose="evaluate" if test else "learn")
        comparison.test(tested, hold_out)
        if test:
            n_bad, messages = n_bad + tested.n_bad, messages + tested.bad.messages
    found = {**comparison.as_dict(), "bad_lines": n_bad, "first_bad_lines": messages[:MAX_REPORTED]}
    print_outcome(found, show, json=json)
    if report is not None:
        details = {
            "data": describe_inputs(stream.inputs.names),
            "test_data": describe_inputs(expand(test)) if test else [],
            "held_out": hold_out,
            "options": {name: getattr(stream.options, name) for name in comparison_report.OPTIONS},
            "command": command_line(),
            "started": date.isoformat(timespec="seconds"),
            "seconds": time.perf_counter() - started,
        }
        comparison_report.write({**found, **details}, report)
        tell(f"report   {report}  (open it in a browser)")


def show(found: dict[str, Any]) -> None:
    """Print a table of the rules, the best one first."""
    from maxcosine.certificate_text import mistake_bound, rounded_up
    from maxcosine.cli.display import console
    from maxcosine.cli.tables import new_table, plain, report_bad_lines
    from maxcosine.experiments.comparison_report import chance
    from maxcosine.experiments.rule_styles import title_of

    tested = f", tested on {found['test_examples']:,}" if found["test_examples"] else ""
    bad = f", {found['bad_lines']:,} bad lines skipped" if found["bad_lines"] else ""
    errors = ["progressive error", *(["test error"] if tested else [])]
    columns = ["rule", *errors, "updates", "margin ceiling", "mistake bound", "seconds"]
    table = new_table(f"{found['examples']:,} examples{tested}{bad}", columns)
    table.padding, table.show_edge = (0, 0, 0, 0), False  # so that it fits into 80 columns
    table.columns[0].no_wrap = True
    for row in found["rules"]:
        ceilings = [one for one in row["margin_ceilings"] if one is not None]
        cells = [f"{row['progressive_error']:.3%}"]
        cells += [f"{row['test_error']:.3%}"] if tested else []
        cells.append("-" if row["updates"] is None else f"{row['updates']:,}")
        cells.append(rounded_up(min(ceilings), 4) if ceilings else "-")
        cells += [mistake_bound(row["gain"]), f"{row['seconds']:.3f}"]
        table.add_row(plain(("avg " if row["average"] else "") + title_of(row["rule"])), *cells)
    console().print(table)
    console().print(chance(found), markup=False, highlight=False)
    report_bad_lines(found)
