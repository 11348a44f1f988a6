"""A hashed model scores dicts as it scores the text that it was learnt from; lists of dicts are rows everywhere."""

import numpy as np
import pytest
import scipy.sparse

import maxcosine
from maxcosine import MCPClassifier, OnlineClassifier, core, model_file
from maxcosine.features import Features
from tests.commands import run
from tests.estimators.dicts import stream
from tests.learners import everything, learnt

BITS = 18


def texts(kind, n_rows=200):
    """Examples as dicts, and as lines of text without labels; some words have a namespace, and one has a caret."""
    random = np.random.default_rng(0)
    dicts, lines, labels = [], [], []
    for _ in range(n_rows):
        label = int(random.integers(3))
        numbers = random.choice(60, size=6, replace=False)
        values = np.round(random.normal(size=6) + (numbers % 3 == label), 2).tolist()
        labels.append(f"class{label}")
        if kind == "ids":
            keys = [int(number) if number % 2 else int(number) * 10**12 for number in numbers]
            pairs = sorted(zip(keys, values, strict=True))
            dicts.append(dict(pairs))
            lines.append(" ".join(f"{key}:{value}" for key, value in pairs))
        else:
            words = [f"wörd{number}" if number % 5 else f"a^long^word{number}" for number in numbers]
            dicts.append({f"ns^{words[0]}": values[0], **dict(zip(words[1:], values[1:], strict=True))})
            rest = " ".join(f"{word}:{value}" for word, value in zip(words[1:], values[1:], strict=True))
            lines.append(f"|ns {words[0]}:{values[0]} | {rest}")
    return dicts, lines, labels


def with_spaces(dicts):
    """The same examples, with an empty namespace where a caret of the word could end one."""
    return [{f"^{key}" if key.startswith("a^") else key: value for key, value in x.items()} for x in dicts]


def trained(folder, kind, *options):
    """A model that the command has learnt, its predictions of the text, and the dicts."""
    dicts, lines, labels = texts(kind)
    name = "data.svm" if kind == "ids" else "data.vw"
    data = "".join(f"{label} {line}\n" for label, line in zip(labels, lines, strict=True))
    (folder / name).write_text(data)
    assert run(folder, "train", name, "--rule", "mcp", "--model", "model", "--bits", BITS, *options).returncode == 0
    shown = run(folder, "predict", "model", name, "--scores").stdout
    scores = np.array([line.split("\t")[1:] for line in shown.splitlines()], float)
    predicted = [line.split("\t")[0] for line in shown.splitlines()]
    return maxcosine.load(folder / "model"), predicted, scores, dicts


@pytest.mark.parametrize(("kind", "options"), [("ids", []), ("names", ["--keep-names"])])
def test_dicts_get_the_scores_of_the_text(tmp_path, kind, options):
    learner, predicted, scores, dicts = trained(tmp_path, kind, *options)
    assert len(set(predicted)) == 3
    assert np.allclose(learner.decision_function(dicts), scores, rtol=1e-5, atol=1e-6)
    assert learner.predict(dicts).tolist() == predicted
    assert learner.predict_many(dicts).tolist() == predicted
    assert [learner.predict_one(x) for x in dicts] == predicted
    assert learner.sparsify().predict(dicts).tolist() == predicted


def test_without_kept_names_a_namespace_ends_at_the_first_caret(tmp_path):
    learner, predicted, scores, dicts = trained(tmp_path, "names")
    assert learner.model_.features.kept_names is None
    assert learner.predict(dicts).tolist() != predicted
    assert np.allclose(learner.decision_function(with_spaces(dicts)), scores, rtol=1e-5, atol=1e-6)
    assert learner.predict(with_spaces(dicts)).tolist() == predicted


@pytest.mark.parametrize(
    ("kind", "key", "message"),
    [
        ("ids", "word", "the feature 'word' is not a whole number from 0 to 2\\^64 - 1"),
        ("ids", -1, "the feature -1 is not a whole number"),
        ("ids", 1.5, "the feature 1.5 is not a whole number"),
        ("names", 3, "the feature 3 is not a str"),
        ("names", "\ud800", "is not a valid name"),
    ],
)
def test_keys_that_training_could_not_have_hashed_are_refused(tmp_path, kind, key, message):
    learner, *_ = trained(tmp_path, kind)
    before = everything(learner)
    for call in (learner.predict_one, lambda x: learner.predict([x]), lambda x: learner.learn_one(x, "class1")):
        with pytest.raises(TypeError, match=message):
            call({key: 1.0})
    assert everything(learner) == before


def test_values_of_names_that_collide_are_added_up():
    features = Features(4, bits=2)
    names = [f"word{k}" for k in range(20)]
    row = features.map_dicts([dict.fromkeys(names, 1.0)], np.dtype("float64"), grow=False).toarray()[0]
    columns = [core.column_of_name(b"", name.encode(), 2) for name in names]
    assert row.tolist() == np.bincount(columns, minlength=4).tolist()


def test_a_hashed_model_goes_on_learning_from_dicts(tmp_path):
    learner, *_ = trained(tmp_path, "names")
    learner.learn_one({"ns^new": 1.0, "other": 2.0}, "class9")
    assert learner.predict_one({"ns^new": 1.0, "other": 2.0}) == "class9"
    assert learner.n_features_in_ == 2**BITS
    wider = learner.set_params(grow_features=True)
    with pytest.raises(ValueError, match="hashed to 262,144 columns, and X has 262,145"):
        wider.partial_fit(scipy.sparse.csr_array((1, 2**BITS + 1)), ["class9"])


def test_fit_stream_remembers_the_hashing(tmp_path):
    _, predicted, scores, dicts = trained(tmp_path, "names", "--no-intercept")
    learner = OnlineClassifier("mcp", fit_intercept=False, dtype="float32")
    learner.fit_stream(maxcosine.data.open_stream(tmp_path / "data.vw", bits=BITS))
    assert np.allclose(learner.decision_function(with_spaces(dicts)), scores, rtol=1e-5, atol=1e-6)
    maxcosine.save(learner, tmp_path / "again")
    assert run(tmp_path, "predict", "again", "data.vw").stdout.split() == predicted


def test_copies_merges_and_files_remember_the_hashing(tmp_path):
    learner, predicted, _, dicts = trained(tmp_path, "ids")
    copied = learner.model_.copy()
    merged = maxcosine.merge([learner, learner])
    loaded = model_file.from_bytes(model_file.to_bytes(learner.model_)).model
    assert {model.features.hashed for model in (copied, merged.model_, loaded)} == {"ids"}
    assert merged.predict(dicts).tolist() == predicted


# Lists of dicts


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [list, tuple])
def test_lists_of_dicts_are_rows_for_predict_decision_function_and_score(n_classes, make):
    X, y = stream(n_classes=n_classes)
    learner = MCPClassifier()
    learner.learn_many(X, y)
    assert learner.predict(make(X)).tolist() == [learner.predict_one(x) for x in X]
    assert learner.score(make(X), y) == np.mean([learner.predict_one(x) for x in X] == np.array(y))
    scores = learner.decision_function(make(X))
    assert scores.shape == ((len(X),) if n_classes == 2 else (len(X), 3))
    assert np.array_equal(scores[7:8], learner.decision_function([X[7]]))


def test_lists_of_dicts_are_rows_for_models_of_columns():
    learner = MCPClassifier().fit(np.eye(3), ["a", "b", "c"])
    assert learner.predict([{0: 1.0}, {2: 5.0, 77: 1.0}]).tolist() == ["a", "c"]


def test_attained_margin_takes_dicts():
    X = [{"a": 1.0}, {"b": 2.0}, {}]
    learner = MCPClassifier(fit_intercept=False)
    learner.learn_many(X[:2], ["x", "y"])
    rows = np.array([[1.0, 0.0], [0.0, 2.0]])
    same = MCPClassifier(fit_intercept=False).fit(rows, ["x", "y"])
    # What is taken off for rounding depends on the numbers that are added up.
    assert learner.attained_margin(X, ["x", "y", "x"]) == pytest.approx(
        same.attained_margin(rows, ["x", "y"]), rel=1e-14
    )


def test_with_an_intercept_a_row_of_zeros_has_a_margin():
    X, y = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1.0]]), [0, 1, 1]
    ones = np.column_stack([X, np.ones(3)])
    explicit = MCPClassifier(fit_intercept=False, passes=5).fit(ones, y)
    learner = MCPClassifier(passes=5).fit(X, y)
    assert learner.attained_margin(X, y) == pytest.approx(explicit.attained_margin(ones, y))
    assert learner.attained_margin(X, y) < learner.attained_margin(X[1:], y[1:])


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_dicts_in_fit_are_refused_with_the_method_that_takes_them(call):
    learner = MCPClassifier()
    for _ in range(2):
        with pytest.raises(TypeError, match=r"dicts.*learn_many"):
            getattr(learner, call)([{"a": 1.0}, {"b": 1.0}], [0, 1])
        learner.learn_many([{"a": 1.0}, {"b": 1.0}], [0, 1])
    before = learnt(learner)
    with pytest.raises(ValueError, match="the value of feature 'a' in example 1 is nan"):
        learner.predict([{"a": 1.0}, {"a": float("nan")}])
    assert learnt(learner) == before
