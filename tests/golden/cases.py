"""Train every rule on the small streams, through the public API only, and read what it has learnt."""

import contextlib
import gzip
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import load_file

import maxcosine
from maxcosine.cli import run as run_command
from tests.golden import streams
from tests.learners import IN_MEMORY

RULES = (
    "aggressive_romma",
    "alma",
    "cmcp",
    "damped_mcp",
    "mcp",
    "mcp_exact",
    "naromma",
    "norma",
    "pa",
    "pa1",
    "pa2",
    "perceptron",
    "romma",
    "soft_mcp",
)

# Parameters with which hypotheses grow fast and decay fast.
EXTREME_PARAMS = {
    "alma": {"alpha": 0.1, "C": 50.0},
    "norma": {"eta": 100.0, "lambda_reg": 0.0099},
    "pa1": {"C": 1e9},
    "pa2": {"C": 1e-9},
}

Learnt = dict[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """How to learn: everything but the rule and the rows."""

    learning: str  # binary, ovr or joint
    average: bool
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.learning}-{'average' if self.average else 'last'}-{self.dtype}"

    @property
    def multiclass(self) -> str:
        return "joint" if self.learning == "joint" else "ovr"

    @property
    def fit_intercept(self) -> bool:
        return (self.learning != "binary") != self.average

    @property
    def weighted(self) -> bool:
        return self.average != (self.dtype == "float32")

    def select(self, stream: list[streams.Example]) -> list[streams.Example]:
        """All rows, or for binary learning those of the first two classes."""
        return [e for e in stream if e.code < 2] if self.learning == "binary" else stream


SETTINGS = tuple(
    Setting(learning, average, dtype)
    for learning in ("binary", "ovr", "joint")
    for average in (False, True)
    for dtype in ("float32", "float64")
)

SMALL = streams.examples(1, n_rows=90, n_features=12, n_classes=4)
WIDE = streams.examples(2, n_rows=30, n_features=90, n_classes=3, density=0.7)
EXTREME = streams.examples(4, n_rows=70, n_features=6, n_classes=3, magnitudes=8, twins=0.0)
MANY_CLASSES = streams.examples(3, n_rows=120, n_features=10, n_classes=11)


# Estimators


def _classifier(rule: str, setting: Setting) -> Any:
    return maxcosine.OnlineClassifier(
        rule,
        average=setting.average,
        fit_intercept=setting.fit_intercept,
        multiclass=setting.multiclass,
        dtype=setting.dtype,
    )


def _learn_chunks(
    learner: Any, setting: Setting, X: Any, stream: list[streams.Example], ends: tuple[int, ...]
) -> Learnt:
    """Learn with `partial_fit`, in chunks that end before these rows; classes may be late."""
    codes = np.array([example.code for example in stream])
    weights = np.array([float(example.weight) for example in stream]) if setting.weighted else None
    start = 0
    for end in (*ends, len(stream)):
        chunk = slice(start, end)
        learner.partial_fit(X[chunk], codes[chunk], sample_weight=None if weights is None else weights[chunk])
        start = end
    return _learnt(learner) | {"scores": learner.decision_function(X[-8:])}


def learn_dense(rule: str, setting: Setting) -> Learnt:
    stream = setting.select(SMALL)
    X = streams.dense(stream, 12, setting.dtype)
    return _learn_chunks(_classifier(rule, setting), setting, X, stream, (7, 30))


def learn_csr(rule: str, setting: Setting) -> Learnt:
    """Two passes of `fit` over CSR rows that are not canonical."""
    stream = setting.select(SMALL)
    X = streams.csr(stream, 12, setting.dtype)
    weights = [float(example.weight) for example in stream] if setting.weighted else None
    learner = _classifier(rule, setting).set_params(passes=2)
    learner.fit(X, [f"class {example.code}" for example in stream], sample_weight=weights)
    return _learnt(learner) | {"scores": learner.decision_function(X[-8:])}


def learn_csr_wide(rule: str, setting: Setting) -> Learnt:
    stream = setting.select(WIDE)
    X = streams.csr(stream, 90, setting.dtype)
    return _learn_chunks(_classifier(rule, setting), setting, X, stream, (10,))


def learn_csr_extreme(rule: str, setting: Setting) -> Learnt:
    stream = setting.select(EXTREME)
    X = streams.csr(stream, 6, setting.dtype)
    learner = _classifier(rule, setting).set_params(rule_params=EXTREME_PARAMS.get(rule))
    return _learn_chunks(learner, setting, X, stream, (20, 40))


def learn_many_classes(rule: str, setting: Setting) -> Learnt:
    X = streams.dense(MANY_CLASSES, 10, setting.dtype)
    return _learn_chunks(_classifier(rule, setting), setting, X, MANY_CLASSES, (3, 50, 51))


def learn_dicts(rule: str, setting: Setting) -> Learnt:
    """Dicts one by one and many at a time; features and classes appear late."""
    stream = setting.select(SMALL)
    rows = streams.dicts(stream)
    learner = _classifier(rule, setting)
    weights = [float(example.weight) if setting.weighted else 1.0 for example in stream]
    labels = [f"class {example.code}" for example in stream]
    for x, y, w in list(zip(rows, labels, weights, strict=True))[:40]:
        learner.learn_one(x, y, w)
    learner.learn_many(rows[40:], labels[40:], weights[40:] if setting.weighted else None)
    return _learnt(learner)


def _learnt(learner: Any) -> Learnt:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        path = Path(folder) / "model.safetensors"
        maxcosine.save(learner, path)
        return read_model(path)


# Text files


def _train(rule: str, setting: Setting, text: str, *options: str, suffix: str) -> Learnt:
    """Learn with the command `maxcosine train`."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name:
        data, model = Path(name) / f"stream{suffix}", Path(name) / "model.safetensors"
        data.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
        arguments = ["train", str(data), "--model", str(model), "--rule", rule, "--threads", "1", "--json"]
        arguments += ["--multiclass", setting.multiclass, "--any-labels", *options]
        arguments += ["--average"] if setting.average else []
        arguments += ["--float64"] if setting.dtype == "float64" else []
        arguments += [] if setting.fit_intercept else ["--no-intercept"]
        printed = io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["maxcosine", *arguments]),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            code = _exit_code(run_command)
        assert not code, f"maxcosine {' '.join(arguments)} failed: {printed.getvalue()}"
        return read_model(model)


def _exit_code(command: Callable[[], None]) -> Any:
    try:
        command()
    except SystemExit as end:
        return end.code
    return 0


def learn_svmlight(rule: str, setting: Setting) -> Learnt:
    return _train(rule, setting, streams.svmlight(setting.select(SMALL)), suffix=".svm")


def learn_svmlight_hashed(rule: str, setting: Setting) -> Learnt:
    text = streams.svmlight(setting.select(SMALL), spread=104_729)
    return _train(rule, setting, text, "--bits", "4", "--log1p", suffix=".svm")


def learn_svmlight_exact(rule: str, setting: Setting) -> Learnt:
    text = streams.svmlight(setting.select(SMALL), spread=2**60 + 1)
    return _train(rule, setting, text, "--exact", "--normalize", "l2", suffix=".svm.gz")


def learn_vw_hashed(rule: str, setting: Setting) -> Learnt:
    text = streams.vw(setting.select(SMALL), weighted=setting.weighted)
    return _train(rule, setting, text, "--bits", "5", "--normalize", "l2", suffix=".vw.gz")


def learn_vw_exact(rule: str, setting: Setting) -> Learnt:
    text = streams.vw(setting.select(SMALL), weighted=setting.weighted)
    return _train(rule, setting, text, "--exact", "--log1p", suffix=".vw")


def _every_third(start: int) -> tuple[Setting, ...]:
    """Four settings; three storages with different starts have them all."""
    return SETTINGS[start::3]


STORAGES: dict[str, tuple[Callable[[str, Setting], Learnt], tuple[Setting, ...]]] = {
    "dense": (learn_dense, SETTINGS),
    "csr": (learn_csr, SETTINGS),
    "dicts": (learn_dicts, SETTINGS),
    "csr_wide": (learn_csr_wide, (Setting("binary", True, "float32"), Setting("joint", False, "float64"))),
    "csr_extreme": (learn_csr_extreme, SETTINGS),
    "many_classes": (
        learn_many_classes,
        (Setting("ovr", False, "float32"), Setting("joint", True, "float64")),
    ),
    "svmlight": (learn_svmlight, _every_third(0)),
    "svmlight_hashed": (learn_svmlight_hashed, _every_third(1)),
    "svmlight_exact": (learn_svmlight_exact, _every_third(2)),
    "vw_hashed": (learn_vw_hashed, _every_third(0)),
    "vw_exact": (learn_vw_exact, _every_third(1)),
}


# What was learnt


def read_model(path: Path) -> Learnt:
    """The tensors of a model file, except the rule's parameters; the scalars of the heads in two arrays."""
    tensors = load_file(path)
    scalars = {name: tensors.pop(name) for name in sorted(tensors) if name.startswith("head.")}
    whole = [name for name, values in scalars.items() if values.dtype == np.int64]
    real = [name for name, values in scalars.items() if values.dtype == np.float64]
    assert len(whole) + len(real) == len(scalars)
    del tensors["params"]
    # A rule has one number of state at most; the fixtures have room for it in every head.
    state = np.zeros((len(tensors["state"]), 1))
    state[:, : tensors["state"].shape[1]] = tensors["state"]
    return tensors | {
        "state": state,
        "heads.whole": np.stack([scalars[name] for name in whole], axis=1),
        "heads.real": np.stack([scalars[name] for name in real], axis=1),
    }


def learn_all(storage: str, rule: str) -> Iterator[tuple[Setting, Learnt]]:
    """What a rule learns in every setting in which a storage is recorded."""
    learn, settings = STORAGES[storage]
    for setting in settings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", maxcosine.SortedLabelsWarning)
            yield setting, learn(rule, setting)


def fixture(storage: str) -> Path:
    return Path(__file__).parent.parent / "fixtures" / f"golden_{storage}.npz"
