"""The command ``maxcosine``, one file a command.

Modules here import at their top only the modules that options need: ``--help`` answers quickly.
"""

from __future__ import annotations

import errno
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from maxcosine import __version__
from maxcosine.cli.rules import describe_error
from maxcosine.cli.terminal import end_on_closed_pipe, visible

COMMANDS = (
    "train",
    "predict",
    "score",
    "evaluate",
    "inspect",
    "explain",
    "compare",
    "convert",
    "merge",
    "reproduce",
    "derive",
    "explore",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maxcosine {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
) -> None:
    pass


def app(*names: str) -> typer.Typer:
    """Return the command line of these commands; of all commands if no name is given."""
    made = typer.Typer(
        name="maxcosine",
        help="Single-pass linear classifiers that carry a proof.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help takes half the time, and abbreviates no option
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for name in names or COMMANDS:
        module = import_module(f"maxcosine.cli.{name}")
        # The first line of the module describes the command briefly.
        in_short = (module.__doc__ or "").partition(": ")[2]
        made.command(short_help=in_short[:1].upper() + in_short[1:])(end_on_closed_pipe(getattr(module, name)))
    return made


def run() -> None:
    """Run a command; errors that its user can correct are printed as one line, without a traceback."""
    # Preparing all commands would take a tenth of the time of a small training.
    named = [name for name in sys.argv[1:2] if name in COMMANDS]
    try:
        code = app(*named)(standalone_mode=False)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = _report(error)
    sys.exit(code)


def _report(error: Any) -> int:
    """Print an error that the user can correct, and return the exit code; raise any other error."""
    if hasattr(error, "format_message"):  # typer's, about options and arguments
        error.message = "\n".join(map(visible, error.message.split("\n")))
        error.show()
        return int(error.exit_code)
    text = _message(error)
    if text is None:
        raise error
    typer.echo(f"error: {visible(text)}", err=True)
    return 1


def _message(error: Exception) -> str | None:
    """Return one line about an error that the user can correct; None for any other error."""
    if in_own_rule := describe_error(error):
        return in_own_rule
    because = f" ({error})" if str(error) else ""
    if isinstance(error, MemoryError):
        # Often one id is far larger than the others, and there are as many columns.
        return (
            f"there is not enough memory{because}; features take less with --bits N, ids that are far apart "
            "with --exact"
        )
    if isinstance(error, ArithmeticError):
        return (
            f"a number is out of range{because}; scale the values, for example with --normalize l2 or --log1p, "
            "and look at --param"
        )
    if isinstance(error, OSError):
        return _system_message(error)
    return str(error) if isinstance(error, ValueError | RuntimeError | ImportError) else None


def _system_message(error: OSError) -> str:
    """Return the file, the message of the system, and advice."""
    if error.errno is None:  # the message is our own
        return str(error)
    where = "" if error.filename is None else f"{error.filename}: "
    advice = {
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room there, or name a file elsewhere"),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "check the permissions, or name another file"),
        errno.ENOENT: "check the name",
    }.get(error.errno)
    return f"{where}{error.strerror}" + ("" if advice is None else f"; {advice}")
