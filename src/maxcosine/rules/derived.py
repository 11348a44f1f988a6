"""Rules from the text that derivations write. Such a rule is pickled as its text."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from maxcosine.rules.rule import Rule


@dataclass(frozen=True, eq=False, repr=False)
class DerivedRule(Rule):
    """A rule with the text that it was made from."""

    text: str = ""

    def __reduce__(self) -> Any:
        changed = {name: getattr(self, name) for name in ("name", "gain", "reference")}
        return _unpickle, (self.function.__name__, self.text, dict(self.params), changed)


def rule_of(name: str, text: str) -> DerivedRule:
    """Return the rule of this name from a text that `maxcosine.derive` has written."""
    path = f"<derived rule {name}>"
    # So that tracebacks and Numba's messages show the lines of the rule.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    space: dict[str, Any] = {"__name__": f"maxcosine_derived.{name}"}
    exec(compile(text, path, "exec"), space)  # never a user's text
    found: Rule = space[name]
    return DerivedRule(**{one.name: getattr(found, one.name) for one in fields(Rule)}, text=text)


def _unpickle(function: str, text: str, params: dict[str, Any], changed: dict[str, Any]) -> DerivedRule:
    made = rule_of(function, text)
    return replace(made, params=MappingProxyType(params), **changed)
