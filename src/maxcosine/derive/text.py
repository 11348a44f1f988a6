"""Derivations for people: plain text, LaTeX and HTML, laid out as the paper's Tables 1 and 2."""

from __future__ import annotations

import html as html_escape
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sympy as sp

from maxcosine.derive.lemma3 import NUMERIC, Case
from maxcosine.derive.symbols import c, ell, g, norm_w, sq_x, u, x

if TYPE_CHECKING:
    from maxcosine.derive.derivation import Derivation

LATEX_NAMES = {
    ell: r"\ell_i",
    g: r"\gamma_i",
    sq_x: r"\|\mathbf{a}_i\|_2^2",
    x: "x",
    norm_w: r"\|\mathbf{w}_i\|_2",
    u: "u",
    c: "c",
}
LEMMA_1 = "(ell + x)^2 / (1 + sq_x x^2 + 2 g x)"
LONG = 30
"""An expression with more operations is not written out."""
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
IN_REALS = "Proofs are about real arithmetic; lengths in counterexamples are in units of norm(x)."


def condition(conditions: Sequence[Any]) -> str:
    """Return conditions as one line."""
    return " and ".join(map(str, conditions)) or "always"


def explain(derivation: Derivation) -> str:
    """Describe a derivation in plain text."""
    lines = [f"{derivation.name}: w <- w + norm(w) x y a, with ell, g = y (w.a) / norm(w) and sq_x = norm(a)^2"]
    if derivation.bound is not None:
        lines.append(f"  maximises  {derivation.bound}")
    lines.append(f"  moves      when {condition(derivation.when)}")
    for name, case in zip(ROMAN, derivation.cases, strict=False):
        lines.append(f"  {name:<4}       if {condition(case.conditions)}: {_step(case)}")
        if case.step != 0:
            lines.append(f"             then ell'^2 = {_next(derivation, case)}")
    lines.append(f"  bound      {_accounting(derivation)}")
    for symbol in derivation.parameters:
        lines.append(f"  parameter  {symbol.name} = {symbol.start}, from {symbol.low} to {symbol.high}")
    lines += ["", "What is proven of it:"]
    width = max(len(claim.statement) for claim in derivation.claims)
    lines += [f"  {claim.statement:<{width}}  {claim.verdict}" for claim in derivation.claims]
    return "\n".join([*lines, f"  {derivation.mistake_bound()}", IN_REALS])


def _step(case: Case) -> str:
    if case.step == 0:
        return "no step"
    if case.step == sp.oo:
        return "w becomes y a"
    return "x is found numerically" if case.step is NUMERIC else f"x = {case.step}"


def _next(derivation: Derivation, case: Case) -> str:
    if case.step is NUMERIC:
        return LEMMA_1
    after = derivation.next_sq(case)
    return str(after) if derivation.recursive or sp.count_ops(after) <= LONG else LEMMA_1


def _accounting(derivation: Derivation) -> str:
    if derivation.paper:
        return "the maximum of the bound, kept by the rule"
    return (
        "as given, kept by the rule" if derivation.next_bound is not None else "Lambda / norm(w): Lemma 1 at the step"
    )


def _rows(derivation: Derivation) -> list[tuple[str, str, str, str]]:
    """Return type, condition, new hypothesis and new bound of each case, as LaTeX."""
    rows = []
    for name, case in zip(ROMAN, derivation.cases, strict=False):
        conditions = [*case.conditions] if case.step == 0 else [*case.conditions, *derivation.when]
        when = r",\ ".join(_latex(one) for one in conditions) or r"\text{always}"
        rows.append((name, when, _latex_step(case), _latex_next(derivation, case)))
    return rows


def _latex_step(case: Case) -> str:
    if case.step == 0:
        return r"\mathbf{w}_i"
    if case.step == sp.oo:
        return r"y_i \mathbf{a}_i"
    step = r"x^*" if case.step is NUMERIC else rf"x^* = {_latex(case.step)}"
    return rf"\mathbf{{w}}_i + \|\mathbf{{w}}_i\|_2 \, x^* y_i \mathbf{{a}}_i, \quad {step}"


def _latex_next(derivation: Derivation, case: Case) -> str:
    if case.step is NUMERIC or (not derivation.recursive and sp.count_ops(derivation.next_sq(case)) > LONG):
        return r"\frac{(\ell_i + x^*)^2}{1 + \|\mathbf{a}_i\|_2^2 {x^*}^2 + 2 \gamma_i x^*}"
    return _latex(derivation.next_sq(case))


def _latex(expression: Any) -> str:
    return str(sp.latex(expression, symbol_names=LATEX_NAMES))


def latex(derivation: Derivation) -> str:
    """Return the table of cases as LaTeX that notebooks can show."""
    rows = r" \\ \hline ".join(" & ".join((rf"\text{{{row[0]}}}", *row[1:])) for row in _rows(derivation))
    head = r"\text{Type} & \text{Condition} & \mathbf{w}_{i+1} & \ell_{i+1}^2"
    return rf"$$\begin{{array}}{{c||c|c|c}} {head} \\ \hline\hline {rows} \end{{array}}$$"


def html(derivation: Derivation) -> str:
    """Return the table of cases, and what is proven, as HTML that notebooks can show."""
    cells = "".join(
        f"<tr><td>{name}</td>" + "".join(f"<td>${html_escape.escape(one)}$</td>" for one in row) + "</tr>"
        for name, *row in _rows(derivation)
    )
    proven = "".join(
        f"<tr><td>{html_escape.escape(claim.statement)}</td><td>{html_escape.escape(str(claim.verdict))}</td></tr>"
        for claim in derivation.claims
    )
    head = "<tr><th>Type</th><th>Condition</th><th>$\\mathbf{w}_{i+1}$</th><th>$\\ell_{i+1}^2$</th></tr>"
    return (
        f"<p><b>{derivation.name}</b>: {html_escape.escape(derivation.origin)}</p><table>{head}{cells}</table>"
        f"<table>{proven}</table><p>{html_escape.escape(str(derivation.mistake_bound()))}. {IN_REALS}</p>"
    )
