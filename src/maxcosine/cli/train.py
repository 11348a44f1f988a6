"""``maxcosine train``: from files to a model."""

from __future__ import annotations

import json as json_module
import sys
import time
from contextlib import ExitStack
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
        str, typer.Option(help="How to learn: mcp, pa1, perceptron, aggressive_romma, ...")
    ] = "mcp",
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
        typer.Option(metavar="FILE", help="Write what was predicted of each example before it was learnt."),
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
    from maxcosine.stream.training import Training

    if resume and checkpoint is None:
        raise ValueError("--resume needs --checkpoint PATH, to know what to go on from")
    options = stream_options(format, bits, exact, normalize, log1p, float64)
    learner, loaded = _learner(rule, param or [], average, multiclass.value, intercept, init, options)
    begun = time.perf_counter()
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(_writing(bad_lines))
        written = None if predictions is None else stack.enter_context(_writing(predictions))

        def new_stream(start: Any) -> Any:
            from maxcosine.stream.chunks import Stream

            return Stream(
                data,
                **options,
                threads=threads,
                on_bad=on_bad.value,
                bad_lines=kept,
                labelled=True,
                keep_names=keep_names,
                start=start,
            )

        watch = stack.enter_context(TrainingWatch())

        def on_rows(training: Training, codes: Any, predicted: Any) -> None:
            if written is not None:
                labels = training.model.classes.tolist()
                written.write("".join(f"{labels[code]}\n" for code in predicted.tolist()).encode())
            watch.update(training)

        training = Training(
            new_stream,
            learner,
            passes=passes,
            checkpoint=checkpoint,
            every=checkpoint_every,
            options={
                "rule": rule,
                "param": sorted(param or []),
                "average": average,
                "multiclass": multiclass.value,
                "intercept": intercept,
                "passes": passes,
                "init": None if loaded is None else loaded,
                "on_bad": on_bad.value,
                **options,
            },
            on_rows=on_rows,
        )
        if resume and not training.resume():
            tell(f"there is no checkpoint {checkpoint} yet: starting afresh")
        try:
            training.run()
        except KeyboardInterrupt:
            goes_on = "no checkpoint was asked for"
            if checkpoint is not None and checkpoint.exists():
                goes_on = f"the same command with --resume goes on from {checkpoint}"
            tell(f"interrupted after {training.status.examples:,} examples: {goes_on}")
            raise
    outcome = _finish(training, model, test, threads, time.perf_counter() - begun)
    if json:
        typer.echo(json_module.dumps(outcome))
    else:
        show_outcome(outcome)


def _learner(
    rule: str,
    params: list[str],
    average: bool,
    multiclass: str,
    intercept: bool,
    init: Path | None,
    options: dict[str, Any],
) -> tuple[Any, str | None]:
    """A learner, new or of a model; and the digest of that model."""
    import numpy as np

    from maxcosine import model_file
    from maxcosine.rules import RULES
    from maxcosine.stream.learner import Settings, StreamLearner

    if rule not in RULES:
        raise ValueError(f"there is no rule {rule!r}; the rules are {', '.join(RULES)}")
    given = {}
    for param in params:
        name, found, value = param.partition("=")
        if not found:
            raise ValueError(f"--param {param}: write NAME=VALUE, for example C=0.1")
        given[name] = float(value)
    settings = Settings(
        RULES[rule],
        RULES[rule].make_params(given),
        average,
        intercept,
        multiclass,
        np.dtype(options["dtype"]),
    )
    if init is None:
        return StreamLearner(settings), None
    loaded = model_file.load(init)
    features = loaded.model.features
    if features.keyed:
        options.update(exact=True, bits=0)
    elif features.bits:
        options.update(bits=features.bits)
    options["dtype"] = str(loaded.model.heads.dtype)
    return StreamLearner(settings, loaded.model), model_file.digest(init)


def _writing(path: Path) -> Any:
    from maxcosine import files

    return files.writing(path)


def _finish(
    training: Training, path: Path, test: str | None, threads: int | None, seconds: float
) -> dict[str, Any]:
    """Write the model, test it, and tell what came out."""
    from maxcosine import __version__, model_file
    from maxcosine.stream.evaluation import count_mistakes

    model, status = training.model, training.status
    certificate = model.certificate()
    source = training.stream.source
    size = source.total_bytes
    provenance = {
        "command": " ".join(sys.argv),
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
    outcome = {
        "model": str(path),
        "examples": status.examples,
        "classes": [str(label) for label in model.classes.tolist()],
        "features": model.features.n_features,
        "rule": model.rule.name,
        "progressive_error": status.wrong / max(1, status.examples),
        "bad_lines": status.bad,
        "first_bad_lines": training.stream.first_bad,
        "updates": _plain(certificate.updates),
        "bound": _plain(certificate.bound),
        "margin_ceiling": _plain(certificate.margin_ceiling),
        "seconds": seconds,
        "examples_per_second": status.examples / seconds,
        "megabytes_per_second": None if size is None else size * status.passes / seconds / 1e6,
    }
    if test is not None:
        mistakes, n = count_mistakes(model, training.stream, [test], threads)
        outcome["test_examples"], outcome["test_error"] = n, mistakes / max(1, n)
    return outcome


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
