"""The command ``maxcosine``, one file a command.

Modules here import at their top only what the options need: ``--help`` answers at once.
"""

from __future__ import annotations

import errno
import sys
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, NoReturn

import typer

from maxcosine import __version__

COMMANDS = ("train", "predict", "evaluate", "inspect", "compare", "convert", "merge", "reproduce")


def _unwrapped(docstring: str) -> str:
    """Paragraphs of one line each, for terminals of any width; those that begin with \\b keep their lines."""
    paragraphs = cleandoc(docstring).split("\n\n")
    return "\n\n".join(p if p.startswith("\b") else " ".join(p.split("\n")) for p in paragraphs)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maxcosine {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Say which version this is, and leave."
        ),
    ] = False,
) -> None:
    pass


def app(*names: str) -> typer.Typer:
    """The commands of these names; none for all of them."""
    made = typer.Typer(
        name="maxcosine",
        help="Single-pass linear classifiers that carry a proof.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help is there in half the time, and names no option in part
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for name in names or COMMANDS:
        module = import_module(f"maxcosine.cli.{name}")
        command = getattr(module, name)
        # In half a line, a command is what the module that it is in says.
        in_short = (module.__doc__ or "").partition(": ")[2]
        made.command(help=_unwrapped(command.__doc__ or ""), short_help=in_short[:1].upper() + in_short[1:])(
            command
        )
    return made


def run() -> None:
    """Run a command; what its user can mend ends in one line, not in a traceback."""
    # To get all the others ready takes a tenth of the time of a small training.
    named = [name for name in sys.argv[1:2] if name in COMMANDS]
    try:
        app(*named)()
    except MemoryError as error:
        # Often one id that is far larger than the others, and as many columns as that.
        _fail(
            f"there is not enough memory{_because(error)}; features take less with --bits N, ids that are "
            "far apart with --exact"
        )
    except ArithmeticError as error:
        _fail(
            f"a number is out of range{_because(error)}; scale the values, for example with --normalize l2 "
            "or --log1p, and look at --param"
        )
    except OSError as error:
        _fail(_of_system(error))
    except (ValueError, RuntimeError, ImportError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _of_system(error: OSError) -> str:
    """What the system said, of which file, and what to do."""
    if error.errno is None:  # it is told in words of our own
        return str(error)
    where = "" if error.filename is None else f"{error.filename}: "
    what_to_do = {
        **dict.fromkeys(
            (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room there, or name a file elsewhere"
        ),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "see who may use it, or name another file"),
        errno.ENOENT: "check the name",
    }.get(error.errno)
    return f"{where}{error.strerror}" + ("" if what_to_do is None else f"; {what_to_do}")


def _because(error: Exception) -> str:
    return f" ({error})" if str(error) else ""


def _fail(text: str) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    sys.exit(1)
