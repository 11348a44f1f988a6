"""Check the cases of many seeds, and say what is false in as few rows as show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.adversarial.checks import check_case, smallest
from tests.adversarial.generator import generate


@dataclass
class Shard:
    """What was found in the cases of some seeds."""

    shown: int = 3
    """How many false claims of each kind are described in full."""
    models: int = 0
    done: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    """Models with a false claim, by check; `by_rule` and `by_kind` by the rule and the kinds of rows, too."""
    by_rule: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    reports: list[str] = field(default_factory=list)

    def check(self, seeds: Iterable[int]) -> Shard:
        """Check all models of these seeds."""
        for seed in seeds:
            case = generate(seed)
            for checks in check_case(case):
                self.models += 1
                self.done.update(checks.done)
                for name in sorted({finding.check for finding in checks.findings}):
                    self.false[name] += 1
                    self.by_rule[name, checks.model.rule] += 1
                    self.by_kind.update((name, kind) for kind in (*case.kinds, case.dtype, case.learning))
                    if self.false[name] <= self.shown:
                        less, finding = smallest(case, checks.model, name)
                        self.reports.append(f"{finding}\n{less.describe(checks.model)}\n")
        return self

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count:,}" for name, count in sorted(self.false.items()))
        return "\n".join([*self.reports, f"models with false claims, of {self.models:,}: {counts or 'none'}"])
