"""The learners of the gallery, each in one line; steps and proofs follow from it."""

from maxcosine.derive import Abs, Derivation, Max, Min, curve, derive, ell, g, param, sq_x, sqrt, v, x


def learners() -> list[Derivation]:
    """Derive the learners; the first two are built in."""
    a = param("a", 2, low=0, high=2)
    b = param("b", "1/2", low=0, high=1)
    forgiving = (ell + x) / sqrt(1 + sq_x * x**2 + 2 * Max(0, g) * x)
    leaning = (ell + x) / sqrt(1 + sq_x * x**2 + 2 * b * Min(0, g) * x)
    return [
        curve(1 / (1 + Abs(v)), theta=0.7, name="damped_mcp"),
        curve(1, 1 - v, theta=1, name="soft_mcp"),
        curve(1 / (1 - a * v), 1 - v, theta=1, name="damped_soft"),
        curve(1 / sqrt(1 - 2 * v), 1 - v, theta=1, name="root_soft"),
        derive(forgiving, name="forgiving_romma"),
        derive(leaning, when=g <= 1 / (2 * ell), name="leaning_mcp"),
    ]
