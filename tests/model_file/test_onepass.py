"""Files of one-pass models: they come back to the bit, and tampered ones never reach the core."""

import json
import pickle
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import maxcosine
from maxcosine import MCPClassifier, OnePassClassifier, model_file
from maxcosine.features import Features
from maxcosine.model_file import BadModelFile, digest
from maxcosine.onepass_model import OnePassModel
from tests.model_file.setups import by_id, by_name, points, restored
from tests.model_file.tampering import file_of, parts, setting, tensor
from tests.model_file.test_fuzz import JSON, tampered_tensor
from tests.model_file.test_refused_files import first

FIXTURE = Path(__file__).parents[1] / "fixtures" / "format2_onepass.safetensors"


def columns(n_classes=2, dtype=np.float64, **options):
    def make():
        return OnePassClassifier(**options).partial_fit(*points(n_classes, dtype=dtype))

    def go_on(learner):
        learner.partial_fit(*points(n_classes, seed=1, dtype=dtype))

    return make, go_on


def keys(keyed, n_classes, **options):
    def make():
        learner, (X, y) = OnePassClassifier(**options), points(n_classes)
        learner.learn_many(keyed(X), y)
        return learner

    def go_on(learner):
        X, y = points(n_classes, seed=1, n_columns=40)
        for x, label in zip(keyed(X, late=True), y.tolist(), strict=True):
            learner.learn_one(x, label)

    return make, go_on


def weighted():
    X, y = points(3)
    learner = OnePassClassifier(class_weight={0: 2.0, 1: np.float64(0.5)})
    return learner.partial_fit(X, y, sample_weight=np.linspace(0.0, 2.0, len(y)))


def waiting():
    """Class 9 has come with weight 0 only, and class 1 before class 0."""
    X, y = points()
    weights = np.ones(len(y) + 1)
    weights[-1] = 0.0
    return OnePassClassifier().partial_fit(np.vstack([X, X[:1]]), [*(1 - y), 9], sample_weight=weights)


def late_classes(learner):
    X, y = points(3, seed=1)
    learner.partial_fit(X, np.where(y == 2, 9, y))


def named_classes():
    """All classes are known from the start, and one has no row."""
    X, y = points(3)
    return OnePassClassifier().partial_fit(X, y, classes=[0, 1, 2, 3])


SETUPS = {
    "binary": columns(),
    "joint": columns(5),
    "float32": columns(3, np.float32),
    "names": keys(by_name, 3),
    "ids": keys(by_id, 2, dtype="float32"),
    "weighted": (weighted, columns(3)[1]),
    "waiting": (waiting, late_classes),
    "named classes": (named_classes, columns(4)[1]),
    "one class": (lambda: OnePassClassifier().partial_fit(points()[0], np.ones(60)), columns()[1]),
}


def bits(learner):
    return model_file.to_bytes(learner.model_), learner.certificate_, learner.get_params(), learner.mistakes_


@pytest.mark.parametrize("setup", SETUPS)
def test_a_loaded_model_is_the_same_and_goes_on_to_the_same_bits(tmp_path, setup):
    make, go_on = SETUPS[setup]
    learner = make()
    before = bits(learner)
    loaded = restored(learner, tmp_path / "model")
    assert type(loaded) is OnePassClassifier
    assert bits(loaded) == bits(learner) == before  # saving changes nothing
    pickled = pickle.loads(pickle.dumps(loaded))
    for one in (learner, loaded, pickled):
        go_on(one)
    assert bits(loaded) == bits(learner) == bits(pickled) != before


def test_spare_room_is_not_written():
    """Weights have room for more features, and for more blocks after late classes."""
    learner = SETUPS["names"][0]()
    SETUPS["names"][1](learner)
    state = learner.model_.state
    assert state.n_features > learner.n_features_in_
    _, tensors = parts(model_file.to_bytes(learner.model_))
    assert tensors["weights"].shape == (learner.n_features_in_, 4 * 3)
    assert len(tensors["feature.count"]) == learner.n_features_in_
    assert tensors["block.s"].shape == (3, 4)


@pytest.mark.parametrize("storage", ["columns", "names"])
def test_the_tensors_do_not_depend_on_chunks(tmp_path, storage):
    X, y = points(4, n=150, n_columns=60)
    y[:20] %= 2  # the others come late
    rows, digests = {"columns": np.array, "names": by_name}[storage](X), set()
    for size in (150, 37, 1):
        learner = OnePassClassifier()
        for start in range(0, len(y), size):
            chunk = slice(start, start + size)
            (learner.partial_fit if storage == "columns" else learner.learn_many)(rows[chunk], y[chunk])
        maxcosine.save(learner, tmp_path / "model")
        digests.add(digest(tmp_path / "model"))
    assert len(digests) == 1


def test_a_model_that_has_seen_nothing():
    for features in (Features(0), Features(5), Features.by_key("ids")):
        model = OnePassModel.create(np.array(["a", "b", "c"]), features, np.dtype("float32"))
        content = model_file.to_bytes(model)
        assert model_file.to_bytes(model_file.from_bytes(content).model) == content


def test_a_file_without_an_estimator_becomes_a_one_pass_classifier(tmp_path):
    learner = SETUPS["joint"][0]()
    model_file.save(learner.model_, tmp_path / "model", provenance={"command": "some"})
    loaded = maxcosine.load(tmp_path / "model")
    assert bits(loaded) == bits(learner)


def test_a_model_that_is_not_finite_is_not_saved(tmp_path):
    learner = SETUPS["binary"][0]()
    learner.model_.state.arrays.weights[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"'weights' has values .* out of range; such a model is not saved"):
        maxcosine.save(learner, tmp_path / "model")
    learner.model_.state.scalars["energy"][1] = np.inf
    with pytest.raises(ValueError, match=r"'scalar.energy' has the value inf.*; such a model is not saved"):
        maxcosine.save(learner, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_the_file_says_what_kind_of_model_it_is(tmp_path):
    maxcosine.save(SETUPS["binary"][0](), tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        described = json.loads(file.metadata()["maxcosine"])
    assert (described["kind"], described["format"]) == ("onepass", 2)
    described, _ = parts(model_file.to_bytes(MCPClassifier().fit(*points()).model_))
    assert "kind" not in described


def write_fixture():
    """`python -m tests.model_file.test_onepass`: only for a new format, beside the file of the old one."""
    learner = SETUPS["joint"][0]()
    maxcosine.save(learner, FIXTURE)
    shown = {"digest": digest(FIXTURE), "scores": learner.decision_function(points(5)[0]).tolist()}
    FIXTURE.with_suffix(".json").write_text(json.dumps(shown) + "\n")


def test_files_of_format_2_are_read_and_written(tmp_path):
    wanted = json.loads(FIXTURE.with_suffix(".json").read_text())
    learner = maxcosine.load(FIXTURE)
    np.testing.assert_allclose(learner.decision_function(points(5)[0]), wanted["scores"], rtol=1e-9)
    maxcosine.save(learner, tmp_path / "model")
    assert digest(tmp_path / "model") == wanted["digest"]


# Tampered files


@cache
def real_file(setup):
    with tempfile.NamedTemporaryFile() as file:
        maxcosine.save(SETUPS[setup][0](), file.name)
        return Path(file.name).read_bytes()


def last(value):
    """Replace the last value of an array."""

    def make(array):
        array.reshape(-1)[-1] = value
        return array

    return make


REFUSED = [
    ("binary", setting("kind", "twopass"), "have kind='twopass', which is not in onepass"),
    ("binary", setting("kind", None), "have kind=None, which is not str"),
    ("binary", setting("closed", 1), "have closed=1, which is not bool"),
    ("binary", setting("classes/dtype", "<i4"), "'classes' is int64 of shape .2,., expected int32"),
    ("binary", setting("features/columns", 8), "there are weights for 9 features, but 8 features"),
    ("binary", setting("estimator/class", "MCPClassifier"), "its estimator is MCPClassifier, but its model is a OneP"),
    ("binary", setting("estimator/params/dtype", "float32"), "dtype='float32', but its model has dtype='float64'"),
    ("ids", tensor("ids", first(2**64 - 5)), "1 of the 9 ids of its features are duplicates"),
    ("binary", tensor("weights", lambda a: a.astype(np.float16)), "the weights are float16, expected float32 or"),
    ("binary", tensor("weights", lambda a: a[:, :3]), r"'weights' is .* \(9, 3\), expected .* \(None, 4\)"),
    ("joint", tensor("weights", lambda a: a[:, :4]), r"'weights' is .* \(9, 4\), expected .* \(None, 20\)"),
    ("binary", tensor("weights", first(np.nan)), "the tensor 'weights' has values that are not finite"),
    ("binary", tensor("weights", first(1e300)), "the tensor 'weights' has values that are out of range"),
    ("binary", tensor("blocks", first(2)), "'blocks' does not number classes in the order in which they come"),
    ("binary", tensor("blocks", first(-2)), "'blocks' does not number classes in the order in which they come"),
    ("joint", tensor("blocks", lambda a: a * 0), "'blocks' does not number classes in the order in which they come"),
    ("binary", tensor("blocks", lambda a: a * 0 - 1), "'scalar.n_classes' has a value above 0, the classes that"),
    ("binary", tensor("blocks", lambda a: a[:1]), r"'blocks' is int64 of shape \(1,\), expected"),
    ("binary", tensor("scalar.n_classes", first(3)), "'scalar.n_classes' has the value 3, but there are 2 classes"),
    ("binary", tensor("scalar.n_classes", first(-1)), "'scalar.n_classes' has the value -1, but there are 2 classes"),
    ("binary", tensor("scalar.rows", first(2**63 - 1)), "'scalar.rows' has the value 92233720368547758"),
    ("binary", tensor("scalar.rows", first(5)), "which is out of range"),
    ("binary", tensor("scalar.rows", first(64)), "'visited' does not list the features of the period"),
    ("binary", tensor("scalar.mistakes", first(61)), "'scalar.mistakes' has the value 61, which is out of range"),
    ("binary", tensor("scalar.slots_used", first(10)), "'scalar.slots_used' has the value 10, which is out of range"),
    ("binary", tensor("scalar.slots_used", first(8)), "'scalar.slots_used' is not above all features that have come"),
    ("binary", tensor("scalar.visits", first(2**62)), "'scalar.visits' has the value 4611686018427387904"),
    ("binary", tensor("scalar.stale", first(2)), "'scalar.stale' has the value 2, which is out of range"),
    ("binary", tensor("scalar.mean_weight", first(1e101)), r"'scalar.mean_weight' has the value 1e\+101"),
    ("binary", tensor("scalar.sq_u", first(1e300)), r"'scalar.sq_u' has the value 1e\+300"),
    ("binary", tensor("scalar.coef_sum", first(-1.0)), "'scalar.coef_sum' has the value -1.0"),
    ("binary", tensor("scalar.coef_sum", lambda a: a * 1e-300), "'scalar.coef_sum' has the value .*, which is out of"),
    ("binary", tensor("scalar.coef_sum", lambda a: a[:, :2]), r"'scalar.coef_sum' is float64 of shape \(1, 2\)"),
    ("binary", tensor("scalar.energy", first(0.0)), "'scalar.energy' has the value 0.0, which is out of range"),
    ("binary", tensor("scalar.errors", first(61.0)), "'scalar.errors' has the value 61.0, which is out of range"),
    ("binary", tensor("scalar.calibration", last(1e200)), r"'scalar.calibration' has the value 1e\+200"),
    ("binary", tensor("scalar.curvature", lambda a: a * 0 + 1), "'scalar.curvature' has the value 1.0"),
    ("binary", tensor("scalar.n_visited", lambda a: np.ones(1)), "'scalar.n_visited' belongs to no model of this kind"),
    ("binary", tensor("scalar.sizes", lambda a: None), "the tensor 'scalar.sizes' is missing"),
    ("binary", tensor("feature.count", first(61)), "'feature.count' has the value 61, which is out of range"),
    ("binary", tensor("feature.count", lambda a: a[:-1]), r"'feature.count' is int64 of shape \(8,\), expected"),
    ("binary", tensor("feature.square", first(0.0)), "'feature.square' has the value 0.0, which is out of range"),
    ("binary", tensor("feature.total", first(1e9)), "'feature.total' has the value 1000000000.0"),
    ("binary", tensor("feature.centre", first(np.nan)), "'feature.centre' has values that are not finite"),
    ("binary", tensor("feature.metric", first(0.0)), "'feature.metric' has the value 0.0, which is out of range"),
    ("binary", tensor("feature.inverse_scale", first(1e300)), r"'feature.inverse_scale' has the value 1e\+300"),
    ("binary", tensor("feature.period", first(7)), "'feature.period' has the value 7, which is out of range"),
    ("binary", tensor("feature.period", lambda a: a - 1), "'visited' does not list the features of the period"),
    ("names", tensor("feature.next_fix", first(2**63 - 1)), "'feature.next_fix' has the value 92233720368547758"),
    ("binary", tensor("visited", first(9)), "'visited' does not list the features of the period"),
    ("binary", tensor("visited", lambda a: a * 0), "'visited' does not list the features of the period"),
    ("binary", tensor("visited", lambda a: np.tile(a, 2)), "'scalar.n_visited' has the value 18, which is out of"),
    ("binary", tensor("visited", lambda a: a[:0]), "'visited' does not list the features of the period"),
    ("binary", tensor("block.s", first(1e9)), "'block.s' has the value 1000000000.0, which is out of range"),
    ("binary", tensor("block.centred", first(1e300)), r"'block.centred' has the value 1e\+300"),
]  # fmt: skip


@pytest.mark.parametrize(("setup", "change", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_invalid_content_is_refused(tmp_path, setup, change, message):
    described, tensors = parts(real_file(setup))
    change(described, tensors)
    path = tmp_path / "model"
    path.write_bytes(file_of(described, tensors))
    with pytest.raises(BadModelFile, match=message) as caught:
        maxcosine.load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_feature_that_has_not_come_has_no_numbers(tmp_path):
    X, y = points()
    X[:, 4] = 0.0
    maxcosine.save(OnePassClassifier().fit(X, y), tmp_path / "model")
    described, tensors = parts((tmp_path / "model").read_bytes())
    for name, value in (("weights", 1e-3), ("feature.next_fix", 3)):
        changed = tensors[name].copy()
        changed[4] = value
        with pytest.raises(BadModelFile, match=r"'feature.count' is 0 for a feature that has other numbers"):
            model_file.from_bytes(file_of(described, {**tensors, name: changed}))


def test_a_model_of_a_rule_is_not_one_of_one_pass(tmp_path):
    path = tmp_path / "model"
    maxcosine.save(MCPClassifier().fit(*points()), path)
    described, tensors = parts(path.read_bytes())
    path.write_bytes(file_of({**described, "estimator": {"class": "OnePassClassifier", "params": {}}}, tensors))
    with pytest.raises(BadModelFile, match="its estimator is OnePassClassifier, but its model is a Model"):
        maxcosine.load(path)


ENTRIES = [
    "format", "kind", "closed", "classes", "classes/dtype", "features", "features/kind", "features/columns",
    "features/bits", "features/hashed", "provenance", "estimator", "estimator/class", "estimator/params", "more",
]  # fmt: skip


def tampered(n_examples):
    @settings(max_examples=n_examples, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(SETUPS)), st.data())
    def test(tmp_path_factory, setup, data):
        described, tensors = parts(real_file(setup))
        for _ in range(data.draw(st.integers(1, 3))):
            if data.draw(st.integers(0, 4)) == 0:
                try:
                    setting(data.draw(st.sampled_from(ENTRIES)), data.draw(JSON))(described, tensors)
                except (KeyError, TypeError):
                    continue  # an earlier change removed the entry
            else:
                name = data.draw(st.sampled_from(sorted(tensors)))
                tensors[name] = tampered_tensor(data.draw, tensors[name])
        path = tmp_path_factory.getbasetemp() / "tampered"
        path.write_bytes(file_of(described, tensors))
        assert_refused_or_works(path)

    return test


def assert_refused_or_works(path):
    """A model that is accepted predicts and learns, and stays finite."""
    try:
        learner = maxcosine.load(path)
    except BadModelFile:
        return
    features, labels = learner.model_.features, learner.classes_[np.arange(60) % len(learner.classes_)]
    X = points(3, n_columns=30 if features.keyed else features.n_features)[0].astype(learner.model_.dtype)
    rows = (by_name if features.by_name else by_id)(X) if features.keyed else X
    predict, learn = ("predict_many", "learn_many") if features.keyed else ("predict", "partial_fit")
    getattr(learner, predict)(rows)
    with suppress(ValueError):  # a label that is not finite is refused
        getattr(learner, learn)(rows, labels)
    arrays = learner.model_.state.arrays
    records = [array[name] for array in arrays[1:] for name in array.dtype.names or ()]
    assert all(np.isfinite(array).all() for array in [arrays.weights, *records])


test_files_with_a_right_checksum_are_refused_or_work = tampered(80)
test_many_files_with_a_right_checksum_are_refused_or_work = pytest.mark.slow(tampered(3000))


if __name__ == "__main__":
    write_fixture()
