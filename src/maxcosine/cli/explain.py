"""``maxcosine explain``: which columns, values and words carried a prediction."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.options import Json, ModelPath
from maxcosine.cli.rules import OwnRule, load_model
from maxcosine.cli.terminal import Quiet, tell_new_columns, visible

if TYPE_CHECKING:
    from maxcosine.base_model import BaseModel
    from maxcosine.rows import SlotRows


def explain(
    model: ModelPath,
    record: Annotated[
        str,
        typer.Argument(
            help="One record: a JSON object, a file that holds one, or - for standard input. For a model that was not "
            "learnt from records: an object of feature to value.",
            show_default=False,
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Explain the score of this class; by default, of the predicted one."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many features to show.")] = 15,
    rule: OwnRule = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what each feature of a record adds to a score, in the words of the data.

    With two classes, positive numbers speak for the class that is explained, and negative ones for the other.

    \b
    maxcosine explain mail.model '{"subject": "lunch", "body": "free money at noon"}'
    maxcosine explain mail.model mail.json --label spam
    """
    from maxcosine.cli.tables import print_outcome

    loaded = load_model(model, rule)
    print_outcome(_explained(loaded, _read(record), label, top), _show, json=json)


def _read(record: str) -> dict[str, Any]:
    """Return the record that an argument stands for."""
    if record.lstrip().startswith("{"):
        text, where = record, "RECORD"
    elif record == "-":
        text, where = sys.stdin.read(), "standard input"
    else:
        text, where = Path(record).read_text(), record
    try:
        found = json_module.loads(text)
    except ValueError as error:
        several = "; it has several lines, and one record is explained" if "Extra data" in str(error) else ""
        raise ValueError(f"{where}: not a JSON object: {error}{several}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{where}: not a JSON object, but a {type(found).__name__}")
    return found


def _explained(loaded: Any, record: dict[str, Any], label: str | None, top: int) -> dict[str, Any]:
    import numpy as np

    from maxcosine.labels import label_text
    from maxcosine.training import explain as explained

    model = loaded.model
    labels = [label_text(one) for one in model.classes.tolist()]
    if label is not None and label not in labels:
        raise ValueError(f"the model knows no class {label!r}; its classes are {', '.join(labels[:20])}")
    rows, names = _rows(loaded, record)
    predicted = int(model.predicted_codes(model.scores(rows))[0])
    code = predicted if label is None else labels.index(label)
    found = explained(model, rows, names, 0 if model.one_score else code)
    sign = -1.0 if model.one_score and code == 0 else 1.0
    return {
        "predicted": labels[predicted],
        "label": labels[code],
        "score": sign * found.score,
        "rest": sign * found.rest + sign * float(np.sum([part for _, _, part in found.features[top:]])),
        "features": [
            {"feature": name, "value": value, "adds": sign * part} for name, value, part in found.features[:top]
        ],
        "more": max(0, len(found.features) - top),
    }


def _rows(loaded: Any, record: dict[Any, Any]) -> tuple[SlotRows, dict[int, str]]:
    """Return a record as a row of slots, and the names of its slots."""
    from dataclasses import replace

    from maxcosine.data import Stream
    from maxcosine.rows import slot_rows_of
    from maxcosine.training import names_of, read_options_of, rows_and_names

    model: BaseModel = loaded.model
    if model.features.records is None:
        if not model.features.by_name:  # keys of JSON are strings
            record = {int(key) if key.isdecimal() else key: value for key, value in record.items()}
        found = model.features.map_dicts([record], model.dtype, grow=False)
        rows = found if hasattr(found, "slots") else slot_rows_of(found)
        return rows, names_of(model.features, rows.slots)
    from maxcosine.data import ReadOptions
    from maxcosine.data.tables import Tables

    options = replace(ReadOptions(**read_options_of(model, loaded.provenance)), keep_names=not model.features.keyed)
    stream = Stream(Tables([record]), options)
    (batch,) = stream.batches()
    tell_new_columns(stream)
    return rows_and_names(stream, model, batch)


def _show(found: dict[str, Any]) -> None:
    """Print the features, the largest first."""
    score = f"score {found['score']:+.4g}"
    typer.echo(f"predicted {visible(found['predicted'])}; {score} for {visible(found['label'])}\n")
    rest = "the rest" if not found["more"] else f"the rest, with {found['more']:,} more features"
    lines = [(visible(one["feature"]), f"{one['value']:g}", f"{one['adds']:+.4g}") for one in found["features"]]
    lines = [("feature", "value", "adds"), *lines, (rest, "", f"{found['rest']:+.4g}")]
    width = max(len(name) for name, _, _ in lines)
    for name, value, part in lines:
        typer.echo(f"  {name:{width}}  {value:>8}  {part:>9}")
