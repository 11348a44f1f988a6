"""``maxcosine score``: label, score and probability of each record, written beside its columns."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maxcosine.cli.options import Data, Json, ModelPath, Reading, flatten_options
from maxcosine.cli.predict import least_score
from maxcosine.cli.rules import OwnRule, load_model
from maxcosine.cli.terminal import Quiet, tell, tell_new_columns

if TYPE_CHECKING:
    from maxcosine.data import Stream
    from maxcosine.training import RecordScorer

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}


@flatten_options
def score(
    model: ModelPath,
    data: Data,
    reading: Reading,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A folder, for a file of the same name for each input; or, for one input, a file. By default, and "
            "with -, JSON lines on standard output.",
        ),
    ] = None,
    to: Annotated[
        Literal["parquet", "csv", "jsonl"] | None,
        typer.Option(help="The format that is written; by default, that of each input."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns to keep, separated by commas; none: ''.", show_default="all"),
    ] = None,
    of_class: Annotated[
        str | None,
        typer.Option("--class", metavar="LABEL", help="Give the score and probability of this class to each record."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many labels to give, the most probable first.")] = 1,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Of two classes, predict the second as `predict` does: precision=P, recall=P, ...",
        ),
    ] = None,
    keep_top: Annotated[
        str | None,
        typer.Option(
            metavar="P%",
            help="Write only the records of the highest scores. Of files, exactly: they are read twice, and 8 bytes a "
            "record are kept in memory. From a pipe, by the scores that the model had while it learnt.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out inputs whose output is complete.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    rule: OwnRule = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write each record with its predicted label, score and probability, in the order of the data.

    The score is that of the predicted class; of two classes, that of the second one, above 0 if it is predicted. The
    probability is that of the predicted class. With --class, both are of that class. Bad rows that are skipped are not
    written. An output file appears when it is complete.

    \b
    maxcosine score mail.model corpus/*.parquet --output scored/ --keep id --keep-top 10%
    maxcosine score mail.model new.csv --output scored.csv --top 3
    tail -f mails.jsonl | maxcosine score mail.model - --class spam
    """
    from maxcosine.cli.tables import print_outcome
    from maxcosine.data import STANDARD_INPUT, expand
    from maxcosine.training import RecordScorer

    loaded = load_model(model, rule)
    if loaded.model.features.records is None:
        raise ValueError(f"{model} was not learnt from records (train --label NAME); predict writes its predictions")
    if threshold is not None and keep_top is not None:
        raise ValueError("--threshold and --keep-top both choose records; give one of them")
    inputs = expand(data)
    least = None if threshold is None else least_score(loaded.model, threshold)
    scorer = RecordScorer(loaded.model, _code_of(loaded.model, of_class), least, top)
    columns = ("*",) if keep is None else tuple(name for name in keep.split(",") if name)
    output = None if output is not None and str(output) == "-" else output
    open_stream = _Opening(loaded, {**vars(reading), "keep_columns": columns})
    share = None if keep_top is None else _share(keep_top)
    if share is not None and scorer.of_class is None and not loaded.model.one_score:
        raise ValueError("--keep-top needs one score a record; name the class: --class LABEL")
    targets = _targets(inputs, output, to, resume=resume, force=force)
    if len(targets) < len(inputs):
        tell(f"{len(inputs) - len(targets):,} of {len(inputs):,} inputs are complete")
    chosen = None
    if share is not None and STANDARD_INPUT not in inputs:
        chosen = _chosen(scorer, open_stream, inputs, share)
    elif share is not None:
        scorer.least = _least_of_pipe(loaded.model, share, scorer.of_class)
    found = {"records": 0, "written": 0, "bad_rows": 0}
    for name in inputs:
        writing = None if name not in targets else _Output(targets[name], _format_of(name, output, to))
        if writing is None and chosen is None:
            continue
        stream = open_stream(name)
        _write(scorer, stream, writing, chosen, only_kept=share is not None, found=found)
        _tell_about(stream)
    print_outcome(
        {"model": str(model), **found}, _show, json=json and output is not None, quiet=quiet or output is None
    )


class _Opening:
    """Opens one input at a time, as the data of the model were read."""

    def __init__(self, loaded: Any, options: dict[str, Any]) -> None:
        self._loaded, self._options = loaded, options

    def __call__(self, name: str, **changes: Any) -> Stream:
        from maxcosine.training import open_for_model

        return open_for_model(self._loaded.model, self._loaded.provenance, [name], **{**self._options, **changes})


def _code_of(model: Any, label: str | None) -> int | None:
    from maxcosine.labels import label_text

    if label is None:
        return None
    labels = [label_text(one) for one in model.classes.tolist()]
    if label not in labels:
        raise ValueError(f"--class {label}: the model knows no such class; its classes are {', '.join(labels[:20])}")
    return labels.index(label)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100.0
    except ValueError:
        share = -1.0
    if not 0.0 < share <= 1.0:
        raise ValueError(f"--keep-top {text}: write a percentage, such as 10%")
    return share


def _least_of_pipe(model: Any, share: float, code: int | None) -> float:
    """Return the least score to keep, by the scores that the model had while it learnt."""
    if code == 0 or not hasattr(model, "threshold"):
        raise ValueError("--keep-top from a pipe needs a one-pass model of two classes, and keeps the second class")
    found = model.threshold(share=share)
    tell(
        f"--keep-top from a pipe: scores of at least {found.threshold:.4g} are written, which {found.share:.1%} of the "
        "examples had while the model learnt"
    )
    return float(found.threshold)


def _chosen(scorer: RecordScorer, open_stream: _Opening, inputs: list[str], share: float) -> Any:
    """Read all inputs once, and return what chooses the records of the highest scores."""
    from maxcosine.training import TopShare

    scores = [part for name in inputs for part in scorer.ranking(open_stream(name, keep_columns=None))]
    return TopShare(scores, share)


def _targets(
    inputs: list[str], output: Path | None, to: str | None, *, resume: bool, force: bool
) -> dict[str, Path | None]:
    """Return where each input is written, None for standard output; those that are complete are left out."""
    from maxcosine.training import clear_partial_files

    if output is None:
        if to == "parquet":
            raise ValueError("Parquet is not written to standard output; name a file or a folder with --output")
        return dict.fromkeys(inputs)
    is_file = len(inputs) == 1 and not output.is_dir() and not str(output).endswith(os.sep) and output.suffix != ""
    found = {name: output if is_file else output / _name_of(name, to) for name in inputs}
    paths = list(found.values())
    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        raise ValueError(f"two inputs would be written to {twice[0]}; score them one after the other")
    for name, path in found.items():
        if path.exists() and os.path.exists(name) and os.path.samefile(path, name):
            raise ValueError(f"{path} is an input; name another folder with --output")
        if path.exists() and not (resume or force):
            raise FileExistsError(f"{path} exists; replace it with --force, or go on with --resume")
    if not resume:
        return {**found}
    for path in found.values():
        clear_partial_files(path)
    return {name: path for name, path in found.items() if not path.exists()}


def _name_of(name: str, to: str | None) -> str:
    """Return the name of the file that is written for an input."""
    from maxcosine.data import STANDARD_INPUT

    path = Path("standard_input" if name == STANDARD_INPUT else name)
    stem = path.name.removesuffix(".gz").removesuffix(".zst")
    suffix = Path(stem).suffix
    if to is None and suffix.lower() in (*_FORMATS, ".jsonl", ".ndjson") and suffix.lower() != ".tsv":
        return stem
    return f"{stem.removesuffix(suffix)}.{to or _format_of(name, None, None)}"


def _format_of(name: str, output: Path | None, to: str | None) -> str:
    """Return the format that is written for an input."""
    from maxcosine.data.input_file import is_table_file

    if to is not None:
        return to
    if output is not None and output.suffix.lower() in (*_FORMATS, ".jsonl", ".ndjson"):
        return _FORMATS.get(output.suffix.lower(), "jsonl")
    stem = name.lower().removesuffix(".gz").removesuffix(".zst")
    if output is None:
        return "jsonl"
    return "parquet" if is_table_file(name) else _FORMATS.get(Path(stem).suffix, "jsonl")


class _Output:
    """Where the records of one input are written."""

    def __init__(self, path: Path | None, format: str) -> None:
        self.path, self.format = path, format

    def open(self, stack: ExitStack) -> Any:
        """Return a writer; the file appears when the stack closes without an error."""
        from maxcosine import files
        from maxcosine.data.table_writers import TableWriter

        file: Any = sys.stdout.buffer if self.path is None else stack.enter_context(files.writing(self.path))
        return stack.enter_context(closing(TableWriter(file, self.format)))


def _write(
    scorer: RecordScorer, stream: Stream, output: _Output | None, chosen: Any, *, only_kept: bool, found: dict[str, int]
) -> None:
    """Score the records of an input; without an output, only choose among them."""
    import numpy as np
    import pyarrow as pa

    with ExitStack() as stack:
        writer = None if output is None else output.open(stack)
        for batch in stream.batches():
            table, ranked = scorer.table(stream, batch)
            kept = np.ones(len(ranked), bool)
            if only_kept:
                kept = chosen.choose(ranked) if chosen is not None else ranked >= scorer.least
            if writer is not None:
                writer.write(table if kept.all() else table.filter(pa.array(kept)))
                found["records"] += len(kept)
                found["written"] += int(kept.sum())
            if output is not None and output.path is None:
                sys.stdout.buffer.flush()
    found["bad_rows"] += stream.n_bad


def _tell_about(stream: Stream) -> None:
    tell_new_columns(stream)
    for message in stream.bad.messages:
        tell(f"skipped {message}")


def _show(found: dict[str, Any]) -> None:
    bad = f", {found['bad_rows']:,} bad rows skipped" if found["bad_rows"] else ""
    typer.echo(f"{found['written']:,} of {found['records']:,} records written{bad}")
