"""Text to SymPy expressions. Nothing in the text is ever evaluated as Python.

SymPy's own parser executes what it reads. Here Python's `ast` gives the tree of the text, and a walk over the tree
builds an expression from the few kinds of nodes that the grammar has. Every limit is checked before SymPy computes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple, NoReturn

import sympy as sp

MAX_LENGTH = 2_000  # characters
MAX_NODES = 200  # names, numbers and operations
MAX_DEPTH = 40  # operations inside one another; SymPy recurses over them
MAX_BRANCHES = 12  # arguments of all min and max, and two for each abs: every combination may need a proof
MAX_EXPONENT = 12  # of its numerator and its denominator
MAX_BITS = 128  # of the numerator and the denominator of any number
MAX_DEGREE = 24  # of numerator and denominator together

_FUNCTIONS: dict[str, Callable[..., sp.Expr]] = {"sqrt": sp.sqrt, "min": sp.Min, "max": sp.Max, "abs": sp.Abs}
_FUNCTIONS |= {"Min": sp.Min, "Max": sp.Max, "Abs": sp.Abs}  # as SymPy writes them
_COMPARISONS = {ast.Lt: sp.Lt, ast.LtE: sp.Le, ast.Gt: sp.Gt, ast.GtE: sp.Ge}

_ALLOWED = "names, decimal numbers, + - * / ** ( ), sqrt, min, max, abs"
_ALLOWED_IN_CONDITIONS = f"comparisons by < <= > >=, joined by 'and', of {_ALLOWED}"
_TOKEN = re.compile(
    r"[ \t]+|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|[-+*/(),]|[<>]=?"
    r"|(?P<number>([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?(?![A-Za-z0-9_.]))"
)


class BadExpression(ValueError):
    """Text that is not an expression or a condition of the grammar."""


def parse_expression(text: str, names: Mapping[str, sp.Symbol]) -> sp.Expr:
    """The expression that a text means.

    The grammar: names, decimal numbers (0.1 is exactly 1/10), ``+ - * / **`` with rational exponents, ``sqrt``,
    ``min``, ``max`` and ``abs``.

    Parameters
    ----------
    text : str
        The expression.
    names : mapping of str to Symbol
        The names that may occur, and what they stand for.

    Returns
    -------
    Expr
        The expression.

    Raises
    ------
    BadExpression
        If the text is outside the grammar or its limits; the message gives the column.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> parse_expression("(1 + x) / sqrt(1 + 0.1 * x**2)", {"x": x})
    (x + 1)/sqrt(x**2/10 + 1)
    """
    reader = _Reader(text, names, _ALLOWED)
    return reader.value(reader.tree(), 0).expression


def parse_conditions(text: str, names: Mapping[str, sp.Symbol]) -> tuple[sp.core.relational.Relational, ...]:
    """The conditions that a text means: comparisons by ``< <= > >=``, joined by ``and``.

    Parameters
    ----------
    text : str
        The conditions; ``0 <= g <= 1`` is two.
    names : mapping of str to Symbol
        The names that may occur, and what they stand for.

    Returns
    -------
    tuple of Relational
        All of them must hold.

    Raises
    ------
    BadExpression
        If the text is outside the grammar or its limits, or if a condition holds always or never.

    Examples
    --------
    >>> import sympy as sp
    >>> g, ell = sp.symbols("g ell", real=True)
    >>> parse_conditions("0 <= g <= 1 / ell", {"g": g, "ell": ell})
    (0 <= g, g <= 1/ell)
    """
    reader = _Reader(text, names, _ALLOWED_IN_CONDITIONS)
    return tuple(reader.conditions(reader.tree(), 0))


class _Degree(NamedTuple):
    """Bounds on the total degrees of an expression's numerator and denominator."""

    over: Fraction = Fraction(0)
    under: Fraction = Fraction(0)

    def plus(self, other: _Degree) -> _Degree:
        return _Degree(max(self.over + other.under, other.over + self.under), self.under + other.under)

    def times(self, other: _Degree) -> _Degree:
        return _Degree(self.over + other.over, self.under + other.under)

    def power(self, exponent: Fraction) -> _Degree:
        over, under = (self.over, self.under) if exponent >= 0 else (self.under, self.over)
        return _Degree(over * abs(exponent), under * abs(exponent))


class _Value(NamedTuple):
    expression: sp.Expr
    degree: _Degree


class _Reader:
    """One text on its way to an expression."""

    def __init__(self, text: str, names: Mapping[str, sp.Symbol], allowed: str) -> None:
        self.text = text.strip(" \t")
        self.first_column = 1 + len(text) - len(text.lstrip(" \t"))
        self.names = names
        self.allowed = allowed
        self.nodes = 0
        self.branches = 0

    def tree(self) -> ast.expr:
        """The syntax tree of the text, whose characters and numbers are checked first."""
        if len(self.text) > MAX_LENGTH:
            raise BadExpression(f"{len(self.text)} characters found; at most {MAX_LENGTH} are allowed")
        if not self.text:
            raise BadExpression(f"column 1: found nothing; allowed: {self.allowed}")
        place = 0
        while place < len(self.text):
            token = _TOKEN.match(self.text, place)
            if token is None:
                found = re.match(r"[0-9.]\w*|.", self.text[place:], re.DOTALL)
                self.fail(place, f"found {found[0][:40] if found else ''!r}; allowed: {self.allowed}")
            place = token.end()
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            place = error.offset - 1 if error.offset else len(self.text)  # 0: the text ends too early
            self.fail(place, f"{error.msg}; allowed: {self.allowed}")
        except (RecursionError, MemoryError):
            raise BadExpression(f"nested too deeply; at most {MAX_DEPTH} operations inside one another") from None

    def conditions(self, node: ast.expr, depth: int) -> list[sp.core.relational.Relational]:
        self.count(node, depth)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return [condition for part in node.values for condition in self.conditions(part, depth + 1)]
        if not isinstance(node, ast.Compare) or not all(type(each) in _COMPARISONS for each in node.ops):
            self.refuse(node)
        sides = [self.value(side, depth + 1) for side in (node.left, *node.comparators)]
        found = []
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            self.check_degree(node, left.degree.plus(right.degree))
            condition = _COMPARISONS[type(operator)](left.expression, right.expression)
            if condition in (sp.true, sp.false):
                always = "always" if condition == sp.true else "never"
                self.fail(node.col_offset, f"{self.source(node)!r} {always} holds; compare what varies")
            found.append(condition)
        return found

    def value(self, node: ast.expr, depth: int) -> _Value:
        self.count(node, depth)
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                value = _Value(sp.Rational(self.text[node.col_offset : node.end_col_offset]), _Degree())
            case ast.Name(id=name):
                if name not in self.names:
                    known = ", ".join(sorted(self.names))
                    self.fail(node.col_offset, f"unknown name {name!r}; known names: {known}")
                value = _Value(self.names[name], _Degree(Fraction(1)))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                inner = self.value(operand, depth + 1)
                value = inner._replace(expression=-inner.expression) if isinstance(node.op, ast.USub) else inner
            case ast.BinOp(op=ast.Pow()):
                value = self.power(node, depth + 1)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                value = self.arithmetic(node, depth + 1)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                value = self.call(node, name, depth + 1)
            case _:
                self.refuse(node)
        self.check_numbers(node, value.expression)
        return value

    def arithmetic(self, node: ast.BinOp, depth: int) -> _Value:
        (left, of_left), (right, of_right) = self.value(node.left, depth), self.value(node.right, depth)
        match node.op:
            case ast.Add() | ast.Sub():
                degree = self.check_degree(node, of_left.plus(of_right))
                return _Value(left + right if isinstance(node.op, ast.Add) else left - right, degree)
            case ast.Mult():
                degree = self.check_degree(node, of_left.times(of_right))
                return _Value(left * right, degree)
            case _:
                if right == 0:
                    self.fail(node.right.col_offset, f"{self.source(node.right)!r} is 0; do not divide by it")
                degree = self.check_degree(node, of_left.times(of_right.power(Fraction(-1))))
                return _Value(left / right, degree)

    def power(self, node: ast.BinOp, depth: int) -> _Value:
        base, exponent = self.value(node.left, depth), self.value(node.right, depth).expression
        if not exponent.is_Rational or max(abs(exponent.p), exponent.q) > MAX_EXPONENT:
            self.fail(
                node.right.col_offset,
                f"exponent {self.source(node.right)!r}; an exponent is a number, its numerator and denominator at "
                f"most {MAX_EXPONENT}",
            )
        if base.expression == 0 and exponent < 0:
            self.fail(node.left.col_offset, f"{self.source(node.left)!r} is 0; do not divide by it")
        degree = self.check_degree(node, base.degree.power(Fraction(exponent.p, exponent.q)))
        return _Value(self.real(node, base.expression**exponent), degree)

    def call(self, node: ast.Call, name: str, depth: int) -> _Value:
        if name not in _FUNCTIONS:
            self.fail(node.col_offset, f"unknown function {name!r}; known functions: sqrt, min, max, abs")
        several = name.lower() in ("min", "max")
        if len(node.args) < 2 if several else len(node.args) != 1:
            expected = "two or more arguments" if several else "one argument"
            self.fail(node.col_offset, f"{name} takes {expected}; found {len(node.args)}")
        self.branches += len(node.args) if several else 2 if name.lower() == "abs" else 0
        if self.branches > MAX_BRANCHES:
            self.fail(node.col_offset, f"min, max and abs have more than {MAX_BRANCHES} branches in all; use fewer")
        arguments = [self.value(each, depth) for each in node.args]
        degree = arguments[0].degree
        for each in arguments[1:]:
            degree = self.check_degree(node, degree.plus(each.degree))
        if name == "sqrt":
            degree = degree.power(Fraction(1, 2))
        return _Value(self.real(node, _FUNCTIONS[name](*(each.expression for each in arguments))), degree)

    def count(self, node: ast.expr, depth: int) -> None:
        self.nodes += 1
        if depth > MAX_DEPTH:
            self.fail(node.col_offset, f"more than {MAX_DEPTH} operations inside one another; shorten the expression")
        if self.nodes > MAX_NODES:
            self.fail(node.col_offset, f"more than {MAX_NODES} names, numbers and operations; shorten the expression")

    def check_degree(self, node: ast.expr, degree: _Degree) -> _Degree:
        if sum(degree) > MAX_DEGREE:
            self.fail(
                node.col_offset,
                f"the total degree of {self.source(node)!r} may be {float(sum(degree)):g}; at most {MAX_DEGREE} is "
                "allowed",
            )
        return degree

    def check_numbers(self, node: ast.expr, expression: sp.Expr) -> None:
        for number in expression.atoms(sp.Rational):
            if max(abs(number.p), number.q).bit_length() > MAX_BITS:
                self.fail(
                    node.col_offset, f"{self.source(node)!r} needs more than {MAX_BITS} bits; use smaller numbers"
                )

    def real(self, node: ast.expr, expression: sp.Expr) -> sp.Expr:
        """The expression, unless a root of something negative is in it."""
        for part in expression.atoms(sp.Pow, sp.I):
            if part.is_real is False:
                self.fail(node.col_offset, f"{self.source(node)!r} is not real; take no root of what is negative")
        return expression

    def source(self, node: ast.expr) -> str:
        found = self.text[node.col_offset : node.end_col_offset]
        return found if len(found) <= 40 else f"{found[:37]}..."

    def refuse(self, node: ast.expr) -> NoReturn:
        self.fail(node.col_offset, f"found {self.source(node)!r}; allowed: {self.allowed}")

    def fail(self, place: int, problem: str) -> NoReturn:
        raise BadExpression(f"column {self.first_column + place}: {problem}")
