"""``maxcosine predict``: a label for each example, in the order of the data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from maxcosine.cli.options import BadLines, Data, ModelPath, Reading, flatten_options
from maxcosine.cli.rules import OwnRule, load_model


@flatten_options
def predict(
    model: ModelPath,
    data: Data,
    reading: Reading,
    scores: Annotated[bool, typer.Option("--scores", help="The scores of all classes, too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to standard output.")
    ] = None,
    bad_lines: BadLines = None,
    rule: OwnRule = None,
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

    import numpy as np

    from maxcosine import files
    from maxcosine.labels import label_text
    from maxcosine.training import open_for_model, score

    loaded = load_model(model, rule)
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        out = sys.stdout.buffer if output is None else stack.enter_context(files.writing(output))
        stream = open_for_model(loaded.model, loaded.provenance, data, bad_lines=kept, **vars(reading))
        labels = [label_text(label) for label in loaded.model.classes.tolist()]
        for batch in stream.batches():
            found, predicted, _ = score(loaded.model, stream, batch)
            lines = [labels[code] for code in predicted.tolist()]
            if scores and lines:
                rows = found.reshape(len(lines), -1).tolist()
                lines = [
                    "\t".join([label, *(f"{one:.9g}" for one in row)]) for label, row in zip(lines, rows, strict=True)
                ]
            if len(batch.skipped):
                lines = np.insert(np.array(lines, object), batch.skipped, "").tolist()
            out.write("".join([f"{line}\n" for line in lines]).encode())
            out.flush()
    if stream.n_bad:
        typer.echo(f"{stream.n_bad:,} bad lines skipped", err=True)
    for message in stream.bad.messages:
        typer.echo(f"skipped {message}", err=True)
