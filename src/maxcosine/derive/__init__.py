"""From a cosine bound to a learner, and what is proven of it.

>>> from maxcosine.derive import derive, ell, g, sq_x, sqrt, x
>>> mcp_exact = derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= 1 / (2 * ell), name="mcp_exact")
>>> print(mcp_exact.mistake_bound())
mistakes <= (R / gamma)^2
"""

from __future__ import annotations

try:
    from sympy import Abs, Max, Min, sqrt
except ImportError:
    raise ImportError("maxcosine.derive needs SymPy; install it: pip install 'maxcosine[derive]'") from None

from maxcosine.derive.claims import Claim, MistakeBound
from maxcosine.derive.derivation import Derivation, curve, derive
from maxcosine.derive.lemma3 import BadBound, Case
from maxcosine.derive.parsing import BadExpression, parse_conditions, parse_expression
from maxcosine.derive.proving import Verdict
from maxcosine.derive.symbols import UnitError, ell, g, norm_w, param, sq_x, state, v, x

__all__ = [
    "Abs",
    "BadBound",
    "BadExpression",
    "Case",
    "Claim",
    "Derivation",
    "Max",
    "Min",
    "MistakeBound",
    "UnitError",
    "Verdict",
    "curve",
    "derive",
    "ell",
    "g",
    "norm_w",
    "param",
    "parse_conditions",
    "parse_expression",
    "sq_x",
    "sqrt",
    "state",
    "v",
    "x",
]
