"""One stream, one model, to the bit: however it is cut, packed, interrupted and gone on with."""

import gzip
import itertools

import numpy as np
import pytest
import zstandard

from maxcosine import model_file
from maxcosine.engine import BadStep
from maxcosine.model import Model
from maxcosine.rules import RULES
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import Settings, StreamLearner
from maxcosine.stream.source import StreamError
from maxcosine.stream.training import Aside, BadCheckpoint, Training

N = 400


def lines_of(kind, n=N, classes=4, seed=0):
    """Lines with classes that come late, blank lines, rows without features, repeated ones, weights."""
    random = np.random.default_rng(seed)
    for k in range(n):
        label = int(random.integers(1 + min(classes - 1, k * classes * 2 // n)))
        ids = random.integers(0, 50, random.integers(0, 8)) * (label + 1) % 97
        values = np.round(random.normal(size=len(ids)), 3)
        features = " ".join(f"{'f' * (kind == 'vw')}{i}:{v}" for i, v in zip(ids, values, strict=True))
        weight = random.choice(["", "", "0 ", "2.5 "]) if kind == "vw" else ""
        bar = f"{weight}|a " if kind == "vw" else ""
        yield f"c{label} {bar}{features}".strip() + "\n" * int(random.integers(1, 3))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same examples plain, packed, and in three files, of which two do not end in a newline."""
    folder = tmp_path_factory.mktemp("data")
    found = {}
    for kind in ("svm", "vw"):
        lines = list(lines_of(kind))
        text = "".join(lines).encode()
        (folder / f"a.{kind}").write_bytes(text)
        (folder / f"a.{kind}.gz").write_bytes(gzip.compress(text))
        (folder / f"a.{kind}.zst").write_bytes(zstandard.ZstdCompressor().compress(text))
        for k, (start, stop) in enumerate(itertools.pairwise([0, 150, 151, len(lines)])):
            (folder / f"part-{k}.{kind}").write_text("".join(lines[start:stop]).rstrip("\n"))
        found[kind] = {
            "plain": folder / f"a.{kind}",
            "gzip": folder / f"a.{kind}.gz",
            "zstd": folder / f"a.{kind}.zst",
            "parts": folder / f"part-*.{kind}",
        }
    return found


WAYS = {
    "columns": {},
    "hashed": {"bits": 6},
    "exact": {"exact": True},
}
READINGS = pytest.mark.parametrize(
    ("kind", "way"),
    [("svm", "columns"), ("svm", "hashed"), ("svm", "exact"), ("vw", "hashed"), ("vw", "exact")],
)
SETTINGS = {
    "mcp": Settings(RULES["mcp"], RULES["mcp"].make_params({}), fit_intercept=True),
    "averaged pa": Settings(RULES["pa"], RULES["pa"].make_params({}), average=True),
    "joint": Settings(RULES["mcp"], RULES["mcp"].make_params({}), multiclass="joint", fit_intercept=True),
    "restarts": Settings(RULES["romma"], RULES["romma"].make_params({}), dtype=np.float64),
}


def training_of(
    path, settings="mcp", passes=1, options=None, learner=None, asides=None, on_rows=None, **more
):
    settings = SETTINGS[settings]

    def new_stream(start):
        return Stream(path, labelled=True, start=start, dtype=settings.dtype, **more)

    return Training(
        new_stream,
        learner or StreamLearner(settings),
        passes=passes,
        options=options,
        asides=asides,
        on_rows=on_rows or (lambda training, codes, predicted: None),
    )


def saved(training, path):
    model_file.save(training.model, path)
    return model_file.digest(path), training.status.as_dict()


def gone_on(training):
    """Run from the checkpoint; returns whether there was one."""
    resumed = training.resume()
    training.run()
    return resumed


class Recorder:
    """What was predicted, as labels."""

    def __init__(self):
        self.labels = []

    def __call__(self, training, codes, predicted):
        self.labels += training.model.classes[predicted].tolist()


@READINGS
@pytest.mark.parametrize("settings", SETTINGS)
def test_any_cutting_packing_and_number_of_threads_gives_the_same_bits(tmp_path, files, kind, way, settings):
    expected = told = None
    for packing, block_bytes, threads in [
        ("plain", 1 << 20, 1),
        ("plain", 1, 1),
        ("plain", 100, 2),
        ("gzip", 1000, 2),
        ("zstd", 3333, 4),
        ("parts", 70, 3),
    ]:
        predicted = Recorder()
        training = training_of(
            files[kind][packing],
            settings,
            block_bytes=block_bytes,
            threads=threads,
            on_rows=predicted,
            **WAYS[way],
        )
        training.run()
        found = saved(training, tmp_path / "model")
        expected, told = expected or found, told or predicted.labels
        assert found == expected
        assert predicted.labels == told
    assert training.model.classes.tolist() == ["c0", "c1", "c2", "c3"]


class Stopped(Exception):
    pass


def stop_at(example):
    """Stop a training once so many examples are learnt, before it can write them down."""

    def on_rows(training, codes, predicted):
        if training.status.examples >= example:
            raise Stopped

    return on_rows


@READINGS
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_training_that_is_stopped_goes_on_at_the_exact_example(tmp_path, files, kind, way, settings):
    path, passes = files[kind]["parts"], 2
    whole = training_of(path, settings, passes, **WAYS[way])
    whole.run()
    expected = saved(whole, tmp_path / "whole")
    for every, stops in [(7, [5, 9, 150, 151, 399, 401, 700]), (100, [250, 799])]:
        checkpoint = tmp_path / f"checkpoint-{every}"
        for example in [*stops, 10_000]:
            training = training_of(path, settings, passes, block_bytes=300, threads=2, **WAYS[way])
            training.checkpoint, training._every = checkpoint, every
            training._on_rows = stop_at(example)
            if example == 10_000:
                assert gone_on(training)
            else:
                with pytest.raises(Stopped):
                    gone_on(training)
        assert saved(training, tmp_path / "model") == expected
        assert not list(tmp_path.glob("*.lock"))


def test_checkpoints_of_one_example_each(tmp_path, files):
    whole = training_of(files["svm"]["plain"])
    whole.run()
    training = training_of(files["svm"]["plain"])
    training.checkpoint, training._every = tmp_path / "checkpoint", 1
    training.run()
    assert saved(training, tmp_path / "a") == saved(whole, tmp_path / "b")
    # The last one is the model.
    assert model_file.digest(tmp_path / "checkpoint") == model_file.digest(tmp_path / "a")


def bad_lines(kind):
    for k, line in enumerate(lines_of(kind)):
        yield line
        if k % 7 == 3:
            yield f"c9 broken{k}\n" if kind == "svm" else f"c9 broken{k} 1\n"


@pytest.mark.parametrize("kind", ["svm", "vw"])
def test_bad_lines_and_predictions_are_whole_after_interruptions(tmp_path, kind):
    path = tmp_path / f"data.{kind}"
    path.write_text("".join(bad_lines(kind)))
    outcomes = []
    for stops in ([], [3, 60, 61, 200, 555]):
        checkpoint = tmp_path / "checkpoint" if stops else None
        for example in [*stops, 10_000]:
            names = {role: tmp_path / f"{role}-{len(stops)}" for role in ("predictions", "bad_lines")}
            asides = {role: Aside(name, checkpoint, role) for role, name in names.items()}
            options = {"bits": 8, "on_bad": "skip", "block_bytes": 500, "passes": 2}
            training = training_of(path, asides=asides, on_rows=stop_at(example), **options)
            training.checkpoint, training._every = checkpoint, 13
            if example < 10_000:
                with pytest.raises(Stopped):
                    gone_on(training)
                assert not any(name.exists() for name in names.values())
            else:
                gone_on(training) if stops else training.run()
        digest, status = saved(training, tmp_path / "model")
        outcomes.append((digest, status, *(name.read_bytes() for name in names.values())))
    assert outcomes[0] == outcomes[1]
    _, status, predictions, kept = outcomes[0]
    assert status["bad"] == len(kept.splitlines()) == len(range(3, N, 7))
    assert status["judged"] == len(predictions.splitlines()) == N
    assert status["examples"] == 2 * N
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith((".", "checkpoint."))}
    assert left == {"checkpoint.predictions", "checkpoint.bad_lines"}


def test_a_checkpoint_that_was_not_reached_leaves_nothing(tmp_path, files):
    checkpoint = tmp_path / "checkpoint"
    asides = {"predictions": Aside(tmp_path / "predictions", checkpoint, "predictions")}
    training = training_of(files["svm"]["plain"], asides=asides, on_rows=stop_at(1))
    training.checkpoint = checkpoint
    with pytest.raises(Stopped):
        training.run()
    assert not list(tmp_path.iterdir())


def test_the_remains_of_one_that_was_killed_are_cleared_away(tmp_path, files):
    training = training_of(files["svm"]["plain"])
    training.checkpoint = tmp_path / "checkpoint"
    (tmp_path / ".checkpoint.abc.part").write_bytes(b"half")
    (tmp_path / "checkpoint.lock").write_bytes(b"")
    training.run()
    assert not list(tmp_path.iterdir())


# Resuming what is something else


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("option", "rule was 'mcp' and is 'pa'"),
        ("size", r"input 1 was data.svm of \S+ bytes and is data.svm of \S+ bytes"),
        ("content", r"input 1 was data.svm of \S+ bytes and is data.svm of \S+ bytes with another content"),
        ("files", "there were 1 inputs and are 2"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path, files, change, message):
    text = files["svm"]["plain"].read_text()
    path, checkpoint = tmp_path / "data.svm", tmp_path / "checkpoint"
    path.write_text(text)
    first = training_of(path, options={"rule": "mcp"}, on_rows=stop_at(300))
    first.checkpoint, first._every = checkpoint, 100
    with pytest.raises(Stopped):
        first.run()
    before = checkpoint.read_bytes()
    if change in ("size", "content"):
        path.write_text(text + "c1 1:1\n" if change == "size" else "c3" + text[2:])
    given = [path, path] if change == "files" else path
    second = training_of(given, options={"rule": "pa" if change == "option" else "mcp"})
    second.checkpoint = checkpoint
    with pytest.raises(BadCheckpoint, match=f"is of another training: {message}"):
        gone_on(second)
    assert checkpoint.read_bytes() == before


def test_a_model_is_no_checkpoint(tmp_path, files):
    training = training_of(files["svm"]["plain"])
    training.run()
    model_file.save(training.model, tmp_path / "model")
    other = training_of(files["svm"]["plain"])
    other.checkpoint = tmp_path / "model"
    with pytest.raises(BadCheckpoint, match="is a model and no checkpoint"):
        gone_on(other)


def test_the_format_stays_what_it_was_when_it_goes_on(tmp_path):
    (tmp_path / "a").write_text("1 |w x\n" * 10)
    (tmp_path / "b.svm").write_text("-1 |w y\n" * 10)
    paths = [tmp_path / "a", tmp_path / "b.svm"]
    whole = training_of(paths)
    whole.run()
    for example in (15, 10_000):
        training = training_of(paths, on_rows=stop_at(example), block_bytes=16)
        training.checkpoint, training._every = tmp_path / "checkpoint", 3
        if example == 15:
            with pytest.raises(Stopped):
                training.run()
        else:
            assert gone_on(training)
    assert saved(training, tmp_path / "m") == saved(whole, tmp_path / "n")


def test_two_trainings_do_not_write_one_checkpoint(tmp_path, files):
    def second(training, codes, predicted):
        other = training_of(files["svm"]["plain"])
        other.checkpoint = tmp_path / "checkpoint"
        with pytest.raises(BadCheckpoint, match="another training writes the checkpoint"):
            other.run()

    first = training_of(files["svm"]["plain"], on_rows=second, block_bytes=5000)
    first.checkpoint = tmp_path / "checkpoint"
    first.run()
    assert not list(tmp_path.iterdir())


# Going on from a model


@READINGS
@pytest.mark.parametrize("settings", SETTINGS)
def test_going_on_from_a_model_is_as_if_nothing_had_been_between(tmp_path, files, kind, way, settings):
    folder = files[kind]["parts"].parent
    parts = [folder / f"part-{k}.{kind}" for k in range(3)]
    whole = training_of(parts, settings, **WAYS[way])
    whole.run()
    first = training_of(parts[:2], settings, **WAYS[way])
    first.run()
    model_file.save(first.model, tmp_path / "first")
    learner = StreamLearner(SETTINGS[settings], model_file.load(tmp_path / "first").model)
    second = training_of(parts[2:], settings, learner=learner, **WAYS[way])
    second.run()
    assert saved(second, tmp_path / "a")[0] == saved(whole, tmp_path / "b")[0]


def test_features_of_another_kind_are_refused(tmp_path, files):
    def learner(kind, **options):
        training = training_of(files[kind]["plain"], **options)
        training.run()
        return training.learner

    svm, vw = files["svm"]["plain"], files["vw"]["plain"]
    with pytest.raises(StreamError, match=r"knows its features by name, and those of .*a.svm have numbers"):
        training_of(svm, learner=learner("vw", exact=True), exact=True).run()
    with pytest.raises(StreamError, match=r"knows its features by number, and those of .*a.vw have names"):
        training_of(vw, learner=learner("svm", exact=True), exact=True).run()
    with pytest.raises(StreamError, match=r"are column numbers, and those of .*a.vw are hashed to 20 bits"):
        training_of(vw, learner=learner("svm")).run()


# Names of hashed columns


@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_the_first_name_of_each_hashed_column_is_kept(tmp_path, block_bytes):
    path = tmp_path / "data.vw"
    path.write_text("1 |w free win\n-1 |w gr\u00fcn |u free\n1 |w free other:0\n" * 3)
    exact = training_of(path, exact=True)
    exact.run()
    training = training_of(path, bits=18, keep_names=True, block_bytes=block_bytes)
    training.checkpoint, training._every = tmp_path / "checkpoint", 2
    training.run()
    names = training.model.features.kept_names
    assert set(names.values()) == {"w^free", "w^win", "w^gr\u00fcn", "u^free", "w^other"}
    weights, known = training.model.hypothesis()[0][0], exact.model.hypothesis()[0][0]
    for column, name in names.items():
        if name != "w^other":
            assert weights[column] == known[exact.model.features.keys().tolist().index(name)]
    loaded = model_file.load(tmp_path / "checkpoint")
    assert loaded.model.features.kept_names == names


# What is refused


def test_no_example_is_no_model(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("# nothing\n\n")
    with pytest.raises(StreamError, match=r"there is no example in .*data.svm; is it the right file\?"):
        training_of(path).run()


def test_standard_input_is_read_once(tmp_path):
    with pytest.raises(StreamError, match="standard input can be read once only; write it to a file"):
        training_of("-", passes=2)


def test_what_the_engine_refuses_is_told_by_its_line(tmp_path, monkeypatch):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n\n-1 1:1\n1 1:1e30 # too long\n1 1:1\n")
    with pytest.raises(StreamError, match=r"data.svm:4: Row \d of X has the norm 1e\+30"):
        training_of(path).run()

    def refuse(*arguments, **options):
        raise BadStep("too long a step")

    monkeypatch.setattr(Model, "learn", refuse)
    with pytest.raises(StreamError, match=r"data.svm:1: too long a step"):
        training_of(path).run()


def test_a_thousand_classes(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("".join(f"class{k % 1000} {k % 1000}:1\n" for k in range(3000)))
    training = training_of(path, "joint", block_bytes=5000)
    training.run()
    assert len(training.model.classes) == 1000
    assert training.status.wrong < 1500
