"""Every algorithm as its paper prints it: plain vectors, exact norms, no tricks.

This is what the compiled rules are tested against, so it shares nothing with them. Each class keeps w
itself and, beside it, one coefficient for every example it has learnt from, so that at all times

    w = sum_j coef_j y_j a_j,    coef_j >= 0,    Lambda = sum_j coef_j.

Each step recomputes its norms with np.dot. Nothing here is fast, and nothing rescales: keep streams short
and, for the ROMMA family, free of heavy label noise (their ell grows geometrically on it).

Lemma, theorem, figure, table and section numbers are the printed ones of Bshouty and Haddad-Zaknoon, *The
Maximum Cosine Framework for Deriving Perceptron Based Linear Classifiers*; its slips are repaired silently
and listed in docs/errata.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

# Two vectors count as parallel when 1 - |cos| is below this: a cosine is the quotient of a dot product by
# two square roots, each good to a few units in the last place.
PARALLEL_TOLERANCE = 8 * np.finfo(np.float64).eps


def norm(v):
    return math.sqrt(np.dot(v, v))


def cosine(u, v):
    return np.dot(u, v) / (norm(u) * norm(v))


class Learner:
    """A perceptron-like algorithm: w <- keep w + lambda (y a), with keep, lambda >= 0 (Section 2.1)."""

    own_bound = None  # the ell that the algorithm itself proves, where it has one: alpha >= gamma ell

    def __init__(self):
        self.w = None  # zero; its length is known once an example is
        self.coef = np.zeros(0)

    def learn(self, a, y):
        """Process one non-zero example and name the kind of step taken."""
        if self.w is None:
            self.w = np.zeros(len(a))
        self.coef = np.append(self.coef, 0.0)
        return self.trial(a, y)

    def trial(self, a, y):
        raise NotImplementedError

    def update(self, lam, y, a, keep=1.0):
        self.w = keep * self.w + lam * y * a
        self.coef = keep * self.coef
        self.coef[-1] += lam

    @property
    def started(self):
        """Whether w != 0. Contradicting examples can cancel w exactly; the next one then starts anew."""
        return self.w.any()

    @property
    def coef_sum(self):
        """Lambda."""
        return math.fsum(self.coef)

    @property
    def bound(self):
        """Lambda / norm(w): no separator through the origin has a margin above its inverse."""
        return self.coef_sum / norm(self.w) if self.w is not None and self.started else 0.0


# The learners that the paper names


class Perceptron(Learner):
    """Rosenblatt (1958): lambda = 1 on every mistake."""

    def trial(self, a, y):
        if y * np.dot(self.w, a) > 0:
            return "none"
        self.update(1.0, y, a)
        return "update"


class PA(Learner):
    """Crammer et al. (2006): the smallest move that leaves no hinge loss on the example."""

    def lam(self, loss, sq_a):
        return loss / sq_a

    def trial(self, a, y):
        loss = max(0.0, 1 - y * np.dot(self.w, a))
        if loss == 0:
            return "none"
        self.update(self.lam(loss, np.dot(a, a)), y, a)
        return "update"


class PA1(PA):
    """PA-I: the step is cut at C."""

    def __init__(self, C=1.0):
        super().__init__()
        self.C = C

    def lam(self, loss, sq_a):
        return min(self.C, loss / sq_a)


class PA2(PA1):
    """PA-II: the loss enters squared, and the step is damped."""

    def lam(self, loss, sq_a):
        return loss / (sq_a + 1 / (2 * self.C))


class ALMA(Learner):
    """Gentile (2001), p = 2, on normalised examples; k counts the updates; w stays in the unit ball."""

    def __init__(self, alpha=0.9, B=None, C=2**0.5):
        super().__init__()
        self.alpha = alpha
        self.B = math.sqrt(8) / alpha if B is None else B
        self.C = C
        self.k = 1

    def trial(self, a, y):
        z = a / norm(a)
        if y * np.dot(self.w, z) > (1 - self.alpha) * self.B / math.sqrt(self.k):
            return "none"
        step = self.C / math.sqrt(self.k)
        N = max(1.0, norm(self.w + step * y * z))
        self.update(step / (norm(a) * N), y, a, keep=1 / N)
        self.k += 1
        return "update"


class NORMA(Learner):
    """Kivinen, Smola and Williamson (2004), linear kernel: decay always, add inside the margin rho."""

    def __init__(self, eta=0.1, lambda_reg=1e-3, nu=0.2, clip=True):
        super().__init__()
        self.eta, self.lambda_reg, self.nu, self.clip = eta, lambda_reg, nu, clip
        self.rho = 0.0

    def trial(self, a, y):
        inside = y * np.dot(self.w, a) <= self.rho
        self.update(self.eta if inside else 0.0, y, a, keep=1 - self.eta * self.lambda_reg)
        self.rho += -self.eta * (1 - self.nu) if inside else self.eta * self.nu
        if self.clip:
            self.rho = max(0.0, self.rho)
        return "update" if inside else "none"


# Section 3: the ROMMA family


class AggressiveROMMA(Learner):
    """Table 1; w is the paper's u. Its own bound is norm(u) (Theorem 7)."""

    @property
    def own_bound(self):
        return 0.0 if self.w is None else norm(self.w)

    def trial(self, a, y):
        u, sq_a = self.w, np.dot(a, a)
        if not self.started:
            self.update(1 / sq_a, y, a, keep=0.0)  # u_1 = y_0 a_0 / norm(a_0)^2
            return "II"
        cos = y * cosine(u, a)
        if 1 + cos <= PARALLEL_TOLERANCE:
            return "skip"  # the origin lies in the hull: nothing separates
        m, sq_u = y * np.dot(u, a), np.dot(u, u)
        if m >= 1:
            return "I"
        if m >= sq_a * sq_u or 1 - cos <= PARALLEL_TOLERANCE:  # parallel is I or II, whatever the rounding
            self.update(1 / sq_a, y, a, keep=0.0)
            return "II"
        D = sq_a * sq_u - np.dot(u, a) ** 2
        c = (sq_a * sq_u - m) / D
        d = sq_u * (y - np.dot(u, a)) / D
        self.update(y * d, y, a, keep=c)  # u <- c u + d a
        return "III"


class ROMMA(AggressiveROMMA):
    """Li and Long (2002): the same move, on mistakes only."""

    def trial(self, a, y):
        if y * np.dot(self.w, a) > 0:
            return "I"
        return super().trial(a, y)


class MaximumCosine(Learner):
    """What Figures 1 and 2 share: step 1, and an ell that is carried along."""

    own_bound = 0.0

    def start(self, y, a):
        self.update(1.0, y, a, keep=0.0)  # w = y a: the relative step x = infinity
        self.own_bound = 1 / norm(a)


class NAROMMA(MaximumCosine):
    """Figure 1, Table 2: the step is Lemma 5's maximiser of the local cosine bound."""

    def trial(self, a, y):
        w, sq_a, ell = self.w, np.dot(a, a), self.own_bound
        if not self.started:
            self.start(y, a)
            return "II"
        cos = y * cosine(w, a)
        if 1 + cos <= PARALLEL_TOLERANCE:
            return "skip"
        gamma_i = y * np.dot(w, a) / norm(w)
        if gamma_i >= 1 / ell:
            return "I"
        if gamma_i >= sq_a * ell or 1 - cos <= PARALLEL_TOLERANCE:
            self.start(y, a)
            return "II"
        lam = (1 - ell * gamma_i) * norm(w) / (ell * sq_a - gamma_i)
        self.update(lam, y, a)
        self.own_bound = math.sqrt(ell**2 + (1 - ell * gamma_i) ** 2 / (sq_a - gamma_i**2))
        return "III"


# Section 4: the maximum cosine perceptron


class CMCP(MaximumCosine):
    """Lemma 8: a step on mistakes; ell^2 is the sum of 1 / norm(a_j)^2 over them."""

    def trial(self, a, y):
        w, sq_a, ell = self.w, np.dot(a, a), self.own_bound
        if not self.started:
            self.start(y, a)
            return "update"
        if y * np.dot(w, a) > 0:
            return "none"
        self.update(norm(w) / (ell * sq_a), y, a)
        self.own_bound = math.sqrt(ell**2 + 1 / sq_a)
        return "update"


class MCP(MaximumCosine):
    """Figure 2, Lemma 9: CMCP's step, also on margins up to half the ceiling 1 / ell."""

    def trial(self, a, y):
        w, sq_a, ell = self.w, np.dot(a, a), self.own_bound
        if not self.started:
            self.start(y, a)
            return "update"
        margin = y * np.dot(w, a)
        if margin > norm(w) / (2 * ell):
            return "none"
        self.update(norm(w) / (ell * sq_a), y, a)  # step 3.1
        eta = 0.0 if margin <= 0 else margin * ell / norm(w)  # steps 3.2 and 3.3
        self.own_bound = math.sqrt(ell**2 + (1 - 2 * eta) / sq_a)  # step 3.4
        return "update"


class MCPExact(Learner):
    """MCP with ell = Lambda / norm(w) itself in place of the recursion that bounds it from below."""

    @property
    def own_bound(self):
        return self.bound

    def trial(self, a, y):
        sq_w, sq_a, Lambda = np.dot(self.w, self.w), np.dot(a, a), self.coef_sum
        if not self.started:
            self.update(1.0, y, a, keep=0.0)
            return "update"
        if y * np.dot(self.w, a) > sq_w / (2 * Lambda):
            return "none"
        self.update(sq_w / (Lambda * sq_a), y, a)
        return "update"


class Band(MCPExact):
    """lambda = k norm(w) / (ell norm(a)^2), where v = ell gamma_i decides k, or that nothing is learnt."""

    def trial(self, a, y):
        if not self.started:
            return super().trial(a, y)
        ell = self.coef_sum / norm(self.w)
        k = self.curve(ell * y * np.dot(self.w, a) / norm(self.w))
        if k is None:
            return "none"
        self.update(k * norm(self.w) / (ell * np.dot(a, a)), y, a)
        return "update"


class DampedMCP(Band):
    @staticmethod
    def curve(v):
        return 1 / (1 + abs(v)) if v <= 0.7 else None


class SoftMCP(Band):
    @staticmethod
    def curve(v):
        return None if v >= 1 else 1 if v <= 0 else 1 - v


REFERENCE: dict[str, type[Learner]] = {
    "perceptron": Perceptron, "pa": PA, "pa1": PA1, "pa2": PA2, "alma": ALMA, "norma": NORMA,
    "romma": ROMMA, "aggressive_romma": AggressiveROMMA, "naromma": NAROMMA,
    "cmcp": CMCP, "mcp": MCP, "mcp_exact": MCPExact, "damped_mcp": DampedMCP, "soft_mcp": SoftMCP,
}  # fmt: skip


# One pass over a stream


UPDATES = ("update", "II", "III")  # the kinds that add the example with a positive coefficient


@dataclass
class Result:
    w: np.ndarray
    coef_sum: float = 0.0  # Lambda
    bound: float = 0.0  # Lambda / norm(w), 0 if w = 0
    best_bound: float = 0.0  # the largest bound after any update
    own_bound: float | None = None  # the algorithm's ell, None where it has none
    seen: int = 0  # rows of positive weight, zero rows included
    mistakes: int = 0  # non-zero rows with margin <= 0 before learning
    updates: int = 0
    kinds: list[str] = field(default_factory=list)  # one a row, "zero" for zero rows
    averaged_w: np.ndarray | None = None  # with average: means over the hypotheses after
    averaged_coef_sum: float | None = None  # each non-zero row
    history: list[np.ndarray] = field(default_factory=list)  # with keep_history: w after each row


def weight_factors(weights):
    """What multiplies the steps on weighted examples: the weight, relative to the mean of those so far."""
    return np.clip([w / np.mean(weights[: k + 1]) for k, w in enumerate(weights)], 1e-12, 1e12)


def weighted(algorithm):
    """The printed algorithm, with each step and the example's coefficient multiplied by a factor."""

    class Weighted(algorithm):
        factor = 1.0

        def update(self, lam, y, a, keep=1.0):
            super().update(self.factor * lam, y, a, keep)

    if algorithm is NAROMMA:  # its ell is Lambda / norm(w), which the factors change
        Weighted.own_bound = property(lambda self: self.bound, lambda self, ell: None)
    return Weighted


def run(name, X, Y, weights=None, average=False, keep_history=False, **params):
    """One pass of the algorithm `name` over the rows of X, with labels Y in {-1, +1}.

    Zero rows are skipped: where they are examples, X has a column of ones. Rows of weight 0 are left out.
    """
    algorithm, factors = REFERENCE[name], np.ones(len(X))
    if weights is not None:
        used = weights > 0.0
        X, Y, factors, algorithm = X[used], Y[used], weight_factors(weights[used]), weighted(algorithm)
    learner = algorithm(**params)
    result = Result(w=np.zeros(X.shape[1]))
    hypotheses, coef_sums = [], []
    for a, y, learner.factor in zip(X, Y, factors, strict=True):
        kind = "zero"
        if a.any():
            result.mistakes += int(y * np.dot(result.w, a) <= 0)
            kind = learner.learn(a, y)
            result.w = learner.w
            hypotheses.append(learner.w)
            coef_sums.append(learner.coef_sum)
        if kind in UPDATES:
            result.updates += 1
            result.best_bound = max(result.best_bound, learner.bound)
        result.seen += 1
        result.kinds.append(kind)
        if keep_history:
            result.history.append(result.w)
    result.coef_sum, result.bound, result.own_bound = (
        learner.coef_sum,
        learner.bound,
        learner.own_bound,
    )
    if average:
        result.averaged_w = np.mean(hypotheses, axis=0) if hypotheses else result.w
        result.averaged_coef_sum = np.mean(coef_sums) if coef_sums else 0.0
    return result


# Joint learning of several classes


def joint_examples(name, X, codes, n_classes, late=False, **params):
    """What the algorithm `name` learns from, one a row: Kesler's examples, made up as W goes along.

    A row a of class y is +a in block y and -a in the block of the best wrong class, the first of equals.
    With `late`, a class is a wrong one only from its first row on; with no wrong class, the example is 0.
    """
    learner, Z = REFERENCE[name](**params), np.zeros((len(X), n_classes, X.shape[1]))
    W = np.zeros(Z.shape[1:])
    known = set() if late else set(range(n_classes))
    for a, right, z in zip(X, codes, Z, strict=True):
        known.add(right)
        wrong = sorted(known - {right})
        if not a.any() or not wrong:
            continue
        scores = [np.dot(W[other], a) for other in wrong]
        z[right], z[wrong[int(np.argmax(scores))]] = a, -a
        learner.learn(z.ravel(), 1.0)
        W = learner.w.reshape(W.shape)
    return Z.reshape(len(X), -1)


def run_joint(name, X, codes, n_classes, average=False, late=False, **params):
    """One pass of the algorithm `name` over all classes at once; w is W, block by block."""
    Z = joint_examples(name, X, codes, n_classes, late, **params)
    return run(name, Z, np.ones(len(Z)), average=average, **params)


def all_joint_examples(X, codes, n_classes):
    """Each row against each wrong class: what the margin of joint learning is the minimum over."""
    blocks = np.eye(n_classes)
    pairs = [(a, y, r) for a, y in zip(X, codes, strict=True) for r in range(n_classes) if r != y]
    return np.array([np.kron(blocks[y] - blocks[r], a) for a, y, r in pairs])


# Lemma 3, by looking everywhere


def phi(x, r, p, s, q, t):
    """Lemma 3's Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x), at infinity by its limit."""
    return p / math.sqrt(q) if math.isinf(x) else (r + p * x) / math.sqrt(s + q * x**2 + 2 * t * q * x)


def maximise_by_grid(r, p, s, q, t):
    """The argmax and the maximum of Phi over 0 <= x <= infinity, without Lemma 3.

    A grid of 24 decades around sqrt(s / q), where the two squares of the radicand balance, then a golden
    section between the best point's neighbours. A maximum at an end wins ties within rounding.
    """
    grid = math.sqrt(s / q) * np.logspace(-12, 12, 2401)
    best = int(np.argmax([phi(x, r, p, s, q, t) for x in grid]))
    low, high = math.log(grid[max(best - 1, 0)]), math.log(grid[min(best + 1, len(grid) - 1)])
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if phi(math.exp(left), r, p, s, q, t) >= phi(math.exp(right), r, p, s, q, t):
            high = right
        else:
            low = left
    argmax, maximum = 0.0, phi(0.0, r, p, s, q, t)
    for x in (math.inf, math.exp((low + high) / 2)):
        value = phi(x, r, p, s, q, t)
        if value > maximum + PARALLEL_TOLERANCE * abs(maximum):
            argmax, maximum = x, value
    return argmax, maximum


# Margins


def attained_margin(w, X, Y):
    """min_j y_j (w.a_j) / norm(w) over the non-zero rows; 0 if w = 0."""
    return min(y * np.dot(w, a) for a, y in zip(X, Y, strict=True) if a.any()) / norm(w) if w.any() else 0.0


def maximal_margin(X, Y):
    """The largest margin of any separator through the origin; 0, up to rounding, if no separator exists.

    It is the norm of the point of the convex hull of the y_j a_j nearest to the origin: with these as the
    columns of U, minimise norm(U tau)^2 + (sum(tau) - 1)^2 over tau >= 0, then normalise tau.
    """
    U = (Y[:, None] * X)[X.any(axis=1)].T
    tau, _ = nnls(np.vstack([U, np.ones(U.shape[1])]), np.append(np.zeros(len(U)), 1.0))
    return norm(U @ (tau / tau.sum()))
