"""Certificates read off the heads of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.certificate import Certificate, Merge
from maxcosine.heads import Heads, Proven


def certificate_of(heads: Heads, classes: np.ndarray, merge: Merge | None = None) -> Certificate:
    """What is proven so far of the hypotheses that predict."""
    last = _certificate(heads, heads.proven(), classes, merge, None)
    if not heads.average:
        return last
    return _certificate(heads, heads.averaged_proven(), classes, merge, last)


def _certificate(
    heads: Heads, proven: Proven, classes: np.ndarray, merge: Merge | None, last: Certificate | None
) -> Certificate:
    table, rule = heads.table, heads.rule
    best_bound = np.maximum(table["best_bound"], proven.bound)
    if last is not None:
        best_bound = np.maximum(best_bound, last.best_bound)
    since = np.where(table["since"] < 0, table["seen"], table["since"])
    weighted = bool(table["weighted"].any())
    one = len(table) == 1

    def given(values: np.ndarray) -> Any:
        return values[0].item() if one else values.copy()

    return Certificate(
        rule=rule.name,
        coef_sum=given(proven.coef_sum),
        norm=given(proven.norm),
        bound=given(proven.bound),
        best_bound=given(best_bound),
        rounding=given(proven.rounding),
        since=given(since),
        seen=given(table["seen"] - since),
        mistakes=given(table["mistakes"]),
        updates=given(table["updates"]),
        augmented=heads.fit_intercept,
        joint=heads.joint,
        weighted=weighted,
        classes=None if one else classes,
        own_bound=given(_own_bounds(heads)) if rule.own_bound and not weighted else None,
        merge=merge,
        before_averaging=last,
    )


def _own_bounds(heads: Heads) -> np.ndarray:
    """The bounds that the rule's mistake budget rests on, one a head."""
    own_bound, n_state = heads.rule.own_bound, len(heads.rule.state)
    assert own_bound is not None
    sq_w = np.square(heads.table["scale"]) * heads.table["sq_v"]
    given = zip(heads.arrays.state, sq_w.tolist(), heads.coef_sum.tolist(), strict=True)
    return np.array([own_bound(tuple(state[:n_state]), sq, coef_sum) for state, sq, coef_sum in given])
