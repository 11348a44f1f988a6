"""One class a learner, with its own parameters spelled out.

Each takes the parameters of :class:`~maxcosine.OnlineClassifier` but for the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from maxcosine.estimators.online import OnlineBase
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule


def _constraints(*rules: str) -> dict[str, list[Any]]:
    """What scikit-learn checks of the rules' parameters: the intervals they declare."""
    params = {name: param for rule in rules for name, param in RULES[rule].params.items()}
    return {name: [Interval(Real, p.low, p.high, closed=p.closed)] for name, p in params.items()}


class NamedBase(OnlineBase):
    """A learner known by its name; the parameters are those that all learners have."""

    rule_name: str

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        rule = RULES[self.rule_name]
        given = {name: getattr(self, name) for name in rule.params}
        return rule, {name: value for name, value in given.items() if value is not None}


class PerceptronClassifier(NamedBase):
    """The Perceptron: adds each mistaken example. Rosenblatt (1958).

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "perceptron"


class ROMMAClassifier(NamedBase):
    """ROMMA: the relaxed maximum margin, learnt from mistakes. Li and Long (2002).

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "romma"


class AggressiveROMMAClassifier(NamedBase):
    """Aggressive ROMMA: ROMMA's move whenever the margin is below 1. Li and Long (2002).

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "aggressive_romma"


class NAROMMAClassifier(NamedBase):
    """NAROMMA: the cosine bound maximised exactly; aggressive ROMMA by another road (Theorem 7).

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "naromma"


class CMCPClassifier(NamedBase):
    """CMCP, the Conservative Maximum Cosine Perceptron. Bshouty and Haddad-Zaknoon, Lemma 8.

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "cmcp"


class MCPClassifier(NamedBase):
    """MCP, the Maximum Cosine Perceptron. Bshouty and Haddad-Zaknoon, Lemma 9, Theorem 10.

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "mcp"


class MCPExactClassifier(NamedBase):
    """MCP with the exact bound Lambda / norm(w) in place of the paper's recursion.

    Its parameters are those of :class:`~maxcosine.OnlineClassifier`, less the rule.
    """

    rule_name = "mcp_exact"


class PAClassifier(NamedBase):
    """Passive-aggressive learning. Crammer et al. (2006).

    Besides the parameters of :class:`~maxcosine.OnlineClassifier`, less the rule:

    Parameters
    ----------
    variant : {"pa", "pa1", "pa2"}, default="pa"
        The paper's PA, or PA-I or PA-II, which forgive label noise.
    C : float, default=1.0
        Aggressiveness of PA-I (the largest step) and PA-II; "pa" has no use for it.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NamedBase._parameter_constraints,
        "variant": [StrOptions({"pa", "pa1", "pa2"})],
        **_constraints("pa1"),
    }

    def __init__(
        self,
        variant: str = "pa",
        *,
        C: float = 1.0,
        average: bool = False,
        fit_intercept: bool = True,
        multiclass: str = "ovr",
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        class_weight: Any = None,
        grow_features: bool = False,
        dtype: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            average=average,
            fit_intercept=fit_intercept,
            multiclass=multiclass,
            passes=passes,
            shuffle=shuffle,
            random_state=random_state,
            class_weight=class_weight,
            grow_features=grow_features,
            dtype=dtype,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.variant = variant
        self.C = C

    @property
    def rule_name(self) -> str:  # type: ignore[override]
        return self.variant


class ALMAClassifier(NamedBase):
    """ALMA for p = 2, the approximate large margin algorithm. Gentile (2001).

    Besides the parameters of :class:`~maxcosine.OnlineClassifier`, less the rule:

    Parameters
    ----------
    alpha : float in (0, 1], default=0.9
        How far from the maximal margin: 1 - alpha of it is aimed at.
    B : float, default=None
        Scale of the margin asked for; None is sqrt(8) / alpha, as in Gentile's theorem.
    C : float, default=sqrt(2)
        Scale of the step; Gentile's theorem takes sqrt(2).
    """

    rule_name = "alma"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NamedBase._parameter_constraints,
        **_constraints("alma"),
        "B": [*_constraints("alma")["B"], None],
    }

    def __init__(
        self,
        *,
        alpha: float = 0.9,
        B: float | None = None,
        C: float = math.sqrt(2.0),
        average: bool = False,
        fit_intercept: bool = True,
        multiclass: str = "ovr",
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        class_weight: Any = None,
        grow_features: bool = False,
        dtype: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            average=average,
            fit_intercept=fit_intercept,
            multiclass=multiclass,
            passes=passes,
            shuffle=shuffle,
            random_state=random_state,
            class_weight=class_weight,
            grow_features=grow_features,
            dtype=dtype,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.alpha = alpha
        self.B = B
        self.C = C


class NORMAClassifier(NamedBase):
    """NORMA with a linear kernel. Kivinen, Smola and Williamson (2004).

    Besides the parameters of :class:`~maxcosine.OnlineClassifier`, less the rule:

    Parameters
    ----------
    eta : float, default=0.1
        Learning rate; eta * lambda_reg must be below 1.
    lambda_reg : float, default=1e-3
        Regularisation: w decays by 1 - eta * lambda_reg a round.
    nu : float in [0, 1], default=0.2
        Share of margin errors that the moving margin rho settles for.
    clip : bool, default=True
        Hold rho at 0 or above, so that every mistake is learnt from; False is as published.
    """

    rule_name = "norma"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NamedBase._parameter_constraints,
        **_constraints("norma"),
        "clip": ["boolean"],
    }

    def __init__(
        self,
        *,
        eta: float = 0.1,
        lambda_reg: float = 1e-3,
        nu: float = 0.2,
        clip: bool = True,
        average: bool = False,
        fit_intercept: bool = True,
        multiclass: str = "ovr",
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        class_weight: Any = None,
        grow_features: bool = False,
        dtype: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            average=average,
            fit_intercept=fit_intercept,
            multiclass=multiclass,
            passes=passes,
            shuffle=shuffle,
            random_state=random_state,
            class_weight=class_weight,
            grow_features=grow_features,
            dtype=dtype,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.eta = eta
        self.lambda_reg = lambda_reg
        self.nu = nu
        self.clip = clip
