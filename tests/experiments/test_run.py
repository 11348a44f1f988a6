"""Experiments that are interrupted, resumed, or run out of disk space."""

import json
import os
import signal
import subprocess
import sys

import pytest

from maxcosine.experiments.protocol import Protocol, learners_of
from maxcosine.experiments.results import BadResults, Results
from maxcosine.experiments.run import run
from tests.experiments.small import PAPER, small_dataset


def protocol(rules=PAPER, *, permutations=3, seed=0, average=False):
    return Protocol(learners_of(rules, average=average), 6, permutations, seed)


def without_times(results):
    return [{**vars(run), "seconds": 0.0} for run in results.runs], results.curves


def interrupt_after(n):
    """A callback that simulates Ctrl-C after n units."""
    units = iter(range(n))

    def on_unit(unit):
        if next(units, None) is None:
            raise KeyboardInterrupt

    return on_unit


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.json"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of an uninterrupted run."""
    return run(small_dataset(), protocol(), tmp_path_factory.mktemp("whole") / "results.json")


@pytest.fixture
def partial(path):
    """The file that an interrupted run leaves."""
    with pytest.raises(KeyboardInterrupt):
        run(small_dataset(), protocol(), path, jobs=1, on_unit=interrupt_after(4))
    assert not path.exists()
    return path.with_name("results.json.partial")


def test_results_hold_every_count(path):
    results = run(small_dataset(), protocol(average=True), path, jobs=2, command="maxcosine reproduce small")
    content = json.loads(path.read_text())
    assert len(content["runs"]) == 3 * 3 * 6
    assert list(content["runs"][0]) == [
        *("rule", "label", "permutation", "test_mistakes", "train_mistakes"),
        *("updates", "bound", "margin_ceiling", "seconds"),
    ]
    rules = ["pa", "aggressive_romma", "mcp", "avg_pa", "avg_aggressive_romma", "avg_mcp"]
    sizes = {"permutations": 3, "buckets": 6, "bucket_size": 20, "seed": 0}
    gains = {"pa": 1.0, "aggressive_romma": 1.0, "mcp": 1.0}
    assert content["protocol"] == {"rules": rules, "params": {}, "gains": gains, **sizes}
    assert content["command"] == "maxcosine reproduce small"
    assert {"maxcosine", "numpy", "scipy", "python"} <= set(content["versions"])
    assert path.read_text().count('\n{"rule": ') == len(content["runs"])  # a line for each run
    assert Results.load(path) == results
    assert os.listdir(path.parent) == ["results.json"]


def test_run_from_before_gains_were_recorded_is_resumed(path, partial, whole):
    assert "gains" not in partial.read_text()
    run(small_dataset(), protocol(), path, resume=True)
    content = json.loads(path.read_text())
    del content["protocol"]["gains"]
    path.write_text(json.dumps(content))
    assert run(small_dataset(), protocol(), path, resume=True).gains is None
    assert whole.gains == {"pa": 1.0, "aggressive_romma": 1.0, "mcp": 1.0}


def test_resumed_run_equals_an_uninterrupted_one(path, partial, whole):
    partial.write_bytes(partial.read_bytes()[:-40])  # an incomplete last line is ignored
    with pytest.raises(KeyboardInterrupt):
        run(small_dataset(), protocol(), path, jobs=1, resume=True, on_unit=interrupt_after(6))
    finished = []
    resumed = run(small_dataset(), protocol(), path, resume=True, on_unit=finished.append)
    assert without_times(resumed) == without_times(whole)
    assert len(finished) == 9
    assert os.listdir(path.parent) == ["results.json"]


def test_without_resume_nothing_is_reused(path, partial, whole):
    partial.write_text(partial.read_text().replace('"updates": ', '"updates": 9'))
    assert without_times(run(small_dataset(), protocol(), path)) == without_times(whole)


def test_resuming_a_finished_run_returns_its_results(path):
    results = run(small_dataset(), protocol(), path, resume=True)
    again = run(small_dataset(), protocol(), path, resume=True, on_unit=lambda unit: pytest.fail("ran"))
    assert again == results


@pytest.mark.parametrize("finished", [True, False])
def test_resuming_a_different_experiment_is_an_error_that_names_the_differences(path, partial, finished):
    if finished:
        run(small_dataset(), protocol(), path)
    before = {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)}
    difference = r"rules was \['pa', .*\] and is \['pa'\]; seed was 0 and is 1\. .*leave out --resume"
    with pytest.raises(BadResults, match=f"is from a different experiment: {difference}"):
        run(small_dataset(), protocol(["pa"], seed=1), path, resume=True)
    assert {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)} == before


@pytest.mark.parametrize("content", [b"", b'{"a": 1}\n'])
def test_file_without_partial_results_is_refused(path, content):
    path.with_name("results.json.partial").write_bytes(content)
    with pytest.raises(BadResults, match="holds no partial results; remove it"):
        run(small_dataset(), protocol(), path, resume=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a results file: .*give one that `reproduce` wrote"),
        ("[]", "is not a results file: format 'list' instead of 'maxcosine experiment 1'"),
        (
            '{"format": "maxcosine experiment 1", "dataset": {}, "protocol": {}, "runs": []}',
            "is an incomplete results file: 'name'",
        ),
    ],
)
def test_files_without_results_are_refused(path, content, message):
    path.write_text(content)
    with pytest.raises(BadResults, match=message):
        Results.load(path)


CHILD = """
import resource, sys
from maxcosine.experiments.run import run
from tests.experiments.test_run import protocol, small_dataset
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
def on_unit(unit):
    print("unit", flush=True)
run(small_dataset(), protocol(permutations=100), sys.argv[1], jobs=1, on_unit=on_unit)
"""


def child(*arguments):
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_process_leaves_the_finished_units(path):
    process = child(path)
    for _ in range(20):
        assert process.stdout.readline() == "unit\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert not path.exists()
    lines = path.with_name("results.json.partial").read_text().splitlines(keepends=True)
    assert sum(line.endswith("\n") for line in lines) >= 21
    assert len(run(small_dataset(), protocol(permutations=100), path, resume=True).runs) == 900


def test_full_disk_is_an_error_that_leaves_earlier_results(path):
    run(small_dataset(), protocol(), path)
    before = path.read_bytes()
    process = child(path, 20_000)  # a limit on file sizes acts like a full disk
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "File too large" in errors
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == ["results.json", "results.json.partial"]
