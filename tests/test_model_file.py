"""A model outlives its process in one file: to the bit, checked before use, and nothing in it is executed."""

import contextlib
import errno
import itertools
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

import maxcosine
from maxcosine import RULES, MCPClassifier, OnlineClassifier, PAClassifier, merge, model_file, rule
from maxcosine.engine.heads import HEAD
from maxcosine.estimators.files import load as load_estimator
from maxcosine.estimators.files import save as save_estimator
from maxcosine.features import Features
from maxcosine.model import Model
from maxcosine.model_file import BadModelFile, digest, load, save
from tests.estimators.learners import NAMED, contents

FIXTURES = Path(__file__).parent / "fixtures"
TABLE = [name for name in HEAD.names if name != "logged"]  # what the log knows saves time, and no more


# What is learnt, and from what


def points(n_classes=2, n=60, seed=0, dtype=np.float64, n_columns=9):
    """Rows that differ by class, of which most columns are 0."""
    random = np.random.default_rng([seed, 7])
    y = random.permutation(np.arange(n) % n_classes)
    centres = np.random.default_rng(n_classes).normal(size=(n_classes, n_columns))
    X = (2.0 * centres[y] + random.normal(size=(n, n_columns))) * (random.random((n, n_columns)) < 0.4)
    return X.astype(dtype), y


def named(X, late=False):
    """Rows as dicts by name; some names come late."""
    names = [f"naïve {'new' if late and j % 2 else 'old'} {j}" for j in range(X.shape[1])]
    return [{names[j]: float(x[j]) for j in np.flatnonzero(x)} for x in X]


def numbered(X, late=False):
    """Rows as dicts by id, small and very large."""
    ids = [j if j % 2 else 2**64 - 1 - j - 100 * late for j in range(X.shape[1])]
    return [{ids[j]: float(x[j]) for j in np.flatnonzero(x)} for x in X]


def by_columns(n_classes=2, dtype=np.float64, **params):
    def make(name):
        learner = OnlineClassifier(name, **params)
        return learner.partial_fit(*points(n_classes, dtype=dtype))

    def go_on(learner):
        learner.partial_fit(*points(n_classes, seed=1, dtype=dtype))

    return make, go_on


def by_keys(keyed, n_classes=3, **params):
    def make(name):
        learner, (X, y) = OnlineClassifier(name, **params), points(n_classes)
        learner.learn_many(keyed(X), y)
        return learner

    def go_on(learner):
        X, y = points(n_classes, seed=1, n_columns=40)
        for x, label in zip(keyed(X, late=True), y.tolist(), strict=True):
            learner.learn_one(x, label)

    return make, go_on


def sparsified():
    def make(name):
        X, y = points(n_columns=30, n=12)
        X[:, ::3] = 0.0
        return OnlineClassifier(name, average=True).partial_fit(X, y).sparsify()

    def go_on(learner):
        learner.partial_fit(*points(n_columns=30, seed=1))

    return make, go_on


def weighted():
    def make(name):
        X, y = points(3)
        learner = OnlineClassifier(name, class_weight={0: 2.0, 1: np.float64(0.5)})
        return learner.partial_fit(X, y, sample_weight=np.linspace(0.0, 2.0, len(y)))

    return make, by_columns(3)[1]


def merged(n_classes):
    def make(name):
        parts = [OnlineClassifier(name, average=n_classes > 2) for _ in range(2)]
        for seed, part in enumerate(parts):
            part.partial_fit(*points(n_classes, seed=seed))
        return merge(parts)

    return make, by_columns(n_classes)[1]


def waiting(multiclass):
    """A class is known that has not come: its head has not begun."""

    def make(name):
        learner = OnlineClassifier(name, multiclass=multiclass).partial_fit(*points(3))
        learner._model.add_classes(np.array([-1, 9]), waiting=True)
        learner._set_model(learner._model)
        return learner

    def go_on(learner):
        X, y = points(3, seed=1)
        y[20::4] = 9
        learner.partial_fit(X, y)

    return make, go_on


SETUPS = {
    "binary": by_columns(),
    "no intercept": by_columns(fit_intercept=False),
    "one-vs-rest": by_columns(5),
    "joint": by_columns(4, multiclass="joint", average=True),
    "joint binary": by_columns(2, multiclass="joint"),
    "averaged": by_columns(3, average=True),
    "float32": by_columns(3, dtype=np.float32, average=True),
    "names": by_keys(named, average=True),
    "names, joint": by_keys(named, multiclass="joint", dtype="float32"),
    "ids": by_keys(numbered),
    "ids, binary": by_keys(numbered, 2, average=True),
    "sparsified": sparsified(),
    "weighted": weighted(),
    "merged": merged(2),
    "merged, averaged": merged(3),
    "waiting": waiting("ovr"),
    "waiting, joint": waiting("joint"),
}


def bits(model):
    """All that a model is, to the bit, but for the room it has."""
    heads, n_slots = model.heads, model.features.n_slots
    a, n, features = heads.arrays, heads.n_columns, model.features
    assert not a.v[n_slots:].any()
    assert not a.v[:, n:].any()
    weights = [a.v[:n_slots, :n], a.bias[:n], a.total[:n_slots, :n], a.total_bias[:n]]
    rest = [a.state, a.params, a.came, *(heads.table[name] for name in TABLE), heads.table["logged"] > 0]
    kinds = model.rule, model.multiclass, model.closed, heads.average, heads.fit_intercept
    slots = None if features.index is None else (features.index.kind, features.index.keys().tolist())
    return (
        contents([np.ascontiguousarray(array) for array in (*weights, *rest)]),
        kinds,
        contents(model.classes),
        (slots, features.n_columns, contents(features.names), features.bits, features.kept_names),
        contents(model.merge),
    )


def seen_by_a_user(learner):
    """What an estimator shows, to the bit."""
    coef = learner.coef_.toarray() if scipy.sparse.issparse(learner.coef_) else learner.coef_
    features = learner._model.features
    if features.keyed:
        rows = (named if features.by_name else numbered)(points(seed=2)[0])
        predicted = learner.predict_many(rows)
    else:
        X = points(seed=2, n_columns=features.n_features)[0].astype(learner._model.heads.dtype)
        predicted = learner.decision_function(X), learner.predict(X)
    shown = [coef, learner.intercept_, learner.classes_, learner.features_, learner.certificate_, predicted]
    return contents([*shown, learner.n_features_in_, learner.n_seen_, learner.get_params()])


def kept(learner, path):
    save_estimator(learner, path)
    return load_estimator(path)


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("name", RULES)
def test_saved_and_loaded_is_the_same_and_goes_on_to_the_same_bits(tmp_path, name, setup):
    make, go_on = SETUPS[setup]
    learner = make(name)
    before = bits(learner._model)
    loaded = kept(learner, tmp_path / "model")
    assert bits(learner._model) == before  # saving changes nothing
    assert type(loaded) is OnlineClassifier
    assert bits(loaded._model) == before
    assert seen_by_a_user(loaded) == seen_by_a_user(learner)
    go_on(learner)
    go_on(loaded)
    assert bits(loaded._model) == bits(learner._model) != before
    assert seen_by_a_user(loaded) == seen_by_a_user(learner)


def test_a_waiting_class_is_still_awaited(tmp_path):
    learner = SETUPS["waiting"][0]("mcp")
    loaded = kept(learner, tmp_path / "model")
    assert loaded._model.heads.table["since"].tolist() == [-1, 3, 0, 0, -1]
    assert loaded._model.heads.arrays.came[:5].tolist() == [0, 1, 1, 1, 0]


def test_the_loaded_is_independent_of_the_file(tmp_path):
    learner = kept(SETUPS["binary"][0]("mcp"), tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    SETUPS["binary"][1](learner)
    assert (tmp_path / "model").read_bytes() == before
    assert bits(load_estimator(tmp_path / "model")._model) != bits(learner._model)


LABELS = {
    "int64": np.array([3, 7]),
    "int8": np.array([-3, 7], np.int8),
    "uint64": np.array([0, 2**64 - 1], np.uint64),
    "float": np.array([1.0, 2.0]),
    "float32": np.array([-1.0, 2.0], np.float32),
    "big-endian": np.array([1, 2], ">i4"),
    "bool": np.array([False, True]),
    "str": np.array(["no", "naïve"]),
    "wide str": np.array(["no", "yes"], "<U99"),
    "object": np.array(["", "a longer one with \n and 猫"], object),
}


@pytest.mark.parametrize("labels", LABELS)
def test_classes_of_every_kind(tmp_path, labels):
    X, y = points()
    learner = MCPClassifier().fit(X, LABELS[labels][y])
    loaded = kept(learner, tmp_path / "model")
    assert contents(loaded.classes_) == contents(learner.classes_)
    assert loaded.predict(X).dtype == learner.predict(X).dtype
    assert bits(loaded.partial_fit(X, LABELS[labels][y])._model) == bits(
        learner.partial_fit(X, LABELS[labels][y])._model
    )


def test_very_wide_labels_keep_their_letters(tmp_path):
    X, y = points()
    learner = MCPClassifier().fit(X, np.array(["a", "b" * 300], "<U1000")[y])
    assert kept(learner, tmp_path / "model").classes_.tolist() == learner.classes_.tolist()


@pytest.mark.parametrize("labels", [np.array(["2020", "2021"], "M8[Y]"), np.array([1.0, 2.0], np.longdouble)])
def test_classes_that_have_no_place(tmp_path, labels):
    X, y = points()
    with pytest.raises(TypeError, match="have no place in a model file; learn from labels that are"):
        save_estimator(MCPClassifier().fit(X, labels[y]), tmp_path / "model")
    with pytest.raises(ValueError, match="among the classes is no Unicode text"):
        save_estimator(MCPClassifier().fit(X, np.array(["a", "\ud800"])[y]), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_column_names_and_columns_to_come(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = points()
    learner = MCPClassifier(grow_features=True)
    learner.partial_fit(pandas.DataFrame(X[:, :5], columns=list("abcde")), y)
    loaded = kept(learner, tmp_path / "model")
    assert contents(loaded.feature_names_in_) == contents(learner.feature_names_in_)
    assert loaded.feature_names_in_ is loaded._model.features.names
    more = pandas.DataFrame(X[:, :8], columns=list("abcdefgh"))
    assert bits(loaded.partial_fit(more, y)._model) == bits(learner.partial_fit(more, y)._model)
    assert loaded.features_.tolist() == list("abcdefgh")


def test_hashed_columns_and_the_names_that_were_kept(tmp_path):
    X, y = points(n_columns=16)
    model = OnlineClassifier().fit(X, y)._model
    model.features.bits, model.features.kept_names = 4, {7: "seven", 3: "drei"}
    save(model, tmp_path / "model")
    features = load(tmp_path / "model").model.features
    assert features.bits == 4
    assert features.kept_names == {3: "drei", 7: "seven"}
    assert bits(load(tmp_path / "model").model) == bits(model)


def test_a_model_that_has_seen_nothing(tmp_path):
    mcp = RULES["mcp"]
    for number, features in enumerate([Features(0), Features(5), Features.by_key("ids")]):
        options = {"fit_intercept": True, "average": True}
        model = Model.create(mcp, (), np.array(["a"]), features, np.dtype("float32"), **options)
        save(model, tmp_path / "model")
        assert bits(load(tmp_path / "model").model) == bits(model), number


def test_weights_of_features_that_were_forgotten(tmp_path):
    """Learning that fails in the middle may leave weights behind the last feature."""
    model = SETUPS["names"][0]("mcp")._model
    model.features.index.truncate(5)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model").model
    assert loaded.features.keys().tolist() == model.features.keys().tolist()
    assert np.array_equal(loaded.heads.arrays.v[:9], model.heads.arrays.v[:9])
    assert np.array_equal(loaded.heads.table["highest"], model.heads.table["highest"])


# Estimators


@pytest.mark.parametrize("cls", [*NAMED, OnlineClassifier])
def test_every_class_comes_back_with_its_parameters(tmp_path, cls):
    learner = cls(class_weight={0: 1, 1: 2.5}, passes=2, shuffle=True, random_state=np.int64(5), n_jobs=2)
    if cls is PAClassifier:
        learner.set_params(variant="pa2", C=0.25)
    learner.fit(*points())
    loaded = kept(learner, tmp_path / "model")
    assert type(loaded) is cls
    assert loaded.get_params() == learner.get_params()
    assert bits(loaded.fit(*points(seed=1))._model) == bits(learner.fit(*points(seed=1))._model)


def test_a_rule_given_as_an_object_and_its_parameters(tmp_path):
    learner = OnlineClassifier(RULES["alma"], rule_params={"alpha": np.float32(0.5)}).fit(*points())
    loaded = kept(learner, tmp_path / "model")
    assert loaded.rule is RULES["alma"]
    assert loaded.rule_params == {"alpha": 0.5}


def test_keys_of_class_weight_keep_their_types(tmp_path):
    X, y = points()
    for weights in ({"1": 2.0}, {1: 2.0}, {np.int32(1): np.float64(2.0)}, {1.0: 2}, {True: 2.0}):
        loaded = kept(MCPClassifier(class_weight=weights).fit(X, y), tmp_path / "model")
        assert loaded.class_weight == weights
        assert [type(key) for key in loaded.class_weight] != [np.int32]


@pytest.mark.parametrize("setup", ["binary", "joint", "names"])
def test_a_file_without_an_estimator_is_an_online_classifier(tmp_path, setup):
    make, go_on = SETUPS[setup]
    learner = make("norma").set_params(rule_params={"eta": 0.25})
    go_on(learner)
    save(learner._model, tmp_path / "model", provenance={"command": "maxcosine train"})
    loaded = load_estimator(tmp_path / "model")
    assert type(loaded) is OnlineClassifier
    assert loaded.rule == "norma"
    assert loaded.rule_params["eta"] == 0.25
    assert (loaded.average, loaded.multiclass) == (learner.average, learner.multiclass)
    assert bits(loaded._model) == bits(learner._model)
    go_on(learner)
    go_on(loaded)
    assert bits(loaded._model) == bits(learner._model)
    assert loaded.certificate_ == learner.certificate_
    assert merge([loaded, learner]).n_seen_ == 2 * learner.n_seen_


def test_what_an_estimator_cannot_keep(tmp_path):
    X, y = points()
    learner = MCPClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.raises(TypeError, match=r"random_state holds RandomState.*set_params\(random_state=...\)"):
        save_estimator(learner, tmp_path / "model")
    with pytest.raises(ValueError, match="class_weight holds inf"):
        save_estimator(MCPClassifier().fit(X, y).set_params(class_weight={0: np.inf}), tmp_path / "model")
    with pytest.raises(ValueError, match="not fitted"):
        save_estimator(MCPClassifier(), tmp_path / "model")
    with pytest.raises(ValueError, match="'passes' parameter"):
        save_estimator(MCPClassifier().fit(X, y).set_params(passes=0), tmp_path / "model")

    class Own(MCPClassifier):
        pass

    with pytest.raises(TypeError, match="Own is no classifier of maxcosine; save its model with"):
        save_estimator(Own().fit(X, y), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@rule(params={"target": 0.1}, state={"steps": 0.0})
def hinge(margin, sq_w, sq_x, coef_sum, state, params):
    """A rule of one's own."""
    moves = margin <= params.target
    return 1.0, (1.0 / sq_x if moves else 0.0), (state[0] + moves,)


def other_hinge(name="hinge", **traits):
    def function(margin, sq_w, sq_x, coef_sum, state, params):
        return 1.0, 1.0 / sq_x, state

    function.__name__ = name
    return rule(function, **traits)


def test_a_rule_of_ones_own_is_given_when_loading(tmp_path):
    path = tmp_path / "model"
    learner = OnlineClassifier(hinge, rule_params={"target": 0.3}).fit(*points(3))
    save_estimator(learner, path)
    loaded = load_estimator(path, rules=[other_hinge("another"), hinge])
    assert loaded.rule is hinge
    assert bits(loaded._model) == bits(learner._model)
    X, y = points(3, seed=1)
    assert bits(loaded.partial_fit(X, y)._model) == bits(learner.partial_fit(X, y)._model)
    with pytest.raises(BadModelFile, match=r"learnt by 'hinge', a rule of one's own.*rules=\[hinge\]"):
        load_estimator(path)
    with pytest.raises(BadModelFile, match=r"'hinge' had the params \['target'\], and the one here has \[\]"):
        load(path, rules=[other_hinge(state={"steps": 0.0})])
    with pytest.raises(BadModelFile, match=r"'hinge' had the state \['steps'\], and the one here has \[\]"):
        load(path, rules=[other_hinge(params={"target": 0.1})])


def test_a_rule_of_ones_own_does_not_stand_in_for_one_of_ours(tmp_path):
    save(OnlineClassifier().fit(*points())._model, tmp_path / "model")
    own = other_hinge("mcp", state={"bound": 0.0})
    assert load(tmp_path / "model", rules=[own]).model.rule is RULES["mcp"]


# What is passed through, and what the tensors say


def test_provenance_and_more_are_passed_through(tmp_path):
    model = OnlineClassifier().fit(*points())._model
    provenance = {
        "command": 'train \udc80 "x"',
        "rows": np.int64(3),
        "none": None,
        "list": [1, 2.5, {"a": []}],
    }
    tensors = {
        "buffer": np.arange(6, dtype=">i4").reshape(2, 3)[:, ::2],
        "flag": np.array(True),
        "none": np.zeros((0, 4), np.float16),
        "猫": np.arange(3, dtype=np.uint64),
    }
    save(model, tmp_path / "model", provenance=provenance, more={"position": 2**70}, tensors=tensors)
    loaded = load(tmp_path / "model")
    assert loaded.provenance == provenance
    assert loaded.more == {"position": 2**70}
    assert loaded.estimator is None
    assert set(loaded.tensors) == set(tensors)
    for name, tensor in tensors.items():
        assert np.array_equal(loaded.tensors[name], tensor)
        assert loaded.tensors[name].shape == tensor.shape
        assert loaded.tensors[name].dtype == tensor.dtype.newbyteorder("=")


def test_what_cannot_be_passed_through(tmp_path):
    model, path = OnlineClassifier().fit(*points())._model, tmp_path / "model"
    with pytest.raises(TypeError, match="the tensor 'x' has the type object"):
        save(model, path, tensors={"x": np.array([None])})
    with pytest.raises(TypeError, match="a ndarray, which JSON cannot hold; give a plain value"):
        save(model, path, more={"x": np.zeros(3)})
    with pytest.raises(ValueError, match=r"are kept as JSON: .*; give finite, plain values"):
        save(model, path, more={"x": float("nan")})
    with pytest.raises(ValueError, match=r"room for 16,777,216; give large things as tensors"):
        save(model, path, more={"x": "x" * 2**24})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["v", "state", "scale"])
def test_a_model_that_is_not_finite_is_not_saved(tmp_path, damage):
    model, path = OnlineClassifier().fit(*points())._model, tmp_path / "model"
    save(model, path)
    before = path.read_bytes()
    if damage == "scale":
        model.heads.table["scale"] = np.inf
    else:
        getattr(model.heads.arrays, damage)[0, 0] = np.nan
    with pytest.raises(ValueError, match="such a model is not saved"):
        save(model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_is_a_safetensors_file_for_everybody(tmp_path):
    learner = SETUPS["names"][0]("mcp")
    save_estimator(learner, tmp_path / "model")
    arrays = learner._model.heads.arrays
    with safe_open(tmp_path / "model", "np") as file:
        assert np.array_equal(file.get_tensor("v"), arrays.v[: learner.n_features_in_, :3])
        letters, starts = (file.get_tensor(f"names.{part}") for part in ("letters", "starts"))
        described = json.loads(file.metadata()["maxcosine"])
    names = [letters[a:b].tobytes().decode() for a, b in itertools.pairwise(starts)]
    assert names == learner.features_.tolist()
    assert described["format"] == 1
    assert described["written_by"] == f"maxcosine {maxcosine.__version__}"
    raw = (tmp_path / "model").read_bytes()
    assert int.from_bytes(raw[:8], "little") % 8 == 0  # tensors are aligned


def test_the_digest_is_of_the_tensors_alone(tmp_path):
    one, other = SETUPS["names"][0]("mcp"), SETUPS["names"][0]("mcp")
    save(one._model, tmp_path / "one", provenance={"time": 1}, tensors={"x": np.arange(2)})
    save(other._model, tmp_path / "other", provenance={"time": 2}, tensors={"x": np.arange(2)})
    assert digest(tmp_path / "one") == digest(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() != (tmp_path / "other").read_bytes()
    for changed in (np.arange(1, 3), np.arange(2.0), np.arange(2).reshape(2, 1)):
        save(other._model, tmp_path / "other", tensors={"x": changed})
        assert digest(tmp_path / "one") != digest(tmp_path / "other")
    save_estimator(load_estimator(tmp_path / "one"), tmp_path / "again")
    save_estimator(one, tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()


STREAMS = {
    "columns": lambda X: X,
    "names": named,
    "ids": numbered,
}


@pytest.mark.parametrize("storage", STREAMS)
@pytest.mark.parametrize(
    "options", [{}, {"average": True}, {"multiclass": "joint", "average": True}], ids=str
)
@pytest.mark.parametrize("name", ["mcp", "romma", "alma", "norma", "pa1"])
def test_the_tensors_do_not_depend_on_chunks(tmp_path, name, options, storage):
    X, y = points(4, n=150, n_columns=60)
    y[:20] %= 2  # others come late
    rows, digests = STREAMS[storage](X), set()
    for size in (150, 37, 1):
        learner = OnlineClassifier(name, **options)
        for start in range(0, len(y), size):
            chunk = slice(start, start + size)
            if storage == "columns":
                learner.partial_fit(rows[chunk], y[chunk])
            elif size == 1:
                learner.learn_one(rows[start], y[start])
            else:
                learner.learn_many(rows[chunk], y[chunk])
        save_estimator(learner, tmp_path / "model")
        digests.add(digest(tmp_path / "model"))
        save_estimator(load_estimator(tmp_path / "model"), tmp_path / "model")
        digests.add(digest(tmp_path / "model"))
    assert len(digests) == 1


def test_saving_along_the_way_changes_nothing(tmp_path):
    X, y = points(3, n=120, n_columns=50)
    rows = named(X)
    straight, stopped = OnlineClassifier("romma", average=True), OnlineClassifier("romma", average=True)
    for start in range(0, 120, 10):
        for learner in (straight, stopped):
            learner.learn_many(rows[start : start + 10], y[start : start + 10])
        stopped = kept(stopped, tmp_path / "model")
    assert bits(straight._model) == bits(stopped._model)


def test_blocks_make_no_difference(tmp_path, monkeypatch):
    learner = SETUPS["names"][0]("mcp")
    save_estimator(learner, tmp_path / "large")
    monkeypatch.setattr(model_file, "BLOCK_BYTES", 64)
    monkeypatch.setattr(model_file, "BLOCK_NAMES", 2)
    save_estimator(learner, tmp_path / "small")
    assert (tmp_path / "small").read_bytes() == (tmp_path / "large").read_bytes()
    assert bits(load_estimator(tmp_path / "small")._model) == bits(learner._model)


# The disk


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    save_estimator(SETUPS["binary"][0]("mcp"), path)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(OSError, match="model") as caught:
            save_estimator(SETUPS["joint"][0]("mcp"), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_where_no_file_can_be(tmp_path):
    learner = SETUPS["binary"][0]("mcp")
    (tmp_path / "file").write_text("text")
    with pytest.raises(OSError, match="file"):
        save_estimator(learner, tmp_path / "file" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        save_estimator(learner, tmp_path)
    save_estimator(learner, tmp_path / "new folder" / "model")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=tmp_path.name):
        save_estimator(SETUPS["binary"][0]("mcp"), tmp_path / "model")
    tmp_path.chmod(0o700)


def test_a_load_needs_no_scikit_learn(tmp_path):
    save_estimator(SETUPS["names"][0]("mcp"), tmp_path / "model")
    look = "import sys, maxcosine.model_file as m; m.load(sys.argv[1]); print('sklearn' in sys.modules)"
    given = [sys.executable, "-c", look, str(tmp_path / "model")]
    assert subprocess.run(given, check=True, capture_output=True, text=True).stdout == "False\n"


# What is refused


@cache
def real_file(setup):
    """The bytes of a file of this setup."""
    with tempfile.TemporaryDirectory() as folder:
        save_estimator(SETUPS[setup][0]("mcp"), f"{folder}/model")
        return Path(f"{folder}/model").read_bytes()


def parts(path):
    """The JSON and the tensors of a file."""
    with safe_open(path, "np") as file:
        tensors = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["maxcosine"]), tensors


def write(path, described, tensors):
    """A file of these parts, whose checksum is right."""
    text = described if isinstance(described, str) else json.dumps(described)
    with open(path, "wb") as file:
        model_file._write(file, text, {k: model_file._tensor(np.asarray(v), k) for k, v in tensors.items()})


def tampered(path, setup, change):
    path.write_bytes(real_file(setup))
    described, tensors = parts(path)
    change(described, tensors)
    write(path, described, tensors)
    return path


def test_tampering_with_nothing_changes_nothing(tmp_path):
    tampered(tmp_path / "model", "names", lambda described, tensors: None)
    assert bits(load_estimator(tmp_path / "model")._model) == bits(SETUPS["names"][0]("mcp")._model)


def setting(name, value):
    def change(described, tensors):
        *folders, last = name.split("/")
        for folder in folders:
            described = described[folder]
        described[last] = value

    return change


def tensor(name, make):
    """The tensor, made anew of what it was; None takes it away."""

    def change(described, tensors):
        made = make(tensors.get(name))
        tensors[name] = made
        if made is None:
            del tensors[name]

    return change


def one(value):
    """The first value of an array is another one."""

    def make(array):
        array.reshape(-1)[0] = value
        return array

    return make


REFUSED = [
    ("binary", setting("format", "1"), "its metadata say format='1', which is not int; write the model anew"),
    ("binary", setting("format", 0), "its format is 0, and there is none below 1"),
    (
        "binary",
        setting("format", 2),
        "written by a newer version, 'maxcosine .*'.* format is 2.*; upgrade max",
    ),
    ("binary", setting("rule", []), r"say rule=\[\], which is not dict"),
    ("binary", setting("rule/name", "mpc"), "learnt by the rule 'mpc', and the rules.*; upgrade maxcosine"),
    (
        "binary",
        setting("rule/own", True),
        r"learnt by 'mcp', a rule of one's own.*load it with rules=\[mcp\]",
    ),
    (
        "binary",
        setting("rule/params", ["C"]),
        r"had the params \['C'\], and the one here has \[\]; load it with",
    ),
    ("binary", setting("rule/state", None), "say state=None, which is not list"),
    ("binary", setting("multiclass", "all"), "say multiclass='all', which is none of ovr, joint"),
    ("binary", setting("average", 1), "say average=1, which is not bool"),
    ("binary", setting("average", True), "the tensor 'total' is missing"),
    ("binary", setting("closed", None), "say closed=None, which is not bool"),
    ("binary", setting("provenance", 3), "say provenance=3, which is not dict or null"),
    ("binary", setting("more", "x" * 200), "say more='x{79}..., which is not dict"),
    ("averaged", setting("average", False), "it holds a tensor 'total', which no model of this kind has"),
    ("joint", setting("multiclass", "ovr"), "the tensor 'head.* of shape 4 is wanted"),
    (
        "one-vs-rest",
        setting("multiclass", "joint"),
        r"'head.* of shape \(5,\), and int64 of shape 1 is wanted",
    ),
    (
        "joint binary",
        setting("multiclass", "ovr"),
        r"'v' is float64 of shape \(9, 2\), and .* 9 x 1 is wanted",
    ),
    # Classes
    ("binary", setting("classes/dtype", "<i4"), "'classes' is int64 of shape .2,., and int32 of shape any"),
    ("binary", setting("classes/dtype", "<b2"), "its classes are said to be of type '<b2'"),
    ("binary", setting("classes/dtype", "<U999999999"), "said to be of type|'classes.starts' is missing"),
    ("binary", setting("classes/dtype", "i8, (3)f8"), "its classes are said to be of type 'i8,"),
    ("binary", setting("classes/dtype", "|O"), "the tensor 'classes.starts' is missing"),
    ("binary", tensor("classes", lambda a: a[::-1]), "its 2 classes are not in order, each once"),
    ("binary", tensor("classes", lambda a: a[:0]), "its 0 classes are not in order, each once"),
    ("binary", tensor("classes", lambda a: np.arange(3)), r"'head.* of shape 3 is wanted|is wanted"),
    # Features
    (
        "binary",
        setting("features/kind", "bags"),
        "kind='bags', which is none of columns, sparse columns, ids",
    ),
    ("binary", setting("features/columns", None), "columns=None, which is not int"),
    ("binary", setting("features/columns", -1), "columns=-1"),
    ("binary", setting("features/columns", 2**64), "columns=18446744073709551616"),
    ("binary", setting("features/columns", 8), "there are weights for 9 features, and 8 features"),
    ("binary", setting("features/bits", 3), "bits=3 and columns=9"),
    ("binary", setting("features/bits", 2**40), "bits=1099511627776 and columns=9"),
    ("ids", setting("features/columns", 9), "columns=9, which is not null"),
    ("ids", tensor("ids", one(2**64 - 5)), "1 of the 9 ids of its features are there twice"),
    ("ids", tensor("ids", lambda a: a[:-1].astype(np.int64)), "'ids' is int64 of shape .8,., and uint64"),
    ("ids", tensor("ids", lambda a: a.reshape(3, 3)), "'ids' is uint64 of shape .3, 3.,"),
    ("ids", tensor("ids", lambda a: np.append(a, np.uint64(99))), "weights for 9 features, and 10 features"),
    ("sparsified", tensor("ids", one(30)), "'ids' names columns beyond the 30 that there are"),
    ("names", tensor("names.starts", lambda a: a[::-1]), "'names.starts' does not divide the .* letters"),
    ("names", tensor("names.starts", lambda a: np.sort(a)[:0]), "'names.starts' does not divide"),
    ("names", tensor("names.starts", one(-8)), "'names.starts' does not divide"),
    (
        "names",
        tensor("names.starts", lambda a: np.append(a[:1] + 99, a[1:])),
        "'names.starts' does not divide",
    ),
    ("names", tensor("names.letters", lambda a: a[:-1]), "'names.starts' does not divide"),
    ("names", tensor("names.letters", one(0xFF)), "'names.letters' is no UTF-8"),
    (
        "names",
        tensor("names.letters", lambda a: a * 0 + 65),
        "of the 9 names of its features are there twice",
    ),
    ("names", tensor("names.letters", lambda a: None), "the tensor 'names.letters' is missing"),
    # Weights and scalars
    ("binary", tensor("v", one(np.nan)), "the tensor 'v' has values that are not finite"),
    ("averaged", tensor("total", one(np.inf)), "the tensor 'total' has values that are not finite"),
    ("binary", tensor("bias", one(-np.inf)), "the tensor 'bias' has values that are not finite"),
    ("binary", tensor("v", lambda a: a.astype(np.float16)), "the weights are float16, and only float32 and"),
    ("binary", tensor("v", lambda a: a[0, 0]), "there are weights for 0 features, and 9 features"),
    ("binary", tensor("v", lambda a: a[:-1]), "there are weights for 8 features, and 9 features"),
    ("binary", tensor("v", lambda a: None), "the tensor 'v' is missing"),
    ("binary", tensor("bias", lambda a: a.astype(np.float32)), "'bias' is float32 .*, and float64"),
    ("averaged", tensor("total", lambda a: a[:-1]), r"'total' is float64 of shape \(8, 3\), and .* 9 x 3"),
    ("binary", tensor("state", one(np.nan)), "the state of the rule is not finite"),
    ("binary", tensor("state", lambda a: a[:, :0]), "'state' is .*, and float64 of shape 1 x 1 is wanted"),
    ("binary", tensor("params", lambda a: np.ones(1)), "'params' is .*, and float64 of shape 0 is wanted"),
    (
        "binary",
        tensor("came", lambda a: a.astype(np.int8)),
        "'came' is int8 .*, and bool of shape 2 is wanted",
    ),
    ("binary", tensor("came", lambda a: np.ones(99, bool)), "'came' is .*, and bool of shape 2 is wanted"),
    ("binary", tensor("head.scale", lambda a: None), "the tensor 'head.scale' is missing"),
    (
        "binary",
        tensor("head.wings", lambda a: np.ones(1)),
        "a tensor 'head.wings', which no model of this kind",
    ),
    ("binary", tensor("x" * 99, lambda a: np.ones(1)), "a tensor 'x{79}..., which no model of this kind has"),
    ("binary", tensor("head.scale", one(0.0)), "'head.scale' has the value 0.0, which cannot be"),
    ("binary", tensor("head.scale", one(np.nan)), "'head.scale' has the value nan"),
    ("binary", tensor("head.sq_v", one(-1.0)), "'head.sq_v' has the value -1.0"),
    ("binary", tensor("head.sum_norm", one(np.inf)), "'head.sum_norm' has the value inf"),
    ("binary", tensor("head.highest", one(9)), "'head.highest' has the value 9"),
    ("binary", tensor("head.highest", one(-2)), "'head.highest' has the value -2"),
    ("binary", tensor("head.logged", one(-1)), "'head.logged' has the value -1"),
    ("binary", tensor("head.seen", one(-1)), "'head.s.*' has the value"),
    ("binary", tensor("head.mistakes", one(2**63 - 1)), "'head.mistakes' has the value 9223372036854775807"),
    ("binary", tensor("head.since", one(1000)), "'head.since' has the value 1000"),
    ("binary", tensor("head.weighted", one(2)), "'head.weighted' has the value 2"),
    *[
        (setup, tensor(f"head.{name}", lambda a: a + 7), f"'head.{name}' is not that of . classes")
        for setup in ("binary", "one-vs-rest", "joint")
        for name in ("positive", "joint", "first", "stop", "scale_free")
    ],
    # Merges and estimators
    ("merged", setting("merge/how", "well"), "how='well', which is none of certified, mean"),
    ("merged", setting("merge/models", 0), "the bounds of the 0 models that it was merged from cannot be"),
    ("merged", tensor("merge.mean", one(-1.0)), "the bounds of the 2 models .* cannot be"),
    ("merged", tensor("merge.mean", lambda a: np.ones(2)), "the bounds of the 2 models .* cannot be"),
    ("merged", tensor("merge.certified", one(np.nan)), "the bounds of the 2 models .* cannot be"),
    (
        "merged",
        setting("merge", None),
        "it holds a tensor 'merge.certified', which no model of this kind has",
    ),
    ("binary", setting("estimator", []), r"estimator=\[\], which is not dict or null"),
    ("binary", setting("estimator/class", "os.system"), "class='os.system', which is none of ALMAClassifier"),
    ("binary", setting("estimator/class", "BaseEstimator"), "class='BaseEstimator', which is none of"),
    ("binary", setting("estimator/params", None), "params=None, which is not dict"),
    ("binary", setting("estimator/params/colour", 1), "OnlineClassifier has no parameter 'colour' in this v"),
    ("binary", setting("estimator/params/passes", 0), "The 'passes' parameter of OnlineClassifier must be"),
    ("binary", setting("estimator/params/rule", {"rule": "no", "own": False}), "learnt by the rule 'no'"),
    ("binary", setting("estimator/params/rule", {"pairs": 3}), "pairs=3, which is not list"),
    (
        "binary",
        setting("estimator/params/rule", {"pairs": [[[], 3]]}),
        "a parameter of its estimator is kept",
    ),
    ("binary", setting("estimator/params/rule", [1]), r"a parameter of its estimator is kept as \[1\]"),
]


@pytest.mark.parametrize(("setup", "change", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_cannot_be_is_refused(tmp_path, setup, change, message):
    path = tampered(tmp_path / "model", setup, change)
    with pytest.raises(BadModelFile, match=message) as caught:
        load_estimator(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "; " in str(caught.value)  # what to do


def test_parameters_of_a_rule_are_checked(tmp_path):
    save(OnlineClassifier("pa1").fit(*points())._model, tmp_path / "model")
    described, tensors = parts(tmp_path / "model")
    write(tmp_path / "model", described, {**tensors, "params": np.array([-1.0])})
    with pytest.raises(BadModelFile, match="parameter C=-1 of rule 'pa1' is out of range; choose it in"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: t.update({"kept.columns": np.array([16, 3])}), "are not of as many columns, in order"),
        (lambda d, t: t.update({"kept.columns": np.array([3, 16])}), "are not of as many columns, in order"),
        (lambda d, t: t.update({"kept.columns": np.array([3])}), "are not of as many columns, in order"),
        (lambda d, t: t.update({"columns.starts": np.zeros(18, np.int64)}), "'columns.letters' is missing"),
        (
            lambda d, t: t.update(
                {"columns.starts": np.zeros(18, np.int64), "columns.letters": np.zeros(0, np.uint8)}
            ),
            "there are 17 names for 16 columns",
        ),
    ],
)
def test_names_of_columns_are_checked(tmp_path, change, message):
    model, path = OnlineClassifier().fit(*points(n_columns=16))._model, tmp_path / "model"
    model.features.bits, model.features.kept_names = 4, {3: "three", 7: "seven"}
    save(model, path)
    described, tensors = parts(path)
    change(described, tensors)
    write(path, described, tensors)
    with pytest.raises(BadModelFile, match=message):
        load(path)


@pytest.mark.parametrize("letters", [b"b" * 3, b"ab" + b"\xff"])
def test_labels_are_checked(tmp_path, letters):
    X, y = points(3)
    path = tmp_path / "model"
    save(OnlineClassifier().fit(X, np.array(list("abc"))[y])._model, path)
    described, tensors = parts(path)
    write(path, described, {**tensors, "classes.letters": np.frombuffer(letters, np.uint8)})
    with pytest.raises(BadModelFile, match=r"its 3 classes are not in order, each once|no UTF-8"):
        load(path)
    for dtype in ("<U0", "<U999999"):
        write(path, {**described, "classes": {"dtype": dtype}}, tensors)
        with pytest.raises(BadModelFile, match=f"of type {dtype}, and the longest has 1"):
            load(path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "[" * 100_000, '{"format": ' + "1" * 9999 + "}", "null"]
)
def test_metadata_that_are_no_object(tmp_path, text):
    write(tmp_path / "model", text, {})
    with pytest.raises(BadModelFile, match="its metadata are"):
        load(tmp_path / "model")


def test_metadata_of_absurd_size(tmp_path):
    write(tmp_path / "model", " " * (2**24 + 1), {})
    with pytest.raises(
        BadModelFile, match="its metadata take 16,777,217 bytes, and at most 16,777,216 are read"
    ):
        load(tmp_path / "model")


def test_files_of_others(tmp_path):
    path = tmp_path / "model"
    for metadata in (None, {"format": "pt"}):
        save_file({"v": np.zeros(3)}, path, metadata=metadata)
        with pytest.raises(
            BadModelFile, match="a safetensors file, but not one of a model of maxcosine; give"
        ):
            load(path)
    path.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(BadModelFile, match="not a safetensors file, or a damaged or truncated one"):
        load_estimator(path)
    with pytest.raises(BadModelFile, match="not a safetensors file"):
        digest(path)
    path.write_bytes(b"")
    with pytest.raises(BadModelFile, match="not a safetensors file"):
        load(path)


def raw_file(header, data=b""):
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + data


def test_headers_that_lie(tmp_path):
    path, real = tmp_path / "model", real_file("binary")
    size = int.from_bytes(real[:8], "little")
    header = json.loads(real[8 : 8 + size])
    lies = [(2**63).to_bytes(8, "little") + real[8:], (size + 8).to_bytes(8, "little") + real[8:]]
    for offsets in ([0, 8], [0, 2**40], [-8, 0], [8, 0]):
        lies.append(raw_file({**header, "v": {**header["v"], "data_offsets": offsets}}, real[8 + size :]))
    lies.append(raw_file({**header, "v": {**header["v"], "shape": [2**62, 4]}}, real[8 + size :]))
    lies.append(real[:-1])
    lies.append(real + b"\0")
    for lie in lies:
        path.write_bytes(lie)
        with pytest.raises(BadModelFile, match="not a safetensors file, or a damaged or truncated one"):
            load(path)
    for dtype in ("BF16", "F8_E5M2", "C64"):
        shape = {"BF16": [4], "F8_E5M2": [8], "C64": [1]}[dtype]
        described = {"dtype": dtype, "shape": shape, "data_offsets": [0, 8]}
        path.write_bytes(raw_file({"__metadata__": {"maxcosine": '{"format": 1}'}, "v": described}, b"0" * 8))
        with pytest.raises(BadModelFile, match=f"the tensor 'v' is of type {dtype}"):
            load(path)


def test_a_field_that_a_later_version_adds_has_a_default(tmp_path, monkeypatch):
    path = tampered(tmp_path / "model", "binary", tensor("head.radius", lambda a: None))
    with pytest.raises(BadModelFile, match=r"head\.radius"):
        load(path)
    monkeypatch.setitem(model_file.ADDED_FIELDS, "radius", 2.5)
    assert load(path).model.heads.table["radius"].tolist() == [2.5]


class Trap:
    def __reduce__(self):
        return os.system, ("touch sprung",)


@pytest.mark.parametrize(
    "change",
    [
        setting("estimator/class", "__import__('os').system('touch sprung')"),
        setting("estimator/class", "os.system"),
        setting("estimator/params", {"rule": "__import__('os').system('touch sprung')"}),
        setting("estimator/params/rule", {"py/reduce": [{"py/function": "os.system"}, ["touch sprung"]]}),
        setting("estimator/params/rule", {"rule": "tests.test_model_file.hinge", "own": False}),
        setting("rule/name", "__import__('os').system('touch sprung')"),
        setting("classes/dtype", "O"),
        setting("more", {"pickle": pickle.dumps(Trap()).decode("latin-1")}),
        tensor("more.pickle", lambda a: np.frombuffer(pickle.dumps(Trap()), np.uint8)),
    ],
)
def test_nothing_is_executed(tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    with contextlib.suppress(BadModelFile):
        load_estimator(tampered(tmp_path / "model", "binary", change)).predict(points()[0])
    (tmp_path / "pickled").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(BadModelFile):
        load_estimator(tmp_path / "pickled")
    assert not (tmp_path / "sprung").exists()
    assert {
        name for name in set(sys.modules) - before if not name.startswith(("maxcosine", "scipy"))
    } == set()


# Fuzzing: refused, or a model that works

FUZZED = ["binary", "joint", "averaged", "names", "ids", "sparsified", "merged", "waiting", "float32"]


def refused_or_works(path):
    """Load, predict and learn; returns whether it was refused."""
    try:
        learner = load_estimator(path)
    except BadModelFile:
        return True
    model = learner._model
    arrays, features = model.heads.arrays, model.features
    for weights in (arrays.v, arrays.bias, arrays.total, arrays.total_bias, arrays.state):
        assert np.isfinite(weights).all()
    labels = learner.classes_[np.arange(60) % len(learner.classes_)]
    with np.errstate(all="ignore"):
        try:
            if features.keyed:
                X = points(3, n_columns=30)[0]
                rows = (named if features.by_name else numbered)(X)
                learner.predict_many(rows)
                for x, label in zip(rows, labels.tolist(), strict=True):
                    learner.learn_one(x, label)
            else:
                X = points(3, n_columns=features.n_features)[0].astype(arrays.v.dtype)
                learner.predict(X)
                learner.partial_fit(X, labels)
        except (ArithmeticError, ValueError):
            pass  # numbers that no model can have come to are refused when they overflow, say
        learner.predict_many([{"old": 1.0}] if features.by_name else [{1: 1.0}])
    return False


@pytest.mark.parametrize("setup", FUZZED)
def test_damaged_files(tmp_path, setup):
    random, real, refused = np.random.default_rng(0), real_file(setup), 0
    header = 8 + int.from_bytes(real[:8], "little")
    for number in range(100):
        raw = bytearray(real)
        if number % 5 == 0:
            del raw[random.integers(len(raw)) :]
        elif number % 5 == 1:
            at = random.integers(len(raw))
            raw[at : at + random.integers(1, 9)] = random.bytes(random.integers(0, 9))
        else:
            within = header if number % 2 else len(raw)
            for at in random.integers(0, within, random.integers(1, 4)):
                raw[at] ^= 1 << random.integers(8)
        (tmp_path / "model").write_bytes(raw)
        refused += refused_or_works(tmp_path / "model")
    assert refused == 100  # the checksum covers all there is


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner))
PLACES = [
    "format", "rule", "rule/name", "rule/own", "rule/params", "rule/state", "multiclass", "average", "closed",
    "fit_intercept", "classes", "classes/dtype", "features", "features/kind", "features/columns",
    "features/bits", "merge", "provenance", "estimator", "estimator/class", "estimator/params", "more",
    "estimator/params/rule", "estimator/params/class_weight", "estimator/params/average",
]  # fmt: skip


def bent(draw, array):
    """A tensor with other values, another shape or another type."""
    how = draw(st.sampled_from(["value", "bytes", "shape", "type", "order"]))
    flat = array.reshape(-1).copy()
    if how == "value" and array.size:
        at = draw(st.integers(0, array.size - 1))
        whole = array.dtype.kind in "iu"
        extremes = (
            [0, 1, -1, 2**31, 2**62, 2**63 - 1, -(2**63)] if whole else [0.0, -1.0, 1e300, 1e-320, np.inf]
        )
        with np.errstate(over="ignore"):
            flat[at] = np.array(draw(st.sampled_from(extremes))).astype(array.dtype)
    elif how == "bytes" and array.size:
        raw = bytearray(flat.tobytes())
        for _ in range(draw(st.integers(1, 4))):
            raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
        if array.dtype == bool:
            raw = bytearray(byte & 1 for byte in raw)
        flat = np.frombuffer(bytes(raw), array.dtype)
    elif how == "shape":
        return np.resize(flat, draw(st.lists(st.integers(0, 12), max_size=3)))
    elif how == "type":
        with np.errstate(all="ignore"):
            return array.astype(draw(st.sampled_from(list(model_file.TYPES.values()))))
    elif how == "order":
        flat = flat[::-1]
    return flat.reshape(array.shape)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_tampered_files(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "tampered"
    path.write_bytes(real_file(data.draw(st.sampled_from(FUZZED))))
    described, tensors = parts(path)
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.integers(0, 4)) == 0:
            try:
                setting(data.draw(st.sampled_from(PLACES)), data.draw(JSON))(described, tensors)
            except (KeyError, TypeError):
                continue  # what holds it is gone
        else:
            name = data.draw(st.sampled_from(sorted(tensors)))
            tensors[name] = bent(data.draw, tensors[name])
    write(path, described, tensors)
    refused_or_works(path)


# Files of format 1, written by the version that introduced it

EXAMPLES = {
    "binary": lambda: SETUPS["binary"][0]("mcp"),
    "names": lambda: SETUPS["names"][0]("alma"),
    "joint": lambda: SETUPS["joint"][0]("romma"),
}


def shown(learner, example):
    """What a file of the fixtures must go on to say."""
    X = points(4, n=12, seed=3)[0]
    rows = named(X) if example == "names" else X.tolist()
    predicted = (learner.predict_many if example == "names" else learner.predict)(rows)
    certificate = learner.certificate_
    return {
        "rows": rows,
        "predicted": predicted.tolist(),
        "coef": learner.coef_.tolist(),
        "intercept": learner.intercept_.tolist(),
        "bound": np.asarray(certificate.bound).tolist(),
        "seen": learner.n_seen_,
    }


def write_fixtures():
    """`python -m tests.test_model_file`: only ever for a new format, beside the files of the old ones."""
    for example, make in EXAMPLES.items():
        path, learner = FIXTURES / f"format{model_file.FORMAT}_{example}.safetensors", make()
        save_estimator(learner, path)
        path.with_suffix(".json").write_text(json.dumps(shown(learner, example), indent=1) + "\n")


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.safetensors")), ids=lambda path: path.stem)
def test_files_of_all_formats_are_read(path):
    learner, example = load_estimator(path), path.stem.split("_")[1]
    wanted, found = json.loads(path.with_suffix(".json").read_text()), shown(learner, example)
    for name in ("rows", "predicted", "seen"):
        assert found[name] == wanted[name]
    for name in ("coef", "intercept", "bound"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12, atol=1e-300)
    make, go_on = EXAMPLES[example], {"binary": "binary", "names": "names", "joint": "joint"}[example]
    seen, fresh = learner.n_seen_, make()
    SETUPS[go_on][1](learner)
    SETUPS[go_on][1](fresh)
    assert learner.n_seen_ == fresh.n_seen_ > seen


def test_there_is_a_file_of_this_format():
    found = {path.stem for path in FIXTURES.glob("*.safetensors")}
    assert found >= {f"format{model_file.FORMAT}_{example}" for example in EXAMPLES}


if __name__ == "__main__":
    write_fixtures()
