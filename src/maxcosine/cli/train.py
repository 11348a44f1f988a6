"""``maxcosine train``: from files to a model."""

import math
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maxcosine.cli.cluster import Cluster, train_on
from maxcosine.cli.options import (
    AnyLabels,
    Average,
    BadLines,
    Data,
    Examples,
    Intercept,
    Json,
    Reading,
    Records,
    check_outputs,
    command_line,
    flatten_options,
)
from maxcosine.cli.rules import compile_rules, file_of, load_model, params_of, rule_named
from maxcosine.cli.terminal import Quiet, tell, tell_new_columns

if TYPE_CHECKING:
    from maxcosine.base_model import BaseModel
    from maxcosine.data import ReadOptions, Stream
    from maxcosine.training import Stopping, Training


DEFAULT_RULE = "onepass"


@flatten_options
def train(
    data: Data,
    model: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the model.")],
    reading: Reading,
    records: Records,
    examples: Examples,
    cluster: Cluster,
    rule: Annotated[
        str | None,
        typer.Option(
            help="How to learn: onepass, which needs no choices, or a rule: mcp, pa1, aggressive_romma, ...; "
            "FILE.py:NAME is your own rule.",
            show_default=DEFAULT_RULE,
        ),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of the rule, such as C=0.1.")
    ] = None,
    average: Average = False,
    multiclass: Annotated[
        Literal["ovr", "joint"], typer.Option(help="More than two classes: each against the rest, or all jointly.")
    ] = "ovr",
    intercept: Intercept = True,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability", help="Fit probabilities in the same pass, for predict --probabilities; onepass has them."
        ),
    ] = False,
    passes: Annotated[int, typer.Option(min=1, help="How many times to go through the data.")] = 1,
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Remember the names of hashed features, for inspect.")
    ] = False,
    any_labels: AnyLabels = False,
    float64: Annotated[bool, typer.Option("--float64", help="Weights of double precision.")] = False,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Count mistakes on these examples afterwards.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the label predicted for each example before it was learnt (in the first pass); an empty line "
            "for the first one, when no class is known.",
        ),
    ] = None,
    init: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Continue from a model; its rule and options stay.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Save the state there from time to time.")
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Examples between checkpoints.")
    ] = 1_000_000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint, at the exact example.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="error=E",
            help="Stop when it is proven, with 95 % confidence, that the mean true error is at most E, such as 0.05.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Stop after N examples with no fewer wrong predictions than the N before them."
        ),
    ] = None,
    on_drift: Annotated[
        Literal["restart", "warn", "ignore"],
        typer.Option(
            help="If the share of wrong predictions rises: let a fresh learner compete with the old one, only say so, "
            "or do not look. For onepass only; the alarm is a heuristic."
        ),
    ] = "restart",
    bad_lines: BadLines = None,
    force: Annotated[bool, typer.Option("--force", help="Start again where there is a checkpoint.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model from files, in one pass.

    While it learns, it shows the progressive error: each example is predicted before it is learnt from. The
    model that is written carries its certificate; see it with `maxcosine inspect`.

    \b
    maxcosine train clicks.svm.gz --model clicks.model
    maxcosine train 'day-*.vw' --model ads.model --rule pa1 --param C=0.1 --bits 22 --average
    maxcosine train clicks.svm --model clicks.model --rule my_rules.py:mine --param step=0.5
    maxcosine train big.svm --model big.model --checkpoint big.ckpt --resume
    maxcosine train 'day-*.svm' --model days.model --on dask-local:4 --passes 2
    maxcosine train reviews.parquet --label stars --model reviews.model
    maxcosine train 'day-*.jsonl.gz' --label spam --text subject,body --ngrams 2 --model mail.model
    """
    from dataclasses import replace

    from maxcosine import model_file
    from maxcosine.data import ReadOptions, Stream
    from maxcosine.model import Model
    from maxcosine.onepass_model import ONEPASS
    from maxcosine.training import OnePassSettings, Settings, SideFile, StreamLearner, Training

    if resume and checkpoint is None:
        raise ValueError("--resume needs --checkpoint PATH, to know where to continue")
    named = {"model": model, "checkpoint": checkpoint, "predictions": predictions, "bad-lines": bad_lines}
    outputs = {name: path for name, path in named.items() if path is not None}
    check_outputs(outputs, [*data, *([test] if test else [])])
    _refuse_to_replace(checkpoint, resume=resume, force=force)
    how = {"average": average, "multiclass": multiclass, "intercept": intercept, "probability": probability}
    dtype = "float64" if float64 else "float32"
    read = ReadOptions(
        **vars(reading),
        **examples.fields(),
        any_labels=any_labels,
        dtype=dtype,
        keep_names=keep_names or records.label is not None,
        records=records.options(),
    )
    start_model = digest = None
    name = rule or DEFAULT_RULE
    if init is None:
        read = Stream(data, read).options  # those of a cache, if it is one
    else:
        loaded = load_model(init, rule if rule and ":" in rule else None)
        name, start_model, digest = loaded.model.rule_name, loaded.model, model_file.digest(init)
        read = _options_of_model(loaded.model, loaded.provenance, rule, param, how, read)
    stopping = _stopping(until, patience)
    settings: Settings | OnePassSettings
    if name == ONEPASS:
        _refuse_options_of_rules({**how, "param": param, "passes": passes > (1 if cluster.on is None else 2)})
        settings, params, own_file = OnePassSettings(read.dtype, on_drift), {}, None
        read = replace(read, any_norm=True)
    else:
        if on_drift != "restart":
            raise ValueError(f"--on-drift {on_drift} goes with onepass; --rule {name} watches for no drift")
        chosen = start_model.rule if isinstance(start_model, Model) else rule_named(name)
        params, own_file = params_of([chosen], param)[chosen.name], file_of(chosen)
        values = chosen.make_params(params)
        settings = Settings(chosen, values, average, intercept, multiclass, read.dtype, probability)
        compile_rules([chosen])
    if cluster.on is not None:
        one_machine = {"init": init, "keep-names": keep_names, "until": until, "patience": patience}
        one_machine |= {"on-drift": on_drift != "restart", "probability": probability}
        for name, value in {**named, **one_machine}.items():
            if value and name != "model":  # workers learn shards at the same time: there is no order of the data
                raise ValueError(f"--{name} is for one machine; leave it out, or leave out --on")
        learnt, outcome = train_on(cluster, data, model, settings, params, passes, read)
        _finish({"model": str(model), **outcome}, learnt, Stream(data, read), test, reading.threads, json, quiet)
        return
    side_files = {"predictions": predictions, "bad_lines": bad_lines}
    training = Training(
        data,
        read,
        StreamLearner(settings, start_model),
        passes=passes,
        checkpoint=checkpoint,
        every=checkpoint_every,
        options={
            "rule": name.rpartition(":")[2],
            "rule_file": own_file,
            "param": sorted(param or []),
            **how,
            "passes": passes,
            "init": digest,
            "on_bad": read.on_bad,
            "keep_names": keep_names,
            "until": until,
            "patience": patience,
            "on_drift": on_drift,
            **{role: path is not None for role, path in side_files.items()},
            "format": reading.format,
            "records": None if read.records is None else read.records.to_json(),
            **read.feature_options,
        },
        side_files={role: SideFile(path, checkpoint, role) for role, path in side_files.items() if path},
        stopping=stopping,
    )
    outcome = _learn(training, model, list(outputs.values()) if resume else None)
    _finish({"model": str(model), **outcome}, training.model, training.stream, test, reading.threads, json, quiet)


def _refuse_options_of_rules(given: dict[str, Any]) -> None:
    """Refuse options that the one-pass learner has no use for."""
    wrong = {"--average": given["average"], "--no-intercept": not given["intercept"]}
    wrong |= {"--param": given["param"], "--passes": given["passes"], "--probability": given["probability"]}
    for option, is_given in wrong.items():
        if is_given:
            raise ValueError(f"{option} goes with a rule, such as --rule mcp; onepass needs none of its kind")


def _stopping(until: str | None, patience: int | None) -> "Stopping":
    """Return when to stop, from the options."""
    from maxcosine.training import Stopping

    if until is None:
        return Stopping(patience=patience)
    name, _, value = until.partition("=")
    try:
        error = float(value) if name == "error" else math.nan
    except ValueError:
        error = math.nan
    if not 0.0 < error < 1.0:
        raise ValueError(f"--until {until}: write error=E with a share between 0 and 1, for example error=0.05")
    return Stopping(error, patience)


def _refuse_to_replace(checkpoint: Path | None, *, resume: bool, force: bool) -> None:
    if resume and force:
        raise ValueError("--resume continues and --force starts again; give one of them")
    if checkpoint is not None and checkpoint.is_file() and not (resume or force):
        raise FileExistsError(
            f"the checkpoint {checkpoint} exists; continue from it with --resume, or start again with --force"
        )


def _finish(
    outcome: dict[str, Any],
    model: "BaseModel",
    stream: "Stream",
    test: str | None,
    threads: int | None,
    json: bool,
    quiet: bool,
) -> None:
    """Test the model on more data, if there are any, and print the outcome."""
    from maxcosine.cli.tables import print_outcome, show_outcome
    from maxcosine.training import evaluate

    if test is not None:
        found = evaluate(model, stream.like([test], threads=threads, purpose="evaluate"))
        outcome |= {f"test_{name}": found[name] for name in ("examples", "error", "bad_lines")}
    print_outcome(outcome, show_outcome, json=json, quiet=quiet)


def _learn(training: "Training", model: Path, resumed: list[Path] | None) -> dict[str, Any]:
    """Learn, write the model, and return the figures of the training.

    `resumed` are the files that an interrupted training was writing; None starts a new training.
    """
    from maxcosine import DriftWarning, model_file
    from maxcosine.cli.display import ProgressLine, training_progress
    from maxcosine.training import clear_partial_files, outcome, provenance

    started = time.perf_counter()
    try:
        for path in resumed or []:
            clear_partial_files(path)
        if resumed is not None and training.resume():
            tell(f"resuming from {training.checkpoint}, after {training.resumed_at:,} examples")
        elif resumed is not None:
            tell(f"there is no checkpoint {training.checkpoint} yet: starting from the beginning")
        with ProgressLine() as line:
            learner = training.learner
            said = len(learner.model.drifts) if learner.model else 0
            shown = training.stream.options.schema

            def on_batch(training: "Training", _: Any) -> None:
                nonlocal said, shown
                drifts = learner.model.drifts if learner.model else []
                if shown is not training.stream.options.schema:
                    shown = _show_schema(training.stream.options.schema)
                for drift in drifts[said:]:
                    tell(f"the stream may have changed: {drift} (a heuristic)")
                said = len(drifts)
                line.update(lambda: training_progress(training, started))

            training.on_batch = on_batch
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DriftWarning)  # said above
                training.run()
        seconds = time.perf_counter() - started
        tell_new_columns(training.stream)
        origin = provenance(training.status, training.data, training.options, command_line(), seconds)
        model_file.save(training.model, model, provenance=origin)
    except KeyboardInterrupt:
        tell(f"interrupted after {training.status.examples:,} examples; {_how_to_resume(training.checkpoint)}")
        raise
    return outcome(
        training.model,
        training.status,
        seconds,
        bad_messages=training.stream.bad.messages,
        read_bytes=training.read_bytes,
        resumed_at=training.resumed_at,
    )


def _show_schema(schema: Any) -> Any:
    """Show what the columns of records are, and return the schema."""
    tell("the columns are, by the first rows; if one is something else, say so (--text, --categorical, ...)")
    for line in schema.describe().split("\n"):
        tell(f"  {line}")
    return schema


def _how_to_resume(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "nothing is saved: with --checkpoint PATH, --resume could continue from there"
    if not checkpoint.exists():
        return f"the checkpoint {checkpoint} was not reached: start again, perhaps with --checkpoint-every N"
    return f"the same command with --resume continues from {checkpoint}"


def _options_of_model(
    model: "BaseModel",
    provenance: dict[str, Any] | None,
    rule: str | None,
    params: list[str] | None,
    how: dict[str, Any],
    read: "ReadOptions",
) -> "ReadOptions":
    """Return how the data of the model that --init names are read; refuse options that contradict the model."""
    from dataclasses import replace

    from maxcosine.model import Model
    from maxcosine.training import read_options_of

    stored = read_options_of(model, provenance)
    contradicts = {
        f"--rule {rule}": rule is not None and rule.rpartition(":")[2] != model.rule_name,
        "--param": bool(params),
        f"--bits {read.bits}": read.bits not in (0, model.features.bits),
        "--exact": read.exact and not model.features.keyed,
        "--float64": read.dtype == "float64" and str(model.dtype) != "float64",
        "--normalize": read.normalize not in (None, stored.get("normalize")),
        "--log1p": read.log1p and not stored.get("log1p"),
    }
    if isinstance(model, Model):
        heads = model.heads
        contradicts |= {
            "--average": how["average"] and not heads.average,
            "--multiclass joint": how["multiclass"] == "joint" and not heads.joint,
            "--no-intercept": not how["intercept"] and heads.fit_intercept,
            "--probability": how["probability"] and not heads.probability,
        }
    for option, is_wrong in contradicts.items():
        if is_wrong:
            raise ValueError(
                f"the model that --init names was not learnt with {option}, and it keeps its options; "
                f"leave out {option.split()[0]}"
            )
    return replace(read, **stored, strict=True)
