"""Options that several commands have, each described once."""

import inspect
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Data = Annotated[
    list[str],
    typer.Argument(
        help="Files or patterns: text, plain, gzip or zstd, or caches; - is standard input.", show_default=False
    ),
]
ModelPath = Annotated[Path, typer.Argument(help="A model that `train` wrote.", show_default=False)]
BadLines = Annotated[
    Path | None, typer.Option("--bad-lines", metavar="FILE", help="Write the lines that are skipped here.")
]
AnyLabels = Annotated[
    bool,
    typer.Option(
        "--any-labels",
        help="Learn labels that are hardly classes, too: numbers that are not whole, or more than 1,000 classes before "
        "example 20,000.",
    ),
]
Average = Annotated[bool, typer.Option("--average", help="Predict with the mean of all hypotheses.")]
Intercept = Annotated[bool, typer.Option(help="Learn a constant, too.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, for scripts.")]


@dataclass
class Reading:
    """How any data are read: fields of `ReadOptions`."""

    format: Annotated[
        Literal["auto", "svmlight", "vw", "cache", "csv", "tsv", "jsonl"],
        typer.Option(
            help="svmlight: 'label id:value ...'; vw: 'label weight |namespace feature:value ...'; "
            "cache: written by `convert`; csv, tsv, jsonl: records, see --label; auto: by the first bytes, the name "
            "and the first line."
        ),
    ] = "auto"
    on_bad: Annotated[
        Literal["error", "skip"], typer.Option(help="What to do with a line that cannot be read: stop, or count it.")
    ] = "error"
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads that parse; all processors by default. Same model with any number."),
    ] = None


@dataclass
class Examples:
    """Which features and values the examples have."""

    bits: Annotated[
        int,
        typer.Option(min=0, max=31, help="Hash features to 2^BITS columns; 0: ids are column numbers, names get 20."),
    ] = 0
    exact: Annotated[
        bool, typer.Option("--exact", help="Know features by their id or name, through an index that grows with them.")
    ] = False
    normalize: Annotated[Literal["none", "l2"], typer.Option(help="l2: scale each example to length 1.")] = "none"
    log1p: Annotated[bool, typer.Option("--log1p", help="Replace each value x by sign(x) log(1 + |x|).")] = False

    def fields(self) -> dict[str, Any]:
        """Return the fields of `ReadOptions`."""
        return {**vars(self), "normalize": None if self.normalize == "none" else self.normalize}


@dataclass
class Records:
    """Which columns of records are what."""

    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The data are records: CSV, TSV, JSON lines, Parquet, Arrow. This column has the labels.",
        ),
    ] = None
    weight: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of records: the column of the weights.")] = None
    numeric: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Of records: columns that are numbers, separated by commas.")
    ] = None
    categorical: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns that are categories, such as numbers that are ids.")
    ] = None
    text: Annotated[str | None, typer.Option(metavar="COLUMNS", help="Columns that are texts, cut into words.")] = None
    drop: Annotated[str | None, typer.Option(metavar="COLUMNS", help="Columns that are left out.")] = None
    ngrams: Annotated[int, typer.Option(min=0, help="Of texts: up to so many words in a row are a feature.")] = 1
    chars: Annotated[
        str | None, typer.Option(metavar="N..M", help="Of texts: from N to M characters in a row are a feature, too.")
    ] = None

    def options(self) -> Any:
        """Return them as `RecordOptions`; None if the data are not records."""
        from maxcosine.records import RecordOptions

        lists = {name: getattr(self, name) for name in ("numeric", "categorical", "text", "drop")}
        if self.label is None:
            given = {**lists, "weight": self.weight, "chars": self.chars, "ngrams": self.ngrams != 1}
            for name, value in given.items():
                if value:
                    raise ValueError(f"--{name} is about records; name the column of their labels, too: --label COLUMN")
            return None
        columns = {name: tuple(value.split(",")) for name, value in lists.items() if value}
        return RecordOptions(self.label, self.weight, **columns, ngrams=self.ngrams, chars=_char_range(self.chars))


def _char_range(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    least, _, most = text.partition("..")
    try:
        return int(least), int(most or least)
    except ValueError:
        raise ValueError(f"--chars {text}: write the least and the most characters, such as 3..5") from None


def flatten_options(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command take the fields of its dataclass parameters one by one, as a command line has them."""
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: p.annotation for name, p in parameters.items() if is_dataclass(p.annotation)}
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
    """Refuse outputs that cannot be written or would replace another file of the command, before any work."""
    from maxcosine import files
    from maxcosine.data import expand

    known = {os.path.realpath(name): "an input" for name in (expand(inputs) if inputs else [])}
    for name, path in outputs.items():
        if files.is_special(path):
            continue
        files.refuse_folder(path)
        real = os.path.realpath(path)
        if real in known:
            raise ValueError(f"--{name} {path} is {known[real]}, too; name another file")
        known[real] = f"--{name}"
        folder = path.parent
        if not folder.is_dir():
            raise FileNotFoundError(f"--{name} {path}: there is no folder {folder}; create it, or name another")
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"--{name} {path}: the folder {folder} is read-only; name another folder")


def refuse_to_replace(outputs: dict[str, Path], *, force: bool) -> None:
    """Refuse outputs that exist, unless they may be replaced; `outputs` are by the name of their option."""
    from maxcosine import files

    for option, path in outputs.items():
        if path.exists() and not (force or files.is_special(path)):
            raise FileExistsError(f"{path} exists; replace it with --force, or name another file with --{option}")


def command_line() -> str:
    """Return this command as a shell takes it."""
    return shlex.join(["maxcosine", *sys.argv[1:]])
