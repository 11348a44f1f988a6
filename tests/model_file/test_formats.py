"""Files of each format, written by the version that introduced it, are read, and go on learning."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import maxcosine
from maxcosine import model_file
from maxcosine.model_file import digest
from tests.learners import everything, learnt
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
    """`python -m tests.model_file.test_formats`: only for a new format, beside the files of the old ones."""
    for example, make in EXAMPLES.items():
        path, learner = FIXTURES / f"format{model_file.FORMAT}_{example}.safetensors", make()
        maxcosine.save(learner, path)
        path.with_suffix(".json").write_text(json.dumps(shown(learner, example), indent=1) + "\n")


def loaded(number, example):
    """A classifier as it was written in format `number`, with what is recorded of it, checked."""
    path = FIXTURES / f"format{number}_{example}.safetensors"
    learner = maxcosine.load(path)
    wanted, found = json.loads(path.with_suffix(".json").read_text()), shown(learner, example)
    for name in ("rows", "predicted", "seen"):
        assert found[name] == wanted[name]
    for name in ("coef", "intercept"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12, atol=1e-300)
    return learner, np.array(wanted["bound"])


def assert_go_on_alike(example, learner, fresh):
    """What was written long ago goes on as what was learnt now; claims may have other bounds on their rounding."""
    for one in (learner, fresh):
        SETUPS[example][1](one)
    for name in ("coef_", "intercept_", "n_seen_", "updates_"):
        np.testing.assert_array_equal(getattr(learner, name), getattr(fresh, name))
    np.testing.assert_array_equal(learner.certificate_.mistakes, fresh.certificate_.mistakes)
    np.testing.assert_allclose(learner.certificate_.bound, fresh.certificate_.bound, rtol=1e-12)


@pytest.mark.parametrize("example", EXAMPLES)
def test_files_of_format_2_are_read_and_written(tmp_path, example):
    learner, bound = loaded(2, example)
    np.testing.assert_allclose(learner.certificate_.bound, bound, rtol=1e-12)
    maxcosine.save(learner, tmp_path / "model")
    assert digest(tmp_path / "model") == digest(FIXTURES / f"format2_{example}.safetensors")
    fresh = EXAMPLES[example]()
    assert learner.mistakes_ == fresh.mistakes_
    assert_go_on_alike(example, learner, fresh)


@pytest.mark.parametrize("example", EXAMPLES)
def test_files_of_format_1_are_read_and_go_on_learning(tmp_path, example):
    """Their best bound rested on tracked norms, so it is dropped; each row counts as one of weight 1."""
    learner, bound = loaded(1, example)
    fresh, certificate = EXAMPLES[example](), learner.certificate_
    # Not above what was claimed, and below it by rounding only.
    assert np.all(certificate.bound <= bound * (1 + 1e-15))
    for claimed in (bound, fresh.certificate_.bound):
        np.testing.assert_allclose(certificate.bound, claimed, rtol=1e-12)
    assert np.array_equal(certificate.best_bound, np.maximum(certificate.bound, certificate.last.bound))
    heads = learner.model_.heads
    assert not heads.table["best_bound"].any()
    mistakes = int(heads.table["mistakes"][0]) if len(heads.table) == 1 else 0
    assert heads.arrays.scalars.tolist() == [(1.0, learner.n_seen_, mistakes)]
    assert learner.mistakes_ == mistakes
    # It is written in the format of today, and goes on as if nothing had happened.
    maxcosine.save(learner, tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        assert json.loads(file.metadata()["maxcosine"])["format"] == model_file.FORMAT == 2
    again = maxcosine.load(tmp_path / "model")
    assert everything(again) == everything(learner)
    assert_go_on_alike(example, learner, fresh)
    SETUPS[example][1](again)
    assert learnt(again) == learnt(learner)


def test_rows_after_a_file_of_format_1_are_weighed_beside_rows_of_weight_1():
    learner, _ = loaded(1, "binary")
    fresh = EXAMPLES["binary"]()
    X, y = points(seed=1)
    for one in (learner, fresh):
        one.partial_fit(X, y, sample_weight=np.linspace(0.0, 3.0, len(y)))
    np.testing.assert_array_equal(learner.coef_, fresh.coef_)


if __name__ == "__main__":
    write_fixtures()
