"""``maxcosine predict``: a label for each example, in the order of the data."""

from __future__ import annotations

import sys
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maxcosine.cli.options import BadLines, Data, ModelPath, Reading, check_outputs, flatten_options
from maxcosine.cli.rules import OwnRule, load_model
from maxcosine.cli.terminal import Quiet, tell, visible

if TYPE_CHECKING:
    import numpy as np

    from maxcosine.model import Model


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
    json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line: the label, which is null for a bad line, and scores.")
    ] = False,
    quiet: Quiet = False,
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
    from maxcosine.training import open_for_model, score

    outputs = {"output": output, "bad-lines": bad_lines}
    check_outputs({name: path for name, path in outputs.items() if path is not None}, data)
    loaded = load_model(model, rule, any_kind=True)
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        out = sys.stdout.buffer if output is None else stack.enter_context(files.writing(output))
        stream = open_for_model(loaded.model, loaded.provenance, data, bad_lines=kept, **vars(reading))
        answers = _Answers(loaded.model, scores=scores, json=json, for_eyes=output is None and sys.stdout.isatty())
        for batch in stream.batches():
            found, predicted, _ = score(loaded.model, stream, batch)
            lines = answers.lines(predicted, found)
            if len(batch.skipped):
                lines = np.insert(np.array(lines, object), batch.skipped, answers.of_bad_line).tolist()
            out.write("".join([f"{line}\n" for line in lines]).encode())
            out.flush()
    if stream.n_bad:
        tell(f"{stream.n_bad:,} bad lines skipped")
    for message in stream.bad.messages:
        tell(f"skipped {message}")


class _Answers:
    """How predictions are written: as text, or as JSON objects."""

    def __init__(self, model: Model, *, scores: bool, json: bool, for_eyes: bool) -> None:
        from maxcosine.labels import label_text

        labels = [label_text(label) for label in model.classes.tolist()]
        self._scores, self._json = scores, json
        self._scored = labels[1:] if model.one_score and len(labels) == 2 else labels
        self._labels = labels if json else [visible(one) if for_eyes else _on_one_line(one) for one in labels]
        self._without_scores = [self._line(label, None) for label in self._labels]
        self.of_bad_line = to_json({"label": None}) if json else ""

    def lines(self, predicted: np.ndarray, scores: np.ndarray) -> list[str]:
        """Return a line for each example."""
        codes = predicted.tolist()
        if not self._scores or not codes:
            return [self._without_scores[code] for code in codes]
        rows = scores.reshape(len(codes), -1).tolist()
        return [self._line(self._labels[code], row) for code, row in zip(codes, rows, strict=True)]

    def _line(self, label: str, scores: list[float] | None) -> str:
        if not self._json:
            return "\t".join([label, *(f"{one:.9g}" for one in scores or [])])
        more = {} if scores is None else {"scores": dict(zip(self._scored, scores, strict=True))}
        return to_json({"label": label, **more})


def _on_one_line(label: str) -> str:
    """Return a label as other programs read it: unchanged, except that it is one line."""
    return label.replace("\r", "\\r").replace("\n", "\\n")
