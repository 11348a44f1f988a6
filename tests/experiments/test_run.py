"""An experiment that is interrupted, resumed, or run into a wall."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from maxcosine.experiments.protocol import PAPER, Protocol, learners_of
from maxcosine.experiments.results import BadResults, Results
from maxcosine.experiments.run import run
from tests.experiments.small import small_dataset


def protocol(rules=PAPER, *, permutations=3, seed=0, average=False):
    return Protocol(learners_of(rules, average=average), 6, permutations, seed)


def same(one, other):
    """The same but for times."""

    def stripped(results):
        return [{k: v for k, v in vars(r).items() if k != "seconds"} for r in results.runs], results.curves

    return stripped(one) == stripped(other)


class Interrupt:
    """Ctrl-C after so many units."""

    def __init__(self, after):
        self.left = after

    def __call__(self, unit):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def test_results_hold_every_single_count(tmp_path):
    path = tmp_path / "results.json"
    results = run(small_dataset(), protocol(average=True), path, jobs=2, command="maxcosine reproduce small")
    content = json.loads(path.read_text())
    assert len(content["runs"]) == 3 * 3 * 6
    assert list(content["runs"][0]) == [
        "rule",
        "label",
        "permutation",
        "test_mistakes",
        "train_mistakes",
        "updates",
        "bound",
        "margin_ceiling",
        "seconds",
    ]
    assert content["protocol"] == {
        "rules": ["pa", "aggressive_romma", "mcp", "avg_pa", "avg_aggressive_romma", "avg_mcp"],
        "permutations": 3,
        "buckets": 6,
        "bucket_size": 20,
        "seed": 0,
    }
    assert content["command"] == "maxcosine reproduce small"
    assert set(content["versions"]) == {"maxcosine", "numpy", "scipy", "numba", "python"}
    assert Results.load(path) == results
    assert os.listdir(tmp_path) == ["results.json"]


def test_resuming_after_an_interruption_gives_what_an_uninterrupted_run_gives(tmp_path):
    whole = run(small_dataset(), protocol(), tmp_path / "whole.json")
    path = tmp_path / "parts.json"
    for after in (4, 5):
        with pytest.raises(KeyboardInterrupt):
            run(small_dataset(), protocol(), path, jobs=1, resume=True, on_unit=Interrupt(after))
        assert not path.exists()
    finished = []
    resumed = run(small_dataset(), protocol(), path, resume=True, on_unit=finished.append)
    assert same(resumed, whole)
    assert len(finished) == 9
    assert sorted(os.listdir(tmp_path)) == ["parts.json", "whole.json"]


def test_without_resume_everything_is_computed_anew(tmp_path):
    path = tmp_path / "results.json"
    with pytest.raises(KeyboardInterrupt):
        run(small_dataset(), protocol(), path, jobs=1, on_unit=Interrupt(4))
    journal = path.with_name("results.json.partial")
    # What a unit says counts only if it is read.
    journal.write_text(journal.read_text().replace('"updates": ', '"updates": 9'))
    spoilt = run(small_dataset(), protocol(), tmp_path / "spoilt.json")
    assert same(run(small_dataset(), protocol(), path), spoilt)


def test_resuming_what_is_finished_runs_nothing(tmp_path):
    path = tmp_path / "results.json"
    results = run(small_dataset(), protocol(), path)
    again = run(small_dataset(), protocol(), path, resume=True, on_unit=lambda unit: pytest.fail("ran"))
    assert again == results


def test_resuming_without_anything_starts(tmp_path):
    results = run(small_dataset(), protocol(), tmp_path / "results.json", resume=True)
    assert len(results.runs) == 27


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (protocol(seed=1), "seed was 0 and is 1"),
        (protocol(permutations=4), "permutations was 3 and is 4"),
        (protocol(["pa", "mcp"]), r"rules was \['pa', 'aggressive_romma', 'mcp'\] and is \['pa', 'mcp'\]"),
    ],
)
def test_resuming_another_experiment_is_an_error_that_names_the_difference(
    tmp_path, other, difference, finished
):
    path = tmp_path / "results.json"
    if finished:
        run(small_dataset(), protocol(), path)
    else:
        with pytest.raises(KeyboardInterrupt):
            run(small_dataset(), protocol(), path, jobs=1, on_unit=Interrupt(2))
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    with pytest.raises(BadResults, match=f"is of another experiment: {difference}.*leave out --resume"):
        run(small_dataset(), other, path, resume=True)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


def test_a_journal_cut_in_the_middle_of_a_line_loses_that_line_only(tmp_path):
    path = tmp_path / "results.json"
    with pytest.raises(KeyboardInterrupt):
        run(small_dataset(), protocol(), path, jobs=1, on_unit=Interrupt(4))
    journal = path.with_name("results.json.partial")
    journal.write_bytes(journal.read_bytes()[:-40])
    assert same(
        run(small_dataset(), protocol(), path, resume=True),
        run(small_dataset(), protocol(), tmp_path / "whole.json"),
    )


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"[1]\n", b'{"a": 1}\n', b"\xff\xfe\n"])
def test_a_journal_that_is_none_is_refused(tmp_path, content):
    path = tmp_path / "results.json"
    path.with_name("results.json.partial").write_bytes(content)
    with pytest.raises(BadResults, match="is not a journal of an experiment"):
        run(small_dataset(), protocol(), path, resume=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a results file: .*give one that `reproduce` wrote"),
        ("[]", "not a results file of the format 'maxcosine experiment 1': found 'list'"),
        ('{"format": "maxcosine experiment 2"}', "found 'maxcosine experiment 2'"),
        ('{"format": "maxcosine experiment 1", "dataset": {}}', "lacks something that results have"),
        (
            '{"format": "maxcosine experiment 1", "dataset": {}, "protocol": {}, "runs": []}',
            "lacks something that results have: 'name'",
        ),
    ],
)
def test_files_that_hold_no_results_are_refused(tmp_path, content, message):
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(BadResults, match=message):
        Results.load(path)


def test_earlier_results_stay_until_new_ones_are_whole(tmp_path):
    path = tmp_path / "results.json"
    run(small_dataset(), protocol(), path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run(small_dataset(), protocol(seed=1), path, jobs=1, on_unit=Interrupt(2))
    assert path.read_bytes() == before


CHILD = """
import resource, sys
from maxcosine.experiments.run import run
from tests.experiments.test_run import protocol, small_dataset
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
def tell(unit):
    print("unit", flush=True)
run(small_dataset(), protocol(permutations=100), sys.argv[1], jobs=1, on_unit=tell)
"""


def child(*arguments):
    code = textwrap.dedent(CHILD)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_leaves_what_is_finished(tmp_path, end):
    path = tmp_path / "results.json"
    process = child(path)
    for _ in range(20):
        assert process.stdout.readline() == "unit\n"
    process.send_signal(end)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not path.exists()
    lines = path.with_name("results.json.partial").read_text().splitlines(keepends=True)
    assert sum(line.endswith("\n") for line in lines) >= 21
    data, wanted = small_dataset(), protocol(permutations=100)
    resumed = run(data, wanted, path, resume=True)
    assert same(resumed, run(data, wanted, tmp_path / "whole.json"))


def test_a_full_disk_is_an_error_and_leaves_earlier_results(tmp_path):
    path = tmp_path / "results.json"
    run(small_dataset(), protocol(), path)
    before = path.read_bytes()
    # No file may grow beyond so many bytes: what a full disk or a quota does.
    process = child(path, 20_000)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "File too large" in errors
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["results.json", "results.json.partial"]
