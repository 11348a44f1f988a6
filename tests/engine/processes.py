"""Python programs run in processes of their own, as the tests of caches and start-up need them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "maxcosine"


def run_python(*arguments, env=None, **options):
    """Run Python and return what it printed, read as JSON."""
    options = {"capture_output": True, "text": True, "cwd": ROOT, **options}
    done = subprocess.run([sys.executable, *arguments], env={**os.environ, **(env or {})}, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def copy_package(folder):
    """A copy of the package that PYTHONPATH=folder puts before the installed one."""
    shutil.copytree(PACKAGE, folder / "maxcosine", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "maxcosine"
