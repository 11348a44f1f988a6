"""Text on a terminal: harmless, and only as much as the user wants."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

CLOSED_PIPE = 128 + 13
"""The exit code of a program that SIGPIPE ends."""

_quiet = False


def _set_quiet(wanted: bool) -> bool:
    global _quiet
    _quiet = wanted
    return wanted


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=_set_quiet,
        help="No progress and no summary: only warnings, errors, and results that are not written to a file.",
    ),
]


def is_quiet() -> bool:
    """Return whether the user asked for nothing but results, warnings and errors."""
    return _quiet


def visible(text: str) -> str:
    """Return text with escapes, as Python writes them, in place of characters that could control a terminal.

    >>> visible("label\\x1b[31m")
    'label\\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])


def tell(text: str, *, warning: bool = False, **style: Any) -> None:
    """Print a line to standard error; a style is for terminals only."""
    if warning or not _quiet:
        typer.secho(visible(text), err=True, **style)


def tell_new_columns(stream: Any) -> None:
    """Say which columns of records are ignored, because the model does not have them."""
    if stream.new_columns:
        tell(f"columns that the model does not have are ignored: {', '.join(stream.new_columns)}", warning=True)


def end_on_closed_pipe(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command end without a message when the program that reads its output has ended."""

    @wraps(command)
    def ending(**given: Any) -> None:
        try:
            command(**given)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes standard output once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(CLOSED_PIPE)

    return ending
