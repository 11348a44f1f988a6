"""Derivations for people: plain text, LaTeX and HTML, laid out as the paper's Tables 1 and 2."""

from __future__ import annotations

import html as html_escape
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.str import StrPrinter

from maxcosine.derive.lemma3 import NUMERIC, Case
from maxcosine.derive.symbols import c, ell, g, norm_w, sq_x, u, x

if TYPE_CHECKING:
    from maxcosine.derive.claims import Claim
    from maxcosine.derive.derivation import Derivation
    from maxcosine.derive.symbols import StateSymbol

LATEX_NAMES = {
    ell: r"\ell_i",
    g: r"\gamma_i",
    sq_x: r"\|\mathbf{a}_i\|_2^2",
    x: "x",
    norm_w: r"\|\mathbf{w}_i\|_2",
    u: "u",
    c: "c",
}
_NORM_A, _NORM_W = sp.symbols("norma normw", positive=True)
MATHML = {
    "<mi>ell</mi>": "<mi>\N{SCRIPT SMALL L}</mi>",
    "<mi>norma</mi>": "<mi>\N{DOUBLE VERTICAL LINE}a\N{DOUBLE VERTICAL LINE}</mi>",
    "<mi>normw</mi>": "<mi>\N{DOUBLE VERTICAL LINE}w\N{DOUBLE VERTICAL LINE}</mi>",
    "<mo>-</mo>": "<mo>\N{MINUS SIGN}</mo>",
}
"""SymPy orders terms by names: symbols get theirs when the order is settled."""
LONG = 30
"""An expression with more operations is not written out in a table."""
MEDIUM = 12
"""An expression with more operations is not written out in plain text."""
ROMAN = {50: "L", 40: "XL", 10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}
IN_REALS = "Proofs are about real arithmetic; lengths in counterexamples are in units of norm(a)."
TRAITS = ("conservative", "scale_free", "scale_invariant")
"""Claims that the mistake bound does not need."""
WIDTH = 79
LEMMA_1_SQ = (ell + x) ** 2 / (1 + sq_x * x**2 + 2 * g * x)
MEANINGS = {
    x: "the relative step",
    ell: "cosine bound: cos(w, s) >= gamma ell if s separates with margin gamma",
    g: "y (w.a) / norm(w); a mistake is g <= 0",
    sq_x: "norm(a)^2",
    norm_w: "norm(w)",
}
IN_COUNTEREXAMPLES = {"u": "ell norm(a)", "c": "g / norm(a)", "z": "x norm(a)"}


class _PositiveFirst:
    """Printers of 1 - x, where SymPy's print -x + 1."""

    def _as_ordered_terms(self, expr: sp.Expr, order: Any = None) -> list[sp.Expr]:
        terms = expr.as_ordered_terms()
        return sorted(terms, key=lambda term: (term.could_extract_minus_sign(), not term.is_number))


class _TextPrinter(_PositiveFirst, StrPrinter):  # type: ignore[misc]
    pass


class _MathMLPrinter(_PositiveFirst, MathMLPresentationPrinter):  # type: ignore[misc]
    pass


def written(expression: Any) -> str:
    """Return an expression as plain text that `parse_expression` reads."""
    return str(_TextPrinter().doprint(expression))


def mathml(expression: Any) -> str:
    """Return an expression as MathML, which browsers show without further scripts."""
    body = _MathMLPrinter().doprint(expression.subs({sq_x: _NORM_A**2, norm_w: _NORM_W}))
    body = body.replace("&InvisibleTimes;", "\N{INVISIBLE TIMES}")  # HTML has fewer named characters than XML
    for name, shown in MATHML.items():
        body = body.replace(name, shown)
    return f'<math displaystyle="true">{body}</math>'


def condition(conditions: Sequence[Any]) -> str:
    """Return conditions as one line."""
    return " and ".join(map(written, conditions)) or "always"


def roman(number: int) -> str:
    """Return a number of cases as the paper's tables write it."""
    numeral = ""
    for value, letters in ROMAN.items():
        numeral += letters * (number // value)
        number %= value
    return numeral


def explain(derivation: Derivation) -> str:
    """Describe a derivation in plain text, 79 columns wide."""
    lines = [derivation.name, "", *_symbols(derivation), ""]
    if derivation.bound is not None:
        lines += _wrapped("x maximises ", written(derivation.bound))
    lines += _wrapped("w moves ", f"if {condition(derivation.when)}:" if derivation.when else "by these cases:")
    for number, case in enumerate(derivation.cases, 1):
        lines += _case(derivation, roman(number) if len(derivation.cases) > 1 else "", case)
    lines += _wrapped("", _accounting(derivation))
    for symbol in derivation.parameters:
        lines.append(f"Parameter {symbol.name} = {symbol.start}, from {symbol.low} to {symbol.high}")
    for symbol in derivation.state_symbols:
        lines += _wrapped(f"State {symbol.name}: ", state(derivation, symbol))
    needed = [claim for claim in derivation.claims if claim.name not in TRAITS]
    traits = [claim for claim in derivation.claims if claim.name in TRAITS]
    width = max(len(claim.statement) for claim in derivation.claims)
    lines += ["", "What is proven of it, in real arithmetic:", *_claims(needed, width)]
    lines += [*_conclusion(derivation), "", "Its traits:", *_claims(traits, width)]
    names = {name for claim in derivation.claims for name in claim.verdict.counterexample}
    meanings = [f"{name} = {meaning}" for name, meaning in IN_COUNTEREXAMPLES.items() if name in names]
    return "\n".join([*lines, *([f"Here {', '.join(meanings)}."] if meanings else [])])


def state(derivation: Derivation, symbol: StateSymbol) -> str:
    """Return how a number that the rule remembers starts and changes."""
    after = derivation.next_state.get(symbol, symbol)
    change = "it never changes" if after == symbol else f"each step makes it {written(after)}"
    return f"{symbol.start} at the start, from {symbol.low} to {symbol.high}; {change}"


def _symbols(derivation: Derivation) -> Iterator[str]:
    yield "An example a with label y moves the hypothesis: w <- w + norm(w) x y a."
    for symbol, meaning in MEANINGS.items():
        if symbol != norm_w or any(one.has(norm_w) for one in derivation.expressions):
            yield f"  {symbol.name:<5} {meaning}"


def _wrapped(label: str, text: str) -> list[str]:
    """Return a labelled text in lines, the further ones indented as much as the label, at breaks between words."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _case(derivation: Derivation, name: str, case: Case) -> list[str]:
    label = f"  {name:<3}  " if name else "  "
    lines = _wrapped(label, f"if {condition(case.conditions)}:") if case.conditions else []
    lines += _wrapped(" " * len(label) + "  " if case.conditions else label, _step(case))
    after = _next(derivation, case)
    if after is not None:
        lines += _wrapped(" " * (len(label) + 2 * bool(case.conditions)), f"ell**2 becomes {after}")
    return lines


def _claims(claims: Iterable[Claim], width: int) -> Iterator[str]:
    for claim in claims:
        line = f"  {claim.statement:<{width}}  {claim.verdict}"
        yield line if len(line) <= WIDTH else f"  {claim.statement}\n      {claim.verdict}"


def _conclusion(derivation: Derivation) -> list[str]:
    found = derivation.mistake_bound()
    where = "" if found.m is None else " on examples with norm(a) <= R that are separable with margin gamma"
    return _wrapped("", f"Hence {found}{where}.")


def _step(case: Case) -> str:
    if case.step == 0:
        return "no step"
    if case.step == sp.oo:
        return "w becomes y a"
    return "x is found numerically" if case.step == NUMERIC else f"x = {written(case.step)}"


def _next(derivation: Derivation, case: Case) -> str | None:
    """Return the square of the bound after a step; None if it is unchanged, or a long form of Lemma 1."""
    if case.step == 0 or case.step == NUMERIC:
        return None
    after = derivation.next_sq(case)
    return written(after) if derivation.recursive or sp.count_ops(after) <= MEDIUM else None


def _accounting(derivation: Derivation) -> str:
    if derivation.paper:
        return "ell becomes the maximum of the bound; the rule keeps it."
    if derivation.next_bound is not None:
        return "ell becomes what was given as the next bound; the rule keeps it."
    return "ell is Lambda / norm(w): Lemma 1, (ell + x)/sqrt(1 + 2*g*x + sq_x*x**2), at the step that is taken."


def case_rows(derivation: Derivation) -> Iterator[tuple[str, list[Any], sp.Expr | None, sp.Expr]]:
    """Yield type, conditions, step and squared bound afterwards of each case; the step is None if it is numeric."""
    for number, case in enumerate(derivation.cases, 1):
        conditions = [*case.conditions] if case.step == 0 else [*case.conditions, *derivation.when]
        after = LEMMA_1_SQ if _is_long(derivation, case) else derivation.next_sq(case)
        yield roman(number), conditions, None if case.step == NUMERIC else case.step, after


def _is_long(derivation: Derivation, case: Case) -> bool:
    """Whether Lemma 1 at the step is shorter than the bound written out."""
    return case.step == NUMERIC or (not derivation.recursive and sp.count_ops(derivation.next_sq(case)) > LONG)


def _rows(derivation: Derivation) -> list[tuple[str, str, str, str]]:
    """Return type, condition, new hypothesis and new bound of each case, as LaTeX."""
    rows = []
    for case, (name, conditions, _, _) in zip(derivation.cases, case_rows(derivation), strict=True):
        when = r",\ ".join(_latex(one) for one in conditions) or r"\text{always}"
        rows.append((name, when, _latex_step(case), _latex_next(derivation, case)))
    return rows


def _latex_step(case: Case) -> str:
    if case.step == 0:
        return r"\mathbf{w}_i"
    if case.step == sp.oo:
        return r"y_i \mathbf{a}_i"
    step = r"x^*" if case.step == NUMERIC else rf"x^* = {_latex(case.step)}"
    return rf"\mathbf{{w}}_i + \|\mathbf{{w}}_i\|_2 \, x^* y_i \mathbf{{a}}_i, \quad {step}"


def _latex_next(derivation: Derivation, case: Case) -> str:
    if _is_long(derivation, case):
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
    memory = "".join(
        f"<p>State {one.name}: {html_escape.escape(state(derivation, one))}.</p>" for one in derivation.state_symbols
    )
    head = "<tr><th>Type</th><th>Condition</th><th>$\\mathbf{w}_{i+1}$</th><th>$\\ell_{i+1}^2$</th></tr>"
    return (
        f"<p><b>{derivation.name}</b>: {html_escape.escape(derivation.origin)}</p><table>{head}{cells}</table>"
        f"{memory}<table>{proven}</table><p>{html_escape.escape(str(derivation.mistake_bound()))}. {IN_REALS}</p>"
    )
