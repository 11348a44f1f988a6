"""The ceiling of the one-pass learner is never false, on hard rows and after merges, while its geometry moves."""

import pytest

from tests.adversarial.onepass import Found
from tests.adversarial.test_random_models import FIRST_SEED

pytestmark = pytest.mark.filterwarnings("ignore")


def test_no_ceiling_of_a_few_cases_is_false():
    found = Found().check(range(FIRST_SEED, FIRST_SEED + 60))
    assert found.false == []
    assert found.separable > 10
    assert found.tight > 2


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(5))
def test_no_ceiling_of_many_cases_is_false(shard):
    start = FIRST_SEED + 60 + 400 * shard
    found = Found().check(range(start, start + 400))
    assert found.false == []
    assert found.separable > 80
    assert found.tight > 20
    assert found.merged > 20
