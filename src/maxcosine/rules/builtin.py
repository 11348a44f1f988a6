"""What is known of the built-in rules. Their steps are in core/rules/, one header each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from maxcosine import core
from maxcosine.rules.rule import Param, Rule, exact_bound, recursion_bound, restart_recursion


def _builtin(
    name: str,
    doc: str,
    *,
    params: Mapping[str, Param] | None = None,
    state: Mapping[str, float] | None = None,
    **traits: Any,
) -> Rule:
    def step(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
        return core.builtin_rule(name).step(margin, sq_w, sq_x, coef_sum, tuple(state), tuple(params))

    step.__name__ = step.__qualname__ = name
    step.__doc__ = doc
    return Rule(name, step, MappingProxyType(params or {}), MappingProxyType(state or {}), builtin=True, **traits)


def _length_is_bound(bound: float) -> float:
    """ROMMA keeps norm(u) = ell."""
    return bound


def _check_norma(params: Any) -> str | None:
    if params.eta * params.lambda_reg >= 1.0:
        return (
            f"eta * lambda_reg = {params.eta * params.lambda_reg:g} leaves nothing of w after one round; "
            "choose them so that the product is below 1"
        )
    return None


_PAPER = "Bshouty and Haddad-Zaknoon, The maximum cosine framework"

cmcp = _builtin(
    "cmcp",
    "On a mistake lambda = norm(w) / (ell norm(x)^2), ell^2 <- ell^2 + 1 / norm(x)^2.",
    state={"bound": 0.0},
    conservative=True,
    scale_free=True,
    scale_invariant=True,
    own_bound=recursion_bound,
    gain=1.0,
    restart_state=restart_recursion,
    reference=f"{_PAPER}, Lemma 8",
)
mcp = _builtin(
    "mcp",
    "CMCP's step, also when the margin is positive but at most norm(w) / (2 ell).",
    state={"bound": 0.0},
    scale_free=True,
    scale_invariant=True,
    own_bound=recursion_bound,
    gain=1.0,
    restart_state=restart_recursion,
    reference=f"{_PAPER}, Figure 2 and Lemma 9",
)
mcp_exact = _builtin(
    "mcp_exact",
    "When margin <= norm(w)^2 / (2 Lambda): lambda = norm(w)^2 / (Lambda norm(x)^2).",
    scale_free=True,
    scale_invariant=True,
    own_bound=exact_bound,
    gain=1.0,
    reference="This project: MCP (Bshouty and Haddad-Zaknoon) with ell = Lambda / norm(w)",
)
naromma = _builtin(
    "naromma",
    "lambda = norm(w) argmax Phi with r = ell, p = s = 1, q = norm(x)^2, t = gamma_i / norm(x)^2.",
    scale_free=True,
    scale_invariant=True,
    restarts=True,
    own_bound=exact_bound,
    gain=1.0,
    reference=f"{_PAPER}, Figure 1 and Lemma 6",
)

# Rules of the band: lambda = k norm(w)^2 / (Lambda norm(x)^2), a curve k(v) over v = Lambda margin / norm(w)^2.
damped_mcp = _builtin(
    "damped_mcp",
    """When v = Lambda margin / norm(w)^2 <= 0.7: lambda = k norm(w)^2 / (Lambda norm(x)^2), k = 1 / (1 + abs(v)).

    It makes at most (R / gamma)^2 mistakes. On a mistake (v <= 0), 2 k (1 - v) - k^2 = 2 - k^2 >= 1, so ell^2 grows by
    at least 1 / norm(x)^2; on a margin up to 0.7, 0 <= k <= 2 (1 - v), so ell does not fall. On separable examples it
    makes at most 144.5 (R / gamma)^2 steps.
    """,
    scale_free=True,
    scale_invariant=True,
    own_bound=exact_bound,
    gain=1.0,
    reference="This project: MCP with steps that shorten away from v = 0",
)
soft_mcp = _builtin(
    "soft_mcp",
    """When v = Lambda margin / norm(w)^2 < 1: lambda = k norm(w)^2 / (Lambda norm(x)^2), k = min(1, 1 - v).

    It makes at most (R / gamma)^2 mistakes. On a mistake (v <= 0), k = 1 and 2 k (1 - v) - k^2 = 1 - 2 v >= 1, so ell^2
    grows by at least 1 / norm(x)^2; on a margin, k = 1 - v <= 2 (1 - v), so ell does not fall. On separable examples
    it makes at most (R / gamma)^2 / delta^2 steps at v <= 1 - delta.
    """,
    scale_free=True,
    scale_invariant=True,
    own_bound=exact_bound,
    gain=1.0,
    reference="This project: MCP with the middle of the band on margins",
)

_ROMMA = "Li and Long, The relaxed online maximum margin algorithm, Machine Learning 46 (2002)"

aggressive_romma = _builtin(
    "aggressive_romma",
    "u <- c u + d a whenever the margin is below 1 (Table 1 of the paper).",
    scale_invariant=True,
    restarts=True,
    own_bound=exact_bound,
    gain=1.0,
    restart_norm=_length_is_bound,
    reference=_ROMMA,
)
romma = _builtin(
    "romma",
    "Aggressive ROMMA's step, on mistakes only.",
    conservative=True,
    scale_invariant=True,
    own_bound=exact_bound,
    gain=1.0,
    restart_norm=_length_is_bound,
    reference=_ROMMA,
)

_PA = "Crammer et al., Online passive-aggressive algorithms, JMLR 7 (2006), Figure 1"
# C = 1 is the default of scikit-learn and LIBOL. An example of norm 1 is still learnt in one step from w = 0.
_C = Param.factor(1.0, "aggressiveness: the largest step of PA-I, the softness of PA-II")

pa = _builtin(
    "pa",
    "lambda = max(0, 1 - margin) / norm(x)^2.",
    scale_invariant=True,
    gain=1.0,  # Theorem 2 there: from w = 0 on, a mistake takes 1 / norm(x)^2 of norm(w - w* / gamma)^2
    reference=_PA,
)
pa1 = _builtin("pa1", "lambda = min(C, max(0, 1 - margin) / norm(x)^2).", params={"C": _C}, reference=_PA)
pa2 = _builtin("pa2", "lambda = max(0, 1 - margin) / (norm(x)^2 + 1 / (2 C)).", params={"C": _C}, reference=_PA)
perceptron = _builtin(
    "perceptron",
    "lambda = 1 on a mistake.",
    conservative=True,
    scale_invariant=True,
    gain=1.0,  # Novikoff's theorem, by norm(w)^2 <= R^2 Lambda. Lambda / norm(w) may fall: there is no own_bound
    reference="Rosenblatt, The perceptron, Psychological Review 65 (1958)",
)
alma = _builtin(
    "alma",
    """With z = x / norm(x), k = 1, 2, ...: when y (w.z) <= (1 - alpha) B / sqrt(k), a step C / sqrt(k) along y z,
    then back into the unit ball.

    The defaults are those of Gentile's theorem for p = 2, with alpha = 0.9 as in his experiments.
    """,
    state={"updates": 0.0},
    params={
        "alpha": Param(0.9, "how far from the maximal margin: 1 - alpha of it is aimed at", 1e-6, 1.0, closed="both"),
        "B": Param.factor(lambda chosen: math.sqrt(8.0) / chosen["alpha"], "scale of the margin asked for"),
        "C": Param.factor(math.sqrt(2.0), "scale of the step"),
    },
    scale_invariant=True,
    reference="Gentile, A new approximate maximal margin classification algorithm, JMLR 2 (2001)",
)
norma = _builtin(
    "norma",
    """Every round w <- (1 - eta lambda_reg) w; when margin <= rho also add eta y x.

    rho falls by eta (1 - nu) on a margin error and rises by eta nu otherwise. The paper tunes its parameters for
    each data set. The defaults forget an example in about 10^4 rounds, which suits one pass. Scale the features to
    norms of about 1, or tune eta.
    """,
    state={"rho": 0.0},
    params={
        "eta": Param.factor(0.1, "learning rate"),
        "lambda_reg": Param(1e-3, "regularisation: w decays by 1 - eta lambda_reg a round", low=0.0, closed="left"),
        "nu": Param(0.2, "share of margin errors that rho settles for", low=0.0, high=1.0, closed="both"),
        "clip": Param(
            1.0,
            "1 holds rho at 0 or above, so that every mistake is learnt from; 0 is the algorithm as published",
            low=0.0,
            high=1.0,
            closed="both",
        ),
    },
    check=_check_norma,
    reference="Kivinen, Smola and Williamson, Online learning with kernels, IEEE TSP 52 (2004)",
)
