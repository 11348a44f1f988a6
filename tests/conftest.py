"""Hypothesis looks for new examples on a developer's machine, and repeats the same ones in CI.

Nothing here is timed: the first example of a test may compile a kernel.
"""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
