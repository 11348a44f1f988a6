"""A file is checked before it is used, and nothing in it is executed."""

import json
import os
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import maxcosine
from maxcosine import OnlineClassifier, model_file
from maxcosine.model_file import BadModelFile, digest, load
from tests.model_file.setups import points
from tests.model_file.tampering import file_of, parts, real_file, refused_or_works, setting, tensor


def first(value):
    """Replace the first value of an array."""

    def make(array):
        array.reshape(-1)[0] = value
        return array

    return make


REFUSED = [
    ("binary", setting("format", "1"), "the metadata have format='1', which is not int; save the model"),
    ("binary", setting("format", 0), "the format is 0, but formats begin at 1"),
    ("binary", setting("format", 3), "newer version, 'maxcosine .*', in format 3.*; upgrade maxcosine"),
    ("binary", setting("format", 1), "the tensor 'head.claim_v' is missing"),
    ("binary", setting("rule/name", "mpc"), "learnt by the rule 'mpc', but the rules.*; upgrade maxcosine"),
    ("binary", setting("rule/own", True), r"learnt by the user's rule 'mcp'.*load it with rules=\[mcp\]"),
    ("binary", setting("rule/params", ["C"]), r"has the params \['C'\], but the rule here has \[\]; load it"),
    ("binary", setting("multiclass", "all"), "have multiclass='all', which is not in ovr, joint"),
    ("binary", setting("average", 1), "have average=1, which is not bool"),
    ("binary", setting("average", True), "the tensor 'total' is missing"),
    ("binary", setting("provenance", 3), "have provenance=3, which is not dict or null"),
    ("averaged", setting("average", False), "the tensor 'total' belongs to no model of this kind"),
    ("one-vs-rest", setting("multiclass", "joint"), r"'v' is .* shape|'head.*expected .* shape \(1,\)"),
    ("joint binary", setting("multiclass", "ovr"), r"'v' is .* shape \(9, 2\), expected .* shape \(None, 1\)"),
    ("binary", setting("classes/dtype", "<i4"), "'classes' is int64 of shape .2,., expected int32"),
    ("binary", setting("classes/dtype", "i8, (3)f8"), "its classes have the type 'i8,"),
    ("binary", setting("classes/dtype", "|O"), "the tensor 'classes.starts' is missing"),
    ("binary", tensor("classes", lambda a: a[::-1]), "its 2 classes are not sorted and distinct"),
    ("binary", tensor("classes", lambda a: a[:0]), "its 0 classes are not sorted and distinct"),
    ("binary", setting("features/kind", "bags"), "kind='bags', which is not in columns, sparse columns, ids"),
    ("binary", setting("features/columns", 2**64), "columns=18446744073709551616"),
    ("binary", setting("features/columns", 8), "there are weights for 9 features, but 8 features"),
    ("binary", setting("features/bits", 3), "bits=3 and columns=9"),
    ("binary", setting("features/hashed", "ids"), "hashed='ids' and bits=None"),
    ("ids", setting("features/columns", 9), "columns=9, which is not null"),
    ("ids", tensor("ids", first(2**64 - 5)), "1 of the 9 ids of its features are duplicates"),
    ("ids", tensor("ids", lambda a: a.reshape(3, 3)), r"'ids' is uint64 of shape \(3, 3\), expected uint64"),
    ("sparsified", tensor("ids", first(30)), "'ids' has columns outside the 30 columns"),
    ("names", tensor("names.starts", lambda a: a[::-1]), "'names.starts' does not divide"),
    ("names", tensor("names.starts", first(-8)), "'names.starts' does not divide"),
    ("names", tensor("names.letters", first(0xFF)), "'names.letters' is not UTF-8"),
    ("names", tensor("names.letters", lambda a: a * 0 + 65), "of the 9 names of its features are duplicates"),
    ("binary", tensor("v", first(np.nan)), "the tensor 'v' has values that are not finite"),
    ("binary", tensor("v", lambda a: a.astype(np.float16)), "the weights are float16, expected float32 or"),
    ("binary", tensor("v", lambda a: a[0, 0]), r"'v' is float64 of shape \(\), expected"),
    ("binary", tensor("bias", lambda a: a.astype(np.float32)), "'bias' is float32 .*, expected float64"),
    ("averaged", tensor("total", lambda a: a[:-1]), r"'total' is .* \(8, 3\), expected .* \(9, 3\)"),
    ("binary", tensor("state", first(np.nan)), "the tensor 'state' has values that are not finite"),
    ("binary", tensor("params", lambda a: np.ones(1)), "'params' is .*, expected float64 of shape .0,."),
    ("binary", tensor("head.wings", lambda a: np.ones(1)), "'head.wings' belongs to no model of this kind"),
    ("binary", tensor("head.scale", first(0.0)), "'head.scale' has the value 0.0, which is out of range"),
    ("binary", tensor("head.highest", first(9)), "'head.highest' has the value 9"),
    ("binary", tensor("head.logged", first(-1)), "'head.logged' has the value -1"),
    ("binary", tensor("head.mistakes", first(2**63 - 1)), "'head.mistakes' has the value 92233720368547758"),
    ("binary", tensor("head.since", first(1000)), "'head.since' has the value 1000"),
    ("binary", tensor("head.mistakes", first(61)), "'head.mistakes' has the value 61, which is out of range"),
    ("binary", tensor("head.slack_v", first(-1.0)), "'head.slack_v' has the value -1.0, which is out of range"),
    ("averaged", tensor("head.sum_slack", first(np.nan)), "'head.sum_slack' has the value nan, which is out of range"),
    ("binary", tensor("head.w_exponent", first(2**62)), "'head.w_exponent' has the value 4611686018427387904"),
    ("binary", tensor("head.sum_exponent", first(-(2**62))), "'head.sum_exponent' has the value -4611686018427387904"),
    ("binary", tensor("head.w_exponent", lambda a: a.astype(float)), "'head.w_exponent' is float64 .*, expected int64"),
    ("binary", tensor("head.sum_norm", lambda a: np.ones(1)), "'head.sum_norm' belongs to no model of this kind"),
    ("averaged", tensor("total", lambda a: a.astype(np.float32)), "'total' is float32 .*, expected float64"),
    ("float32", tensor("total", lambda a: a.astype(np.float32)), "'total' is float32 .*, expected float64"),
    ("binary", tensor("model.mean_weight", lambda a: None), "the tensor 'model.mean_weight' is missing"),
    ("binary", tensor("model.mean_weight", first(-1.0)), "'model.mean_weight' has the value -1.0, which is out of"),
    ("binary", tensor("model.mean_weight", first(np.nan)), "'model.mean_weight' has the value nan, which is out of"),
    ("binary", tensor("model.mean_weight", first(1e101)), r"'model.mean_weight' has the value 1e\+101, which is"),
    ("binary", tensor("model.weighed_rows", first(-1)), "'head.mistakes' has the value 20, which is out of range"),
    ("binary", tensor("model.weighed_rows", first(2**63 - 1)), "'model.weighed_rows' has the value 92233720368547758"),
    ("binary", tensor("model.weighed_rows", lambda a: np.tile(a, 2)), r"'model.weighed_rows' is int64 of shape \(2,\)"),
    ("binary", tensor("model.mistakes", first(-1)), "'model.mistakes' has the value -1, which is out of range"),
    ("binary", tensor("model.mistakes", first(61)), "'model.mistakes' has the value 61, which is out of range"),
    (
        "probability",
        tensor("calibration.slope", first(0.01)),
        "'calibration.slope' has the value 0.01, which is out of",
    ),
    ("probability", tensor("calibration.slope", first(np.inf)), "'calibration.slope' has values that are not finite"),
    ("probability", tensor("calibration.slope", lambda a: None), "the tensor 'calibration.slope' is missing"),
    ("probability", tensor("calibration.offset", first(-1e101)), r"'calibration.offset' has the value -1e\+101"),
    ("probability", tensor("calibration.curvature", first(0.5)), "'calibration.curvature' has the value 0.5, which is"),
    ("probability", tensor("calibration.curvature", lambda a: a * 0 + 1), "'calibration.curvature' has the value 1.0"),
    ("probability", tensor("calibration.curvature", lambda a: a[:, :2]), r"'calibration.curvature' is .* \(1, 2\)"),
    ("probability", tensor("calibration.size", first(-1.0)), "'calibration.size' has the value -1.0, which is out of"),
    ("probability", tensor("calibration.rows", first(61)), "'calibration.rows' has the value 61, which is out of"),
    ("probability", setting("estimator/params/probability", False), "False, but its model has probability=True"),
    ("binary", setting("estimator/params/probability", True), "True, but its model has probability=False"),
    ("one-vs-rest", tensor("head.first", lambda a: a + 7), "'head.first' does not fit 5 classes, ovr"),
    ("merged", setting("merge/models", 0), "the bounds of its merge of 0 models are invalid"),
    ("merged", tensor("merge.mean", first(-1.0)), "the bounds of its merge of 2 models are invalid"),
    ("merged", tensor("merge.certified", first(np.nan)), "the bounds of its merge of 2 models are invalid"),
    ("binary", setting("estimator/class", "os.system"), "class='os.system', which is not in ALMAClassifier"),
    ("binary", setting("estimator/params/colour", 1), "OnlineClassifier has no parameter 'colour' in this v"),
    ("binary", setting("estimator/params/passes", 0), "The 'passes' parameter of OnlineClassifier must be"),
    ("binary", setting("estimator/params/rule", {"pairs": [[[], 3]]}), "a parameter of its estimator is"),
    ("binary", setting("estimator/params/rule", "pa1"), "its estimator has rule='pa1', but its model has rule='mcp'"),
    ("binary", setting("estimator/params/rule", "mpc"), "there is no rule 'mpc'"),
    ("binary", setting("estimator/class", "PerceptronClassifier"), "has no parameter 'rule'"),
    ("binary", setting("estimator/params/average", True), "has average=True, but its model has average=False"),
    ("binary", setting("estimator/params/fit_intercept", False), "fit_intercept=False, but its model has fit_inter"),
    ("joint", setting("estimator/params/multiclass", "ovr"), "multiclass='ovr', but its model has multiclass='joint'"),
    ("binary", setting("estimator/params/dtype", "float32"), "dtype='float32', but its model has dtype='float64'"),
    ("binary", setting("estimator/params/rule_params", {"pairs": [["C", 1.0]]}), "C"),
]


@pytest.mark.parametrize(("setup", "change", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_invalid_content_is_refused(tmp_path, setup, change, message):
    described, tensors = parts(real_file(setup))
    change(described, tensors)
    path = tmp_path / "model"
    path.write_bytes(file_of(described, tensors))
    with pytest.raises(BadModelFile, match=message) as caught:
        maxcosine.load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_the_parameters_of_a_rule_and_the_names_of_columns_are_checked():
    model = OnlineClassifier("pa1").fit(*points(n_columns=16)).model_
    model.features.bits, model.features.kept_names = 4, {3: "three", 7: "seven"}
    described, tensors = parts(model_file.to_bytes(model))
    no_letters = {"columns.starts": np.zeros(18, np.int64), "columns.letters": np.zeros(0, np.uint8)}
    for changes, message in (
        ({"params": np.array([-1.0])}, "parameter C=-1 of rule 'pa1' is out of range; choose it in"),
        ({"kept.columns": np.array([16, 3])}, "do not belong to as many columns, in order"),
        ({"kept.columns": np.array([3])}, "do not belong to as many columns, in order"),
        (no_letters, "there are 17 names for 16 columns"),
    ):
        with pytest.raises(BadModelFile, match=message):
            model_file.from_bytes(file_of(described, {**tensors, **changes}))


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"format": ' + "1" * 9999 + "}", "null"])
def test_metadata_that_are_not_a_json_object(text):
    with pytest.raises(BadModelFile, match="the metadata are"):
        model_file.from_bytes(file_of(text, {}))


def test_files_that_are_not_models(tmp_path):
    path = tmp_path / "model"
    save_file({"v": np.zeros(3)}, path, metadata={"format": "pt"})
    with pytest.raises(BadModelFile, match="a safetensors file, but not a model of maxcosine; give"):
        load(path)
    for content in (b"", pickle.dumps([1, 2]), real_file("binary")[:-1], real_file("binary") + b"\0"):
        path.write_bytes(content)
        with pytest.raises(BadModelFile, match="not a safetensors file, or damaged or truncated"):
            load(path)
    with pytest.raises(BadModelFile, match="not a safetensors file"):
        digest(path)


@pytest.mark.parametrize(("dtype", "shape"), [("BF16", [4]), ("F8_E5M2", [8]), ("F64", [1] * 40)])
def test_tensors_that_numpy_cannot_hold(dtype, shape):
    header = {
        "__metadata__": {"maxcosine": '{"format": 1}'},
        "v": {"dtype": dtype, "shape": shape, "data_offsets": [0, 8]},
    }
    raw = json.dumps(header).encode()
    with pytest.raises(BadModelFile, match=f"the tensor 'v' has the type {dtype}"):
        model_file.from_bytes(len(raw).to_bytes(8, "little") + raw + b"0" * 8)


class Trap:
    def __reduce__(self):
        return os.system, ("touch sprung",)


@pytest.mark.parametrize(
    "change",
    [
        setting("estimator/class", "__import__('os').system('touch sprung')"),
        setting("estimator/params/rule", {"py/reduce": [{"py/function": "os.system"}, ["touch sprung"]]}),
        setting("rule/name", "__import__('os').system('touch sprung')"),
        tensor("more.pickle", lambda a: np.frombuffer(pickle.dumps(Trap()), np.uint8)),
    ],
)
def test_nothing_in_a_file_is_executed(tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    described, tensors = parts(real_file("binary"))
    change(described, tensors)
    for content in (file_of(described, tensors), pickle.dumps(Trap())):
        (tmp_path / "model").write_bytes(content)
        refused_or_works(tmp_path / "model")
    assert not (tmp_path / "sprung").exists()
