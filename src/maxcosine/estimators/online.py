"""`OnlineClassifier`: any rule as a classifier."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from maxcosine.estimators.base import OnlineBase
from maxcosine.estimators.documentation import documented
from maxcosine.estimators.parameters import Check, is_a
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule


@documented
@dataclass(eq=False, repr=False)
class OnlineClassifier(OnlineBase):
    """Any rule as a classifier: one pass, linear time in the non-zeros, with a certificate.

    The hypothesis w is a non-negative combination of the signed examples, whose coefficients sum to Lambda.
    So ell = Lambda / norm(w) proves that no separator of the examples has a margin above 1 / ell, and that
    the cosine between w and a separator of margin gamma is at least gamma ell; see `certificate_`.

    Parameters
    ----------
    rule : str or Rule, default="mcp"
        A name in :data:`maxcosine.RULES`, or your own rule made with :func:`maxcosine.rule`.
    rule_params : dict or None, default=None
        Values for the parameters of the rule, instead of their defaults.
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821.

    Examples
    --------
    >>> from maxcosine import OnlineClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> y = ["right", "up", "right", "up"]
    >>> learner = OnlineClassifier("pa1", rule_params={"C": 0.1}).fit(X, y)
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    >>> learner.mistakes_ <= learner.updates_
    True
    """

    rule: str | Rule = "mcp"
    _: KW_ONLY
    rule_params: Mapping[str, float] | None = None

    _checks: ClassVar[Mapping[str, Check]] = {
        "rule": is_a(str, Rule),
        "rule_params": is_a(dict, type(None)),
    }

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        if isinstance(self.rule, Rule):
            return self.rule, self.rule_params or {}
        if self.rule not in RULES:
            near = difflib.get_close_matches(self.rule, RULES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"there is no rule {self.rule!r}; {hint}The rules are: {', '.join(RULES)}")
        return RULES[self.rule], self.rule_params or {}
