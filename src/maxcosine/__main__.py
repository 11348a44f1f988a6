"""The command ``maxcosine``, also as ``python -m maxcosine``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line."""
    # The commands use no linear algebra: threads of OpenBLAS would only wait for work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from maxcosine.cli import run  # after the line above: it imports NumPy

        run()
    except KeyboardInterrupt:  # while modules were imported
        sys.exit(130)


if __name__ == "__main__":
    main()
