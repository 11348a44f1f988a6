import pytest

from maxcosine import RULES
from tests.learners import ALL_SETTINGS, PAIRWISE_SETTINGS

# One rule restarts, one decays, one is scale-free and has a state, one has none of these traits.
DIFFERENT = ("aggressive_romma", "norma", "mcp", "pa1")


@pytest.fixture(params=RULES)
def rule(request):
    """The name of each rule in turn."""
    return request.param


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name not in DIFFERENT)) for name in RULES])
def some_rule(request):
    """A rule of each kind, for what depends on storage more than on the rule; every rule if there is time."""
    return request.param


@pytest.fixture(params=["pairs", pytest.param("all", marks=pytest.mark.slow)])
def settings(request):
    """The settings that a law is tested in: every pair of options, and every combination if there is time."""
    return PAIRWISE_SETTINGS if request.param == "pairs" else ALL_SETTINGS
