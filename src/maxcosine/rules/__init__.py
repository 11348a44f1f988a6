"""The rules: the built-in ones by name, and the decorator for a user's rules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from maxcosine.rules import builtin
from maxcosine.rules.rule import Rule

RULES: Mapping[str, Rule] = MappingProxyType(
    {name: value for name, value in sorted(vars(builtin).items()) if isinstance(value, Rule)}
)
"""Every built-in rule by its name."""
