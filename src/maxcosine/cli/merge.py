"""``maxcosine merge``: several models into one that means something."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class How(StrEnum):
    certified = "certified"
    mean = "mean"


def merge(
    models: Annotated[
        list[Path], typer.Argument(help="Models that `train` wrote, of one rule.", show_default=False)
    ],
    model: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the merged model.")],
    how: Annotated[
        How, typer.Option(help="The point of the models' hull that proves most, or their plain mean.")
    ] = How.certified,
) -> None:
    """Merge models that learnt from different parts of the data; the result has a certificate for all of it.

    \b
    maxcosine merge monday.model tuesday.model --model week.model
    """
    from maxcosine import __version__, model_file
    from maxcosine.cli.display import tell
    from maxcosine.merge import merge as merge_models

    loaded = [model_file.load(path) for path in models]
    merged = merge_models([one.model for one in loaded], how=how.value)
    first = (loaded[0].provenance or {}).get("options", {})
    model_file.save(
        merged,
        model,
        provenance={
            "command": " ".join(sys.argv),
            "merged": [
                {"model": path.name, "trained": one.provenance}
                for path, one in zip(models, loaded, strict=True)
            ],
            "versions": {"maxcosine": __version__},
            "options": first,
        },
    )
    tell(f"{len(models)} models merged into {model}")
    tell(str(merged.certificate()))
