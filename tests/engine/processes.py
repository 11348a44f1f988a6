"""Python programs that run in their own processes."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run_python(*arguments, env=None, **options):
    """Run Python and return what it printed, read as JSON."""
    options = {"capture_output": True, "text": True, "cwd": ROOT, **options}
    done = subprocess.run([sys.executable, *arguments], env={**os.environ, **(env or {})}, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
