"""``maxcosine train``: from files to a model."""

import json as json_module
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.cluster import Cluster, refuse_with_cluster, train_on
from maxcosine.cli.options import (
    BadLines,
    Data,
    Examples,
    Json,
    Reading,
    check_outputs,
    command_line,
    one_by_one,
)

if TYPE_CHECKING:
    from maxcosine.cli.display import TrainingWatch
    from maxcosine.stream.training import Training


class Multiclass(StrEnum):
    ovr = "ovr"
    joint = "joint"


@one_by_one
def train(
    data: Data,
    model: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the model.")],
    reading: Reading,
    examples: Examples,
    cluster: Cluster,
    rule: Annotated[
        str | None,
        typer.Option(help="How to learn: mcp, pa1, perceptron, aggressive_romma, ...", show_default="mcp"),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of the rule, such as C=0.1.")
    ] = None,
    average: Annotated[
        bool, typer.Option("--average", help="Predict with the mean of all hypotheses.")
    ] = False,
    multiclass: Annotated[
        Multiclass, typer.Option(help="More than two classes: each against the rest, or all jointly.")
    ] = Multiclass.ovr,
    intercept: Annotated[bool, typer.Option(help="Learn a constant, too.")] = True,
    passes: Annotated[int, typer.Option(min=1, help="How many times to go through the data.")] = 1,
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Remember the names of hashed features, for inspect.")
    ] = False,
    float64: Annotated[bool, typer.Option("--float64", help="Weights of double precision.")] = False,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Count mistakes on these examples afterwards.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what was predicted of each example before it was learnt (in the first pass).",
        ),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Go on learning from a model; its rule and options stay."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write down now and then how far it is.")
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Examples between checkpoints.")
    ] = 1_000_000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint, at the exact example.")
    ] = False,
    bad_lines: BadLines = None,
    json: Json = False,
) -> None:
    """Learn a model from files, in one pass.

    While it learns, it shows the progressive error: each example is predicted before it is learnt from. The
    model that is written carries its certificate; see it with `maxcosine inspect`.

    \b
    maxcosine train clicks.svm.gz --model clicks.model
    maxcosine train 'day-*.vw' --model ads.model --rule pa1 --param C=0.1 --bits 22 --average
    maxcosine train big.svm --model big.model --checkpoint big.ckpt --resume
    maxcosine train 'day-*.svm' --model days.model --on dask-local:4 --passes 2
    """
    from maxcosine.cli.display import TrainingWatch
    from maxcosine.stream.chunks import Stream
    from maxcosine.stream.training import Aside, Training, streams

    if resume and checkpoint is None:
        raise ValueError("--resume needs --checkpoint PATH, to know what to go on from")
    options = {
        "format": reading.format.value,
        **examples.of_stream(),
        "dtype": "float64" if float64 else "float32",
    }
    if init is None:
        options |= Stream(data, **options).options  # those of a cache, if it is one
    learner, start_from = _learner(rule, param or [], average, multiclass, intercept, init, options)
    named = {"model": model, "checkpoint": checkpoint, "predictions": predictions, "bad-lines": bad_lines}
    outputs = {name: path for name, path in named.items() if path is not None}
    check_outputs(outputs, [*data, *([test] if test else [])])
    if cluster.on is not None:
        refuse_with_cluster({**named, "init": init, "keep-names": keep_names})
        settings = {
            "rule": learner.settings.rule.name,
            "rule_params": _values(param or []),
            "average": average,
            "fit_intercept": intercept,
            "multiclass": multiclass.value,
        }
        read = {**options, "on_bad": reading.on_bad.value}
        learnt, outcome = train_on(cluster, data, model, settings, passes, read)
        _tell({"model": str(model), **outcome}, learnt, Stream(data, **options), test, reading.threads, json)
        return
    asides = {"predictions": predictions, "bad_lines": bad_lines}
    watch = TrainingWatch()
    training = Training(
        streams(data, **{**reading.of_stream(), **options}, keep_names=keep_names, strict=init is not None),
        learner,
        passes=passes,
        checkpoint=checkpoint,
        every=checkpoint_every,
        options={
            "rule": learner.settings.rule.name,
            "param": sorted(param or []),
            "average": average,
            "multiclass": multiclass.value,
            "intercept": intercept,
            "passes": passes,
            "init": start_from,
            "on_bad": reading.on_bad.value,
            "keep_names": keep_names,
            **{role: path is not None for role, path in asides.items()},
            **options,
        },
        asides={role: Aside(path, checkpoint, role) for role, path in asides.items() if path is not None},
        on_rows=lambda training, codes, predicted: watch.update(training),
    )
    seconds = _learn(training, watch, model, list(outputs.values()) if resume else None)
    outcome = {"model": str(model), **training.as_dict(seconds)}
    _tell(outcome, training.model, training.stream, test, reading.threads, json)


def _tell(
    outcome: dict[str, Any], model: Any, stream: Any, test: str | None, threads: int | None, json: bool
) -> None:
    """Say what came of it, after a test on more data, if one is wanted."""
    from maxcosine.cli.tables import show_outcome

    if test is not None:
        from maxcosine.stream.evaluation import count_mistakes

        mistakes, n, n_bad = count_mistakes(model, stream, [test], threads)
        outcome |= {"test_examples": n, "test_error": mistakes / n if n else None, "test_bad_lines": n_bad}
    if json:
        typer.echo(json_module.dumps(outcome))
    else:
        show_outcome(outcome)


def _learn(training: "Training", watch: "TrainingWatch", model: Path, resumed: list[Path] | None) -> float:
    """Learn, and write the model; returns how long that took.

    `resumed` are the files that a training was writing when it was interrupted.
    """
    from maxcosine import model_file
    from maxcosine.cli.display import tell
    from maxcosine.stream.training import clear_remains

    begun = time.perf_counter()
    try:
        for path in resumed or []:
            clear_remains(path)
        if resumed is not None and training.resume():
            tell(f"going on from {training.checkpoint}, after {training.resumed_at:,} examples")
        elif resumed is not None:
            tell(f"there is no checkpoint {training.checkpoint} yet: starting afresh")
        with watch:
            training.run()
        seconds = time.perf_counter() - begun
        model_file.save(training.model, model, provenance=training.provenance(command_line(), seconds))
    except KeyboardInterrupt:
        told = f"interrupted after {training.status.examples:,} examples"
        tell(f"{told}; {_how_to_go_on(training.checkpoint)}")
        raise
    return seconds


def _how_to_go_on(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "nothing is saved: with --checkpoint PATH it could be gone on from there"
    if not checkpoint.exists():
        return f"the checkpoint {checkpoint} was not reached: begin anew, perhaps with --checkpoint-every N"
    return f"the same command with --resume goes on from {checkpoint}"


def _learner(
    rule: str | None,
    params: list[str],
    average: bool,
    multiclass: Multiclass,
    intercept: bool,
    init: Path | None,
    options: dict[str, Any],
) -> tuple[Any, str | None]:
    """A learner, new or of a model; and the digest of that model."""
    import numpy as np

    from maxcosine import model_file
    from maxcosine.rules import RULES
    from maxcosine.stream.learner import Settings, StreamLearner

    loaded = None if init is None else model_file.load(init)
    if loaded is not None:
        from maxcosine.stream.evaluation import read_as

        read = read_as(loaded.model, loaded.provenance)
        _check_stays(loaded.model, read, rule, params, average, multiclass, intercept, options)
        rule = loaded.model.rule.name
        options.update(read)
    name = rule or "mcp"
    if name not in RULES:
        raise ValueError(f"there is no rule {name!r}; the rules are {', '.join(RULES)}")
    settings = Settings(
        RULES[name],
        RULES[name].make_params(_values(params)),
        average,
        intercept,
        multiclass.value,
        np.dtype(options["dtype"]),
    )
    if loaded is None or init is None:
        return StreamLearner(settings), None
    return StreamLearner(settings, loaded.model), model_file.digest(init)


def _values(params: list[str]) -> dict[str, float]:
    given = {}
    for param in params:
        name, _, value = param.partition("=")
        try:
            given[name] = float(value)
        except ValueError:
            raise ValueError(f"--param {param}: write NAME=VALUE, for example C=0.1") from None
    return given


def _check_stays(
    model: Any,
    read: dict[str, Any],
    rule: str | None,
    params: list[str],
    average: bool,
    multiclass: Multiclass,
    intercept: bool,
    options: dict[str, Any],
) -> None:
    """Refuse options that a model to go on from has already, and has otherwise."""
    features = model.features
    wrong = {
        f"--rule {rule}": rule not in (None, model.rule.name),
        "--param": bool(params),
        "--average": average and not model.heads.average,
        "--multiclass joint": multiclass is Multiclass.joint and not model.heads.joint,
        f"--bits {options['bits']}": options["bits"] not in (0, features.bits),
        "--exact": options["exact"] and not features.keyed,
        "--float64": options["dtype"] == "float64" and str(model.heads.dtype) != "float64",
        "--no-intercept": not intercept and model.heads.fit_intercept,
        "--normalize": options["normalize"] not in (None, read.get("normalize")),
        "--log1p": options["log1p"] and not read.get("log1p"),
    }
    for option, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(
                f"the model that --init names was not learnt with {option}, and stays what it is; "
                f"leave out {option.split()[0]}"
            )
