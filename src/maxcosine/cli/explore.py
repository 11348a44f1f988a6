"""``maxcosine explore``: compare a whole family of derived rules, and judge the best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from maxcosine.cli.expressions import (
    Account,
    Bound,
    Curve,
    Margins,
    NextBound,
    Parameters,
    RuleName,
    Step,
    Theta,
    When,
    derivation_of,
    grid_of,
)
from maxcosine.cli.options import Force, Json, check_outputs, command_line, refuse_to_replace
from maxcosine.cli.reproduce import Name, load
from maxcosine.cli.rules import compile_rules
from maxcosine.cli.terminal import Quiet, tell

if TYPE_CHECKING:
    from maxcosine.experiments.datasets import Dataset
    from maxcosine.experiments.exploring import Exploration

MEMBERS_SHOWN = 10


def explore(
    bound: Bound = None,
    when: When = None,
    step: Step = None,
    curve: Curve = None,
    margins: Margins = None,
    theta: Theta = None,
    account: Account = "exact",
    next_bound: NextBound = None,
    param: Parameters = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="Values of a parameter to try: a=0,1,2 or a=0:4:9 for 9 values from 0 to 4. Others keep their "
            "defaults. (default: even values of all parameters)",
        ),
    ] = None,
    name: RuleName = "family",
    on: Annotated[
        str, typer.Option("--on", metavar="DATA", help="digits, mnist, fashion, or a file of examples.")
    ] = "digits",
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with the idx files of mnist or fashion.")
    ] = None,
    permutations: Annotated[
        int, typer.Option(min=1, help="Orders of the training data for each label, for judging the best.")
    ] = 20,
    search_permutations: Annotated[int, typer.Option(min=1, help="The same, for searching.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Which random orders.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time; all processors by default. The counts do not depend on it."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write a report, HTML to open in a browser.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write the figures, as SVG and PNG.")] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Derive and prove every rule of a family, run all of them side by side, and judge the best.

    The family is a bound, a step or a curve with one or two parameters, as for `maxcosine derive`. Its members are
    compared on a part of the training examples. The best one with a proven mistake bound, and the best one without,
    are then judged on the test examples, beside built-in rules.

    \b
    maxcosine explore --curve '1/(1 + a*abs(v))' --theta t --param a=1:0:4 --param t=0.5:0:1 --report map.html
    maxcosine explore --curve '1/(1 + a*abs(v))' --theta 0.7 --param a=1:0:8 --grid a=0:8:17 --on clicks.svm
    """
    from maxcosine.cli.display import ProgressLine
    from maxcosine.cli.tables import print_outcome
    from maxcosine.experiments import exploration_report, exploring
    from maxcosine.experiments.charts import renderer

    family = derivation_of(bound, curve, margins, theta, step, when, account, next_bound, params=param or (), name=name)
    values = exploring.full_grid(family, grid_of(grid or []))
    is_file = on not in get_args(Name)
    outputs = {} if report is None else {"report": report}
    check_outputs(outputs, [on] if is_file else [])
    refuse_to_replace(outputs, force=force)
    if report is not None or figures is not None:
        renderer()  # raises an error if it is not installed
    if data is not None and on not in ("mnist", "fashion"):
        raise ValueError("--data goes with --on mnist and --on fashion only; leave it out")
    examples = _load(on, data, is_file=is_file)
    compile_rules([family.rule])
    with ProgressLine() as line:
        found = exploring.explore(
            family,
            examples,
            grid=values,
            permutations=permutations,
            search_permutations=search_permutations,
            seed=seed,
            jobs=jobs,
            command=command_line(),
            watch=lambda stage, done, total: line.update(lambda: f"{stage}: {done} of {total}"),
        )
    print_outcome(describe(found), lambda _: _show(found), json=json, quiet=quiet)
    if report is not None:
        exploration_report.write(found, report)
        tell(f"report   {report}  (open it in a browser)")
    if figures is not None:
        for path in exploration_report.save_figures(found, figures):
            tell(f"figure   {path}")


def _load(on: Any, folder: Path | None, *, is_file: bool) -> Dataset:
    from maxcosine.experiments import datasets

    return datasets.load_file(on) if is_file else load(on, folder)


def describe(found: Exploration) -> dict[str, Any]:
    """Return an exploration for JSON."""
    from maxcosine.cli.derive import describe_trial

    return {
        "family": found.family.name,
        "searched": found.searched,
        "members": [
            {
                "values": {name: str(value) for name, value in member.values.items()},
                "m": None if member.bound.m is None else str(member.bound.m),
                "failed": None if member.bound.failed is None else member.bound.failed.name,
                "mistakes": member.mistakes,
            }
            for member in found.members
        ],
        "rivals": found.rivals,
        "winners": {
            name: {key: str(value) for key, value in member.values.items()} for name, member in found.winners.items()
        },
        "judged": describe_trial(found.judged),
    }


def _show(found: Exploration) -> None:
    """Print the best members of the search, and how the winners were judged."""
    from maxcosine.certificate_text import mistake_bound
    from maxcosine.cli.display import console
    from maxcosine.cli.tables import new_table, show
    from maxcosine.experiments.rule_styles import title_of

    n, proven = len(found.members), sum(member.proven for member in found.members)
    typer.echo(f"{n} members of {found.family.name} were tried, {proven} of them with a proven mistake bound.")
    typer.echo(f"Mean mistakes on {found.searched['test']:,} training examples that they did not learn:")
    table = new_table("", [*found.parameters, "mistakes", "mistake bound"])
    best = sorted(found.members, key=lambda one: one.mistakes)[:MEMBERS_SHOWN]
    for member in best:
        values = [f"{float(value):g}" for value in member.values.values()]
        table.add_row(*values, f"{member.mistakes:,.1f}", mistake_bound(member.bound.m))
    console().print(table)
    for name, member in found.winners.items():
        typer.echo(f"{title_of(name)}: {member}")
    typer.echo()
    show(found.judged)
