"""Hypothesis looks for new examples on a developer's machine, and repeats the same ones in CI."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
