"""Worker processes of Dask give what one process gives, to the bit, from every kind of source."""

import os

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client, LocalCluster
from sklearn.base import clone

import maxcosine
from maxcosine import MCPExactClassifier
from maxcosine.distributed import fit as fit_here
from maxcosine.distributed import plan, train_files
from maxcosine.distributed.dask import DaskOnlineClassifier, connected, fit
from maxcosine.stream import StreamError
from tests.distributed.test_shards import LINES, X, Y, text

ROWS = 300
LEARNER = MCPExactClassifier()
OPTIONS = {"rounds": 2, "fan_in": 3}
NAMES = [f"p{k}" for k in range(64)]


@pytest.fixture(scope="module")
def client():
    """Two worker processes, of one thread each."""
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    return fit_here([[pair] for pair in chunks()], LEARNER, **OPTIONS)


def chunks():
    return [(X[k : k + ROWS], Y[k : k + ROWS]) for k in range(0, len(Y), ROWS)]


def arrays():
    # Columns are divided, too: a block must have all of them.
    return dask.array.from_array(X, chunks=(ROWS, 40)), dask.array.from_array(Y, chunks=ROWS)


def frame(columns=NAMES, **more):
    whole = pd.DataFrame(X, columns=columns).assign(label=Y, **more)
    return dask.dataframe.from_pandas(whole, sort=False, chunksize=ROWS)


def assert_same(found, expected):
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.certificate_ == expected.certificate_
    assert found.rounds_ == expected.rounds_


def test_arrays(client, expected):
    rows, labels = arrays()
    assert_same(fit(rows, LEARNER, y=labels, client=client, **OPTIONS), expected)
    weights = dask.array.ones(len(Y), chunks=ROWS)
    weighted = fit(rows, LEARNER, y=labels, sample_weight=weights, **OPTIONS)
    assert weighted.coef_.tobytes() == expected.coef_.tobytes()


def test_sparse_blocks(client, expected):
    rows, labels = arrays()
    sparse = rows.rechunk({1: -1}).map_blocks(scipy.sparse.csr_array)
    assert_same(fit(sparse, LEARNER, y=labels, **OPTIONS), expected)


def test_data_frames(client, expected):
    found = fit(frame(), LEARNER, y="label", **OPTIONS)
    assert_same(found, expected)
    assert found.feature_names_in_.tolist() == NAMES
    weighted = fit(frame(weight=1.0), LEARNER, y="label", sample_weight="weight", **OPTIONS)
    assert weighted.coef_.tobytes() == expected.coef_.tobytes()
    whole = frame()
    assert_same(fit(whole[NAMES], LEARNER, y=whole["label"], **OPTIONS), expected)


def test_delayed_partitions(client, expected):
    partitions = [dask.delayed(pair) for pair in chunks()]
    assert_same(fit(partitions, LEARNER, **OPTIONS), expected)
    halves = [dask.delayed([(rows[:50], labels[:50]), (rows[50:], labels[50:])]) for rows, labels in chunks()]
    assert_same(fit(halves, LEARNER, **OPTIONS), expected)


def test_bags(client, expected):
    assert_same(fit(dask.bag.from_sequence(chunks(), partition_size=1), LEARNER, **OPTIONS), expected)
    dicts = [
        ({name: value for name, value in zip(NAMES, row, strict=True) if value}, int(label))
        for row, label in zip(X, Y, strict=True)
    ]
    shards = [[([x for x, _ in part], [y for _, y in part])] for part in (dicts[:900], dicts[900:])]
    found = fit(dask.bag.from_sequence(dicts, partition_size=900), LEARNER)
    assert_same(found, fit_here(shards, LEARNER))


def test_files(client, tmp_path, monkeypatch):
    (tmp_path / "digits.svm").write_text(text(LINES))
    monkeypatch.chdir(tmp_path)
    found = fit("digits.svm", LEARNER, n_shards=5, **OPTIONS)  # a folder where no worker is
    assert_same(found, fit_here(plan("digits.svm", n_shards=5), LEARNER, **OPTIONS))


def test_bad_lines_are_told_as_in_a_stream(client, tmp_path):
    path, lines = tmp_path / "digits.svm", [*LINES]
    lines[1500] = "3 5:x"
    path.write_text(text(lines))
    with pytest.raises(StreamError, match=r"digits\.svm:1501:5: .* \(found 'x'\)") as raised:
        fit([path], LEARNER, n_shards=5)
    assert raised.value.__notes__ == ["in shard 4 of 5, counted from 0"]
    found = fit([path], LEARNER, n_shards=5, on_bad="skip")
    assert found.rounds_[0].bad == 1
    assert f"{path}:1501:5" in found.rounds_[0].first_bad[0]


def test_bad_rows_are_told_with_their_shard(client):
    rows = X.copy()
    rows[700, 3] = np.nan
    with pytest.raises(maxcosine.BadRow, match="row 100") as raised:
        fit(dask.array.from_array(rows, chunks=(ROWS, 64)), LEARNER, y=arrays()[1])
    assert raised.value.__notes__ == ["in shard 2 of 6, counted from 0"]


def test_a_rule_that_is_defined_here(client):
    from tests.distributed.test_parts import cut, own_step

    learner = maxcosine.OnlineClassifier(own_step)
    partitions = [dask.delayed(shard) for shard in cut(3)]
    # Worker processes find the rule where it was defined.
    client.run(lambda: __import__("sys").path.insert(0, os.getcwd()))
    assert_same(fit(partitions, learner), fit_here(cut(3), learner))


def test_the_classifier_fits_and_predicts_collections(client, expected):
    rows, labels = arrays()
    learner = clone(DaskOnlineClassifier(LEARNER, **OPTIONS)).fit(rows, labels)
    assert_same(learner.to_local(), expected)
    predicted, scores = learner.predict(rows), learner.decision_function(rows)
    assert predicted.shape == Y.shape
    assert predicted.chunks == labels.chunks
    assert scores.shape == (len(Y), 10)
    assert np.array_equal(predicted.compute(), expected.predict(X))
    assert np.array_equal(scores.compute(), expected.decision_function(X))
    assert learner.score(X, Y) == expected.score(X, Y)  # arrays of NumPy are predicted here


def test_the_classifier_predicts_data_frames(client, expected):
    whole = frame()
    learner = DaskOnlineClassifier(LEARNER, **OPTIONS).fit(whole, "label")
    predicted = learner.predict(whole[NAMES])
    assert predicted.dtype == Y.dtype
    assert predicted.compute().tolist() == expected.predict(X).tolist()
    scores = learner.decision_function(whole[NAMES]).compute()
    assert scores.columns.tolist() == [str(k) for k in range(10)]
    assert np.array_equal(scores.to_numpy(), expected.decision_function(X))


def test_two_classes_have_one_score(client):
    rows, labels = arrays()
    learner = DaskOnlineClassifier().fit(rows, labels == 3)
    assert learner.decision_function(rows).shape == Y.shape
    assert np.mean((learner.predict(rows) == (labels == 3)).compute()) > 0.9


def test_a_bar_is_shown_where_it_is_asked_for(client, tmp_path, capsys):
    path = tmp_path / "digits.svm"
    path.write_text(text(LINES))
    fit(path, LEARNER, n_shards=4, rounds=2, progress=True)
    assert "8/8 shards" in capsys.readouterr().err
    fit(path, LEARNER, n_shards=4)
    assert capsys.readouterr().err == ""


def test_clusters_by_name(client, tmp_path):
    path = tmp_path / "digits.svm"
    path.write_text(text(LINES))
    on = client.scheduler.address.replace("tcp", "dask")
    assert_same(train_files([path], LEARNER, on, n_shards=3), fit_here(plan(path, n_shards=3), LEARNER))
    for bad in ("dask://somewhere", "dask-local:0", "spark://host:1"):
        with pytest.raises(ValueError, match="names no cluster"), connected(bad):
            pass


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        (X, {"y": Y}, "a ndarray is nothing to learn from here"),
        (dask.array.from_array(X), {}, "pass y"),
        (dask.array.from_array(X), {"y": arrays()[1], "n_shards": 3}, "n_shards: options of files"),
        (frame(), {"y": "label", "sample_weight": arrays()[1]}, "name the column of the weights"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(client, source, given, message):
    with pytest.raises(TypeError, match=message):
        fit(source, LEARNER, **given)


def test_partitions_that_do_not_match(client):
    with pytest.raises(ValueError, match="6, 1 partitions"):
        fit(arrays()[0], LEARNER, y=dask.array.from_array(Y, chunks=-1))
