"""What commands print: no escape of a label or a name reaches a terminal, closed pipes, --quiet and --json."""

import json
import subprocess
import sys

import numpy as np
import pytest

from maxcosine import MCPClassifier, save
from maxcosine.cli.terminal import visible
from tests.cli.examples import outcome, succeed, svm
from tests.commands import command, run

RED = "\x1b[31mred\x1b]0;title\x07"
SHOWN = r"\x1b[31mred\x1b]0;title\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode 日本 😀", "plain, ünïcode 日本 😀"),
        (RED, SHOWN),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("right\u202eleft", r"right\u202eleft"),
        ("not text: \udcff", r"not text: \udcff"),
    ],
)
def test_characters_that_control_a_terminal_are_made_visible(text, shown):
    assert visible(text) == shown


def hostile(folder):
    """Text, models and names of files that contain escapes, with their relative names."""
    data, model = f"{RED}.vw", f"{RED}.model"
    lines = [f"{RED}{k % 3} |{RED} {RED}{k % 3}:1 x{k % 7}\n" for k in range(60)]
    (folder / data).write_text("".join(lines))
    (folder / "bad.vw").write_text("".join(lines) + f"{RED} {RED} {RED} |x\n")
    return data, model


def printed(folder, *arguments, **options):
    ran = run(folder, *arguments, env={"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "200"}, **options)
    assert "\x1b[31m" not in ran.stdout + ran.stderr
    assert "\x1b]0;" not in ran.stdout + ran.stderr
    assert "\x07" not in ran.stdout + ran.stderr
    return ran


@pytest.mark.parametrize("terminal", [True, False])
def test_no_command_prints_escapes_of_labels_names_and_files(tmp_path, terminal):
    data, model = hostile(tmp_path)
    ways = [
        ["train", data, "--model", model, "--exact"],
        ["train", data, "--model", model, "--exact", "--checkpoint", f"{RED}.check", "--resume"],
        ["train", "bad.vw", "--model", "m", "--on-bad", "skip"],
        ["inspect", model],
        ["evaluate", model, data],
        ["convert", data, "--output", f"{RED}.arrow"],
        ["merge", model, "--model", f"{RED}.merged"],
        ["compare", data, "--rules", "mcp", "--report", f"{RED}.html"],
    ]
    for way in ways:
        ran = printed(tmp_path, *way, terminal=terminal)
        assert ran.returncode == 0, ran.stderr
        assert way[0] in ("compare", "train") or SHOWN in ran.stdout + ran.stderr
    mistakes = [
        ["train", "bad.vw", "--model", "m"],
        ["train", "nowhere" + RED, "--model", "m"],
        ["predict", model, "nowhere" + RED],
        ["predict", "nowhere" + RED, data],
        ["inspect", data],
        ["inspect", model, data, "more"],
        ["train", data, "--model", "m", "--rule", RED],
        ["train", data, "--model", "m", "--rule", f"{RED}:mine"],
        ["train", data, "--model", "m", "--param", f"{RED}=1"],
        ["train", data, "--model", "m", "--" + RED],
        ["merge", f"{RED}*", "--model", "m"],
    ]
    for way in mistakes:
        ran = printed(tmp_path, *way, terminal=terminal)
        assert ran.returncode in (1, 2)
        assert "Traceback" not in ran.stderr


def test_predictions_are_escaped_on_a_terminal_and_exact_elsewhere(tmp_path):
    data, model = hostile(tmp_path)
    succeed(tmp_path, "train", data, "--model", model)
    shown = printed(tmp_path, "predict", model, data, terminal=True).stdout.splitlines()
    exact = run(tmp_path, "predict", model, data).stdout.split("\n")[:-1]
    assert set(shown) == {f"{SHOWN}{k}" for k in range(3)}
    assert set(exact) == {f"{RED}{k}" for k in range(3)}


def test_a_label_with_a_newline_is_one_line(tmp_path):
    save(MCPClassifier().fit(np.eye(2), ["a\nb", "c"]), tmp_path / "model")
    assert succeed(tmp_path, "predict", "model", "-", input="0:1\n1:1\n") == "a\\nb\nc\n"


def test_brackets_in_labels_are_no_markup(tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"[bold]{k % 2}[/] {k % 2}:1\n" for k in range(40)))
    succeed(tmp_path, "train", "a.svm", "--model", "m")
    assert "[bold]0[/]" in succeed(tmp_path, "evaluate", "m", "a.svm")


# Closed pipes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "a.svm").write_text(svm(3000))
    (folder / "b.svm").write_text(svm(50, seed=2) + "c0 bad\n")
    succeed(folder, "train", "a.svm", "--model", "model")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "model", *["a.svm"] * 40],
        ["predict", "model", *["a.svm"] * 40, "--scores", "--threads", 1],
        ["predict", "model", *["a.svm"] * 40, "--json"],
        ["evaluate", "model", "a.svm"],
        ["inspect", "model"],
    ],
)
def test_a_closed_pipe_ends_quietly_with_the_code_of_sigpipe(folder, arguments):
    process = subprocess.Popen(
        command(*arguments), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if arguments[0] == "predict":
        assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
    process.stderr.close()


# Quiet


@pytest.mark.parametrize(
    ("arguments", "has_result"),
    [
        (["train", "b.svm", "--model", "m"], False),
        (["train", "b.svm", "--model", "m", "--checkpoint", "check", "--resume", "--test", "b.svm"], False),
        (["convert", "b.svm", "--output", "m.arrow"], False),
        (["compare", "b.svm", "--rules", "mcp", "--report", "r.html"], True),
        (["predict", "model", "b.svm"], True),
        (["predict", "model", "b.svm", "--output", "out"], False),
        (["evaluate", "model", "b.svm"], True),
    ],
)
def test_quiet_commands_print_only_results(folder, arguments, has_result):
    ran = run(folder, *arguments, "--on-bad", "skip", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert (ran.stderr, bool(ran.stdout)) == ("", has_result)


@pytest.mark.parametrize(
    ("arguments", "has_result"),
    [
        (["inspect", "model"], True),
        (["merge", "model", "--model", "m"], False),
        (["reproduce", "digits", "--permutations", 1, "--rules", "mcp", "--json", "quiet.json"], False),
    ],
)
def test_other_quiet_commands_print_only_results(folder, arguments, has_result):
    ran = run(folder, *arguments, "-q")
    assert ran.returncode == 0, ran.stderr
    assert (ran.stderr, bool(ran.stdout)) == ("", has_result)


def test_quiet_commands_print_errors_and_json(folder):
    assert run(folder, "train", "b.svm", "--model", "m", "--quiet").stderr.startswith("error: b.svm:51:4: ")
    assert outcome(folder, "train", "a.svm", "--model", "m", "--quiet")["examples"] == 3000
    assert run(folder, "train", "a.svm", "--model", "m").stdout != ""


# JSON


def test_merge_prints_json(folder):
    succeed(folder, "train", "a.svm", "--model", "a")
    found = outcome(folder, "merge", "a", "model", "--model", "both")
    assert (found["model"], found["merged"], found["how"]) == ("both", ["a", "model"], "certified")
    certificate = outcome(folder, "inspect", "both")["certificate"]
    assert found["certificate"] == certificate
    assert certificate["seen"] == 6000


def test_predict_prints_a_json_object_a_line(folder):
    def objects(*options, **more):
        return [json.loads(line) for line in succeed(folder, "predict", *options, "--json", **more).splitlines()]

    labels = succeed(folder, "predict", "model", "a.svm").split()
    assert objects("model", "a.svm") == [{"label": label} for label in labels]
    scored = objects("model", "a.svm", "--scores")
    assert [one["label"] for one in scored] == ["c1" if one["scores"]["c1"] > 0 else "c0" for one in scored]
    skipped = objects("model", "-", "--on-bad", "skip", input="1:1\nbad bad\n2:1\n")
    assert [one["label"] is None for one in skipped] == [False, True, False]
    (folder / "three.svm").write_text(svm(100, classes=3))
    succeed(folder, "train", "three.svm", "--model", "three")
    for one in objects("three", "three.svm", "--scores"):
        assert max(one["scores"], key=one["scores"].get) == one["label"]
        assert list(one["scores"]) == ["c0", "c1", "c2"]


def test_predictions_arrive_line_by_line(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "maxcosine", "predict", "model", "-", "--json"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(2):
        process.stdin.write("100:1\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"label": "c0"}
    process.communicate(timeout=60)
    assert process.returncode == 0
