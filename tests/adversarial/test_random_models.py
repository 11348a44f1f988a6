"""No certificate is ever false: random models, checked in exact arithmetic.

Set MAXCOSINE_SEED to check other models. ``python -m tests.adversarial`` checks any number of them.
"""

import os

import pytest

from tests.adversarial.generator import MODELS_PER_CASE
from tests.adversarial.shards import Shard

FIRST_SEED = int(os.environ.get("MAXCOSINE_SEED", "0"))
FEW, MANY = 20, 100  # cases in a shard
QUICK_SHARDS, SLOW_SHARDS = 2, 50

# What the cases of a slow shard must show, so that no check is idle: claims checked, by kind.
EXPECTED = {
    "ceiling": 2000,
    "last ceiling": 1000,
    "bound": 2000,
    "separable": 2000,
    "attained": 2000,
    "asking": 350,
    "budget": 200,
    "mistakes": 200,
    "average": 100,
}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("shard", range(QUICK_SHARDS))
def test_no_claim_of_a_few_models_is_false(shard):
    start = FIRST_SEED + shard * FEW
    found = Shard().check(range(start, start + FEW))
    false = dict(found.false)
    assert not false, f"\n{found}"


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SLOW_SHARDS))
def test_no_claim_of_many_models_is_false(shard):
    start = FIRST_SEED + QUICK_SHARDS * FEW + shard * MANY
    found = Shard().check(range(start, start + MANY))
    false = dict(found.false)
    assert not false, f"\n{found}"
    idle = {check: found.done[check] for check, count in EXPECTED.items() if found.done[check] < count}
    assert not idle


def test_the_slow_shards_are_twenty_thousand_models():
    assert SLOW_SHARDS * MANY * MODELS_PER_CASE >= 20_000
