"""`maxcosine` in processes of their own, each forked from one that has loaded its modules.

Hundreds of commands are run by the tests, and most of the time of a small one goes by in loading modules.
Whether a command begins well from nothing is for the tests that start theirs by `subprocess`.
"""

import functools
import json
import os
import resource
import runpy
import socket
import subprocess
import sys
from tempfile import TemporaryFile

_SECONDS = 300


def command(*arguments):
    """A command, for a process that begins from nothing."""
    return [sys.executable, "-m", "maxcosine", *map(str, arguments)]


def run(folder, *arguments, input=None, text=True, env=None, largest_file=None):
    """Run a command in a folder to its end, as `subprocess.run` does.

    `largest_file`: no file that it writes can become longer, as if the disk were full.
    """
    asked = {
        "folder": os.fspath(folder),
        "arguments": list(map(str, arguments)),
        "environment": dict(os.environ if env is None else env),
        "largest_file": largest_file,
    }
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as errors:
        if input is not None:
            given.write(input.encode() if isinstance(input, str) else input)
            given.seek(0)
        socket.send_fds(
            _server(), [json.dumps(asked).encode() + b"\n"], [f.fileno() for f in (given, out, errors)]
        )
        code = int(_server().recv(64))
        out.seek(0)
        errors.seek(0)
        printed = [file.read().decode() if text else file.read() for file in (out, errors)]
    return subprocess.CompletedProcess(arguments, code, *printed)


@functools.cache
def _server():
    """A connection to the process that commands are forked from; it ends with this one."""
    here, there = socket.socketpair()
    subprocess.Popen([sys.executable, "-m", __name__, str(there.fileno())], pass_fds=[there.fileno()])
    there.close()
    here.settimeout(_SECONDS)
    return here


def serve(connection):
    """Run commands, one after another, until nobody asks any more."""
    import maxcosine.cli.tables
    import maxcosine.stream.comparison
    import maxcosine.stream.training  # noqa: F401

    while True:
        message, files, _, _ = socket.recv_fds(connection, 2**16, 3)
        while message and not message.endswith(b"\n"):
            message += connection.recv(2**16)
        if not message:
            return
        child = os.fork()
        if not child:
            _become(json.loads(message), files)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _become(asked, files):
    """Be the command that is asked for, and end with it."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if asked["largest_file"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["largest_file"],) * 2)
    sys.argv = ["maxcosine", *asked["arguments"]]
    code = 1
    try:
        runpy.run_module("maxcosine", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        serve(asking)
