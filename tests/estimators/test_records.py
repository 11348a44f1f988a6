"""Classifiers learn from records: tables with named columns, in memory or in files."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import maxcosine
from maxcosine import MCPClassifier, OnePassClassifier, RecordEncoder
from maxcosine.data import StreamError
from maxcosine.records import SchemaError

WORDS = np.array(["free", "money", "prize", "call", "now", "lunch", "noon", "meeting", "report", "friday"])


def mails(n=400, seed=0, labels=("ham", "spam")):
    """Invented mails; the label decides which words, senders and sizes are frequent."""
    random = np.random.default_rng(seed)
    spam = random.random(n) < 0.4
    texts = [
        " ".join(random.choice(WORDS, 6, p=np.where(np.arange(10) < 5, 3.0, 1.0)[:: 1 if one else -1] / 20.0))
        for one in spam
    ]
    size = np.round(np.where(spam, 2.0, 9.0) + random.random(n), 2)
    sender = np.where(spam ^ (random.random(n) < 0.2), "shop", "friend")
    return pd.DataFrame({"text": texts, "size": size, "sender": sender, "label": np.where(spam, labels[1], labels[0])})


@pytest.fixture(scope="module")
def data():
    return mails()


@pytest.fixture(scope="module")
def learner(data):
    return OnePassClassifier().fit_records(data, label="label")


@pytest.mark.parametrize("make", [OnePassClassifier, MCPClassifier, lambda: MCPClassifier(average=True)])
@pytest.mark.parametrize("exact", [False, True])
def test_records_are_learnt_and_predicted(data, make, exact):
    learner = make().fit_records(data, label="label", exact=exact)
    assert learner.classes_.tolist() == ["ham", "spam"]
    assert learner.n_seen_ == len(data)
    assert learner.score(mails(200, 1), mails(200, 1).label) > 0.95


def test_all_kinds_of_tables_give_the_same_scores(data, learner):
    expected = learner.decision_function(data)
    rows = data.to_dict("records")
    for same in (pl.from_pandas(data), pa.Table.from_pandas(data), rows):
        assert np.array_equal(learner.decision_function(same), expected)
        other = OnePassClassifier().fit_records(iter(rows) if same is rows else same, label="label")
        assert np.array_equal(other.decision_function(data), expected)
    assert np.array_equal(learner.decision_function(data.drop(columns="label")), expected)
    assert learner.predict_one(rows[3]) == learner.predict(data)[3]
    assert learner.predict_proba_one(rows[3])["spam"] == pytest.approx(learner.predict_proba(data)[3, 1])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [((0, 1), [0, 1]), ((False, True), [False, True]), (("1", "2"), ["1", "2"]), ((1.5, 2.0), None)],
)
def test_labels_keep_the_type_of_their_column(labels, classes):
    data = mails(50, labels=labels)
    if classes is None:
        with pytest.raises(StreamError, match=r"row 0 of the data: the label 1.5 is a number that is not whole"):
            OnePassClassifier().fit_records(data.sort_values("label"), label="label")
        return
    learner = OnePassClassifier().fit_records(data, label="label")
    assert learner.classes_.tolist() == classes
    assert type(learner.predict(data)[0].item()) is type(classes[0])


def test_labels_of_another_type_are_refused_in_plain_words():
    rows = [{"x": "ab"[k % 2], "y": k % 2} for k in range(1200)]
    for make in (OnePassClassifier, MCPClassifier, lambda: MCPClassifier(class_weight={1: 2.0})):
        with pytest.raises(StreamError, match=r"'other'.*(cannot be added|write them alike)|write them alike"):
            make().fit_records([*rows, {"x": "c", "y": "other"}], label="y")


def test_a_class_that_comes_late_is_added_in_the_type_of_the_others():
    data = pd.concat([mails(50, labels=(7, 3)), mails(50, labels=(12, 3))])
    for learner in (OnePassClassifier(), MCPClassifier(), MCPClassifier(multiclass="joint")):
        assert learner.fit_records(data, label="label").classes_.tolist() == [3, 7, 12]


def test_learning_goes_on_as_if_it_had_not_stopped(data, learner):
    first = OnePassClassifier().fit_records(data[:150], label="label")
    before = pickle.dumps(first)
    for goes_on in (first, pickle.loads(before)):
        goes_on.partial_fit_records(data[150:].drop(columns=[]))
        assert np.array_equal(goes_on.decision_function(data), learner.decision_function(data))


def test_a_refused_chunk_changes_nothing(data):
    learner = OnePassClassifier().fit_records(data, label="label")
    expected = learner.decision_function(data)
    bad = mails(20, 3).astype({"size": object})
    bad["size"] = ["1"] * 19 + ["much"]
    with pytest.raises(StreamError, match=r"row 19 of the data: the value 'much' of 'size' is not a number"):
        learner.partial_fit_records(bad)
    assert np.array_equal(learner.decision_function(data), expected)
    with pytest.warns(UserWarning, match=r"1 bad rows skipped: row 19 of the data"):
        learner.partial_fit_records(bad, on_bad="skip")
    assert learner.n_seen_ == len(data) + 19


def test_columns_must_be_those_that_were_learnt(data, learner):
    with pytest.raises(StreamError, match="the data: there is no column 'text', which is needed"):
        learner.predict(data.drop(columns="text"))
    with pytest.warns(UserWarning, match="columns that are not in the schema are ignored: color"):
        assert np.array_equal(learner.predict(data.assign(color="red")), learner.predict(data))
    with pytest.raises(StreamError, match="the data: the column 'size' holds values of type list<item: string>"):
        learner.predict(data.assign(size=[["a"]] * len(data)))


def test_other_ways_of_learning_are_refused(data, learner):
    for learn in (learner.learn_one, learner.partial_fit):
        with pytest.raises(ValueError, match="learnt from records; go on with partial_fit_records"):
            learn({"text": "x"}, "spam") if learn == learner.learn_one else learn([[1.0]], ["spam"])
    with pytest.raises(ValueError, match="was not learnt from records; begin with fit_records"):
        OnePassClassifier().fit([[1.0], [2.0]], [0, 1]).partial_fit_records(data)


def test_models_of_records_are_saved_and_loaded(data, learner, tmp_path):
    maxcosine.save(learner, tmp_path / "model")
    loaded = maxcosine.load(tmp_path / "model")
    assert loaded.model_.features.records == learner.model_.features.records
    assert np.array_equal(loaded.decision_function(data), learner.decision_function(data))
    assert (tmp_path / "model").stat().st_size < 100_000  # as large as what it has seen, although columns are hashed
    ours, theirs = (clone(one).fit_records(data, label="label") for one in (learner, loaded))
    assert np.array_equal(ours.decision_function(data), theirs.decision_function(data))


@pytest.mark.parametrize("make", [OnePassClassifier, lambda: MCPClassifier(average=True)])
@pytest.mark.parametrize("exact", [False, True])
def test_models_of_records_are_merged(data, make, exact):
    parts = [make().fit_records(data[k::3], label="label", exact=exact) for k in range(3)]
    merged = maxcosine.merge(parts)
    assert merged.n_seen_ == len(data)
    assert merged.score(mails(200, 1), mails(200, 1).label) > 0.9
    other = make().fit_records(data.rename(columns={"size": "length"}), label="label", exact=exact)
    with pytest.raises(SchemaError, match="model 0 and model 1 were learnt from records with other columns"):
        maxcosine.merge([parts[0], other])
    texts = make().fit_records(data, label="label", exact=exact, text="sender")
    with pytest.raises(SchemaError, match="'sender' is a category in model 0 and a text in model 1"):
        maxcosine.merge([parts[0], texts])


def test_class_weights_and_weights_of_rows(data):
    weighted = data.assign(importance=np.where(data.label == "spam", 5.0, 1.0))
    by_column = OnePassClassifier().fit_records(weighted, label="label", weight="importance")
    by_class = OnePassClassifier(class_weight={"spam": 5.0}).fit_records(data, label="label")
    assert np.array_equal(by_column.decision_function(weighted), by_class.decision_function(data))
    assert not np.array_equal(
        by_class.decision_function(data), OnePassClassifier().fit_records(data, label="label").decision_function(data)
    )
    with pytest.raises(ValueError, match="class_weight='balanced' needs all labels at once"):
        OnePassClassifier(class_weight="balanced").fit_records(data, label="label")


def test_contributions_have_the_names_of_the_data(data, learner):
    found = learner.contributions_one({"text": "free lunch", "size": 2.2, "sender": "shop"})
    assert set(found) == {"text:free", "text:lunch", "size", "size=2..2.5", "sender=shop"}
    assert found["text:free"] > 0 > found["text:lunch"]
    row = data[:1]
    values = learner.contributions(row)
    assert values.of_features.sum() + values.rest[0] == pytest.approx(learner.decision_function(row)[0])
    assert set(found) <= set(learner.features_.tolist())
    assert learner.weights_.shape == (1, len(learner.features_))


def test_log_and_length_are_part_of_the_schema(data, tmp_path):
    learner = MCPClassifier().fit_records(data, label="label", normalize="l2", log1p=True)
    plain = MCPClassifier().fit_records(data, label="label")
    assert not np.array_equal(learner.decision_function(data), plain.decision_function(data))
    maxcosine.save(learner, tmp_path / "model")
    loaded = maxcosine.load(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(data), learner.decision_function(data))


def test_files_and_options(data, tmp_path):
    data.to_csv(tmp_path / "a.csv", index=False)
    data.to_parquet(tmp_path / "b.parquet", index=False)
    learner = OnePassClassifier().fit_records([tmp_path / "a.csv", tmp_path / "b.parquet"], label="label", threads=1)
    twice = OnePassClassifier().fit_records(pd.concat([data, data]), label="label")
    assert np.array_equal(learner.decision_function(data), twice.decision_function(data))
    with pytest.raises(StreamError, match=r"a.csv: there is no column 'stars'; the columns are text, size, sender"):
        OnePassClassifier().fit_records(tmp_path / "a.csv", label="stars")
    with pytest.raises(SchemaError, match="the column 'label' is label and drop; choose one"):
        OnePassClassifier().fit_records(tmp_path / "a.csv", label="label", drop="label")
    with pytest.raises(TypeError, match="records are a data frame, Arrow data, dicts"):
        OnePassClassifier().fit_records(3, label="label")
    with pytest.raises(StreamError, match="there is no record in the data"):
        OnePassClassifier().fit_records([], label="label")


@pytest.mark.parametrize("exact", [False, True])
def test_the_encoder_works_before_any_classifier(data, exact):
    X, y = data.drop(columns="label"), data["label"]
    pipeline = make_pipeline(RecordEncoder(exact=exact), MCPClassifier(average=True)).fit(X[:300], y[:300])
    assert pipeline.score(X[300:], y[300:]) > 0.95
    assert clone(pipeline).get_params()["recordencoder__exact"] is exact


def test_the_encoder_names_its_features():
    rows = [{"a": 1.0, "t": "one two"}, {"a": None, "t": "two three four five six"}]
    encoder = RecordEncoder(exact=True, text="t", ngrams=2).fit(rows)
    names = encoder.get_feature_names_out().tolist()
    assert names[:5] == ["a", "a=1..1.2", "t:one", "t:one two", "t:two"]
    assert encoder.transform(rows).toarray()[1, names.index("a (missing)")] == 1.0
    assert encoder.transform([{"a": 2.0, "t": "unknown words"}]).toarray().sum() == 2.0
    hashed = RecordEncoder(bits=10, text="t").fit(rows)
    assert hashed.transform(iter(rows)).shape == (2, 1024)
    with pytest.raises(ValueError, match="hashed features have no names; encode with exact=True"):
        hashed.get_feature_names_out()
    with pytest.raises(ValueError, match="there is no record"):
        RecordEncoder().fit([])
