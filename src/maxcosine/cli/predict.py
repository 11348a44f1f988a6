"""``maxcosine predict``: labels for examples, in step with them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.cli.options import BadLines, Data, ModelPath, Reading, one_by_one


@one_by_one
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

    Labels in the data are not needed and not looked at. With --scores, a line has the label and then the
    scores of all classes, separated by tabs; one score for two classes, above 0 for the second. A line that
    is skipped as a bad one is answered by an empty one. A pipe stays a pipe: what has come is answered before
    more is waited for.

    \b
    maxcosine predict clicks.model new.svm > labels.txt
    tail -f log.vw | maxcosine predict ads.model - --scores
    """
    from contextlib import ExitStack

    import numpy as np

    from maxcosine import files, model_file
    from maxcosine.stream.evaluation import scored, stream_for
    from maxcosine.stream.learner import text_of

    loaded = model_file.load(model)
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        out = sys.stdout.buffer if output is None else stack.enter_context(files.writing(output))
        stream = stream_for(loaded.model, loaded.provenance, data, **reading.of_stream(), bad_lines=kept)
        labels = [text_of(label) for label in loaded.model.classes.tolist()]
        for part in scored(loaded.model, stream):
            lines = [labels[code] for code in part.predicted.tolist()]
            if scores and lines:
                rows = part.scores.reshape(len(lines), -1).tolist()
                lines = [
                    "\t".join([label, *(f"{score:.9g}" for score in row)])
                    for label, row in zip(lines, rows, strict=True)
                ]
            if len(part.skipped):
                lines = np.insert(np.array(lines, object), part.skipped, "").tolist()
            out.write("".join([f"{line}\n" for line in lines]).encode())
            out.flush()
    _tell_bad(stream)


def _tell_bad(stream: Any) -> None:
    if stream.n_bad:
        typer.echo(f"{stream.n_bad:,} bad lines skipped", err=True)
    for line in stream.first_bad:
        typer.echo(f"skipped {line}", err=True)
