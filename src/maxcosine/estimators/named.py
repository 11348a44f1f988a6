"""One class for each built-in rule without parameters."""

from __future__ import annotations

from collections.abc import Mapping

from maxcosine.estimators.base import OnlineBase
from maxcosine.estimators.documentation import documented
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule


class NamedClassifier(OnlineBase):
    """Base class of the classifiers that learn by one built-in rule."""

    rule_name: str

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
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    F. Rosenblatt, "The Perceptron: a Probabilistic Model for Information Storage and Organization in the
    Brain", Psychological Review 65, 1958.

    Examples
    --------
    >>> from maxcosine import PerceptronClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = PerceptronClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "perceptron"


@documented
class ROMMAClassifier(NamedClassifier):
    """ROMMA, the Relaxed Online Maximum Margin Algorithm, which learns from mistakes.

    After a mistake, w is the shortest vector in the intersection of two half-spaces: one that contains the
    solutions so far, and one of the new example.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    Y. Li and P. M. Long, "The Relaxed Online Maximum Margin Algorithm", Machine Learning 46, 2002.

    Examples
    --------
    >>> from maxcosine import ROMMAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = ROMMAClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "romma"


@documented
class AggressiveROMMAClassifier(NamedClassifier):
    """Aggressive ROMMA: ROMMA's step whenever the margin is below 1.

    It learns from correct predictions with a margin below 1, too.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    Y. Li and P. M. Long, "The Relaxed Online Maximum Margin Algorithm", Machine Learning 46, 2002.

    Examples
    --------
    >>> from maxcosine import AggressiveROMMAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = AggressiveROMMAClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "aggressive_romma"


@documented
class NAROMMAClassifier(NamedClassifier):
    """NAROMMA: the step that maximises the cosine bound exactly.

    Its hypotheses always have the directions of those of aggressive ROMMA (Theorem 7 of the paper).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821,
    Figure 1, Lemma 6 and Theorem 7.

    Examples
    --------
    >>> from maxcosine import NAROMMAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = NAROMMAClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "naromma"


@documented
class CMCPClassifier(NamedClassifier):
    """CMCP, the Conservative Maximum Cosine Perceptron, which learns from mistakes.

    On a mistake the step is lambda = norm(w) / (ell norm(x)^2), and ell^2 grows by 1 / norm(x)^2.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821, Lemma 8.

    Examples
    --------
    >>> from maxcosine import CMCPClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = CMCPClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "cmcp"


@documented
class MCPClassifier(NamedClassifier):
    """MCP, the Maximum Cosine Perceptron.

    It takes the step of CMCP whenever the margin is at most norm(w) / (2 ell), and so learns from correct
    predictions that are too close, too.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821,
    Figure 2, Lemma 9 and Theorem 10.

    Examples
    --------
    >>> from maxcosine import MCPClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = MCPClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "mcp"


@documented
class MCPExactClassifier(NamedClassifier):
    """MCP with the exact bound Lambda / norm(w) instead of the paper's recursion.

    The step is lambda = norm(w)^2 / (Lambda norm(x)^2) when the margin is at most norm(w)^2 / (2 Lambda). The
    rule is an addition of this package to those of the paper.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", ALT 2016, arXiv:1707.00821,
    Lemma 9.

    Examples
    --------
    >>> from maxcosine import MCPExactClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = MCPExactClassifier().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    rule_name = "mcp_exact"
