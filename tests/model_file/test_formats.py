"""Files of format 1, written by the version that introduced it, are read and written as ever."""

import json
from pathlib import Path

import numpy as np
import pytest

import maxcosine
from maxcosine import model_file
from maxcosine.model_file import digest
from tests.learners import learnt
from tests.model_file.setups import SETUPS, by_name, points

FIXTURES = Path(__file__).parents[1] / "fixtures"


EXAMPLES = {
    "binary": lambda: SETUPS["binary"][0]("mcp"),
    "names": lambda: SETUPS["names"][0]("alma"),
    "joint": lambda: SETUPS["joint"][0]("romma"),
}


def shown(learner, example):
    """What a file of the fixtures must always say."""
    X = points(4, n=12, seed=3)[0]
    rows = by_name(X) if example == "names" else X.tolist()
    return {
        "rows": rows,
        "predicted": (learner.predict_many if example == "names" else learner.predict)(rows).tolist(),
        "coef": learner.coef_.tolist(),
        "intercept": learner.intercept_.tolist(),
        "bound": np.asarray(learner.certificate_.bound).tolist(),
        "seen": learner.n_seen_,
    }


def write_fixtures():
    """`python -m tests.model_file.test_format_1`: only for a new format, beside the files of the old ones."""
    for example, make in EXAMPLES.items():
        path, learner = FIXTURES / f"format{model_file.FORMAT}_{example}.safetensors", make()
        maxcosine.save(learner, path)
        path.with_suffix(".json").write_text(json.dumps(shown(learner, example), indent=1) + "\n")


@pytest.mark.parametrize("example", EXAMPLES)
def test_files_of_format_1_are_read_and_written(tmp_path, example):
    path = FIXTURES / f"format1_{example}.safetensors"
    learner = maxcosine.load(path)
    wanted, found = json.loads(path.with_suffix(".json").read_text()), shown(learner, example)
    for name in ("rows", "predicted", "seen"):
        assert found[name] == wanted[name]
    for name in ("coef", "intercept", "bound"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12, atol=1e-300)
    maxcosine.save(learner, tmp_path / "model")
    assert digest(tmp_path / "model") == digest(path)
    go_on, fresh = SETUPS[example][1], EXAMPLES[example]()
    for one in (learner, fresh):
        go_on(one)
    assert learnt(learner) == learnt(fresh)


if __name__ == "__main__":
    write_fixtures()
