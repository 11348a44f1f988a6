"""A loaded model is the saved one, to the bit."""

import errno
import itertools
import json
import resource
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from safetensors import safe_open

import maxcosine
from maxcosine import RULES, MCPClassifier, OnlineClassifier, PAClassifier, model_file, rule
from maxcosine.features import Features
from maxcosine.model import Model
from maxcosine.model_file import BadModelFile, container, digest, load, save
from tests.learners import NAMED, learnt
from tests.model_file.setups import SETUPS, bits, by_id, by_name, points, restored

# Every setup with one rule, every rule with one setup; all pairs if there is time.
SOME = set(zip(itertools.cycle(RULES), SETUPS, strict=False)) | {(name, "names") for name in RULES}
PAIRS = [
    pytest.param(name, setup, marks=[pytest.mark.slow] * ((name, setup) not in SOME))
    for name, setup in itertools.product(RULES, SETUPS)
]


@pytest.mark.parametrize(("name", "setup"), PAIRS)
def test_a_loaded_model_is_the_same_and_goes_on_to_the_same_bits(tmp_path, name, setup):
    make, go_on = SETUPS[setup]
    learner = make(name)
    before = bits(learner)
    loaded = restored(learner, tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    assert type(loaded) is OnlineClassifier
    assert bits(loaded) == bits(learner) == before  # saving changes nothing
    for one in (learner, loaded):
        go_on(one)
    assert bits(loaded) == bits(learner) != before
    assert (tmp_path / "model").read_bytes() == content  # the model does not share its arrays with the file


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 7], np.int8),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([-1.0, 2.0], np.float32),
        np.array([1, 2], ">i4"),
        np.array([False, True]),
        np.array(["no", "naïve"]),
        np.array(["", "a longer one with \n and 猫"], object),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_classes_of_every_type(tmp_path, labels):
    X, y = points()
    learner = MCPClassifier().fit(X, labels[y])
    loaded = restored(learner, tmp_path / "model")
    assert loaded.classes_.tolist() == learner.classes_.tolist()
    assert loaded.predict(X).dtype == learner.predict(X).dtype
    assert learnt(loaded.partial_fit(X, labels[y])) == learnt(learner.partial_fit(X, labels[y]))


def test_classes_that_cannot_be_stored(tmp_path):
    X, y = points()
    for labels in (np.array(["2020", "2021"], "M8[Y]"), np.array([1.0, 2.0], np.longdouble)):
        with pytest.raises(TypeError, match=r"cannot store classes of type .*; learn from labels that are"):
            maxcosine.save(MCPClassifier().fit(X, labels[y]), tmp_path / "model")
    with pytest.raises(ValueError, match="among the classes is not valid Unicode"):
        maxcosine.save(MCPClassifier().fit(X, np.array(["a", "\ud800"])[y]), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_names_of_columns_and_new_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = points()
    learner = MCPClassifier(grow_features=True)
    learner.partial_fit(pandas.DataFrame(X[:, :5], columns=list("abcde")), y)
    loaded = restored(learner, tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == list("abcde")
    more = pandas.DataFrame(X[:, :8], columns=list("abcdefgh"))
    assert bits(loaded.partial_fit(more, y)) == bits(learner.partial_fit(more, y))
    assert loaded.features_.tolist() == list("abcdefgh")


def test_hashed_columns_and_their_kept_names(tmp_path):
    model = OnlineClassifier().fit(*points(n_columns=16)).model_
    model.features.bits, model.features.kept_names = 4, {7: "seven", 3: "drei"}
    save(model, tmp_path / "model")
    features = load(tmp_path / "model").model.features
    assert (features.bits, features.kept_names) == (4, {3: "drei", 7: "seven"})


def test_a_model_that_has_seen_nothing(tmp_path):
    for features in (Features(0), Features(5), Features.by_key("ids")):
        options = {"fit_intercept": True, "average": True}
        model = Model.create(RULES["mcp"], (), np.array(["a"]), features, np.dtype("float32"), **options)
        save(model, tmp_path / "model")
        assert model_file.to_bytes(load(tmp_path / "model").model) == model_file.to_bytes(model)


def test_weights_of_forgotten_features(tmp_path):
    """A refused chunk may leave weights behind those of the last feature."""
    model = SETUPS["names"][0]("mcp").model_
    model.features.index.truncate(5)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model").model
    assert loaded.features.keys().tolist() == model.features.keys().tolist()
    assert np.array_equal(loaded.heads.arrays.v[:9], model.heads.arrays.v[:9])


# Estimators


def test_every_class_comes_back_with_its_parameters(tmp_path):
    for cls in (*NAMED, OnlineClassifier):
        learner = cls(class_weight={0: 1, 1: 2.5}, passes=2, shuffle=True, random_state=np.int64(5), n_jobs=2)
        if cls is PAClassifier:
            learner.set_params(variant="pa2", C=0.25)
        loaded = restored(learner.fit(*points()), tmp_path / "model")
        assert type(loaded) is cls
        assert loaded.get_params() == learner.get_params()
        assert learnt(loaded.fit(*points(seed=1))) == learnt(learner.fit(*points(seed=1)))


def test_a_rule_object_and_the_keys_of_dicts_keep_their_types(tmp_path):
    learner = OnlineClassifier(RULES["alma"], rule_params={"alpha": np.float32(0.5)}).fit(*points())
    loaded = restored(learner, tmp_path / "model")
    assert loaded.rule is RULES["alma"]
    assert loaded.rule_params == {"alpha": 0.5}
    for weights in ({"1": 2.0}, {1: 2.0}, {np.int32(1): np.float64(2.0)}, {True: 2.0}):
        learner = MCPClassifier(class_weight=weights).fit(*points())
        assert restored(learner, tmp_path / "model").class_weight == weights


def test_a_file_without_an_estimator_becomes_an_online_classifier(tmp_path):
    for setup in ("binary", "joint", "names"):
        make, go_on = SETUPS[setup]
        learner = make("norma").set_params(rule_params={"eta": 0.25})
        go_on(learner)
        save(learner.model_, tmp_path / "model", provenance={"command": "maxcosine train"})
        loaded = maxcosine.load(tmp_path / "model")
        assert (loaded.rule, loaded.rule_params["eta"]) == ("norma", 0.25)
        assert (loaded.average, loaded.multiclass) == (learner.average, learner.multiclass)
        for one in (learner, loaded):
            go_on(one)
        assert learnt(loaded) == learnt(learner)


def test_what_an_estimator_cannot_store(tmp_path):
    class Own(MCPClassifier):
        pass

    def fitted(**params):
        return MCPClassifier().fit(*points()).set_params(**params)

    for learner, error, message in (
        (fitted(random_state=np.random.RandomState(0)), TypeError, "set_params"),
        (MCPClassifier(), ValueError, "not fitted"),
        (Own().fit(*points()), TypeError, "Own is not a classifier of maxcosine; save its model with"),
        (fitted(passes=0), ValueError, "'passes' parameter"),
        (fitted(average=True), ValueError, "average was False when learning began and is True now"),
        (fitted(class_weight={0: np.inf}), ValueError, "class_weight .* contains inf"),
    ):
        with pytest.raises(error, match=message):
            maxcosine.save(learner, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@rule(params={"target": 0.1}, state={"steps": 0.0})
def hinge(margin, sq_w, sq_x, coef_sum, state, params):
    """A user's rule."""
    moves = margin <= params.target
    return 1.0, (1.0 / sq_x if moves else 0.0), (state[0] + moves,)


def other_rule(name, **traits):
    def function(margin, sq_w, sq_x, coef_sum, state, params):
        return 1.0, 1.0 / sq_x, state

    function.__name__ = name
    return rule(function, **traits)


def test_a_users_rule_is_passed_to_load(tmp_path):
    path = tmp_path / "model"
    learner = OnlineClassifier(hinge, rule_params={"target": 0.3}).fit(*points(3))
    maxcosine.save(learner, path)
    loaded = maxcosine.load(path, rules=[other_rule("another"), hinge])
    assert loaded.rule is hinge
    assert learnt(loaded.partial_fit(*points(3))) == learnt(learner.partial_fit(*points(3)))
    with pytest.raises(BadModelFile, match=r"learnt by the user's rule 'hinge'.*rules=\[hinge\]"):
        maxcosine.load(path)
    for what, traits in (("params", {"state": {"steps": 0.0}}), ("state", {"params": {"target": 0.1}})):
        with pytest.raises(BadModelFile, match=rf"'hinge' has the {what} .*, but the rule here has \[\]"):
            load(path, rules=[other_rule("hinge", **traits)])


def test_a_users_rule_does_not_replace_a_built_in_one(tmp_path):
    save(OnlineClassifier().fit(*points()).model_, tmp_path / "model")
    assert load(tmp_path / "model", rules=[other_rule("mcp", state={"bound": 0.0})]).model.rule is RULES["mcp"]


# Metadata and tensors


def test_metadata_and_tensors_of_the_caller(tmp_path):
    model = OnlineClassifier().fit(*points()).model_
    provenance = {"command": 'train \udc80 "x"', "rows": np.int64(3), "list": [1, 2.5, {"a": None}]}
    tensors = {
        "buffer": np.arange(6, dtype=">i4").reshape(2, 3)[:, ::2],
        "flag": np.array(True),
        "empty": np.zeros((0, 4), np.float16),
        "猫": np.arange(3, dtype=np.uint64),
    }
    save(model, tmp_path / "model", provenance=provenance, more={"position": 2**70}, tensors=tensors)
    loaded = load(tmp_path / "model")
    assert (loaded.provenance, loaded.more, loaded.estimator) == (provenance, {"position": 2**70}, None)
    assert set(loaded.tensors) == set(tensors)
    for name, tensor in tensors.items():
        assert np.array_equal(loaded.tensors[name], tensor)
        assert loaded.tensors[name].dtype == tensor.dtype.newbyteorder("=")
        assert loaded.tensors[name].shape == tensor.shape


def test_what_cannot_be_stored_leaves_the_old_file(tmp_path):
    model, path = OnlineClassifier().fit(*points()).model_, tmp_path / "model"
    save(model, path)
    before = path.read_bytes()
    for options, error, message in (
        ({"tensors": {"x": np.array([None])}}, TypeError, "the tensor 'more.x' has the type object"),
        ({"more": {"x": np.zeros(3)}}, TypeError, "a ndarray, which JSON cannot hold"),
        ({"more": {"x": float("nan")}}, ValueError, "give finite, plain values"),
        ({"more": {"x": "x" * 2**24}}, ValueError, "store large values as tensors"),
    ):
        with pytest.raises(error, match=message):
            save(model, path, **options)
    for array, name in ((model.heads.arrays.v, "v"), (model.heads.arrays.state, "state")):
        kept, array[0, 0] = array[0, 0], np.nan
        with pytest.raises(ValueError, match=f"{name} has values that are not finite; such a model is not"):
            save(model, path)
        array[0, 0] = kept
    model.heads.table["scale"] = np.inf
    with pytest.raises(ValueError, match=r"'head.scale' has the value inf, .*; such a model is not saved"):
        save(model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_other_programs_can_read_the_file(tmp_path):
    learner = SETUPS["names"][0]("mcp")
    maxcosine.save(learner, tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        letters, starts = (file.get_tensor(f"names.{part}") for part in ("letters", "starts"))
        described = json.loads(file.metadata()["maxcosine"])
        w = file.get_tensor("v") * file.get_tensor("head.scale")
    names = [letters[a:b].tobytes().decode() for a, b in itertools.pairwise(starts)]
    assert names == learner.features_.tolist()
    assert np.array_equal(w, learner.model_.heads.last().hypotheses()[0].T[: len(names)])
    assert (described["format"], described["written_by"]) == (2, f"maxcosine {maxcosine.__version__}")


def test_the_digest_covers_the_tensors_alone(tmp_path):
    one, other = (SETUPS["names"][0]("mcp").model_ for _ in range(2))
    save(one, tmp_path / "one", provenance={"time": 1}, tensors={"x": np.arange(2)})
    save(other, tmp_path / "other", provenance={"time": 2}, tensors={"x": np.arange(2)})
    assert digest(tmp_path / "one") == digest(tmp_path / "other")
    for changed in (np.arange(1, 3), np.arange(2.0), np.arange(2).reshape(2, 1)):
        save(other, tmp_path / "other", tensors={"x": changed})
        assert digest(tmp_path / "one") != digest(tmp_path / "other")


@pytest.mark.parametrize("storage", ["columns", "names", "ids"])
@pytest.mark.parametrize("name", ["mcp", "aggressive_romma", "norma"])
def test_the_tensors_do_not_depend_on_chunks(tmp_path, name, storage):
    X, y = points(4, n=150, n_columns=60)
    y[:20] %= 2  # the others come late
    rows, digests = {"columns": np.array, "names": by_name, "ids": by_id}[storage](X), set()
    for size in (150, 37, 1):
        learner = OnlineClassifier(name, average=True, multiclass="joint" if storage == "ids" else "ovr")
        for start in range(0, len(y), size):
            chunk = slice(start, start + size)
            (learner.partial_fit if storage == "columns" else learner.learn_many)(rows[chunk], y[chunk])
        digests.add(digest_of(restored(learner, tmp_path / "model")))
        digests.add(digest(tmp_path / "model"))
    assert len(digests) == 1


def digest_of(learner):
    with tempfile.NamedTemporaryFile() as file:
        save(learner.model_, file.name)
        return digest(file.name)


def test_blocks_change_no_byte(monkeypatch):
    learner = SETUPS["names"][0]("mcp")
    whole = model_file.to_bytes(learner.model_)
    monkeypatch.setattr(container, "BLOCK_BYTES", 64)
    monkeypatch.setattr(container, "BLOCK_NAMES", 2)
    assert model_file.to_bytes(learner.model_) == whole
    assert model_file.to_bytes(model_file.from_bytes(whole).model) == whole


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    maxcosine.save(SETUPS["binary"][0]("mcp"), path)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(OSError, match="model") as caught:
            maxcosine.save(SETUPS["joint"][0]("mcp"), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_missing_files_and_folders(tmp_path):
    learner = SETUPS["binary"][0]("mcp")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        maxcosine.save(learner, tmp_path)
    maxcosine.save(learner, tmp_path / "new folder" / "model")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        load(tmp_path)


def test_loading_a_model_does_not_import_scikit_learn(tmp_path):
    maxcosine.save(SETUPS["names"][0]("mcp"), tmp_path / "model")
    look = "import sys, maxcosine.model_file as m; m.load(sys.argv[1]); print('sklearn' in sys.modules)"
    given = [sys.executable, "-c", look, str(tmp_path / "model")]
    assert subprocess.run(given, check=True, capture_output=True, text=True).stdout == "False\n"
