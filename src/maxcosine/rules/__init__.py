"""The rules, one small file each. Every rule found in this folder is in :data:`RULES`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from maxcosine.rules.rule import Rule


def _discover() -> Mapping[str, Rule]:
    found = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        found.update({v.name: v for v in vars(module).values() if isinstance(v, Rule)})
    return MappingProxyType(dict(sorted(found.items())))


RULES: Mapping[str, Rule] = _discover()
"""Every rule by its name."""
