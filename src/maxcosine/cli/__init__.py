"""The command ``maxcosine``, one file a command.

Modules here import at their top only what the options need: ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from inspect import cleandoc
from typing import Annotated

import typer

from maxcosine import __version__
from maxcosine.cli.compare import compare
from maxcosine.cli.convert import convert
from maxcosine.cli.evaluate import evaluate
from maxcosine.cli.inspect import inspect
from maxcosine.cli.merge import merge
from maxcosine.cli.predict import predict
from maxcosine.cli.reproduce import reproduce
from maxcosine.cli.train import train

app = typer.Typer(
    name="maxcosine",
    help="Single-pass linear classifiers that carry a proof.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _unwrapped(docstring: str) -> str:
    """Paragraphs of one line each, for terminals of any width; those that begin with \\b keep their lines."""
    paragraphs = cleandoc(docstring).split("\n\n")
    return "\n\n".join(p if p.startswith("\b") else " ".join(p.split("\n")) for p in paragraphs)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maxcosine {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Say which version this is, and leave."
        ),
    ] = False,
) -> None:
    pass


for command in (train, predict, evaluate, inspect, compare, convert, merge, reproduce):
    app.command(help=_unwrapped(command.__doc__ or ""))(command)


def main() -> None:
    """Run a command; what its user can mend ends in one line, not in a traceback."""
    try:
        app()
    except (ValueError, OSError, RuntimeError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
