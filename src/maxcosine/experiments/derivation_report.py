"""Report a derived rule as one HTML page: its cases, what is proven of it, its curve, and how it compares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from maxcosine import files
from maxcosine.certificate_text import mistake_bound
from maxcosine.derive import Claim, Derivation
from maxcosine.derive.text import IN_COUNTEREXAMPLES, TRAITS, case_rows, mathml, state, written
from maxcosine.experiments import comparison_report, html_page, report
from maxcosine.experiments.band_figure import band
from maxcosine.experiments.charts import Figure
from maxcosine.experiments.comparison_report import ComparedRules
from maxcosine.experiments.environment import processor, versions
from maxcosine.experiments.figures import figures as experiment_figures
from maxcosine.experiments.results import Results
from maxcosine.experiments.rule_styles import title_of
from maxcosine.experiments.statistics import overall_means
from maxcosine.experiments.summary import summarise
from maxcosine.rules import RULES

Comparison = Mapping[str, Any]
"""What `Comparison.as_dict` returns."""

BAND_RULES = ("mcp_exact", "naromma", "damped_mcp", "soft_mcp")
"""Drawn beside the rule in the band."""
ELL = "\N{SCRIPT SMALL L}"
PRETTY = {r"\bsq_x\b": "‖a‖²", r"\bnorm\(a\)": "‖a‖", r"\bell\^2": f"{ELL}²", r"\bell\b": ELL}
SYMBOLS = {
    "x": "the relative step",
    ELL: f"the cosine bound: cos(w, s) ≥ γ {ELL} for every s that separates the examples with margin γ",
    "g": "y (w·a) / ‖w‖, the projection of the example on w; a mistake is g ≤ 0",
}
METHODS = {
    "signs": "the signs of all coefficients decide",
    "cells": "one exact rational point decides in each cell of a decomposition of the plane",
    "intervals": "outward-rounded intervals decide",
    "identity": "it holds by the definition of the rule",
}


def write(derivation: Derivation, path: str | Path, command: str, trial: Results | Comparison | None = None) -> None:
    """Write the report of a derivation.

    Parameters
    ----------
    derivation : the derived rule
    path : the file
    command : the command that repeats it
    trial : how the rule compares: an experiment under the paper's protocol, or a comparison on a stream
    """
    files.write(path, page(derivation, command, trial))


def page(derivation: Derivation, command: str, trial: Results | Comparison | None = None) -> str:
    """Return the report as HTML; see `write` for the parameters."""
    rule = derivation.rule
    drawn = [rule, *(RULES[name] for name in BAND_RULES if name != rule.name)]
    rules = list(dict.fromkeys([one.name for one in drawn] + _rules(trial)))
    return html_page.page(
        [band(drawn), *_figures(trial)],
        _tables(trial),
        kind="maxcosine derivation",
        title=derivation.name,
        method=_origin(derivation),
        summary=[_theorem(derivation), *_summary(trial)],
        numbers=[*_numbers(derivation), *_trial_numbers(derivation, trial)],
        sections=[
            ("algorithm", "The algorithm", _algorithm(derivation)),
            ("proofs", "What is proven of it", _proofs(derivation)),
        ],
        rules=rules,
        shown=rules,
        labels=trial.labels if isinstance(trial, Results) else (),
        repeat="The same command gives the same rule and the same proofs.",
        command=command,
        facts=_facts(derivation, trial),
    )


def _origin(derivation: Derivation) -> str:
    when = f" It moves when {_conditions(derivation)}." if derivation.when else ""
    if derivation.bound is None:
        return f"A perceptron-like rule whose step is given in closed form.{when}"
    return f"A perceptron-like rule whose step maximises the bound {written(derivation.bound)}.{when}"


def _conditions(derivation: Derivation) -> str:
    return " and ".join(map(written, derivation.when))


def _theorem(derivation: Derivation) -> str:
    found = derivation.mistake_bound()
    if found.m is None:
        assert found.failed is not None
        wrong = "It is false" if found.failed.verdict.status == "false" else "It is not proved"
        return (
            f"The rule {derivation.name} has no proven mistake bound. {wrong} that {_pretty(found.failed.statement)}."
        )
    return (
        f"The rule {derivation.name} makes at most {mistake_bound(float(found.m))} mistakes while learning, on "
        "examples of norm at most R that a hyperplane through the origin separates with margin γ. This is proven "
        "by machine, in real arithmetic."
    )


def _numbers(derivation: Derivation) -> Iterable[tuple[str, str, str]]:
    m = derivation.mistake_bound().m
    yield "Mistake bound", "none" if m is None else mistake_bound(float(m)), "" if m is None else f"m = {m}"
    needed = [claim for claim in derivation.claims if claim.name not in TRAITS]
    proved = sum(bool(claim.verdict) for claim in needed)
    yield "Claims proved", f"{proved} of {len(needed)}", "that the mistake bound needs"
    yield "Cases", str(len(derivation.cases)), "of the step"


def _trial_numbers(derivation: Derivation, trial: Results | Comparison | None) -> Iterable[tuple[str, str, str]]:
    if trial is None:
        return
    if isinstance(trial, Results):
        name, form, found = "Mean test mistakes", ",.1f", overall_means(trial)
    else:
        name, form = "Progressive error", ".2%"
        found = {row["rule"]: row["progressive_error"] for row in trial["rules"]}
    own = found.pop(derivation.name)
    best = min(found, key=found.__getitem__)
    yield name, format(own, form), f"{title_of(best)}, the best of the others: {found[best]:{form}}"


def _algorithm(derivation: Derivation) -> str:
    symbols = {**SYMBOLS, **{one.name: _range(one) for one in derivation.parameters}}
    symbols |= {one.name: f"what the rule remembers: {state(derivation, one)}" for one in derivation.state_symbols}
    meanings = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in symbols.items())
    parts = [
        "<p>An example a with label y moves the hypothesis: w ← w + ‖w‖ x y a.</p>",
        f'<dl class="facts">{meanings}</dl>',
    ]
    if derivation.bound is not None:
        parts.append(f'<p class="formula">x maximises {mathml(derivation.bound)}</p>')
    cases = case_rows(derivation)
    rows = [(name, _joined(conditions), _step(step), mathml(after)) for name, conditions, step, after in cases]
    parts.append(_table("Cases", ("type", "if", "then", _pretty("and ell^2 becomes")), rows))
    return "\n".join(parts)


def _range(parameter: Any) -> str:
    return f"a parameter: {parameter.start} unless it is set, from {parameter.low} to {parameter.high}"


def _joined(conditions: Iterable[Any]) -> str:
    return "<br>".join(map(mathml, conditions)) or "always"


def _step(step: Any) -> str:
    if step is None:
        return "x is found numerically"
    if step == 0:
        return "w stays"
    return f"<math><mi>x</mi><mo>=</mo>{mathml(step)}</math>" if step.is_finite is not False else "w becomes y a"


def _proofs(derivation: Derivation) -> str:
    needed = [claim for claim in derivation.claims if claim.name not in TRAITS]
    traits = [claim for claim in derivation.claims if claim.name in TRAITS]
    used = {method for claim in derivation.claims for method in claim.verdict.method.split(", ")}
    how = "; ".join(f"{name}: {text}" for name, text in METHODS.items() if name in used)
    names = {name for claim in derivation.claims for name in claim.verdict.counterexample}
    where = ", ".join(f"{name} = {text}" for name, text in IN_COUNTEREXAMPLES.items() if name in names)
    note = f"Proofs are about real arithmetic. {how[:1].upper()}{how[1:]}."
    if where:
        note += f" In counterexamples, {where}; exact arithmetic confirms them."
    columns = ("claim", "verdict")
    return "\n".join(
        [
            f'<p class="note">{escape(_pretty(note))}</p>',
            _table("What the mistake bound needs", columns, (_claim_row(one, one.verdict.status) for one in needed)),
            _table("Traits of the rule", columns, (_claim_row(one, "trait") for one in traits)),
        ]
    )


def _claim_row(claim: Claim, kind: str) -> tuple[str, str]:
    return escape(_pretty(claim.statement)), f'<span class="{kind}">{escape(str(claim.verdict))}</span>'


def _pretty(text: str) -> str:
    """Return text with the symbols of the formulas."""
    for plain, symbol in PRETTY.items():
        text = re.sub(plain, symbol, text)
    return text


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of HTML, which has an order of its own and cannot be sorted."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join(_row(*cells) for cells in rows)
    return f"""<h3>{escape(title)}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">
<table class="text" aria-label="{escape(title)}">
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>"""


def _row(first: str, *others: str) -> str:
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{one}</td>" for one in others)}</tr>'


def _rules(trial: Results | Comparison | None) -> list[str]:
    if trial is None:
        return []
    return trial.rules if isinstance(trial, Results) else ComparedRules(trial).rules


def _summary(trial: Results | Comparison | None) -> Iterable[str]:
    if trial is None:
        return []
    return summarise(trial) if isinstance(trial, Results) else comparison_report.summary(ComparedRules(trial))


def _figures(trial: Results | Comparison | None) -> list[Figure]:
    if trial is None:
        return []
    if isinstance(trial, Results):
        return experiment_figures(trial)
    compared = ComparedRules(trial)
    return [comparison_report.errors(compared), comparison_report.learning(compared)]


def _tables(trial: Results | Comparison | None) -> Iterable[str]:
    if trial is None:
        return []
    return report.tables(trial) if isinstance(trial, Results) else [comparison_report.table(ComparedRules(trial))]


def _facts(derivation: Derivation, trial: Results | Comparison | None) -> Iterable[tuple[str, str]]:
    yield "Bound", "none: the step is given" if derivation.bound is None else written(derivation.bound)
    yield "Moves", f"when {_conditions(derivation)}" if derivation.when else "by its cases"
    if isinstance(trial, Results):
        yield "Data", f"{trial.title}, {trial.permutations} orders for each label"
    elif trial is not None:
        yield "Data", f"{trial['examples']:,} examples with {trial['features']:,} features"
    yield "Rules", ", ".join(map(title_of, _rules(trial) or [derivation.name]))
    yield "Versions", ", ".join(f"{name} {value}" for name, value in versions().items())
    yield "Machine", processor()
