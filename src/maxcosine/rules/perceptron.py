"""The Perceptron: add each mistaken example."""

from typing import Any

from maxcosine.rules.rule import rule


@rule(
    conservative=True,
    scale_invariant=True,
    reference="Rosenblatt, The perceptron, Psychological Review 65 (1958)",
)
def perceptron(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """lambda = 1 on a mistake."""
    return 1.0, (1.0 if margin <= 0.0 else 0.0), state
