"""``maxcosine inspect``: the properties of a model, and its certificate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maxcosine.cli.options import Json, ModelPath
from maxcosine.cli.rules import OwnRule, load_model
from maxcosine.cli.terminal import Quiet


def inspect(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=0, help="How many of the heaviest features to show.")] = 10,
    rule: OwnRule = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What a model is, its certificate, how and from what it was trained, and its heaviest features.

    \b
    maxcosine inspect clicks.model --top 30
    """
    from maxcosine.cli.tables import print_outcome, show_model

    loaded = load_model(model, rule)
    certificate = loaded.model.certificate()
    print_outcome(describe(loaded, top), lambda found: show_model(found, certificate), json=json)


def describe(loaded: Any, top: int) -> dict[str, Any]:
    """Return all properties of a model, for JSON."""
    from maxcosine.labels import label_text

    model = loaded.model
    labels = [label_text(label) for label in model.classes.tolist()]
    features = model.features
    return {
        "rule": model.rule_name,
        **_rule_settings(model),
        "weights": str(model.dtype),
        "classes": labels,
        "features": {
            "kind": "exact" if features.keyed else "hashed" if features.bits else "columns",
            "count": features.n_slots if features.records else features.n_features,
            "bits": features.bits,
        },
        "records": None if features.records is None else features.records.by_kind,
        "mistakes": model.mistakes,
        "judged": model.n_judged,
        "error_interval": _error_interval(loaded),
        "drift": [one._asdict() for one in model.drifts],
        "certificate": certificate_values(model.certificate()),
        "trained": loaded.provenance,
        "heaviest": heaviest(model, labels, top),
    }


def _rule_settings(model: Any) -> dict[str, Any]:
    """Return how a model was learnt beside its rule; the one-pass learner has no settings."""
    from maxcosine.model import Model

    if not isinstance(model, Model):
        return {"parameters": {}, "averaged": False, "intercept": True, "multiclass": "joint"}
    heads = model.heads
    return {
        "parameters": dict(zip(model.rule.params, heads.arrays.params[0].tolist(), strict=False)),
        "averaged": heads.average,
        "intercept": heads.fit_intercept,
        "multiclass": model.multiclass,
    }


def _error_interval(loaded: Any) -> list[float] | None:
    """Return the ends that are proven of the true error; None unless all examples are known to be from one pass."""
    trained = loaded.provenance or {}
    if trained.get("passes") != 1 or trained["options"].get("init") is not None:
        return None
    return [loaded.model.error.low, loaded.model.error.high]


def certificate_values(certificate: Any) -> dict[str, Any]:
    """Return the numbers of a certificate, for JSON."""
    from maxcosine.training import json_value

    names = ("bound", "best_bound", "margin_ceiling", "norm", "seen", "mistakes", "updates", "gain")
    return {name: json_value(getattr(certificate, name)) for name in names if hasattr(certificate, name)}


def heaviest(model: Any, labels: list[str], top: int) -> dict[str, list[tuple[str, float]]]:
    """Return the features of largest weight for each score; two classes have one score."""
    import numpy as np

    w = model.feature_weights()
    titles = [labels[-1]] if model.one_score else labels
    found = {}
    for title, row in zip(titles, w, strict=True):
        weights = np.asarray(row)
        least = np.partition(np.abs(weights), -top)[-top] if 0 < top < len(weights) else 0.0
        heavy = np.flatnonzero(np.abs(weights) >= least)
        order = heavy[np.argsort(-np.abs(weights[heavy]), kind="stable")][:top]
        order = order[weights[order] != 0.0]
        names = map(str, model.features.names_of(order))
        found[title] = list(zip(names, weights[order].tolist(), strict=True))
    return found
