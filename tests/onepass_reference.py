"""The one-pass learner written plainly: every example costs time linear in the number of features.

This is what the compiled learner is tested against, so it shares nothing with it. Rows are squashed,
z = sign(x) log(1 + |x|), and all heads learn in one geometry, which the rows fix without their labels:

    n, S, SS      of a feature: rows that have it, and the sums of z and z^2 over them; T rows in all
    mu = S / T    fixed anew when row T = 1, 2, 4, ... arrives, from the rows before it
    N^-2 = n / sqrt(SS (SS - S^2 / (T + 1))),  D^2 = N^-2 n^(-1/2)
                  fixed anew when a row has the feature and n has reached max(n + 1, floor(1.25 n)) of the last time
    R = sqrt(1 + sum N^-2 (z - mu)^2),  row a = ((z - mu) / R, 1/2)
    <p, q> = sum D^2 p q + T^(-1/2) p_constant q_constant

A dual is u = sum lam y z / R, s = sum lam y / R, beta = sum lam y / 2 and Lambda = sum lam, so that (u - mu s, beta) is
the combination sum lam y a of the rows in today's geometry, whatever mu and D have become. Up to two classes have one
block, with y = -1 for the first class and y = 1 for the second. Three or more have one block each; a row enters block c
with a coefficient g_c, and these sum to 0.

Extensions of the plain learner:

Late classes
    Codes count classes in the order of their arrival. One class is learnt against "the other". When a third class
    comes, the binary dual d becomes the blocks -d/2 and d/2 with Lambda/2, for the last duals and the averages alike,
    and the block of a new class starts at 0. Energies, errors and sizes keep their values: the difference of the two
    blocks' scores is the binary score, so the mixture and, with the slope of the calibration, the probabilities of
    the first two classes go on as they were. The offset of the calibration has no counterpart and becomes 0.
Predictions
    Before any class is known there is none (-1), which is a mistake. With one class known it is predicted. With two,
    the second is predicted if the margin is above 0; with more, the class of the highest margin, the first of equals.
    The block of a third or later class is there when its first row is predicted. The margins of all blocks sum to 0
    and that of the new block is 0, so it is not predicted.
Sample weights
    The coefficients of a step are multiplied by weight / (running mean of the positive weights, this one included),
    clamped to FACTORS. A row of weight 0 is as if absent.
Guards, out of the reach of ordinary streams
    SS - S^2 / (T + 1) is at least SS / (T + 1), as it is without rounding. No step takes Lambda above MOST_COEF_SUM.
    The calibration clamps margins to MOST_MARGIN.
"""

import copy

import numpy as np

CONSTANT = 0.5
RULES = ("logistic", "mcp_exact")
LOGISTIC_GAIN = 8.0
SMALLEST_Z = 1e-100
FACTORS = (1e-12, 1e12)
MOST_COEF_SUM = 1e16
MOST_MARGIN = 1e100
PREDICTORS = 4  # logistic last, logistic average, mcp_exact last, mcp_exact average


def is_power_of_two(n):
    return n & (n - 1) == 0


def squash(x):
    x = np.asarray(x, np.float64)
    z = np.sign(x) * np.log1p(np.abs(x))
    return np.where(np.abs(z) < SMALLEST_Z, 0.0, z)


class Geometry:
    """The centre, the scales and the metric of the features."""

    def __init__(self, n_features):
        self.T = 0
        self.n, self.S, self.SS = np.zeros((3, n_features))
        self.mu, self.N, self.D, self.next_fix = np.zeros((4, n_features))  # N is N^-2, D is D^2

    def observe(self, z):
        self.T += 1
        if is_power_of_two(self.T):
            self.mu = self.S / self.T
        self.n += z != 0
        self.S += z
        self.SS += z**2
        self.fix(np.flatnonzero((z != 0) & (self.n >= self.next_fix)))

    def fix(self, f):
        n, S, SS = self.n[f], self.S[f], self.SS[f]
        variation = np.maximum(SS - S**2 / (self.T + 1), SS / (self.T + 1))
        self.N[f] = n / (np.sqrt(SS) * np.sqrt(variation))
        self.D[f] = self.N[f] / np.sqrt(n)
        self.next_fix[f] = np.maximum(n + 1, np.floor(1.25 * n))

    @property
    def constant_metric(self):
        return 1 / np.sqrt(max(self.T, 1))

    def row(self, z):
        """The centred row over its length R, and R."""
        R = np.sqrt(1 + np.sum(self.N * (z - self.mu) ** 2))
        return (z - self.mu) / R, R

    def sq_norm(self, row):
        return np.sum(self.D * row**2) + self.constant_metric * CONSTANT**2


class Dual:
    """A combination of the rows: u, s and beta with one entry a block, and Lambda."""

    def __init__(self, n_blocks, n_features):
        self.u, self.s, self.beta = np.zeros((n_blocks, n_features)), np.zeros(n_blocks), np.zeros(n_blocks)
        self.coef_sum = 0.0

    def add(self, other, factor):
        self.u += factor * other.u
        self.s += factor * other.s
        self.beta += factor * other.beta
        self.coef_sum += factor * other.coef_sum

    def add_row(self, z, R, coefs, mass):
        self.u += np.outer(coefs / R, z)
        self.s += coefs / R
        self.beta += coefs * CONSTANT
        self.coef_sum += mass

    def weights(self, geometry):
        return self.u - np.outer(self.s, geometry.mu)

    def scores(self, geometry, row):
        # Not by a matrix product: blocks of equal weights get equal scores, as the first of equals is predicted.
        products = np.sum(self.weights(geometry) * (geometry.D * row), axis=1)
        return products + geometry.constant_metric * CONSTANT * self.beta

    def sq_norm(self, geometry):
        squares = np.sum(geometry.D * self.weights(geometry) ** 2)
        return squares + geometry.constant_metric * np.sum(self.beta**2)

    def split(self):
        """Two blocks for one."""
        self.u, self.s, self.beta = (np.concatenate([-part / 2, part / 2]) for part in (self.u, self.s, self.beta))
        self.coef_sum /= 2

    def add_block(self):
        self.u = np.vstack([self.u, np.zeros(self.u.shape[1])])
        self.s, self.beta = np.append(self.s, 0.0), np.append(self.beta, 0.0)


class Head:
    """A rule with its last dual, and the sum over time of t times the dual after row t."""

    def __init__(self, rule, n_blocks, n_features):
        self.rule = rule
        self.last, self.summed = Dual(n_blocks, n_features), Dual(n_blocks, n_features)
        self.weight = 0.0
        self.energy = 1.0

    def gain(self, T):
        return LOGISTIC_GAIN * np.sqrt(max(T, 1) / self.energy) if self.rule == "logistic" else 1.0

    def average(self):
        mean = Dual(len(self.last.s), self.last.u.shape[1])
        mean.add(self.summed, 1 / self.weight if self.weight else 0.0)
        return mean

    def scores(self, geometry, row):
        """Scores of the last dual and of the average, one row each."""
        return self.gain(geometry.T) * np.array([d.scores(geometry, row) for d in (self.last, self.average())])

    def step(self, scores, code, geometry, row):
        """The coefficient of each block, and what they add to Lambda."""
        n_blocks = len(scores)
        right = np.arange(n_blocks) == code
        if self.rule == "logistic":
            if n_blocks == 1:
                y = 1.0 if code else -1.0
                lam = 1 / (1 + np.exp(min(y * scores[0], 30.0)))
                return np.array([y * lam]), lam
            p = np.exp(scores - scores.max())
            g = right - p / p.sum()
            return g, g[code]
        sq_row = geometry.sq_norm(row)
        if n_blocks == 1:
            direction = np.array([1.0 if code else -1.0])
            margin = direction[0] * scores[0]
        else:  # Kesler's construction: the row in its own block, its negative in the best wrong one
            rival = np.argmax(np.where(right, -np.inf, scores))
            direction = right - 1.0 * (np.arange(n_blocks) == rival)
            margin, sq_row = scores[code] - scores[rival], 2 * sq_row
        sq_w, coef_sum = self.last.sq_norm(geometry), self.last.coef_sum
        if coef_sum == 0 or sq_w <= 0:
            return direction, 1.0
        lam = sq_w / (coef_sum * sq_row) if margin <= sq_w / (2 * coef_sum) else 0.0
        return lam * direction, lam

    def learn(self, scores, code, factor, z, row, R, geometry):
        coefs, mass = self.step(scores, code, geometry, row)
        coefs, mass = factor * coefs, factor * mass
        room = MOST_COEF_SUM - self.last.coef_sum
        if mass > room:
            coefs, mass = coefs * (room / mass), room
        self.last.add_row(z, R, coefs, mass)
        self.energy += np.sum(coefs**2)
        self.summed.add(self.last, geometry.T)
        self.weight += geometry.T


class Calibration:
    """Newton's method online on the logarithmic loss of sigmoid(slope m + offset) or, with blocks, softmax(slope m)."""

    def __init__(self):
        self.theta, self.curvature = np.array([2.0, 0.0]), np.eye(2)

    def probabilities(self, margins):
        if len(margins) == 1:
            p = 1 / (1 + np.exp(-np.clip(self.theta[0] * margins[0] + self.theta[1], -30, 30)))
            return np.array([1 - p, p])
        e = np.exp(self.theta[0] * (margins - margins.max()))
        return e / e.sum()

    def learn(self, margins, code, T):
        if is_power_of_two(T):
            self.curvature = np.eye(2)
        m = np.clip(margins, -MOST_MARGIN, MOST_MARGIN)
        p = self.probabilities(m)
        if len(m) == 1:
            x = np.array([m[0], 1.0])
            gradient, curvature = (p[1] - code) * x, max(p[0] * p[1], 1e-4) * np.outer(x, x)
        else:
            variance = max(p @ m**2 - (p @ m) ** 2, 1e-4)
            gradient, curvature = np.array([p @ m - m[code], 0.0]), np.diag([variance, 0.0])
        self.curvature = self.curvature + curvature
        self.theta = self.theta - np.linalg.solve(self.curvature, gradient)
        self.theta[0] = max(self.theta[0], 0.05)


class OnePassReference:
    """The learner. `n_classes` classes are known from the start; others may come."""

    def __init__(self, n_features, n_classes=0):
        self.n_classes = n_classes
        self.geometry = Geometry(n_features)
        self.heads = [Head(rule, self.n_blocks, n_features) for rule in RULES]
        self.errors, self.sizes = np.zeros((2, PREDICTORS))
        self.calibration = Calibration()
        self.mean_weight = 0.0
        self.mistakes = 0

    @property
    def n_blocks(self):
        return 1 if self.n_classes <= 2 else self.n_classes

    def copy(self):
        return copy.deepcopy(self)

    def add_class(self):
        """Add the block of a third or later class."""
        self.n_classes = max(self.n_classes, 2)
        for dual in (dual for head in self.heads for dual in (head.last, head.summed)):
            if self.n_classes == 2:
                dual.split()
            dual.add_block()
        if self.n_classes == 2:
            self.calibration.theta[1] = 0.0
            self.calibration.curvature = np.diag([self.calibration.curvature[0, 0], 1.0])
        self.n_classes += 1

    def arranged(self, places, n_classes):
        """A copy of more classes, in which class c has the code places[c]."""
        other = self.copy()
        if n_classes <= 2:
            sign = -1.0 if places and places[0] == 1 else 1.0
            for dual in (dual for head in other.heads for dual in (head.last, head.summed)):
                dual.u, dual.s, dual.beta = sign * dual.u, sign * dual.s, sign * dual.beta
            other.calibration.theta[1] *= sign
        else:
            while other.n_classes < n_classes:
                other.add_class()
            # Classes that were not known get the codes that are left, in their order.
            places = [*places, *(code for code in range(n_classes) if code not in places)]
            for dual in (dual for head in other.heads for dual in (head.last, head.summed)):
                dual.u, dual.s, dual.beta = (part[np.argsort(places)] for part in (dual.u, dual.s, dual.beta))
        other.n_classes = n_classes
        return other

    def mixture(self):
        """The factor of each predictor's scores: by its errors, over the usual size of its scores."""
        least = self.errors.min()
        shares = np.exp(-(self.errors - least) / (2 * np.sqrt(1 + least)))
        return shares / shares.sum() * (1 + self.geometry.T) / (1 + self.sizes)

    def predictor_scores(self, row):
        return np.concatenate([head.scores(self.geometry, row) for head in self.heads])

    def predicted(self, margins):
        if self.n_classes < 2:
            return self.n_classes - 1
        return int(margins[0] > 0) if len(margins) == 1 else int(np.argmax(margins))

    def learn(self, x, code, weight=1.0):
        """Predict, then learn. Returns the margins and the class that were predicted."""
        if weight == 0:
            margins = self.margins(x)
            return margins, self.predicted(margins)
        while code >= max(self.n_classes, 2):
            self.add_class()
        z, geometry, mixture = squash(x), self.geometry, self.mixture()
        geometry.observe(z)
        row, R = geometry.row(z)
        scores = self.predictor_scores(row)
        margins = mixture @ scores
        predicted = self.predicted(margins)
        self.n_classes = max(self.n_classes, code + 1)
        self.mean_weight += (weight - self.mean_weight) / geometry.T
        factor = np.clip(weight / self.mean_weight, *FACTORS)
        for k, head in enumerate(self.heads):
            head.learn(scores[2 * k], code, factor, z, row, R, geometry)
        wrong = (1 if code else -1) * scores[:, 0] <= 0 if self.n_blocks == 1 else scores.argmax(1) != code
        self.errors += wrong
        self.sizes += np.abs(scores).mean(1)
        self.calibration.learn(margins, code, geometry.T)
        self.mistakes += predicted != code
        return margins, predicted

    def margins(self, x):
        """The margins of a row that is not learnt; features never seen count nothing."""
        row, _ = self.geometry.row(squash(x) * (self.geometry.n > 0))
        return self.mixture() @ self.predictor_scores(row)

    def probabilities(self, x):
        return self.calibration.probabilities(self.margins(x))

    def mixed_dual(self):
        total = Dual(self.n_blocks, len(self.geometry.n))
        for head, (of_last, of_average) in zip(self.heads, self.mixture().reshape(-1, 2), strict=True):
            total.add(head.last, head.gain(self.geometry.T) * of_last)
            total.add(head.average(), head.gain(self.geometry.T) * of_average)
        return total

    def ceiling(self):
        """No separator of the rows seen has a larger margin, in today's geometry."""
        total = self.mixed_dual()
        return np.sqrt(total.sq_norm(self.geometry)) / total.coef_sum


def merge(parts, base=None):
    """One learner from several that have the same codes and have gone on from `base`, or from nothing.

    Sums over rows are those of the base and what each part added. To a dual, and to the calibration, each part adds
    what it added to its own, times the square root of its share in the rows added or, for the calibration, the share.
    The geometry is fixed anew, and the curvature of the calibration is forgotten.
    """
    n_features = len(parts[0].geometry.n)
    base = OnePassReference(n_features).arranged([], parts[0].n_classes) if base is None else base
    merged = base.copy()
    added = np.array([part.geometry.T - base.geometry.T for part in parts])
    shares = added / added.sum()

    def joined(get, factors):
        return get(base) + sum(factor * (get(part) - get(base)) for factor, part in zip(factors, parts, strict=True))

    ones = np.ones(len(parts))
    for name in ("T", "n", "S", "SS"):
        setattr(merged.geometry, name, joined(lambda one, name=name: getattr(one.geometry, name), ones))
    merged.geometry.T = T = int(merged.geometry.T)
    for name in ("errors", "sizes", "mistakes"):
        setattr(merged, name, joined(lambda one, name=name: getattr(one, name), ones))
    merged.mean_weight = joined(lambda one: one.geometry.T * one.mean_weight, ones) / T
    merged.geometry.mu = merged.geometry.S / T
    merged.geometry.fix(np.flatnonzero(merged.geometry.n))
    merged.calibration = Calibration()
    merged.calibration.theta = joined(lambda one: one.calibration.theta, shares)
    for h, head in enumerate(merged.heads):
        head.energy = joined(lambda one, h=h: one.heads[h].energy, ones)
        head.weight = T * (T + 1) / 2
        for name in ("u", "s", "beta", "coef_sum"):
            setattr(head.last, name, joined(lambda one, h=h, name=name: getattr(one.heads[h].last, name), shares**0.5))
            mean = joined(lambda one, h=h, name=name: getattr(one.heads[h].average(), name), shares**0.5)
            setattr(head.summed, name, head.weight * mean)
    return merged
