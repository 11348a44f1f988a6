"""``maxcosine derive``: from a cosine bound to a rule, and what is proven of it."""

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
)
from maxcosine.cli.options import Force, Json, check_outputs, command_line, refuse_to_replace
from maxcosine.cli.reproduce import Name, load
from maxcosine.cli.rules import compile_rules, refuse_same_names
from maxcosine.cli.terminal import Quiet, tell

if TYPE_CHECKING:
    from maxcosine.derive import Claim, Derivation
    from maxcosine.experiments.results import Results
    from maxcosine.rules.rule import Rule

RIVALS = ("mcp", "mcp_exact", "naromma", "pa")
"""The built-in rules that a derived rule is compared with."""


def derive(
    bound: Bound = None,
    when: When = None,
    step: Step = None,
    curve: Curve = None,
    margins: Margins = None,
    theta: Theta = None,
    account: Account = "exact",
    next_bound: NextBound = None,
    param: Parameters = None,
    name: RuleName = "derived",
    try_on: Annotated[
        str | None,
        typer.Option(
            "--try",
            metavar="DATA",
            help="Compare the rule with mcp, mcp_exact, naromma and pa: on digits, mnist or fashion by the paper's "
            "protocol, on a file by one pass.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with the idx files of mnist or fashion.")
    ] = None,
    permutations: Annotated[int, typer.Option(min=1, help="Orders of the training data for each label.")] = 5,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Write the rule as Python, which needs no SymPy.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write a report, HTML to open in a browser.")
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Derive a rule from a cosine bound, and prove by machine what holds of it.

    The step x maximises the bound. A bound is an expression in x, ell (the bound so far), g (the projection of the
    example on w; a mistake is g <= 0), sq_x (the squared norm of the example), norm_w, and parameters of your own.
    Expressions have numbers, + - * / **, sqrt, min, max and abs; conditions have < <= > >= and 'and'.

    \b
    maxcosine derive '(ell + x)/sqrt(1 + sq_x*x**2)' --when 'g <= 0' --account paper --name my_cmcp
    maxcosine derive '(ell + x)/sqrt(1 + sq_x*x**2 + 2*g*x)' --try digits
    maxcosine derive --curve '1/(1 + a*abs(v))' --theta 0.7 --param a=1:1:2 --save rule.py --report rule.html
    """
    derivation = derivation_of(
        bound, curve, margins, theta, step, when, account, next_bound, params=param or (), name=name
    )
    is_file = try_on is not None and try_on not in get_args(Name)
    _check_files(save, report, [try_on] if try_on and is_file else [], force=force)
    rules = _rules(derivation) if try_on else []
    if data is not None and try_on not in ("mnist", "fashion"):
        raise ValueError("--data goes with --try mnist and --try fashion only; leave it out")
    trial: Any = None
    found = describe(derivation)
    if not (json or (quiet and (save or report))):
        typer.echo(derivation.explain())
    if try_on and is_file:
        trial = found["trial"] = _compare(rules, try_on)
    elif try_on:
        trial = _experiment(rules, try_on, data, permutations)
        found["trial"] = describe_trial(trial)
    _show(found, trial, json=json, quiet=bool(quiet and report))
    _write(derivation, save, report, trial)


def _check_files(save: Path | None, report: Path | None, inputs: list[str], *, force: bool) -> None:
    """Refuse outputs that cannot be written, before any work."""
    from maxcosine.experiments.charts import renderer

    outputs = {name: path for name, path in (("save", save), ("report", report)) if path is not None}
    check_outputs(outputs, inputs)
    refuse_to_replace(outputs, force=force)
    if report is not None:
        renderer()  # raises an error if it is not installed


def _rules(derivation: Derivation) -> list[Rule]:
    """Return the derived rule and those it is compared with, compiled."""
    from maxcosine.rules import RULES

    if derivation.name in RIVALS:
        raise ValueError(f"--try compares the rule with {derivation.name}, too; give it another --name")
    rules = [derivation.rule, *(RULES[name] for name in RIVALS)]
    refuse_same_names(rules)
    compile_rules(rules)
    return rules


def describe(derivation: Derivation) -> dict[str, Any]:
    """Return a derivation for JSON; expressions are texts that the command reads."""
    from maxcosine.derive.text import case_rows, written

    bound, found = derivation.bound, derivation.mistake_bound()
    return {
        "name": derivation.name,
        "bound": None if bound is None else written(bound),
        "when": [written(one) for one in derivation.when],
        "account": "paper" if derivation.paper else "exact" if derivation.next_bound is None else "next_bound",
        "parameters": {
            one.name: {"default": str(one.start), "low": str(one.low), "high": str(one.high)}
            for one in derivation.parameters
        },
        "cases": [
            {
                "type": name,
                "if": [written(one) for one in conditions],
                "step": "numeric" if step is None else "infinite" if step.is_infinite else written(step),
                "next_squared_bound": written(after),
            }
            for name, conditions, step, after in case_rows(derivation)
        ],
        "claims": [_describe_claim(one) for one in derivation.claims],
        "mistake_bound": {
            "m": None if found.m is None else str(found.m),
            "failed": None if found.failed is None else found.failed.name,
            "text": str(found),
        },
    }


def _describe_claim(claim: Claim) -> dict[str, Any]:
    verdict = claim.verdict
    return {
        "name": claim.name,
        "statement": claim.statement,
        "verdict": verdict.status,
        "method": verdict.method,
        "points": verdict.points,
        "counterexample": {name: str(value) for name, value in verdict.counterexample.items()},
    }


def _experiment(rules: list[Rule], name: Any, folder: Path | None, permutations: int) -> Results:
    """Compare the first rule with the others by the paper's protocol."""
    from maxcosine.cli.display import ExperimentProgress
    from maxcosine.experiments.protocol import Learner, Protocol
    from maxcosine.experiments.run import run

    data = load(name, folder)
    protocol = Protocol([Learner(rule) for rule in rules], data.buckets, permutations)
    progress = ExperimentProgress(len(data.labels) * permutations, [rule.name for rule in rules])
    with progress:
        results = run(data, protocol, command=command_line(), on_unit=progress.add)
    results.protocol["focus"] = rules[0].name
    return results


def describe_trial(results: Results) -> dict[str, Any]:
    """Return for JSON how the rule in focus compares with the others."""
    from dataclasses import asdict

    from maxcosine.experiments.statistics import differences, focus, overall_means

    overall = [one for one in differences(results, focus(results)) if one.label is None]
    return {
        "data": results.dataset["name"],
        "permutations": results.permutations,
        "mean_test_mistakes": overall_means(results),
        "differences": [{key: value for key, value in asdict(one).items() if key != "label"} for one in overall],
    }


def _compare(rules: list[Rule], path: str) -> dict[str, Any]:
    """Compare rules on a file, each example predicted before it is learnt."""
    from maxcosine.data import MAX_REPORTED, ReadOptions, Stream
    from maxcosine.training import Settings
    from maxcosine.training.comparison import Comparison

    stream = Stream([path], ReadOptions(purpose="learn"))
    dtype = stream.options.dtype
    comparison = Comparison([Settings(rule, rule.make_params({}), fit_intercept=True, dtype=dtype) for rule in rules])
    comparison.learn(stream)
    bad = {"bad_lines": stream.n_bad, "first_bad_lines": stream.bad.messages[:MAX_REPORTED]}
    return {"data": path, **comparison.as_dict(), **bad}


def _show(found: dict[str, Any], trial: Any, *, json: bool, quiet: bool) -> None:
    """Print how the rule compares; with `json` all that was found out."""
    from maxcosine.cli import compare
    from maxcosine.cli.tables import print_outcome, show

    def show_trial(_: dict[str, Any]) -> None:
        if trial is not None:
            typer.echo()
            compare.show(trial) if isinstance(trial, dict) else show(trial)

    print_outcome(found, show_trial, json=json, quiet=quiet)


def _write(derivation: Derivation, save: Path | None, report: Path | None, trial: Any) -> None:
    from maxcosine import files

    if save is not None or report is not None:
        tell("")
    if save is not None:
        files.write(save, derivation.to_python())
        tell(f"rule     {save}")
        tell(f"use it   maxcosine train data.svm --rule {save}:{derivation.name} --model my.model")
    if report is not None:
        from maxcosine.experiments import derivation_report

        derivation_report.write(derivation, report, command_line(), trial)
        tell(f"report   {report}  (open it in a browser)")
