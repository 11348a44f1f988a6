"""``maxcosine predict``: a label for each example, in the order of the data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maxcosine.cli.options import BadLines, Data, ModelPath, Reading, flatten_options

if TYPE_CHECKING:
    from maxcosine.training.evaluation import ScoredBatch


@flatten_options
def predict(
    model: ModelPath,
    data: Data,
    reading: Reading,
    scores: Annotated[bool, typer.Option("--scores", help="The scores of all classes, too.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there, not to standard output."),
    ] = None,
    bad_lines: BadLines = None,
) -> None:
    """Print the predicted label of each example, one a line, in the order of the data.

    Labels in the data are neither needed nor used. With --scores, a line has the label and then the scores of
    all classes, separated by tabs; one score for two classes, above 0 for the second. A bad line that is
    skipped is answered by an empty line. From a pipe, each line is answered as soon as it arrives.

    \b
    maxcosine predict clicks.model new.svm > labels.txt
    tail -f log.vw | maxcosine predict ads.model - --scores
    """
    from contextlib import ExitStack

    from maxcosine import files, model_file
    from maxcosine.training import label_text, open_for_model, score_stream

    loaded = model_file.load(model)
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        out = sys.stdout.buffer if output is None else stack.enter_context(files.writing(output))
        stream = open_for_model(loaded.model, loaded.provenance, data, bad_lines=kept, **reading.fields())
        labels = [label_text(label) for label in loaded.model.classes.tolist()]
        for batch in score_stream(loaded.model, stream):
            out.write(_lines_of(batch, labels, scores))
            out.flush()
    if stream.n_bad:
        typer.echo(f"{stream.n_bad:,} bad lines skipped", err=True)
    for message in stream.bad.messages:
        typer.echo(f"skipped {message}", err=True)


def _lines_of(batch: ScoredBatch, labels: list[str], scores: bool) -> bytes:
    import numpy as np

    lines = [labels[code] for code in batch.predicted.tolist()]
    if scores and lines:
        rows = batch.scores.reshape(len(lines), -1).tolist()
        lines = ["\t".join([label, *(f"{score:.9g}" for score in row)]) for label, row in zip(lines, rows, strict=True)]
    if len(batch.skipped):
        lines = np.insert(np.array(lines, object), batch.skipped, "").tolist()
    return "".join([f"{line}\n" for line in lines]).encode()
