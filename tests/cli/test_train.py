"""`maxcosine train` as a user meets it: a process of its own, real files."""

import gzip
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import zstandard

from maxcosine import model_file
from tests.cli.terminal import on_terminal
from tests.commands import command, run


def lines_of(n=300, seed=0, name="f", classes=2):
    """Examples that a plane separates, of the classes c0, c1, ..."""
    random = np.random.default_rng(seed)
    for _ in range(n):
        label = int(random.integers(classes))
        ids = np.unique(random.integers(0, 40, 6))
        own = f"{name}{100 + label}:1"
        yield f"c{label}", [f"{name}{i}:{random.integers(1, 9) / 8:g}" for i in ids] + [own]


def svm(n=300, seed=0, classes=2):
    return "".join(f"{label} {' '.join(x)}\n" for label, x in lines_of(n, seed, "", classes))


def vw(n=300, seed=0, classes=2):
    return "".join(f"{label} |w {' '.join(x)}\n" for label, x in lines_of(n, seed, "f", classes))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(svm())
    (tmp_path / "a.vw").write_text(vw())
    return tmp_path


def train(folder, *arguments, **options):
    """Train; returns what was told, as JSON has it."""
    ran = run(folder, "train", *arguments, "--json", **options)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def digest(folder, name="model"):
    return model_file.digest(folder / name)


def test_what_is_told(folder):
    told = train(folder, "a.svm", "--model", "model", "--test", "a.svm", "--predictions", "predicted")
    assert told["examples"] == 300
    assert told["classes"] == ["c0", "c1"]
    assert told["features"] == 102
    assert told["rule"] == "mcp"
    assert told["bad_lines"] == 0
    assert told["margin_ceiling"] == pytest.approx(1 / told["bound"], rel=1e-4)
    assert told["test_examples"] == 300
    assert told["test_error"] < 0.05
    predicted = (folder / "predicted").read_text().splitlines()
    right = [label for label, _ in lines_of()]
    wrong = sum(a != b for a, b in zip(predicted, right, strict=True))
    assert told["progressive_error"] == wrong / 300
    model = model_file.load(folder / "model")
    assert model.provenance["command"].startswith("maxcosine train a.svm --model model --test a.svm")
    assert model.provenance["data"][0]["name"] == "a.svm"


def test_a_table_for_people_and_silence_for_others(folder):
    ran = run(folder, "train", "a.svm", "--model", "model")
    assert ran.returncode == 0
    assert re.search(r"^examples +300", ran.stdout, re.MULTILINE)
    assert re.search(r"^margin ceiling +0\.\d+", ran.stdout, re.MULTILINE)
    assert "\x1b" not in ran.stdout + ran.stderr


def test_bad_lines_are_told_of_the_test_too(folder):
    (folder / "bad.svm").write_text("c0 no feature\n" * 7 + svm(50))
    way = ["--model", "model", "--on-bad", "skip", "--test", "bad.svm"]
    told = train(folder, "bad.svm", *way)
    assert (told["bad_lines"], told["test_bad_lines"], told["test_examples"]) == (7, 7, 50)
    ran = run(folder, "train", "bad.svm", *way)
    assert re.search(r"^test error +[\d.]+%, 7 bad lines skipped$", ran.stdout, re.MULTILINE)
    assert ran.stderr.splitlines()[-1] == "skipped 2 more"
    (folder / "empty.svm").write_text("")
    ran = run(folder, "train", "a.svm", "--model", "model", "--test", "empty.svm")
    assert re.search(r"^test error +there is no example to test on$", ran.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", [["train", "--model", "model"], ["compare"]])
def test_text_of_another_kind_is_not_learnt_as_labels(folder, command):
    (folder / "table.csv").write_text("a,b,c\n1,2,3\n")
    ran = run(folder, *command, "table.csv")
    assert ran.returncode == 1
    assert "no example in table.csv has a feature; is it text in another format?" in ran.stderr
    assert not (folder / "model").exists()


@pytest.mark.parametrize("kind", ["svm", "vw"])
def test_plain_packed_piped_and_many_files_give_the_same_bits(folder, kind):
    text = (folder / f"a.{kind}").read_bytes()
    train(folder, f"a.{kind}", "--model", "model")
    expected = digest(folder)
    (folder / "packed").write_bytes(gzip.compress(text))
    (folder / "other").write_bytes(zstandard.ZstdCompressor().compress(text))
    lines = text.splitlines(keepends=True)
    (folder / f"day-1.{kind}").write_bytes(b"".join(lines[:100]).rstrip())
    (folder / f"day-2.{kind}").write_bytes(b"".join(lines[100:]))
    ways = [["packed"], ["other"], [f"day-*.{kind}", "--threads", 3], [f"a.{kind}", "--checkpoint", "c"]]
    for way in ways:
        train(folder, *way, "--model", "model", "--checkpoint-every", 7)
        assert digest(folder) == expected
    train(folder, "-", "--model", "model", input=text.decode())
    assert digest(folder) == expected


def test_options_that_change_the_model_do(folder):
    ways = [
        [],
        ["--rule", "pa1", "--param", "C=0.1"],
        ["--average"],
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
        train(folder, "a.svm", "--model", "model", *way)
        found.add(digest(folder))
    assert len(found) == len(ways)


@pytest.mark.parametrize("way", [[], ["--bits", 7], ["--exact"], ["--normalize", "l2", "--average"]])
def test_going_on_from_a_model(folder, way):
    lines = (folder / "a.svm").read_text().splitlines(keepends=True)
    (folder / "first.svm").write_text("".join(lines[:120]))
    (folder / "second.svm").write_text("".join(lines[120:]))
    train(folder, "a.svm", "--model", "whole", *way)
    train(folder, "first.svm", "--model", "first", *way)
    train(folder, "second.svm", "--model", "model", "--init", "first")  # it knows how it was learnt
    assert digest(folder) == digest(folder, "whole")


def test_a_model_to_go_on_from_stays_what_it_is(folder):
    train(folder, "a.svm", "--model", "first")
    for way in (
        ["--rule", "pa"],
        ["--param", "C=1"],
        ["--average"],
        ["--exact"],
        ["--bits", 4],
        ["--float64"],
        ["--no-intercept"],
        ["--normalize", "l2"],
        ["--log1p"],
    ):
        ran = run(folder, "train", "a.svm", "--model", "model", "--init", "first", *way)
        assert ran.returncode == 1
        assert f"the model that --init names was not learnt with {way[0]}" in ran.stderr
    ran = run(folder, "train", "a.vw", "--model", "model", "--init", "first")
    assert "the features of the model are column numbers, and those of a.vw are hashed" in ran.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["a.svm", "a.vw", "first"]


def test_resuming_without_a_checkpoint_starts_afresh_and_says_so(folder):
    ran = run(folder, "train", "a.svm", "--model", "model", "--checkpoint", "check", "--resume")
    assert ran.returncode == 0
    assert "there is no checkpoint check yet: starting afresh" in ran.stderr


def test_a_checkpoint_of_other_data_or_options_is_an_error_that_names_the_difference(folder):
    way = ["--model", "model", "--checkpoint", "check", "--checkpoint-every", 100]
    train(folder, "a.svm", *way)
    told = train(folder, "a.svm", *way, "--resume")
    assert told["resumed_at"] == told["examples"] == 300
    ran = run(folder, "train", "a.svm", *way, "--resume")
    assert "going on from check, after 300 examples" in ran.stderr
    for arguments, difference in [
        (["a.svm", "--rule", "pa"], "rule was 'mcp' and is 'pa'"),
        (["a.svm", "--bits", 5], "bits was 0 and is 5"),
        (["a.svm", "--passes", 2], "passes was 1 and is 2"),
        (["a.vw"], "input 1 was a.svm of"),
    ]:
        ran = run(folder, "train", *arguments, *way, "--resume")
        assert ran.returncode == 1
        assert f"check is of another training: {difference}" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "a.svm"], "--model a.svm is an input, too; name another file"),
        (["--model", "m", "--checkpoint", "./m"], "--checkpoint m is --model, too; name another file"),
        (["--model", "m", "--test", "nowhere"], "nowhere: there is no such file"),
        (["--model", "m", "--predictions", "."], "is a folder; name a file in it"),
        (["--model", "m", "--param", "C=much"], "--param C=much: write NAME=VALUE"),
        (["--model", "m", "--param", "Q=1"], "Q"),
    ],
)
def test_what_cannot_be_written_or_read_is_refused_before_anything_is_learnt(folder, arguments, message):
    ran = run(folder, "train", "a.svm", *arguments)
    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["a.svm", "a.vw"]


def test_many_classes_of_which_some_come_late(folder):
    (folder / "many.svm").write_text(
        "".join(f"n{k % (1 + k // 3)} {k % (1 + k // 3)}:1\n" for k in range(3000))
    )
    for way in (["--multiclass", "joint"], ["--multiclass", "ovr"]):
        told = train(folder, "many.svm", "--model", "model", *way)
        assert len(told["classes"]) == 1000


def test_labels_are_numbers_or_words(folder):
    for labels in (("-1", "+1"), ("0", "1.0"), ("spam", "ham"), ("grün", "日本")):
        text = "".join(f"{labels[k % 2]} {k % 2}:1\n" for k in range(20))
        (folder / "labels.svm").write_text(text, encoding="utf-8")
        told = train(folder, "labels.svm", "--model", "model")
        expected = sorted({"+1": "1", "1.0": "1"}.get(label, label) for label in labels)
        assert told["classes"] == expected


def loaded_modules(folder, *arguments):
    """The modules that a command has loaded at its end."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=open('modules', 'w')))\n"
        "from maxcosine.__main__ import main\n"
        f"sys.argv = ['maxcosine', *{list(map(str, arguments))!r}]\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return set((folder / "modules").read_text().split())


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["predict", "--help"]])
def test_help_needs_nothing_heavy(folder, arguments):
    assert not {"numpy", "scipy", "numba", "sklearn"} & loaded_modules(folder, *arguments)


def test_training_needs_neither_a_compiler_nor_scikit_learn_nor_the_experiments(folder):
    for _ in range(2):  # the first may have to compile
        modules = loaded_modules(folder, "train", "a.svm", "--model", "model")
    assert "numpy" in modules
    assert not {"numba", "llvmlite", "sklearn"} & modules
    assert not any(name.startswith("maxcosine.experiments") for name in modules)


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            200,
            r"[\d,]+ examples, progressive error [\d.]+%, \d+ s left, \d+ MB/s, [\d,]+ examples/s, "
            r"[\d,]+ updates, bound [\d.e+]+",
        ),
        (80, r"[\d,]+ ex\., error [\d.]+%, \d+ s left, \d+ MB/s, [\d.e+]+ ex\./s, [\d,]+ upd\."),
        (45, r"[\d,]+ ex\., error [\d.]+%, \d+ s left"),
    ],
)
def test_on_a_terminal_it_shows_how_far_it_is(folder, columns, line):
    (folder / "big.svm").write_text(svm(3000) * 100)
    _, text = on_terminal(
        command("train", "big.svm", "--model", "model", "--passes", "30"),
        cwd=folder,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"},
    )
    assert re.search(line, text)
    frames = [frame for frame in text.split("\r") if " ex" in frame and "%" in frame]
    assert frames
    assert max(map(len, frames)) < columns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "most"), [(svm(20_000), 120), ("1 1:1\n-1 2:1\n" * 200_000, 40)], ids=["usual", "short lines"]
)
def test_memory_does_not_grow_with_the_data(folder, text, most):
    peaks = []
    for times in (1, 4, most):  # the first may compile
        (folder / "big.svm.gz").write_bytes(gzip.compress(text.encode() * times, 1))
        code = (
            "import re; from maxcosine.cli import app\n"
            "try: app()(['train', 'big.svm.gz', '--model', 'model'])\n"
            "finally: print(re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1])"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
        )
        peaks.append(int(ran.stdout.split()[-1]))
    assert peaks[2] - peaks[1] < 60_000  # kilobytes
