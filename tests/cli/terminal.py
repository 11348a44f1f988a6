"""A command on a terminal of its own."""

import os
import pty
import re
import select
import subprocess
import time


def on_terminal(command, *, cwd, env, seconds=120):
    """Run a command to its end; what it showed, as bytes and as text without control sequences."""
    main, other = pty.openpty()
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=other, stdout=other, stderr=other)
    os.close(other)
    shown, begun = b"", time.monotonic()
    while time.monotonic() - begun < seconds:
        if select.select([main], [], [], 0.1)[0]:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        elif process.poll() is not None:
            break
    os.close(main)
    assert process.wait(timeout=60) == 0
    return shown, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode(errors="replace"))
