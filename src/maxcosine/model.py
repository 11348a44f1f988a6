"""A learnt model as a value: classes, heads, and what can be read off them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxcosine.certificate import Certificate
from maxcosine.engine import Heads
from maxcosine.rule import Rule


@dataclass
class Model:
    """Two classes are learnt by one head, more by one head each, against the rest."""

    rule: Rule
    classes: np.ndarray
    heads: Heads
    _read: dict[str, Any] = field(default_factory=dict, repr=False)
    """What was read off the heads since they last changed."""

    @classmethod
    def create(
        cls,
        rule: Rule,
        params: tuple[float, ...],
        classes: np.ndarray,
        n_features: int,
        dtype: np.dtype,
        *,
        fit_intercept: bool,
        average: bool,
    ) -> Model:
        positive = np.array([1]) if len(classes) == 2 else np.arange(len(classes))
        heads = Heads.create(
            rule,
            params,
            positive,
            n_features,
            dtype,
            fit_intercept=fit_intercept,
            average=average,
        )
        return cls(rule, classes, heads)

    @property
    def binary(self) -> bool:
        return len(self.heads.table) == 1

    def changed(self) -> None:
        """The heads have learnt: forget what was read off them."""
        self._read.clear()

    def hypothesis(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of shape (heads, features) and constant weights: what predictions are made with.

        Where the length of w means nothing, the heads of several classes are made comparable as
        points of the hull, w / Lambda.
        """
        if "hypothesis" not in self._read:
            heads = self.heads
            w, constant = heads.averaged_weights() if heads.average else heads.weights()
            if self.rule.scale_free and not self.binary:
                coef_sum = heads.exact_coef_sum
                unit = np.where(coef_sum > 0.0, coef_sum, 1.0)
                w = (w / unit[:, None]).astype(w.dtype)
                constant = (constant / unit).astype(w.dtype)
            w.setflags(write=False)
            constant.setflags(write=False)
            self._read["hypothesis"] = w, constant
        return self._read["hypothesis"]  # type: ignore[no-any-return]

    def certificate(self) -> Certificate:
        """What is proven so far, of the hypothesis that predictions are made with."""
        if "certificate" not in self._read:
            heads = self.heads
            certificate = self._certificate(heads.coef_sum, heads.norm, heads.bound, None)
            if heads.average:
                averaged = heads.averaged_coef_sum, heads.averaged_norm, heads.averaged_bound
                certificate = self._certificate(*averaged, certificate)
            self._read["certificate"] = certificate
        return self._read["certificate"]  # type: ignore[no-any-return]

    def _certificate(
        self, coef_sum: np.ndarray, norm: np.ndarray, bound: np.ndarray, last: Certificate | None
    ) -> Certificate:
        table = self.heads.table
        best_bound = np.maximum(table["best_bound"], bound)
        if last is not None:
            best_bound = np.maximum(best_bound, last.best_bound)

        def given(values: np.ndarray) -> Any:
            return values[0].item() if self.binary else values.copy()

        return Certificate(
            rule=self.rule.name,
            coef_sum=given(coef_sum),
            norm=given(norm),
            bound=given(bound),
            best_bound=given(best_bound),
            seen=given(table["seen"]),
            mistakes=given(table["mistakes"]),
            updates=given(table["updates"]),
            averaged=last is not None,
            augmented=self.heads.fit_intercept,
            classes=None if self.binary else self.classes,
            own_bound=self._own_bounds(given) if self.rule.own_bound else None,
            _last=last,
        )

    def _own_bounds(self, given: Any) -> Any:
        assert self.rule.own_bound is not None
        heads = self.heads
        sq_w = np.square(heads.table["scale"]) * heads.table["sq_v"]
        n_state = len(self.rule.state)
        return given(
            np.array(
                [
                    self.rule.own_bound(tuple(state[:n_state]), sq, coef_sum)
                    for state, sq, coef_sum in zip(heads.arrays.state, sq_w, heads.coef_sum, strict=True)
                ]
            )
        )
