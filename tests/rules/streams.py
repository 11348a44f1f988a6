"""Random streams of examples, and a rule applied to them as a plain function."""

import math
from dataclasses import dataclass, field

import numpy as np

from maxcosine import OnlineClassifier, Rule
from tests.reference import norm


@dataclass
class Stream:
    """Rows and labels, and the separator of length 1 they were drawn with."""

    X: np.ndarray
    y: np.ndarray
    separator: np.ndarray

    @property
    def radius(self):
        return max(map(norm, self.X))


def stream(seed, n=120, d=8, gap=0.3, noise=0.0, zeros=0.05):
    """Rows of many lengths, each at least `gap` of its length away from the separating plane.

    A share `noise` of the labels is wrong and a share `zeros` of the rows is 0.
    """
    random = np.random.default_rng(seed)
    separator = random.normal(size=d)
    separator /= norm(separator)
    X = random.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ separator > 0, 1, -1)
    X += gap * y[:, None] * separator
    X *= np.exp(0.5 * random.normal(size=(n, 1)))
    X[random.random(n) < zeros] = 0.0
    y[random.random(n) < noise] *= -1
    return Stream(X, y, separator)


def learner(rule, **params):
    """The rule in the engine, on the features alone."""
    return OnlineClassifier(rule=rule, rule_params=params or None, fit_intercept=False)


def learnt(rule, data, **params):
    return learner(rule, **params).partial_fit(data.X, data.y, classes=[-1, 1])


@dataclass
class Walk:
    """The hypothesis of a rule as an explicit vector; its norms are computed from scratch at each step."""

    rule: Rule
    w: np.ndarray
    coef_sum: float = 0.0
    state: tuple[float, ...] = ()
    params: tuple[float, ...] = field(default=())

    @classmethod
    def of(cls, rule, d, **params):
        return cls(rule, np.zeros(d), 0.0, rule.initial_state(), rule.make_params(params))

    @property
    def bound(self):
        """ell = Lambda / norm(w)."""
        return self.coef_sum / norm(self.w) if self.w.any() else 0.0

    @property
    def own_bound(self):
        return self.rule.own_bound(self.state, np.dot(self.w, self.w), self.coef_sum)

    def margin(self, x, y):
        return float(y * np.dot(self.w, x))

    def step(self, x, y):
        """One example; what the rule did with it: nothing (I), w became y x (II), or a move (III)."""
        keep, add, self.state = self.rule(
            self.margin(x, y), np.dot(self.w, self.w), np.dot(x, x), self.coef_sum, self.state, self.params
        )
        assert keep >= 0
        assert 0 <= add < math.inf
        self.w = keep * self.w + add * y * x
        self.coef_sum = keep * self.coef_sum + add
        return "I" if add == 0 else "II" if keep == 0 else "III"

    def over(self, data):
        """Step along the non-zero rows, yielding each with its label."""
        for x, y in zip(data.X, data.y, strict=True):
            if x.any():
                yield x, y
                self.step(x, y)
