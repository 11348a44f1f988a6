"""``maxcosine evaluate``: how well a model predicts examples whose labels are known."""

from maxcosine.cli.options import Data, Json, ModelPath, Reading, flatten_options
from maxcosine.cli.rules import OwnRule, load_model
from maxcosine.cli.terminal import Quiet, tell_new_columns


@flatten_options
def evaluate(
    model: ModelPath,
    data: Data,
    reading: Reading,
    rule: OwnRule = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Error, confusion matrix, precision and recall of each class, and for two classes the area under the ROC
    curve.

    \b
    maxcosine evaluate clicks.model held_out.svm
    maxcosine evaluate clicks.model held_out.svm --json | jq .error
    """
    from maxcosine import training
    from maxcosine.cli.tables import print_outcome, show_evaluation

    loaded = load_model(model, rule)
    stream = training.open_for_model(loaded.model, loaded.provenance, data, **vars(reading), purpose="evaluate")
    found = training.evaluate(loaded.model, stream)
    tell_new_columns(stream)
    print_outcome(found, show_evaluation, json=json)
