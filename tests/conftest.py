"""What tests share. Hypothesis looks for new examples on a developer's machine, and repeats the same in CI.

Nothing here is timed: the first example of a test may compile a kernel.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def mnist():
    """The full MNIST, where it can be had."""
    from maxcosine.experiments import datasets

    try:
        return datasets.load("mnist")
    except datasets.Unavailable as error:
        pytest.skip(f"MNIST cannot be had here: {error}")
