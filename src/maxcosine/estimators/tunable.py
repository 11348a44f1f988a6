"""One class for each family of built-in rules that have parameters: PA, ALMA and NORMA."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from maxcosine.estimators.documentation import documented
from maxcosine.estimators.named import NamedClassifier
from maxcosine.estimators.parameters import BOOL, Check, one_of, rule_checks, within
from maxcosine.rules import RULES


@documented
class PAClassifier(NamedClassifier):
    """PA, PA-I and PA-II: passive-aggressive learning.

    The step is the shortest one that gives the example a margin of 1. PA-I and PA-II shorten it, which helps
    with label noise.

    Parameters
    ----------
    variant : {"pa", "pa1", "pa2"}, default="pa"
        PA, PA-I or PA-II.
    C : float, default=1.0
        Aggressiveness: the largest step of PA-I, and the softness of PA-II. PA does not use it.
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online Passive-Aggressive Algorithms",
    Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from maxcosine import PAClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = PAClassifier("pa1", C=0.5).fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    """

    _checks: ClassVar[Mapping[str, Check]] = {
        "variant": one_of("pa", "pa1", "pa2"),
        **rule_checks("pa1"),
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
        """The name of the rule."""
        return self.variant


@documented
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
    {parameters}

    Attributes
    ----------
    {attributes}

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

    rule_name = "alma"

    _checks: ClassVar[Mapping[str, Check]] = {
        **rule_checks("alma"),
        "B": within(RULES["alma"].params["B"], optional=True),
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


@documented
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
    {parameters}

    Attributes
    ----------
    {attributes}

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

    rule_name = "norma"

    _checks: ClassVar[Mapping[str, Check]] = {**rule_checks("norma"), "clip": BOOL}

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
