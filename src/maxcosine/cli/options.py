"""Options that several commands have, each described once."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


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
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="svmlight: 'label id:value ...'; vw: 'label weight |namespace feature:value ...'; "
        "cache: written by `convert`; auto: by the first bytes, the name and the first line.",
    ),
]
Bits = Annotated[
    int,
    typer.Option(
        min=0, max=31, help="Hash features to 2^BITS columns; 0: ids are column numbers. (vw text: 20)"
    ),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Features by their own id or name, through an index that grows with them."),
]
NormalizeOption = Annotated[
    Normalize, typer.Option("--normalize", help="l2: scale each example to length 1.")
]
Log1p = Annotated[bool, typer.Option("--log1p", help="Replace each value x by sign(x) log(1 + |x|).")]
OnBadOption = Annotated[
    OnBad, typer.Option("--on-bad", help="What to do with a line that cannot be read: stop, or count it.")
]
BadLines = Annotated[
    Path | None, typer.Option("--bad-lines", metavar="FILE", help="Write the lines that are skipped here.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="That read the data; all processors by default. Same model with any."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, for scripts.")]


def stream_options(
    format: Format, bits: int, exact: bool, normalize: Normalize, log1p: bool, float64: bool
) -> dict[str, Any]:
    """What a model needs to know of how its data were read."""
    return {
        "format": format.value,
        "bits": bits,
        "exact": exact,
        "normalize": None if normalize is Normalize.none else normalize.value,
        "log1p": log1p,
        "dtype": "float64" if float64 else "float32",
    }


def check_outputs(outputs: dict[str, Path], inputs: Sequence[str]) -> None:
    """Refuse early what could not be written, or would take the place of something else."""
    from maxcosine import files
    from maxcosine.stream.source import expand

    known = {os.path.realpath(name): "an input" for name in expand(inputs)}
    for name, path in outputs.items():
        files.refuse_folder(path)
        real = os.path.realpath(path)
        if real in known:
            raise ValueError(f"--{name} {path} is {known[real]}, too; name another file")
        known[real] = f"--{name}"
        folder = path.parent
        if folder.exists() and not os.access(folder, os.W_OK):
            raise PermissionError(f"--{name} {path}: nothing may be written in {folder}; name another folder")


def plain(value: Any) -> Any:
    """A number or an array as JSON has it, where nothing is infinite."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
