"""A rule that rescales w in every round."""

from maxcosine import rule


@rule(params={"keep": 0.5, "always": 1.0})
def rescaling(margin, sq_w, sq_x, coef_sum, state, params):
    """Multiply w by a constant in every round, up to a point; learn in every round, or from mistakes only."""
    keep = params.keep if sq_w < 1e6 else 1e-3
    return keep, (1.0 / sq_x if params.always > 0.0 or margin <= 0.0 else 0.0), state


@rule(params={"add": 1.0})
def adding(margin, sq_w, sq_x, coef_sum, state, params):
    """Add each example with the coefficient that is set, whatever its margin."""
    return 1.0, params.add, state
