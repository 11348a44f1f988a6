"""One stream, one model, to the bit: however the data are cut, compressed, interrupted and resumed."""

import gzip
import itertools
from dataclasses import asdict, replace

import numpy as np
import pytest
import zstandard

from maxcosine import model_file
from maxcosine.data import ReadOptions, StreamError, open_stream, write_cache
from maxcosine.engine import BadStep
from maxcosine.model import Model
from maxcosine.rules import RULES
from maxcosine.training import BadCheckpoint, Settings, SideFile, StreamLearner, Training

N = 400


def lines_of(kind, n=N, classes=4, seed=0):
    """Write lines with classes that appear late, blank lines, empty rows, repeated features and weights."""
    random = np.random.default_rng(seed)
    for k in range(n):
        label = int(random.integers(1 + min(classes - 1, k * classes * 2 // n)))
        ids = random.integers(0, 50, random.integers(0, 8)) * (label + 1) % 97
        values = np.round(random.normal(size=len(ids)), 3)
        features = " ".join(f"{'f' * (kind == 'vw')}{i}:{v}" for i, v in zip(ids, values, strict=True))
        weight = random.choice(["", "", "0 ", "2.5 "]) if kind == "vw" else ""
        bar = f"{weight}|a " if kind == "vw" else ""
        yield f"c{label} {bar}{features}".strip() + "\n" * int(random.integers(1, 3))


def judged(kind):
    """The labels of the examples, and which of them have a positive weight."""
    lines = [line.split() for line in lines_of(kind)]
    return [words[0] for words in lines], [words[1:2] != ["0"] for words in lines]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same examples plain, compressed, and in three files, of which two do not end in a newline."""
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


WAYS = {"columns": {}, "hashed": {"bits": 6}, "exact": {"exact": True}}
READINGS = pytest.mark.parametrize(
    ("kind", "way", "settings"),
    [
        ("svm", "columns", "mcp"),
        ("svm", "columns", "restarts"),
        ("svm", "hashed", "joint"),
        ("svm", "exact", "averaged pa"),
        ("vw", "hashed", "mcp"),
        ("vw", "exact", "joint"),
        ("vw", "exact", "averaged pa"),
    ],
)
SETTINGS = {
    "mcp": Settings(RULES["mcp"], RULES["mcp"].make_params({}), fit_intercept=True),
    "averaged pa": Settings(RULES["pa"], RULES["pa"].make_params({}), average=True, probability=True),
    "joint": Settings(
        RULES["mcp"], RULES["mcp"].make_params({}), multiclass="joint", fit_intercept=True, probability=True
    ),
    "restarts": Settings(RULES["romma"], RULES["romma"].make_params({}), dtype="float64"),
}


def training_of(path, settings="mcp", *, learner=None, read=None, **options):
    settings = SETTINGS[settings]
    read = ReadOptions(dtype=settings.dtype, **(read or {}))
    return Training(path, read, learner or StreamLearner(settings), **options)


def saved(training, path):
    model_file.save(training.model, path)
    return model_file.digest(path), asdict(training.status)


def run_from_checkpoint(training):
    """Resume if there is a checkpoint, and run; return whether there was one."""
    resumed = training.resume()
    training.run()
    return resumed


@READINGS
def test_any_cutting_compression_and_number_of_threads_gives_the_same_bits(tmp_path, files, kind, way, settings):
    expected = None
    for packing, block_bytes, threads in [
        ("plain", 1 << 20, 1),
        ("plain", 1, 1),
        ("plain", 100, 2),
        ("gzip", 1000, 2),
        ("zstd", 3333, 4),
        ("parts", 70, 3),
        ("cache", 500, 2),
    ]:
        predicted = []

        def record(training, found, predicted=predicted):
            labels = ["", *training.model.classes.tolist()]  # before the first example, none is known
            predicted += [labels[code + 1] for code in found]

        path, read = files[kind].get(packing), {"block_bytes": block_bytes, "threads": threads}
        if packing == "cache":
            path = tmp_path / "cache"
            options = {**WAYS[way], **read, "dtype": SETTINGS[settings].dtype}
            write_cache(open_stream(files[kind]["plain"], **options), path)
        training = training_of(path, settings, read={**read, **WAYS[way]}, on_batch=record)
        training.run()
        found = *saved(training, tmp_path / "model"), predicted
        expected = expected or found
        assert found == expected
    _, status, predicted = found
    labels, counted = judged(kind)
    assert predicted.count("") == counted.index(True) + 1
    wrong = sum(one != other for one, other in itertools.compress(zip(predicted, labels, strict=True), counted))
    assert (status["judged"], status["wrong"]) == (sum(counted), wrong)
    assert (training.model.n_judged, training.model.mistakes) == (sum(counted), wrong)
    assert training.model.classes.tolist() == ["c0", "c1", "c2", "c3"]


class Stopped(Exception):
    pass


def stop_at(example):
    """Stop a training after this many examples, before it can write a checkpoint of them."""

    def on_batch(training, predicted):
        if training.status.examples >= example:
            raise Stopped

    return on_batch


@READINGS
def test_a_training_that_was_stopped_resumes_at_the_exact_example(tmp_path, files, kind, way, settings):
    path, passes = files[kind]["parts"], 2
    whole = training_of(path, settings, passes=passes, read=WAYS[way])
    whole.run()
    expected = saved(whole, tmp_path / "whole")
    read = {"block_bytes": 300, "threads": 2, **WAYS[way]}
    for every, stops in [(7, [5, 9, 150, 151, 399, 401, 700]), (100, [250, 799])]:
        checkpoint = tmp_path / f"checkpoint-{every}"
        options = {"passes": passes, "checkpoint": checkpoint, "every": every, "read": read}
        for example in stops:
            with pytest.raises(Stopped):
                run_from_checkpoint(training_of(path, settings, on_batch=stop_at(example), **options))
        training = training_of(path, settings, **options)
        assert run_from_checkpoint(training)
        assert saved(training, tmp_path / "model") == expected
        assert not list(tmp_path.glob("*.lock"))


def test_a_checkpoint_after_every_example(tmp_path, files):
    whole = training_of(files["svm"]["plain"])
    whole.run()
    training = training_of(files["svm"]["plain"], checkpoint=tmp_path / "checkpoint", every=1)
    training.run()
    assert saved(training, tmp_path / "a") == saved(whole, tmp_path / "b")
    # The last checkpoint is the model.
    assert model_file.digest(tmp_path / "checkpoint") == model_file.digest(tmp_path / "a")


def bad_lines(kind):
    for k, line in enumerate(lines_of(kind)):
        yield line
        if k % 7 == 3:
            yield f"c9 broken{k}\n" if kind == "svm" else f"c9 broken{k} 1\n"


@pytest.mark.parametrize("kind", ["svm", "vw"])
def test_bad_lines_and_predictions_are_complete_after_interruptions(tmp_path, kind):
    path = tmp_path / f"data.{kind}"
    path.write_text("".join(bad_lines(kind)))
    outcomes = []
    for stops in ([], [3, 60, 61, 200, 555]):
        checkpoint = tmp_path / "checkpoint" if stops else None
        for example in [*stops, 10_000]:
            names = {role: tmp_path / f"{role}-{len(stops)}" for role in ("predictions", "bad_lines")}
            training = training_of(
                path,
                passes=2,
                checkpoint=checkpoint,
                every=13,
                side_files={role: SideFile(name, checkpoint, role) for role, name in names.items()},
                on_batch=stop_at(example),
                read={"bits": 8, "on_bad": "skip", "block_bytes": 500},
            )
            if example < 10_000:
                with pytest.raises(Stopped):
                    run_from_checkpoint(training)
                assert not any(name.exists() for name in names.values())
            else:
                run_from_checkpoint(training) if stops else training.run()
        outcomes.append((*saved(training, tmp_path / "model"), *(name.read_bytes() for name in names.values())))
    assert outcomes[0] == outcomes[1]
    _, status, predictions, kept = outcomes[0]
    assert status["bad"] == len(kept.splitlines()) == len(range(3, N, 7))
    assert status["judged"] == 2 * sum(judged(kind)[1])  # in all passes
    assert status["examples"] == 2 * N
    assert len(predictions.splitlines()) == N  # of the first pass
    assert predictions.startswith(b"\n")
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith((".", "checkpoint."))}
    assert left == {"checkpoint.predictions", "checkpoint.bad_lines"}


def test_a_checkpoint_that_was_not_reached_leaves_nothing(tmp_path, files):
    checkpoint = tmp_path / "checkpoint"
    side_files = {"predictions": SideFile(tmp_path / "predictions", checkpoint, "predictions")}
    options = {"checkpoint": checkpoint, "side_files": side_files, "on_batch": stop_at(1)}
    with pytest.raises(Stopped):
        training_of(files["svm"]["plain"], **options).run()
    assert not list(tmp_path.iterdir())


def test_partial_files_of_a_killed_process_are_removed(tmp_path, files):
    (tmp_path / ".checkpoint.abc.part").write_bytes(b"half")
    (tmp_path / "checkpoint.lock").write_bytes(b"")
    training_of(files["svm"]["plain"], checkpoint=tmp_path / "checkpoint").run()
    assert not list(tmp_path.iterdir())


# Checkpoints that do not fit


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
    options = {"checkpoint": checkpoint, "every": 100}
    with pytest.raises(Stopped):
        training_of(path, options={"rule": "mcp"}, on_batch=stop_at(300), **options).run()
    before = checkpoint.read_bytes()
    if change in ("size", "content"):
        path.write_text(text + "c1 1:1\n" if change == "size" else "c3" + text[2:])
    given = [path, path] if change == "files" else path
    second = training_of(given, options={"rule": "pa" if change == "option" else "mcp"}, **options)
    with pytest.raises(BadCheckpoint, match=f"is of another training: {message}"):
        run_from_checkpoint(second)
    assert checkpoint.read_bytes() == before


def test_a_model_is_no_checkpoint(tmp_path, files):
    training = training_of(files["svm"]["plain"])
    training.run()
    model_file.save(training.model, tmp_path / "model")
    with pytest.raises(BadCheckpoint, match="is a model and no checkpoint"):
        run_from_checkpoint(training_of(files["svm"]["plain"], checkpoint=tmp_path / "model"))


def test_the_format_stays_the_same_after_resuming(tmp_path):
    (tmp_path / "a").write_text("1 |w x\n" * 10)
    (tmp_path / "b.svm").write_text("-1 |w y\n" * 10)
    paths = [tmp_path / "a", tmp_path / "b.svm"]
    whole = training_of(paths)
    whole.run()
    options = {"checkpoint": tmp_path / "checkpoint", "every": 3, "read": {"block_bytes": 16}}
    with pytest.raises(Stopped):
        training_of(paths, on_batch=stop_at(15), **options).run()
    training = training_of(paths, **options)
    assert run_from_checkpoint(training)
    assert saved(training, tmp_path / "m") == saved(whole, tmp_path / "n")


def test_two_trainings_do_not_write_one_checkpoint(tmp_path, files):
    def start_second(training, predicted):
        other = training_of(files["svm"]["plain"], checkpoint=tmp_path / "checkpoint")
        with pytest.raises(BadCheckpoint, match="another training writes the checkpoint"):
            other.run()

    checkpoint = tmp_path / "checkpoint"
    training_of(files["svm"]["plain"], checkpoint=checkpoint, on_batch=start_second).run()
    assert not list(tmp_path.iterdir())


# Learning on from a model


@READINGS
def test_learning_in_two_trainings_gives_the_same_bits(tmp_path, files, kind, way, settings):
    folder = files[kind]["parts"].parent
    parts = [folder / f"part-{k}.{kind}" for k in range(3)]
    whole = training_of(parts, settings, read=WAYS[way])
    whole.run()
    first = training_of(parts[:2], settings, read=WAYS[way])
    first.run()
    model_file.save(first.model, tmp_path / "first")
    learner = StreamLearner(SETTINGS[settings], model_file.load(tmp_path / "first").model)
    second = training_of(parts[2:], settings, learner=learner, read=WAYS[way])
    second.run()
    assert saved(second, tmp_path / "a")[0] == saved(whole, tmp_path / "b")[0]


def test_features_of_another_kind_are_refused(files):
    def learner(kind, **read):
        training = training_of(files[kind]["plain"], read=read)
        training.run()
        return training.learner

    svm, vw, exact = files["svm"]["plain"], files["vw"]["plain"], {"exact": True}
    with pytest.raises(StreamError, match=r"knows its features by name, and those of .*a.svm have numbers"):
        training_of(svm, learner=learner("vw", exact=True), read=exact).run()
    with pytest.raises(StreamError, match=r"knows its features by number, and those of .*a.vw have names"):
        training_of(vw, learner=learner("svm", exact=True), read=exact).run()
    with pytest.raises(StreamError, match=r"are column numbers, and those of .*a.vw are hashed to 20 bits"):
        training_of(vw, learner=learner("svm")).run()


def test_labels_are_numbers_or_text_as_the_classes_of_the_model_are(tmp_path):
    path, settings = tmp_path / "data.svm", SETTINGS["mcp"]
    path.write_text("1 1:1\n2 2:1\n")
    first = training_of(path)
    first.run()
    for classes in (np.array([1.0, 2.0]), np.array([1, 2])):
        model = replace(first.model, classes=classes)
        path.write_text("3 1:1\n+1.0 2:1\n")
        numbers = training_of(path, learner=StreamLearner(settings, model))
        assert numbers.run().classes.tolist() == [1, 2, 3]
        path.write_text("spam 1:1\n")
        with pytest.raises(StreamError, match=r"'spam'.*train a new model, or map labels to numbers"):
            training_of(path, learner=StreamLearner(settings, model)).run()
    model = replace(first.model, closed=True)
    path.write_text("7 1:1\n")
    with pytest.raises(StreamError, match="the model knows no class '7'; its classes are 1, 2"):
        training_of(path, learner=StreamLearner(settings, model)).run()


@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_the_first_name_of_each_hashed_column_is_kept(tmp_path, block_bytes):
    path = tmp_path / "data.vw"
    path.write_text("1 |w free win\n-1 |w grün |u free\n1 |w free other:0\n" * 3)
    exact = training_of(path, read={"exact": True})
    exact.run()
    read = {"bits": 18, "keep_names": True, "block_bytes": block_bytes}
    training = training_of(path, checkpoint=tmp_path / "checkpoint", every=2, read=read)
    training.run()
    names = training.model.features.kept_names
    assert set(names.values()) == {"w^free", "w^win", "w^grün", "u^free", "w^other"}
    weights, known = training.model.hypothesis()[0][0], exact.model.hypothesis()[0][0]
    for column, name in names.items():
        if name != "w^other":
            assert weights[column] == known[exact.model.features.keys().tolist().index(name)]
    assert model_file.load(tmp_path / "checkpoint").model.features.kept_names == names


# Errors


def test_data_without_examples_or_features_are_refused(tmp_path):
    path = tmp_path / "data"
    path.write_text("# nothing\n\n")
    with pytest.raises(StreamError, match=r"there is no example in .*data; is it the right file\?"):
        training_of(path).run()
    path.write_text("a\n1\n")
    with pytest.raises(StreamError, match=r"no example in .*data has a feature; is it text in another format"):
        training_of(path).run()


def test_standard_input_is_read_once():
    with pytest.raises(StreamError, match="standard input can be read once only; write it to a file"):
        training_of("-", passes=2)


def test_errors_of_the_engine_name_the_line(tmp_path, monkeypatch):
    path = tmp_path / "data.vw"
    path.write_text("1 |a x\n\n-1 |a x\n1 |a x:1e30 y:1e30\n1 |a x\n")
    read = {"exact": True, "log1p": False, "normalize": None}
    with pytest.raises(StreamError, match=r"data.vw:4:1: the example is too long"):
        training_of(path, read=read).run()

    def refuse(*arguments, **options):
        raise BadStep("too long a step")

    monkeypatch.setattr(Model, "learn", refuse)
    path.write_text("\n\n1 |a x\n")
    with pytest.raises(StreamError, match=r"data.vw:3: too long a step"):
        training_of(path).run()


def test_a_thousand_classes(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("".join(f"class{k % 1000} {k % 1000}:1\n" for k in range(3000)))
    training = training_of(path, "joint", read={"block_bytes": 5000})
    training.run()
    assert len(training.model.classes) == 1000
    assert training.status.wrong < 1500
