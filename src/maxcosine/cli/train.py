"""``maxcosine train``: from files to a model."""

from __future__ import annotations

import json as json_module
import shlex
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.options import (
    BadLines,
    Bits,
    Data,
    Exact,
    Format,
    FormatOption,
    Json,
    Log1p,
    Normalize,
    NormalizeOption,
    OnBad,
    OnBadOption,
    Threads,
    check_outputs,
    plain,
    stream_options,
)

if TYPE_CHECKING:
    from maxcosine.stream.training import Training


class Multiclass(StrEnum):
    ovr = "ovr"
    joint = "joint"


def train(
    data: Data,
    model: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the model.")],
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
    format: FormatOption = Format.auto,
    bits: Bits = 0,
    exact: Exact = False,
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Remember the names of hashed features, for inspect.")
    ] = False,
    normalize: NormalizeOption = Normalize.none,
    log1p: Log1p = False,
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
    on_bad: OnBadOption = OnBad.error,
    bad_lines: BadLines = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Learn a model from files, in one pass.

    While it learns, it shows the progressive error: each example is predicted before it is learnt from. The
    model that is written carries its certificate; see it with `maxcosine inspect`.

    \b
    maxcosine train clicks.svm.gz --model clicks.model
    maxcosine train 'day-*.vw' --model ads.model --rule pa1 --param C=0.1 --bits 22 --average
    maxcosine train big.svm --model big.model --checkpoint big.ckpt --resume
    """
    from maxcosine.cli.display import TrainingWatch, show_outcome, tell
    from maxcosine.stream.chunks import Stream
    from maxcosine.stream.training import Aside, Training, clear_remains

    if resume and checkpoint is None:
        raise ValueError("--resume needs --checkpoint PATH, to know what to go on from")
    options = stream_options(format, bits, exact, normalize, log1p, float64)
    if init is None:
        options |= Stream(data, **options).options  # those of a cache, if it is one
    learner, start_from = _learner(rule, param or [], average, multiclass, intercept, init, options)
    named = {"model": model, "checkpoint": checkpoint, "predictions": predictions, "bad-lines": bad_lines}
    outputs = {name: path for name, path in named.items() if path is not None}
    check_outputs(outputs, [*data, *([test] if test else [])])
    asides = {
        role: Aside(path, checkpoint, role)
        for role, path in (("predictions", predictions), ("bad_lines", bad_lines))
        if path is not None
    }

    def on_rows(training: Training, codes: Any, predicted: Any) -> None:
        if predictions is not None and not training.status.passes:
            asides["predictions"].write(_lines(training.model, predicted))
        watch.update(training)

    training = Training(
        _stream_maker(data, options, threads, on_bad.value, keep_names, strict=init is not None),
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
            "on_bad": on_bad.value,
            "keep_names": keep_names,
            "predictions": predictions is not None,
            "bad_lines": bad_lines is not None,
            **options,
        },
        asides=asides,
        on_rows=on_rows,
    )
    begun = time.perf_counter()
    try:
        with TrainingWatch() as watch:
            if resume:
                for path in outputs.values():
                    clear_remains(path)
            if resume and not training.resume():
                tell(f"there is no checkpoint {checkpoint} yet: starting afresh")
            training.run()
        outcome = _finish(training, model, time.perf_counter() - begun)
    except KeyboardInterrupt:
        tell(f"interrupted after {training.status.examples:,} examples; {_how_to_go_on(checkpoint)}")
        raise
    if test is not None:
        outcome |= _tested(training, test, threads)
    if json:
        typer.echo(json_module.dumps(outcome))
    else:
        show_outcome(outcome)


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
        _check_stays(loaded.model, rule, params, average, multiclass, options)
        rule = loaded.model.rule.name
        _read_alike(loaded, options)
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
    rule: str | None,
    params: list[str],
    average: bool,
    multiclass: Multiclass,
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
    }
    for option, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(
                f"the model that --init names was not learnt with {option}, and stays what it is; "
                f"leave out {option.split()[0]}"
            )


def _read_alike(loaded: Any, options: dict[str, Any]) -> None:
    """Read data as those of a model were read."""
    features, then = loaded.model.features, (loaded.provenance or {}).get("options", {})
    options.update(
        bits=features.bits or 0,
        exact=features.keyed,
        dtype=str(loaded.model.heads.dtype),
        normalize=then.get("normalize", options["normalize"]),
        log1p=then.get("log1p", options["log1p"]),
    )


def _stream_maker(
    data: list[str],
    options: dict[str, Any],
    threads: int | None,
    on_bad: str,
    keep_names: bool,
    *,
    strict: bool,
) -> Any:
    """Streams of the data, from a place on."""
    import numpy as np

    from maxcosine.engine.heads import LIMITS
    from maxcosine.stream.chunks import Stream

    limits = LIMITS[np.dtype(options["dtype"])]

    def new_stream(start: Any) -> Stream:
        return Stream(
            data,
            **options,
            strict=strict,
            threads=threads,
            on_bad=on_bad,
            labelled=True,
            limits=(limits.low_sq_x, limits.high_sq_x),
            keep_names=keep_names,
            start=start,
        )

    return new_stream


def _lines(model: Any, predicted: Any) -> bytes:
    from maxcosine.stream.learner import text_of

    labels = [f"{text_of(label)}\n" for label in model.classes.tolist()]
    return "".join([labels[code] for code in predicted.tolist()]).encode()


def _tested(training: Training, test: str, threads: int | None) -> dict[str, Any]:
    from maxcosine.stream.evaluation import count_mistakes

    mistakes, n = count_mistakes(training.model, training.stream, [test], threads)
    return {"test_examples": n, "test_error": mistakes / n if n else None}


def _finish(training: Training, path: Path, seconds: float) -> dict[str, Any]:
    """Write the model, and tell what came out."""
    from maxcosine import __version__, model_file
    from maxcosine.stream.learner import text_of

    model, status = training.model, training.status
    certificate = model.certificate()
    provenance = {
        "command": shlex.join(["maxcosine", *sys.argv[1:]]),
        "data": training.data,
        "versions": {"maxcosine": __version__},
        "examples": status.examples,
        "progressive_mistakes": status.wrong,
        "bad_lines": status.bad,
        "passes": status.passes,
        "seconds": seconds,
        "options": training.options,
    }
    model_file.save(model, path, provenance=provenance)
    return {
        "model": str(path),
        "examples": status.examples,
        "resumed_at": training.resumed_at,
        "classes": [text_of(label) for label in model.classes.tolist()],
        "features": model.features.n_features,
        "rule": model.rule.name,
        "progressive_error": status.wrong / max(1, status.judged),
        "bad_lines": status.bad,
        "first_bad_lines": training.stream.first_bad,
        "updates": plain(certificate.updates),
        "bound": plain(certificate.bound),
        "margin_ceiling": plain(certificate.margin_ceiling),
        "seconds": seconds,
        "examples_per_second": (status.examples - training.resumed_at) / seconds,
        "megabytes_per_second": training.read_bytes / seconds / 1e6 if training.read_bytes else None,
    }
