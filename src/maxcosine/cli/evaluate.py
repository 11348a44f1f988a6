"""``maxcosine evaluate``: how well a model predicts examples whose labels are known."""

from __future__ import annotations

import json as json_module

import typer

from maxcosine.cli.options import Data, Json, ModelPath, Reading, flatten_options


@flatten_options
def evaluate(model: ModelPath, data: Data, reading: Reading, json: Json = False) -> None:
    """Error, confusion matrix, precision and recall of each class, and for two classes the area under the ROC
    curve.

    \b
    maxcosine evaluate clicks.model held_out.svm
    maxcosine evaluate clicks.model held_out.svm --json | jq .error
    """
    from maxcosine import model_file
    from maxcosine.cli.tables import show_evaluation
    from maxcosine.training import Evaluation, open_for_model

    loaded = model_file.load(model)
    stream = open_for_model(loaded.model, loaded.provenance, data, **reading.fields(), purpose="evaluate")
    found = Evaluation.of(loaded.model, stream).as_dict()
    if json:
        typer.echo(json_module.dumps(found))
    else:
        show_evaluation(found)
