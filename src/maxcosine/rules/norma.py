"""NORMA with a linear kernel: stochastic gradient descent on the soft margin, with a moving margin."""

from typing import Any

from maxcosine.rules.rule import Param, rule


def check(params: Any) -> str | None:
    if params.eta * params.lambda_reg >= 1.0:
        return (
            f"eta * lambda_reg = {params.eta * params.lambda_reg:g} leaves nothing of w in one "
            "round; choose them so that the product is below 1"
        )
    return None


@rule(
    state={"rho": 0.0},
    params={
        "eta": Param.factor(0.1, "learning rate"),
        "lambda_reg": Param(
            1e-3, "regularisation: w decays by 1 - eta lambda_reg a round", low=0.0, closed="left"
        ),
        "nu": Param(0.2, "share of margin errors that rho settles for", low=0.0, high=1.0, closed="both"),
        "clip": Param(
            1.0,
            "1 holds rho at 0 or above, so that every mistake is learnt from; "
            "0 is the algorithm as published",
            low=0.0,
            high=1.0,
            closed="both",
        ),
    },
    check=check,
    reference="Kivinen, Smola and Williamson, Online learning with kernels, IEEE TSP 52 (2004)",
)
def norma(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """Every round w <- (1 - eta lambda_reg) w; when margin <= rho also add eta y x.

    rho falls by eta (1 - nu) on a margin error and rises by eta nu otherwise, so that as published
    (clip = 0) the share of margin errors tends to nu. The margin is taken before the decay.

    The paper tunes eta, lambda and nu by data set. eta = 0.1 and lambda_reg = 1e-3 forget an
    example in about 10^4 rounds, which suits one pass; nu = 0.2 expects up to a fifth of margin
    errors. Scale the features to norms of about 1 or tune eta.
    """
    (rho,) = state
    keep = 1.0 - params.eta * params.lambda_reg
    if margin <= rho:
        add = params.eta
        rho -= params.eta * (1.0 - params.nu)
    else:
        add = 0.0
        rho += params.eta * params.nu
    if params.clip > 0.0:
        rho = max(0.0, rho)
    return keep, add, (rho,)
