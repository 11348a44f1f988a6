"""The command ``maxcosine``, also as ``python -m maxcosine``: how its process begins and ends."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from contextlib import suppress

# New objects between two searches for unreachable ones: with Python's own 700, a tenth of the start
# of a command goes by in searching modules that have just been loaded, which stay.
RARELY = 100_000

# Parameters of glibc's mallopt, by their numbers in malloc.h, and what they are set to.
MALLOC_PARAMETERS = {
    "M_TRIM_THRESHOLD": (-1, 2**25),
    "M_MMAP_THRESHOLD": (-3, 2**21),
    "M_ARENA_MAX": (-8, 1),
}


def main() -> None:
    """Run a command, and leave at once when it has done its work."""
    gc.set_threshold(RARELY)
    _keep_memory()
    # NumPy's threads for linear algebra would at first be busy with waiting for work, and there is little.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from maxcosine.cli import run  # only now, for the sake of the first line

        run()
    except KeyboardInterrupt:  # before the command was there to deal with it
        sys.exit(130)
    except SystemExit as end:
        if end.code:
            raise
    with suppress(OSError):  # a pipe that is closed: for the usual end to see to
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()
        # Everything is written. To take the modules of a compiler apart first takes longer than to
        # learn from a small file.
        os._exit(0)


def _keep_memory() -> None:
    """Have the C library keep what is freed, for all threads: every block needs as much as the one before.

    To get pages from the system anew, and have them zeroed, takes a tenth of the time of a training.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for number, value in MALLOC_PARAMETERS.values():
            mallopt(number, value)


if __name__ == "__main__":
    main()
