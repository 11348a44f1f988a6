"""Rules of one's own and their parameters, in every command that has to do with rules."""

import json
import re

import pytest

from maxcosine import OnlineClassifier, load, model_file
from maxcosine.cli import rules
from tests.cli.examples import outcome, refuse, succeed, svm
from tests.commands import run

OWN = '''
from maxcosine import rule

@rule(params={"step": 0.5})
def timid(margin, sq_w, sq_x, coef_sum, state, params):
    """A perceptron whose steps are short."""
    return 1.0, (params.step if margin <= 0.0 else 0.0), state

@rule
def pa(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, 1.0, state

if __name__ == "__main__":
    raise SystemExit("a rule's file is not run as a program")
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "a.svm").write_text(svm(200))
    (tmp_path / "b.svm").write_text(svm(100, seed=1))
    return tmp_path


def digest(folder, name):
    return model_file.digest(folder / name)


TIMID = ["--rule", "own.py:timid"]


def test_a_model_of_ones_own_rule_is_usable_by_all_commands(folder):
    found = outcome(folder, "train", "a.svm", "--model", "a", *TIMID, "--param", "step=0.25", "--test", "b.svm")
    assert (found["rule"], found["test_error"] < 0.1) == ("timid", True)
    assert len(succeed(folder, "predict", "a", "b.svm", *TIMID).split()) == 100
    assert outcome(folder, "evaluate", "a", "b.svm", *TIMID)["error"] == found["test_error"]
    inspected = outcome(folder, "inspect", "a", *TIMID)
    assert (inspected["rule"], inspected["parameters"]) == ("timid", {"step": 0.25})
    assert inspected["trained"]["options"]["rule_file"]["name"] == "own.py"
    succeed(folder, "train", "b.svm", "--model", "b", *TIMID, "--param", "step=0.25")
    succeed(folder, "merge", "a", "b", "--model", "both", *TIMID)
    assert outcome(folder, "inspect", "both", *TIMID)["certificate"]["seen"] == 300


def test_the_command_learns_what_an_estimator_learns(folder):
    succeed(folder, "train", "a.svm", "--model", "a", *TIMID, "--param", "step=2")
    timid = rules.rule_named(f"{folder / 'own.py'}:timid")
    learner = OnlineClassifier(timid, rule_params={"step": 2}).fit_stream(folder / "a.svm")
    assert (load(folder / "a", rules=[timid]).coef_ == learner.coef_).all()


def test_learning_continues_with_ones_own_rule(folder):
    lines = (folder / "a.svm").read_text().splitlines(keepends=True)
    (folder / "first.svm").write_text("".join(lines[:90]))
    (folder / "second.svm").write_text("".join(lines[90:]))
    succeed(folder, "train", "a.svm", "--model", "whole", *TIMID)
    succeed(folder, "train", "first.svm", "--model", "first", *TIMID)
    succeed(folder, "train", "second.svm", "--model", "second", "--init", "first", *TIMID)
    assert digest(folder, "second") == digest(folder, "whole")
    checkpoint = ["--checkpoint", "check", "--checkpoint-every", 60]
    succeed(folder, "train", "a.svm", "--model", "again", *TIMID, *checkpoint)
    assert outcome(folder, "train", "a.svm", "--model", "again", *TIMID, *checkpoint, "--resume")["resumed_at"] == 180
    assert digest(folder, "again") == digest(folder, "whole")
    (folder / "own.py").write_text(OWN.replace("0.5", "0.6"))
    error = refuse(folder, "train", "a.svm", "--model", "again", *TIMID, *checkpoint, "--resume")
    assert "check is of another training: rule_file was" in error


def test_a_model_without_its_rule_says_how_to_give_it(folder):
    succeed(folder, "train", "a.svm", "--model", "a", *TIMID)
    for command in (
        "predict a b.svm",
        "evaluate a b.svm",
        "inspect a",
        "merge a --model m",
        "train a.svm --init a --model m",
    ):
        assert "learnt by the user's rule 'timid'" in (error := refuse(folder, *command.split()))
        assert "--rule FILE.py:timid" in error
    error = refuse(folder, "inspect", "a", "--rule", "own.py:pa")
    assert "learnt by the user's rule 'timid'" in error
    succeed(folder, "train", "a.svm", "--rule", "mcp", "--model", "builtin")
    error = refuse(folder, "inspect", "builtin", *TIMID)
    assert "the model was learnt by 'mcp' and not by --rule own.py:timid" in error


@pytest.mark.slow
def test_ones_own_rule_learns_on_a_cluster(folder):
    found = outcome(folder, "train", "a.svm", "--model", "m", *TIMID, "--on", "dask-local:2", "--shards", 3)
    assert (found["rule"], found["examples"]) == ("timid", 200)
    assert outcome(folder, "evaluate", "m", "b.svm", *TIMID)["error"] < 0.2


# Comparing


def test_own_rules_are_compared(folder):
    (folder / "other.py").write_text(OWN.replace("timid", "brave"))
    options = ["--rules", "mcp,own.py:timid, other.py:brave", "--report", "r.html"]
    found = outcome(folder, "compare", "a.svm", *options)
    assert {row["rule"] for row in found["rules"]} == {"mcp", "timid", "brave"}
    assert "timid" in (folder / "r.html").read_text()
    for names, message in [
        ("pa,own.py:pa", "two of the rules are called 'pa'; rename one of them"),
        ("own.py:nobody", "own.py has no rule 'nobody'; its rules are: timid, pa"),
        ("nowhere.py:mine", "there is no file nowhere.py; write FILE.py:NAME"),
        ("mpc", "there is no rule 'mpc'; the rules are aggressive_romma, alma"),
    ]:
        assert message in refuse(folder, "compare", "a.svm", "--rules", names)


def errors_of(folder, *params):
    found = outcome(folder, "compare", "a.svm", "--rules", "pa1,pa2,mcp", *(p for q in params for p in ("--param", q)))
    return {row["rule"]: (row["updates"], row["bounds"]) for row in found["rules"]}


def test_parameters_reach_the_rules_that_have_them(folder):
    usual, both, one = errors_of(folder), errors_of(folder, "C=0.01"), errors_of(folder, "pa1.C=0.01")
    assert usual["mcp"] == both["mcp"] == one["mcp"]
    assert both["pa1"] == one["pa1"] != usual["pa1"]
    assert both["pa2"] != one["pa2"] == usual["pa2"]
    mixed = errors_of(folder, "C=0.01", "pa2.C=1")
    assert mixed == {**both, "pa2": usual["pa2"]}
    alone = outcome(folder, "train", "a.svm", "--model", "m", "--rule", "pa1", "--param", "C=0.01")
    assert (alone["updates"], [alone["bound"]]) == both["pa1"]


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("eta=1", "--param eta=1: none of the rules pa1, mcp has a parameter 'eta'; pa1 has C, mcp has none"),
        ("mcp.C=1", "--param mcp.C=1: rule 'mcp' has no parameter 'C'"),
        ("pa2.C=1", "--param pa2.C=1: there is no rule 'pa2' here; the rules are pa1, mcp"),
        ("C=-1", "parameter C=-1 of rule 'pa1' is out of range"),
        ("C", "--param C: write NAME=VALUE, for example C=0.1"),
        ("C=much", "--param C=much: write NAME=VALUE, for example C=0.1"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(folder, param, message):
    assert message in refuse(folder, "compare", "a.svm", "--rules", "pa1,mcp", "--param", param)


# Reproducing


def test_parameters_of_an_experiment(folder):
    options = ["digits", "--permutations", 1, "--rules", "mcp,pa1,avg_pa1,own.py:timid"]
    run(folder, "reproduce", *options, "--json", "usual")
    params = ["--param", "C=1e-5", "--param", "timid.step=3"]
    ran = run(folder, "reproduce", *options, *params, "--json", "other")
    assert ran.returncode == 0, ran.stderr
    usual, other = (json.loads((folder / name).read_text()) for name in ("usual", "other"))
    assert usual["protocol"]["params"] == {"pa1": {"C": 1.0}, "timid": {"step": 0.5}}
    assert other["protocol"]["params"] == {"pa1": {"C": 1e-5}, "timid": {"step": 3.0}}
    assert re.search(r"--param C=1e-5 --param timid.step=3( |$)", other["command"])

    def mistakes(results, rule):
        return [one["test_mistakes"] for one in results["runs"] if one["rule"] == rule]

    assert mistakes(usual, "mcp") == mistakes(other, "mcp")
    for rule in ("pa1", "avg_pa1"):
        assert mistakes(usual, rule) != mistakes(other, rule)
    ran = run(folder, "reproduce", *options, "--json", "other", "--resume")
    assert "is from a different experiment: params was" in ran.stderr


# Rules that cannot be used


START = """import json, math
from maxcosine import rule

@rule
def broken(margin, sq_w, sq_x, coef_sum, state, params):
"""
BROKEN = {
    "return 1.0, nothing, state": ("own.py:6: ", "name 'nothing' is not defined"),
    "return 1.0, margin + 'a', state": ("own.py:6: ", "add(float64, Literal[str](a))"),
    "return 1.0, json.loads('1'), state": ("own.py:6: ", "Unknown attribute 'loads'"),
    "return 1.0, params.C, state": ("own.py:6: ", "Unknown attribute 'C'"),
    "return 1.0, math.squirt(1), state": ("own.py:4: ", "has no attribute 'squirt'"),
    "return 1.0, 1.0": ("own.py:4: ", "does not return (keep, add, state)"),
    "if margin > 0: return 1.0, 1.0, state": ("own.py:4: ", "does not return (keep, add, state) in every branch"),
    "return 1.0, 1.0, (1.0,)": ("own.py:4: ", "declares 0 numbers of state and returns 1"),
    "with open('x') as file: return 1.0, 1.0, state": ("own.py:4: ", "'with (context manager)"),
}


@pytest.mark.parametrize("body", BROKEN)
def test_a_rule_that_cannot_be_compiled_is_one_line(folder, body):
    (folder / "own.py").write_text(f"{START}    {body}\n")
    place, reason = BROKEN[body]
    for command in (
        ["train", "a.svm", "--model", "m", "--rule", "own.py:broken"],
        ["compare", "a.svm", "--rules", "mcp,own.py:broken"],
        ["reproduce", "digits", "--rules", "own.py:broken"],
    ):
        error = refuse(folder, *command)
        assert error.count("\n") == 1
        assert error.startswith(f"error: {place}rule 'broken'")
        assert reason in error
    assert not (folder / "m").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("def f(:\n", "error: own.py:1: SyntaxError: invalid syntax"),
        ("x = 1\ny = 1 / 0\n", "error: own.py:2: ZeroDivisionError: division by zero"),
        ("import nonexistent_module\n", "error: own.py:1: ModuleNotFoundError: No module named 'nonexistent_module'"),
        ("def f():\n    return g\n\nf()\n", "error: own.py:2: NameError: name 'g' is not defined"),
        ("x = 1\n", "error: --rule own.py:f: own.py has no rule 'f'; its rules are: none"),
    ],
)
def test_a_file_that_cannot_be_run_is_one_line(folder, content, message):
    (folder / "own.py").write_text(content)
    error = refuse(folder, "train", "a.svm", "--model", "m", "--rule", "own.py:f")
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_without_numba_a_rule_runs_slowly_and_its_errors_are_one_line(folder, monkeypatch):
    monkeypatch.setattr("maxcosine.rules.compiling.find_spec", lambda name: None)
    ran = run(folder, "train", "a.svm", "--model", "m", *TIMID)
    assert ran.returncode == 0
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("rule 'timid' runs as plain Python, which is slow; install Numba")
    (folder / "own.py").write_text(OWN.replace("params.step", "nothing"))
    ran = run(folder, "train", "a.svm", "--model", "m", *TIMID)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[1:] == ["error: own.py:7: NameError: name 'nothing' is not defined"]
