"""Settings and fixtures of all tests."""

import os

import pytest
from hypothesis import settings

# No deadline: machines that run tests are often busy. CI tries the same examples each time.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def mnist():
    """MNIST; without it, the test is skipped."""
    from maxcosine.experiments import datasets

    try:
        return datasets.load("mnist")
    except datasets.Unavailable as error:
        pytest.skip(f"MNIST is not available: {error}")
