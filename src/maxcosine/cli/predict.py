"""``maxcosine predict``: a label for each example, in the order of the data."""

from __future__ import annotations

import math
import sys
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.options import BadLines, Data, ModelPath, Reading, check_outputs, flatten_options
from maxcosine.cli.rules import OwnRule, load_model
from maxcosine.cli.terminal import Quiet, tell, tell_new_columns, visible

if TYPE_CHECKING:
    import numpy as np

    from maxcosine.base_model import BaseModel


@flatten_options
def predict(
    model: ModelPath,
    data: Data,
    reading: Reading,
    scores: Annotated[bool, typer.Option("--scores", help="The scores of all classes, too.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="The probabilities of all classes, too; see train --probability.")
    ] = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Predict the second of two classes where the score reaches the threshold for precision=P, recall=P, "
            "share=P (of all examples) or cost=C (of a false alarm, in missed examples), of a one-pass model.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to standard output.")
    ] = None,
    bad_lines: BadLines = None,
    rule: OwnRule = None,
    json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line: the label, which is null for a bad line, and numbers.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Print the predicted label of each example, one a line, in the order of the data.

    Labels in the data are neither needed nor used. With --scores, a line has the label and then the scores of
    all classes, separated by tabs; one score for two classes, above 0 for the second. With --probabilities, it has
    the label and then the probability of each class. A bad line that is skipped is answered by an empty line. From a
    pipe, each line is answered as soon as it arrives.

    \b
    maxcosine predict clicks.model new.svm > labels.txt
    tail -f log.vw | maxcosine predict ads.model - --scores
    maxcosine predict mail.model new.svm --threshold precision=0.99
    """
    from contextlib import ExitStack

    import numpy as np

    from maxcosine import files, training
    from maxcosine.onepass_model import OnePassModel

    outputs = {"output": output, "bad-lines": bad_lines}
    check_outputs({name: path for name, path in outputs.items() if path is not None}, data)
    loaded = load_model(model, rule)
    if scores and probabilities:
        raise ValueError("--scores and --probabilities are two kinds of numbers; give one of them")
    if threshold is not None and not isinstance(loaded.model, OnePassModel):
        raise ValueError(
            f"--threshold needs a one-pass model, and {model} was learnt by {loaded.model.rule_name}; train with "
            "--rule onepass"
        )
    if probabilities and not loaded.model.has_probabilities:
        raise ValueError(
            f"--probabilities needs a model that has some, and {model} was learnt by {loaded.model.rule_name} without "
            "them; train with --probability, or with --rule onepass"
        )
    least = None if threshold is None else least_score(loaded.model, threshold)
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        out = sys.stdout.buffer if output is None else stack.enter_context(files.writing(output))
        stream = training.open_for_model(loaded.model, loaded.provenance, data, bad_lines=kept, **vars(reading))
        kind = "scores" if scores else "probabilities" if probabilities else None
        answers = _Answers(loaded.model, kind=kind, json=json, for_eyes=output is None and sys.stdout.isatty())
        for batch in stream.batches():
            found, predicted, _ = training.score(loaded.model, stream, batch)
            if least is not None:
                predicted = (found >= least).astype(np.intp)
            if probabilities:
                found = training.probabilities(loaded.model, stream, batch)
            lines = answers.lines(predicted, found)
            if len(batch.skipped):
                lines = np.insert(np.array(lines, object), batch.skipped, answers.of_bad_line).tolist()
            out.write("".join([f"{line}\n" for line in lines]).encode())
            out.flush()
    tell_new_columns(stream)
    if stream.n_bad:
        tell(f"{stream.n_bad:,} bad lines skipped")
    for message in stream.bad.messages:
        tell(f"skipped {message}")


def least_score(model: Any, text: str) -> float:
    """Return the score at which the second class is predicted, from NAME=VALUE; say what to expect there."""
    name, _, value = text.partition("=")
    names = ("precision", "recall", "share", "cost")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if name not in names or math.isnan(number):
        raise ValueError(f"--threshold {text}: write NAME=VALUE with one of {', '.join(names)}, such as precision=0.99")
    found = model.threshold(**{name: number})
    tell(
        f"threshold {found.threshold:.4g}: expect precision {found.precision:.1%}, recall {found.recall:.1%}, "
        f"{found.share:.1%} of the examples kept"
    )
    return float(found.threshold)


class _Answers:
    """How predictions are written: as text, or as JSON objects."""

    def __init__(self, model: BaseModel, *, kind: str | None, json: bool, for_eyes: bool) -> None:
        from maxcosine.labels import label_text

        labels = [label_text(label) for label in model.classes.tolist()]
        self._kind, self._json = kind, json
        one_score = kind == "scores" and model.one_score and len(labels) == 2
        self._scored = labels[1:] if one_score else labels
        self._labels = labels if json else [visible(one) if for_eyes else _on_one_line(one) for one in labels]
        self._without_scores = [self._line(label, None) for label in self._labels]
        self.of_bad_line = to_json({"label": None}) if json else ""

    def lines(self, predicted: np.ndarray, scores: np.ndarray) -> list[str]:
        """Return a line for each example."""
        codes = predicted.tolist()
        if self._kind is None or not codes:
            return [self._without_scores[code] for code in codes]
        rows = scores.reshape(len(codes), -1).tolist()
        return [self._line(self._labels[code], row) for code, row in zip(codes, rows, strict=True)]

    def _line(self, label: str, scores: list[float] | None) -> str:
        if not self._json:
            return "\t".join([label, *(f"{one:.9g}" for one in scores or [])])
        more = {} if scores is None else {self._kind: dict(zip(self._scored, scores, strict=True))}
        return to_json({"label": label, **more})


def _on_one_line(label: str) -> str:
    """Return a label as other programs read it: unchanged, except that it is one line."""
    return label.replace("\r", "\\r").replace("\n", "\\n")
