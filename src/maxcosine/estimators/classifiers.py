"""A classifier of any rule, and one for each built-in rule; the variants of PA share one."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from maxcosine.estimators.base import OnlineBase
from maxcosine.estimators.documentation import documented
from maxcosine.estimators.parameters import BOOL, Check, is_a, one_of, rule_checks, within
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
    {parameters_and_attributes}

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

    _checks: ClassVar[Mapping[str, Check]] = {"rule": is_a(str, Rule), "rule_params": is_a(dict, type(None))}

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        if isinstance(self.rule, Rule):
            return self.rule, self.rule_params or {}
        if self.rule not in RULES:
            near = difflib.get_close_matches(self.rule, RULES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"there is no rule {self.rule!r}; {hint}The rules are: {', '.join(RULES)}")
        return RULES[self.rule], self.rule_params or {}


class NamedClassifier(OnlineBase):
    """Base class of the classifiers that learn by one built-in rule."""

    rule_name: ClassVar[str]

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        rule = RULES[self.rule_name]
        given = {name: getattr(self, name) for name in rule.params}
        return rule, {name: value for name, value in given.items() if value is not None}


@documented
class PerceptronClassifier(NamedClassifier):
    """The Perceptron: it adds each example that it predicts wrongly.

    The step is lambda = 1 on a mistake.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    F. Rosenblatt, "The Perceptron: a Probabilistic Model for Information Storage and Organization in the
    Brain", Psychological Review 65, 1958.

    {example}
    """

    rule_name = "perceptron"


@documented
class ROMMAClassifier(NamedClassifier):
    """ROMMA, the Relaxed Online Maximum Margin Algorithm, which learns from mistakes.

    After a mistake, w is the shortest vector in the intersection of two half-spaces: one that contains the
    solutions so far, and one of the new example.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    Y. Li and P. M. Long, "The Relaxed Online Maximum Margin Algorithm", Machine Learning 46, 2002.

    {example}
    """

    rule_name = "romma"


@documented
class AggressiveROMMAClassifier(NamedClassifier):
    """Aggressive ROMMA: ROMMA's step whenever the margin is below 1.

    It learns from correct predictions with a margin below 1, too.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    Y. Li and P. M. Long, "The Relaxed Online Maximum Margin Algorithm", Machine Learning 46, 2002.

    {example}
    """

    rule_name = "aggressive_romma"


@documented
class NAROMMAClassifier(NamedClassifier):
    """NAROMMA: the step that maximises the cosine bound exactly.

    Its hypotheses always have the directions of those of aggressive ROMMA (Theorem 7 of the paper).

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Figure 1, Lemma 6 and Theorem 7.

    {example}
    """

    rule_name = "naromma"


@documented
class CMCPClassifier(NamedClassifier):
    """CMCP, the Conservative Maximum Cosine Perceptron, which learns from mistakes.

    On a mistake the step is lambda = norm(w) / (ell norm(x)^2), and ell^2 grows by 1 / norm(x)^2.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Lemma 8.

    {example}
    """

    rule_name = "cmcp"


@documented
class MCPClassifier(NamedClassifier):
    """MCP, the Maximum Cosine Perceptron.

    It takes the step of CMCP whenever the margin is at most norm(w) / (2 ell), and so learns from correct
    predictions that are too close, too.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Figure 2, Lemma 9 and Theorem 10.

    {example}
    """

    rule_name = "mcp"


@documented
class MCPExactClassifier(NamedClassifier):
    """MCP with the exact bound Lambda / norm(w) instead of the paper's recursion.

    The step is lambda = norm(w)^2 / (Lambda norm(x)^2) when the margin is at most norm(w)^2 / (2 Lambda). The
    rule is an addition of this package to those of the paper.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Lemma 9.

    {example}
    """

    rule_name = "mcp_exact"


@documented
class DampedMCPClassifier(NamedClassifier):
    """Damped MCP: steps that shorten with the distance from the hyperplane, on either side.

    With v = Lambda margin / norm(w)^2, which is 1 at the largest margin that is still possible, the step is
    lambda = norm(w)^2 / (Lambda norm(x)^2) / (1 + abs(v)) when v <= 0.7. On separable examples it makes at most
    (R / gamma)^2 mistakes, and it stops with margins above 0.7 times the largest possible. An addition of this package.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Lemma 1.

    {example}
    """

    rule_name = "damped_mcp"


@documented
class SoftMCPClassifier(NamedClassifier):
    """Soft MCP: MCP's step on mistakes, a shorter one the larger a positive margin is.

    With v = Lambda margin / norm(w)^2, which is 1 at the largest margin that is still possible, the step is
    lambda = k norm(w)^2 / (Lambda norm(x)^2), k = min(1, 1 - v), when v < 1. On separable examples it makes at most
    (R / gamma)^2 mistakes, and passes approach the largest possible margin. An addition of this package.

    Parameters
    ----------
    {parameters_and_attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Lemma 1.

    {example}
    """

    rule_name = "soft_mcp"


@documented
@dataclass(eq=False, repr=False)
class PAClassifier(NamedClassifier):
    """PA-I, PA-II and PA: passive-aggressive learning.

    The step of PA is the shortest one that gives the example a margin of 1. PA-I and PA-II shorten it, which
    helps with label noise.

    Parameters
    ----------
    variant : {"pa1", "pa2", "pa"}, default="pa1"
        PA-I, PA-II, or PA, which has no parameter: it is the rule of the paper's experiments.
    C : float, default=1.0
        Aggressiveness: the largest step of PA-I, and the softness of PA-II. PA does not use it.
    {parameters_and_attributes}

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online Passive-Aggressive Algorithms",
    Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from maxcosine import PAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = PAClassifier(C=0.5).fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    variant: str = "pa1"
    _: KW_ONLY
    C: float = 1.0

    _checks: ClassVar[Mapping[str, Check]] = {"variant": one_of("pa", "pa1", "pa2"), **rule_checks("pa1")}

    @property
    def rule_name(self) -> str:  # type: ignore[override]
        """The name of the rule."""
        return self.variant


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ALMAClassifier(NamedClassifier):
    """ALMA for p = 2, the Approximate Large Margin Algorithm.

    It takes steps of length C / sqrt(k) along normalised examples whose margin is too small, and keeps w in
    the unit ball; k counts the steps.

    Parameters
    ----------
    alpha : float, default=0.9
        How far from the maximal margin, above 0 and at most 1: ALMA aims at 1 - alpha of it.
    B : float or None, default=None
        The scale of the margin asked for; None is sqrt(8) / alpha, as in Gentile's theorem.
    C : float, default=sqrt(2)
        The scale of the steps; Gentile's theorem has sqrt(2).
    {parameters_and_attributes}

    References
    ----------
    C. Gentile, "A New Approximate Maximal Margin Classification Algorithm", Journal of Machine Learning
    Research 2, 2001.

    Examples
    --------
    >>> from maxcosine import ALMAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = ALMAClassifier(alpha=0.5).fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    alpha: float = 0.9
    B: float | None = None
    C: float = math.sqrt(2.0)

    rule_name = "alma"

    _checks: ClassVar[Mapping[str, Check]] = {
        **rule_checks("alma"),
        "B": within(RULES["alma"].params["B"], optional=True),
    }


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class NORMAClassifier(NamedClassifier):
    """NORMA with a linear kernel: stochastic gradient descent with a moving margin.

    Each round multiplies w by 1 - eta lambda_reg. Examples with a margin of at most rho are added with the
    factor eta. The margin rho moves so that a share nu of the examples is below it.

    Parameters
    ----------
    eta : float, default=0.1
        The learning rate; eta * lambda_reg must be below 1.
    lambda_reg : float, default=1e-3
        Regularisation: w shrinks by the factor 1 - eta * lambda_reg in each round.
    nu : float, default=0.2
        The share of margin errors, from 0 to 1, that the moving margin rho approaches.
    clip : bool, default=True
        Keep rho at 0 or above, so that every mistake is learnt from; False is as published.
    {parameters_and_attributes}

    References
    ----------
    J. Kivinen, A. J. Smola and R. C. Williamson, "Online Learning with Kernels", IEEE Transactions on Signal
    Processing 52, 2004.

    Examples
    --------
    >>> from maxcosine import NORMAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = NORMAClassifier(eta=0.5).fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    eta: float = 0.1
    lambda_reg: float = 1e-3
    nu: float = 0.2
    clip: bool = True

    rule_name = "norma"

    _checks: ClassVar[Mapping[str, Check]] = {**rule_checks("norma"), "clip": BOOL}
