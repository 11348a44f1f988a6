"""Rules that the user names: built-in ones, rules of one's own in files, and their parameters."""

from __future__ import annotations

import runpy
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.terminal import tell

if TYPE_CHECKING:
    from maxcosine.model_file import Loaded
    from maxcosine.rules.rule import Rule

OwnRule = Annotated[
    str | None,
    typer.Option("--rule", metavar="FILE.py:NAME", help="Your own rule, if the model was learnt by one."),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A parameter, such as C=0.1, of every rule that has it; pa1.C=0.1 is for pa1 alone.",
    ),
]

_files: set[str] = set()
"""The files of the user's rules."""


def rule_named(name: str, option: str = "--rule") -> Rule:
    """Return a built-in rule, or a rule of one's own: FILE.py:NAME."""
    from maxcosine.rules import RULES

    if ":" in name:
        return _rule_in_file(name, option)
    if name not in RULES:
        raise ValueError(f"there is no rule {name!r}; the rules are {', '.join(RULES)}, or FILE.py:NAME for your own")
    return RULES[name]


def _rule_in_file(where: str, option: str) -> Rule:
    from maxcosine.rules.rule import Rule

    path, _, name = where.rpartition(":")
    if not Path(path).is_file():
        raise FileNotFoundError(f"{option} {where}: there is no file {path}; write FILE.py:NAME")
    _files.add(path)
    try:
        found = runpy.run_path(path)
    except SyntaxError as error:
        raise ValueError(f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}") from None
    except Exception as error:
        raise ValueError(describe_error(error) or f"{path}: {error}") from None
    rule = found.get(name)
    if not isinstance(rule, Rule):
        own = [key for key, value in found.items() if isinstance(value, Rule)]
        raise ValueError(f"{option} {where}: {path} has no rule {name!r}; its rules are: {', '.join(own) or 'none'}")
    return rule


def describe_error(error: Exception) -> str | None:
    """Return one line about an error in a file of the user's rules, with its place; None for any other error."""
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in _files]
    return f"{places[-1].filename}:{places[-1].lineno}: {type(error).__name__}: {error}" if places else None


def file_of(rule: Rule) -> dict[str, Any] | None:
    """Describe the file of a rule of one's own, for a model and a checkpoint to remember; None for a built-in rule."""
    from maxcosine.data import describe_inputs

    return None if rule.builtin else describe_inputs([rule.function.__code__.co_filename])[0]


def compile_rules(rules: Sequence[Rule]) -> None:
    """Compile the user's rules before any work is done; a rule that cannot be compiled is a ValueError."""
    for rule in rules:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                rule.compiled  # noqa: B018, compiled when it is first asked for
            except TypeError as error:
                raise ValueError(str(error)) from None
        for warning in caught:
            tell(str(warning.message), warning=True)


def refuse_same_names(rules: Sequence[Rule]) -> None:
    """Refuse two different rules of one name: results could not tell them apart."""
    names: dict[str, Rule] = {}
    for rule in rules:
        if names.setdefault(rule.name, rule) is not rule:
            raise ValueError(f"two of the rules are called {rule.name!r}; rename one of them")


def params_of(rules: Sequence[Rule], given: Sequence[str] | None) -> dict[str, dict[str, float]]:
    """Return the parameters of each rule, by its name, from NAME=VALUE and RULE.NAME=VALUE; the last one counts."""
    found: dict[str, dict[str, float]] = {rule.name: {} for rule in rules}
    # Those for one rule replace those for all.
    for param in sorted(given or [], key=lambda one: "." in one.partition("=")[0]):
        target, value = _target_and_value(param)
        rule_name, _, name = target.rpartition(".")
        if rule_name and rule_name not in found:
            raise ValueError(f"--param {param}: there is no rule {rule_name!r} here; the rules are {', '.join(found)}")
        chosen = [rule for rule in rules if name in rule.params and rule_name in ("", rule.name)]
        if not chosen:
            known = ", ".join(f"{rule.name} has {', '.join(rule.params) or 'none'}" for rule in rules)
            who = f"rule {rule_name or rules[0].name!r} has no"
            if not rule_name and len(rules) > 1:
                who = f"none of the rules {', '.join(found)} has a"
            raise ValueError(f"--param {param}: {who} parameter {name!r}; {known}")
        for rule in chosen:
            found[rule.name][name] = value
    return found


def _target_and_value(param: str) -> tuple[str, float]:
    target, _, value = param.partition("=")
    try:
        return target, float(value)
    except ValueError:
        raise ValueError(f"--param {param}: write NAME=VALUE, for example C=0.1") from None


def load_model(path: Path, rule: str | None = None) -> Loaded:
    """Read a model; `rule` is the user's rule that it was learnt by, as --rule names it."""
    from maxcosine import model_file

    own: list[Any] = [] if rule is None else [rule_named(rule)]
    loaded = model_file.load(path, rules=own)
    if own and getattr(loaded.model, "rule", None) is not own[0]:
        raise ValueError(
            f"{path}: the model was learnt by {loaded.model.rule_name!r} and not by --rule {rule}; leave out --rule"
        )
    return loaded
