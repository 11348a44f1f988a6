"""``maxcosine merge``: several models into one that has a certificate for all of their data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from maxcosine.cli.options import Json, check_outputs, command_line
from maxcosine.cli.rules import OwnRule, rule_named
from maxcosine.cli.terminal import Quiet, tell

How = Literal["certified", "mean"]


def merge(
    models: Annotated[
        list[str], typer.Argument(help="Models that `train` wrote, of one rule: files or patterns.", show_default=False)
    ],
    model: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the merged model.")],
    how: Annotated[
        How, typer.Option(help="The point of the models' hull that proves most, or their plain mean.")
    ] = "certified",
    rule: OwnRule = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Merge models that learnt from different parts of the data; the result has a certificate for all of it.

    \b
    maxcosine merge monday.model tuesday.model --model week.model
    """
    from maxcosine import __version__, model_file
    from maxcosine.cli.inspect import certificate_values
    from maxcosine.cli.tables import print_outcome
    from maxcosine.data import expand
    from maxcosine.estimators.merging import merge as merge_models

    check_outputs({"model": model}, models)
    paths = [Path(name) for name in expand(models)]
    own = [] if rule is None else [rule_named(rule)]
    loaded = [model_file.load(path, rules=own) for path in paths]
    options = _common_options(paths, loaded)
    merged = merge_models([one.model for one in loaded], how=how)
    model_file.save(
        merged,
        model,
        provenance={
            "command": command_line(),
            "merged": [
                {"model": path.name, "trained": one.provenance} for path, one in zip(paths, loaded, strict=True)
            ],
            "versions": {"maxcosine": __version__},
            "options": options,
        },
    )
    certificate = merged.certificate()
    outcome = {
        "model": str(model),
        "merged": list(map(str, paths)),
        "how": how,
        "certificate": certificate_values(certificate),
    }
    print_outcome(outcome, lambda found: _show(found, str(certificate)), json=json, quiet=quiet)


def _show(outcome: dict[str, Any], certificate: str) -> None:
    tell(f"{len(outcome['merged'])} models merged into {outcome['model']}")
    for line in certificate.split("\n"):
        tell(line)


def _common_options(paths: list[Path], loaded: list[Any]) -> dict[str, Any]:
    """Return how the data of all models were read; refuse models whose features have different meanings."""
    options: list[dict[str, Any]] = [(one.provenance or {}).get("options", {}) for one in loaded]
    read = [
        {
            "bits": one.model.features.bits,
            "normalize": then.get("normalize"),
            "log1p": bool(then.get("log1p", False)),
        }
        for one, then in zip(loaded, options, strict=True)
    ]
    for path, this in zip(paths[1:], read[1:], strict=True):
        for name, value in this.items():
            if value != read[0][name]:
                raise ValueError(
                    f"{paths[0]} was learnt with {name} {read[0][name]} and {path} with {value}: their "
                    "features are not the same; merge models that were learnt in the same way"
                )
    return options[0]
