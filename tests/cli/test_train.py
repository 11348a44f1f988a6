"""`maxcosine train` and `maxcosine convert`."""

import gzip
import re
import subprocess
import sys

import pytest

from maxcosine import ProgressiveError, model_file
from maxcosine.cli import display
from tests.cli.examples import examples, outcome, refuse, succeed, svm, vw
from tests.commands import run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(svm())
    (tmp_path / "a.vw").write_text(vw())
    return tmp_path


def train(folder, *arguments, **options):
    return outcome(folder, "train", *arguments, "--model", "model", **options)


def digest(folder, name="model"):
    return model_file.digest(folder / name)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_outcome_as_json(folder):
    found = train(folder, "a.svm", "--test", "a.svm", "--predictions", "predicted", "--rule", "mcp")
    assert (found["examples"], found["test_examples"], found["bad_lines"]) == (300, 300, 0)
    assert (found["classes"], found["features"], found["rule"]) == (["c0", "c1"], 102, "mcp")
    assert found["margin_ceiling"] == pytest.approx(1 / found["bound"], rel=1e-4)
    assert found["test_error"] < 0.05
    predicted = (folder / "predicted").read_text().splitlines()
    wrong = sum(a != b for a, (b, _) in zip(predicted, examples(), strict=True))
    assert found["progressive_error"] == wrong / 300
    provenance = model_file.load(folder / "model").provenance
    assert provenance["command"].startswith("maxcosine train a.svm --test a.svm --predictions predicted")
    assert provenance["data"][0]["name"] == "a.svm"


def test_interval_of_the_true_error_is_shown_after_one_pass(folder):
    found = train(folder, "a.svm")
    error = ProgressiveError(round(found["progressive_error"] * 300), 300)
    assert found["error_interval"] == [error.low, error.high]
    assert outcome(folder, "inspect", "model")["error_interval"] == [error.low, error.high]
    assert re.search(r"^true error +[\d.]+% to [\d.]+% on average", succeed(folder, "inspect", "model"), re.MULTILINE)
    assert train(folder, "a.svm", "--rule", "mcp", "--passes", "2")["error_interval"] is None
    assert outcome(folder, "inspect", "model")["error_interval"] is None
    train(folder, "a.svm", "--init", "model")
    assert outcome(folder, "inspect", "model")["error_interval"] is None  # the model has seen these examples before


def test_training_stops_when_an_error_is_proven(folder):
    (folder / "long.svm").write_text(svm(5000))
    found = train(folder, "long.svm", "--until", "error=0.2")
    assert found["examples"] == 1000
    assert found["stopped"].startswith("the error is at most 0.2")
    assert re.search(
        r"^stopped +the error",
        succeed(folder, "train", "long.svm", "--until", "error=0.2", "--model", "m"),
        re.MULTILINE,
    )
    assert "error=E" in refuse(folder, "train", "a.svm", "--model", "model", "--until", "loss=0.2")
    assert "error=E" in refuse(folder, "train", "a.svm", "--model", "model", "--until", "error=1.5")


def test_outcome_as_a_table(folder):
    ran = run(folder, "train", "a.svm", "--model", "model")
    assert re.search(r"^examples +300$", ran.stdout, re.MULTILINE)
    assert re.search(r"^margin ceiling +0\.\d+$", ran.stdout, re.MULTILINE)
    assert "\x1b" not in ran.stdout
    assert ran.stderr == ""


def test_bad_lines_of_training_and_test_are_reported(folder):
    (folder / "bad.svm").write_text("c0 no feature\n" * 7 + svm(50))
    options = ["bad.svm", "--on-bad", "skip", "--test", "bad.svm"]
    found = train(folder, *options)
    assert (found["bad_lines"], found["test_bad_lines"], found["test_examples"]) == (7, 7, 50)
    ran = run(folder, "train", *options, "--model", "model")
    assert re.search(r"^test error +[\d.]+%, 7 bad lines skipped$", ran.stdout, re.MULTILINE)
    assert ran.stderr.splitlines()[-1] == "skipped 2 more"
    (folder / "empty.svm").write_text("")
    table = succeed(folder, "train", "a.svm", "--model", "model", "--test", "empty.svm")
    assert re.search(r"^test error +there is no example to test on$", table, re.MULTILINE)


def test_compressed_piped_and_converted_data_give_the_same_model(folder):
    text = (folder / "a.vw").read_bytes()
    train(folder, "a.vw")
    expected = digest(folder)
    (folder / "compressed").write_bytes(gzip.compress(text))
    assert "examples   300" in succeed(folder, "convert", "a.vw", "--output", "a.arrow")
    assert outcome(folder, "convert", "a.vw", "--output", "a.parquet")["examples"] == 300
    for data in ("compressed", "-", "a.arrow", "a.parquet"):
        train(folder, data, "--threads", 3, input=text)
        assert digest(folder) == expected


def test_every_option_changes_the_model(folder):
    ways = [
        [],
        ["--rule", "pa1", "--param", "C=0.1"],
        ["--average"],
        ["--probability"],
        ["--multiclass", "joint"],
        ["--no-intercept"],
        ["--passes", 2],
        ["--bits", 5],
        ["--exact"],
        ["--normalize", "l2"],
        ["--log1p"],
        ["--float64"],
    ]
    found = set()
    for way in ways:
        train(folder, "a.svm", *(way if "--rule" in way else ["--rule", "mcp", *way]))
        found.add(digest(folder))
    assert len(found) == len(ways)


def test_training_continues_from_a_model_with_its_options(folder):
    lines = (folder / "a.svm").read_text().splitlines(keepends=True)
    (folder / "first.svm").write_text("".join(lines[:120]))
    (folder / "second.svm").write_text("".join(lines[120:]))
    for way in ([], ["--bits", 7], ["--rule", "mcp", "--exact", "--normalize", "l2", "--average", "--probability"]):
        outcome(folder, "train", "a.svm", "--model", "whole", *way)
        outcome(folder, "train", "first.svm", "--model", "first", *way)
        train(folder, "second.svm", "--init", "first")
        assert digest(folder) == digest(folder, "whole")


def test_options_that_contradict_the_model_are_refused(folder):
    outcome(folder, "train", "a.svm", "--model", "first", "--rule", "mcp")
    for way in (
        ["--rule", "pa"],
        ["--param", "C=1"],
        ["--average"],
        ["--exact"],
        ["--bits", 4],
        ["--float64"],
        ["--no-intercept"],
        ["--probability"],
        ["--normalize", "l2"],
        ["--log1p"],
    ):
        error = refuse(folder, "train", "a.svm", "--model", "model", "--init", "first", *way)
        assert f"the model that --init names was not learnt with {way[0]}" in error
    error = refuse(folder, "train", "a.vw", "--model", "model", "--init", "first")
    assert "the features of the model are column numbers, and those of a.vw are hashed" in error
    assert names(folder) == ["a.svm", "a.vw", "first"]


def test_resuming(folder):
    options = ["--checkpoint", "check", "--checkpoint-every", 100, "--resume"]
    ran = run(folder, "train", "a.svm", "--model", "model", *options)
    assert "there is no checkpoint check yet: starting from the beginning" in ran.stderr
    found = train(folder, "a.svm", *options)
    assert found["resumed_at"] == found["examples"] == 300
    ran = run(folder, "train", "a.svm", "--model", "model", *options)
    assert "resuming from check, after 300 examples" in ran.stderr
    for arguments, difference in [
        (["a.svm", "--rule", "pa"], "rule was 'onepass' and is 'pa'"),
        (["a.svm", "--bits", 5], "bits was 0 and is 5"),
        (["a.svm", "--rule", "mcp", "--probability"], "probability was False and is True"),
        (["a.svm", "--patience", 2], "patience was None and is 2"),
        (["a.vw"], "input 1 was a.svm of"),
    ]:
        error = refuse(folder, "train", *arguments, "--model", "model", *options)
        assert f"check is of another training: {difference}" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.svm", "--model", "a.svm"], "--model a.svm is an input, too; name another file"),
        (["a.svm", "--model", "m", "--checkpoint", "./m"], "--checkpoint m is --model, too; name another"),
        (["a.svm", "--model", "m", "--predictions", "."], "is a folder; name a file in it"),
        (["a.svm", "--model", "m", "--rule", "mcp", "--param", "Q=1"], "rule 'mcp' has no parameter 'Q'"),
        (["a.csv", "--model", "m"], "a.csv: this looks like CSV"),
    ],
)
def test_mistakes_of_the_user_are_refused_and_nothing_is_written(tmp_path, arguments, message):
    (tmp_path / "a.svm").write_text(svm(10))
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
    assert message in refuse(tmp_path, "train", *arguments)
    assert names(tmp_path) == ["a.csv", "a.svm"]


IMPORTED = """
import atexit, sys
from maxcosine.__main__ import main
sys.argv = ["maxcosine", *sys.argv[1:]]
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], {"numpy", "scipy", "sklearn", "sympy"}),
        (["derive", "--help"], {"numpy", "scipy", "sklearn", "sympy"}),
        (["train", "--help"], {"numpy", "scipy", "sklearn"}),
        (["train", "a.svm", "--model", "model"], {"numba", "sklearn", "sympy", "pyarrow", "rich"}),
    ],
)
def test_commands_import_only_what_they_need(folder, arguments, unwanted):
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    modules = set(ran.stderr.split())
    assert "maxcosine.cli" in modules
    assert not unwanted & modules
    assert not any(name.startswith("maxcosine.experiments") for name in modules)


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            200,
            r"[\d,]+ examples, progressive error [\d.]+%, \d+ s left, \d+ MB/s, [\d,]+ examples/s, "
            r"true error [\d.]+% to [\d.]+%, [\d,]+ updates",
        ),
        (50, r"[\d,]+ examples, progressive error [\d.]+%, \d+ s left"),
    ],
)
def test_progress_on_a_terminal_fits_its_width(folder, monkeypatch, columns, line):
    monkeypatch.setattr(display, "SECONDS_BETWEEN_FRAMES", 0.0)
    options = ["--model", "model", "--rule", "mcp", "--passes", 3]
    ran = run(folder, "train", "a.svm", *options, env={"COLUMNS": str(columns), "TERM": "xterm"}, terminal=True)
    frames = [re.sub("\x1b.*", "", frame) for frame in ran.stderr.split("\r")]
    assert any(re.match(line, frame) for frame in frames)
    assert max(map(len, frames)) < columns


# Not getrusage, whose peak includes the process that started this one.
PEAK = """
import re
from maxcosine.__main__ import main
try:
    main()
finally:
    print(re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_data(folder):
    text, peaks = svm(20_000).encode(), []
    for times in (4, 120):
        (folder / "big.svm.gz").write_bytes(gzip.compress(text * times, 1))
        arguments = ["train", "big.svm.gz", "--model", "model"]
        ran = subprocess.run(
            [sys.executable, "-c", PEAK, *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
        peaks.append(int(ran.stdout.split()[-1]))
    assert peaks[1] - peaks[0] < 60_000  # kilobytes
