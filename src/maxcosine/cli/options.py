"""Options that several commands have, each described once."""

import inspect
import os
import shlex
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.record import Record


class Format(StrEnum):
    auto = "auto"
    svmlight = "svmlight"
    vw = "vw"
    cache = "cache"


class OnBad(StrEnum):
    error = "error"
    skip = "skip"


class Normalize(StrEnum):
    none = "none"
    l2 = "l2"


Data = Annotated[
    list[str],
    typer.Argument(
        help="Files or patterns: text, plain, gzip or zstd, or caches; - is standard input.",
        show_default=False,
    ),
]
ModelPath = Annotated[Path, typer.Argument(help="A model that `train` wrote.", show_default=False)]
BadLines = Annotated[
    Path | None, typer.Option("--bad-lines", metavar="FILE", help="Write the lines that are skipped here.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, for scripts.")]


class Reading(Record):
    """How any data are read."""

    format: Annotated[
        Format,
        typer.Option(
            help="svmlight: 'label id:value ...'; vw: 'label weight |namespace feature:value ...'; "
            "cache: written by `convert`; auto: by the first bytes, the name and the first line."
        ),
    ] = Format.auto
    on_bad: Annotated[
        OnBad, typer.Option(help="What to do with a line that cannot be read: stop, or count it.")
    ] = OnBad.error
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="That read the data; all processors by default. Same model with any."),
    ] = None

    def of_stream(self) -> dict[str, Any]:
        """As a stream is told."""
        return {"format": self.format.value, "on_bad": self.on_bad.value, "threads": self.threads}


class Examples(Record):
    """What becomes of the features and values of data that are learnt."""

    bits: Annotated[
        int,
        typer.Option(
            min=0, max=31, help="Hash features to 2^BITS columns; 0: ids are column numbers. (vw text: 20)"
        ),
    ] = 0
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Features by their own id or name, through an index that grows with them."
        ),
    ] = False
    normalize: Annotated[Normalize, typer.Option(help="l2: scale each example to length 1.")] = Normalize.none
    log1p: Annotated[bool, typer.Option("--log1p", help="Replace each value x by sign(x) log(1 + |x|).")] = (
        False
    )

    def of_stream(self) -> dict[str, Any]:
        """As a stream is told."""
        return {
            "bits": self.bits,
            "exact": self.exact,
            "normalize": None if self.normalize is Normalize.none else self.normalize.value,
            "log1p": self.log1p,
        }


def one_by_one(command: Callable[..., None]) -> Callable[..., None]:
    """A command that is given the fields of such groups one by one, as a command line has them."""
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: p.annotation
        for name, p in parameters.items()
        if isinstance(p.annotation, type) and issubclass(p.annotation, Record)
    }
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @wraps(command)
    def flat(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field: given.pop(field) for field in fields[name] if field in given})
        command(**given)

    every = [one for name, p in parameters.items() for one in fields.get(name, {name: p}).values()]
    signature = inspect.Signature([one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in every])
    flat.__signature__ = signature  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in every}
    return flat


def check_outputs(outputs: dict[str, Path], inputs: list[str]) -> None:
    """Refuse early what could not be written, or would take the place of something else."""
    from maxcosine import files
    from maxcosine.stream.source import expand

    known = {os.path.realpath(name): "an input" for name in expand(inputs)}
    for name, path in outputs.items():
        if files.is_special(path):
            continue
        files.refuse_folder(path)
        real = os.path.realpath(path)
        if real in known:
            raise ValueError(f"--{name} {path} is {known[real]}, too; name another file")
        known[real] = f"--{name}"
        folder = path.parent
        if folder.exists() and not os.access(folder, os.W_OK):
            raise PermissionError(f"--{name} {path}: nothing may be written in {folder}; name another folder")


def command_line() -> str:
    """This command, as it would be typed."""
    return shlex.join(["maxcosine", *sys.argv[1:]])
