"""Theorem 7: aggressive ROMMA and NAROMMA are one algorithm, at every step."""

import numpy as np
import pytest

from maxcosine import RULES
from tests.reference import cosine, maximal_margin, norm
from tests.rules.streams import Stream, Walk, learner, stream

PAIR = ("aggressive_romma", "naromma")
STREAMS = [stream(seed, n=100, noise=noise, d=12) for seed in range(4) for noise in (0.0, 0.02)]


def with_repeats(data):
    """Every row twice: after a step of type II or III the repeat sits exactly on the threshold."""
    return Stream(np.repeat(data.X, 2, axis=0), np.repeat(data.y, 2), data.separator)


def parallel(lengths, direction=(0.6, -0.8)):
    X = np.outer(lengths, direction)
    return Stream(X, np.ones(len(X), int), np.asarray(direction))


def test_same_direction_norm_and_type_at_every_step():
    for data in [*STREAMS, *map(with_repeats, STREAMS)]:
        romma, naromma = (Walk.of(RULES[name], data.X.shape[1]) for name in PAIR)
        for x, y in zip(data.X, data.y, strict=True):
            if not x.any():
                continue
            margin = romma.margin(x, y)
            kinds = romma.step(x, y), naromma.step(x, y)
            on_threshold = abs(margin - 1) < 1e-9  # there rounding decides, and it moves nothing
            assert kinds[0] == kinds[1] or (on_threshold and "I" in kinds)
            assert cosine(romma.w, naromma.w) == pytest.approx(1)
            assert norm(romma.w) == pytest.approx(naromma.bound)  # norm(u) = ell
            assert romma.coef_sum == pytest.approx(norm(romma.w) ** 2)  # Lambda = norm(u)^2


def test_all_three_types_occur():
    walk, kinds = Walk.of(RULES["naromma"], 12), set()
    for x, y in zip(STREAMS[0].X, STREAMS[0].y, strict=True):
        if x.any():
            kinds.add(walk.step(x, y))
    assert kinds == {"I", "II", "III"}


def test_engine_keeps_them_together_row_by_row():
    for data in STREAMS[:3]:
        romma, naromma = map(learner, PAIR)
        for x, y in zip(data.X, data.y, strict=True):
            for each in (romma, naromma):
                each.partial_fit([x], [y], classes=[-1, 1])
            if not romma.coef_.any():
                continue
            ours, theirs = romma.certificate_, naromma.certificate_
            assert (ours.updates, ours.mistakes) == (theirs.updates, theirs.mistakes)
            assert cosine(romma.coef_[0], naromma.coef_[0]) == pytest.approx(1)
            assert ours.norm == pytest.approx(theirs.bound)
            assert ours.bound == pytest.approx(theirs.bound)


@pytest.mark.parametrize("name", PAIR)
def test_shorter_parallel_example_is_type_ii(name):
    """(2, 0), (1, 0): learners that start at y a, or skip parallel examples, keep ell = 1/2 here."""
    for y in (-1, 1):
        walk = Walk.of(RULES[name], 2)
        assert [walk.step(np.array([y * length, 0.0]), y) for length in (2.0, 1.0)] == ["II", "II"]
        assert walk.w.tolist() == [1.0, 0.0]
        assert walk.bound == 1.0


@pytest.mark.parametrize("name", PAIR)
def test_parallel_examples_leave_the_shortest(name):
    """The hull of parallel examples is a segment, and its end is the shortest of them."""
    for lengths in ((2, 1), (1, 2), (3, 1, 2, 0.5, 0.5, 4), (1e3, 1e-3, 7)):
        data = parallel(lengths)
        model = learner(name).partial_fit(data.X, data.y, classes=[-1, 1])
        assert model.certificate_.margin_ceiling == pytest.approx(min(lengths))
        assert maximal_margin(data.X, data.y) == pytest.approx(min(lengths))
        assert cosine(model.coef_[0], data.separator) == pytest.approx(1)


@pytest.mark.parametrize("name", ["romma", *PAIR])
def test_antiparallel_example_is_skipped(name):
    """The origin lies in the hull: nothing separates, and nothing is to be learnt."""
    walk = Walk.of(RULES[name], 2)
    walk.step(np.array([0.6, -0.8]), 1)
    before = walk.w.copy()
    assert walk.step(np.array([1.2, -1.6]), -1) == "I"
    assert walk.w.tolist() == before.tolist()


def test_keep_is_never_negative_and_ell_never_falls():
    for data in STREAMS:
        for name in ("romma", *PAIR):
            walk, ell = Walk.of(RULES[name], data.X.shape[1]), 0.0
            for _ in walk.over(data):
                assert walk.bound >= ell * (1 - 1e-9)
                ell = walk.bound
