"""``python -m maxcosine`` is the command ``maxcosine``."""

from maxcosine.cli import main

main()
