"""The command `maxcosine`, for tests."""

import contextlib
import io
import os
import resource
import subprocess
import sys
import tempfile
from unittest.mock import patch

from maxcosine.__main__ import main
from maxcosine.cli import display

SECONDS = 300


class _Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def command(*arguments):
    """The command line of another process."""
    return [sys.executable, "-m", "maxcosine", *map(str, arguments)]


def run(folder, *arguments, input=None, text=True, env=None, terminal=False, largest_file=None):
    """Run a command in this process, because starting another one takes half a second.

    Parameters
    ----------
    folder : the folder in which it runs
    arguments : strings, numbers or paths
    input : text or bytes for standard input
    text : return text; otherwise bytes
    env : changes of the environment
    terminal : its standard output and standard error say that they are a terminal
    largest_file : it runs in another process, and cannot write files larger than this many bytes

    Returns
    -------
    subprocess.CompletedProcess
        What a process would have returned.
    """
    if largest_file is not None:
        return _run_process(folder, arguments, largest_file, text)
    stream = _Terminal if terminal else io.TextIOWrapper
    out, errors = stream(io.BytesIO(), "utf-8"), stream(io.BytesIO(), "utf-8")
    display.console.cache_clear()  # the last console may have had another width
    with (
        tempfile.TemporaryFile() as file,  # a command reads the file descriptor of standard input
        io.TextIOWrapper(file) as stdin,
        contextlib.chdir(folder),
        patch.dict(os.environ, env or {}),
        patch.multiple(sys, argv=["maxcosine", *map(str, arguments)], stdin=stdin, stdout=out, stderr=errors),
    ):
        file.write(input.encode() if isinstance(input, str) else input or b"")
        file.seek(0)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        out.flush()
        errors.flush()
    printed = [one.buffer.getvalue() for one in (out, errors)]
    return subprocess.CompletedProcess(arguments, code, *(content.decode() if text else content for content in printed))


def _run_process(folder, arguments, largest_file, text):
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        capture_output=True,
        text=text,
        timeout=SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file)),
        check=False,
    )
