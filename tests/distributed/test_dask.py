"""Workers of Dask give the same bits as one process, from every kind of source."""

import threading

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
from maxcosine.data import StreamError
from maxcosine.distributed import fit as fit_here
from maxcosine.distributed import plan, train_files
from maxcosine.distributed.dask import DaskOnlineClassifier, WorkersLost, connected, fit
from tests.distributed.digits import LINES, X, Y, assert_same

ROWS = 300
LEARNER = MCPExactClassifier()
OPTIONS = {"rounds": 2, "fan_in": 3}
NAMES = [f"p{k}" for k in range(64)]
CHUNKS = [(X[k : k + ROWS], Y[k : k + ROWS]) for k in range(0, len(Y), ROWS)]


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    return fit_here([[chunk] for chunk in CHUNKS], LEARNER, **OPTIONS)


def arrays():
    # Columns are divided, too: a shard needs all of them.
    return dask.array.from_array(X, chunks=(ROWS, 40)), dask.array.from_array(Y, chunks=ROWS)


def frame(**more):
    whole = pd.DataFrame(X, columns=NAMES).assign(label=Y, **more)
    return dask.dataframe.from_pandas(whole, sort=False, chunksize=ROWS)


def sparse_array():
    return arrays()[0].rechunk({1: -1}).map_blocks(scipy.sparse.csr_array)


SOURCES = {
    "array": lambda: (arrays()[0], {"y": arrays()[1]}),
    "sparse array": lambda: (sparse_array(), {"y": arrays()[1]}),
    "dataframe": lambda: (frame(), {"y": "label"}),
    "dataframe and series": lambda: (frame()[NAMES], {"y": frame()["label"]}),
    "delayed": lambda: ([dask.delayed([(x[:50], y[:50]), (x[50:], y[50:])]) for x, y in CHUNKS], {}),
    "bag": lambda: (dask.bag.from_sequence(CHUNKS, partition_size=1), {}),
}


@pytest.mark.parametrize("source", SOURCES)
def test_collections(client, expected, source):
    collection, labels = SOURCES[source]()
    assert_same(fit(collection, LEARNER, **labels, **OPTIONS), expected)


def test_weights(client):
    weights = 1.0 + np.arange(len(Y)) % 3
    shards = [[(X[k : k + ROWS], Y[k : k + ROWS], weights[k : k + ROWS])] for k in range(0, len(Y), ROWS)]
    expected = fit_here(shards, LEARNER)
    rows, labels = arrays()
    sample_weight = dask.array.from_array(weights, chunks=ROWS)
    assert_same(fit(rows, LEARNER, y=labels, sample_weight=sample_weight, client=client), expected)
    assert_same(fit(frame(weight=weights), LEARNER, y="label", sample_weight="weight"), expected)


def test_bag_of_dicts(client):
    dicts = [
        ({name: value for name, value in zip(NAMES, row, strict=True) if value}, int(label))
        for row, label in zip(X, Y, strict=True)
    ]
    shards = [[([x for x, _ in part], [y for _, y in part])] for part in (dicts[:900], dicts[900:])]
    found = fit(dask.bag.from_sequence(dicts, partition_size=900), LEARNER)
    assert_same(found, fit_here(shards, LEARNER))


def test_files(client, tmp_path, monkeypatch, capsys):
    path = tmp_path / "digits.svm"
    path.write_text("".join(LINES))
    expected = fit_here(plan(path, n_shards=5), LEARNER, **OPTIONS)
    monkeypatch.chdir(tmp_path)
    assert_same(fit("digits.svm", LEARNER, n_shards=5, progress=True, **OPTIONS), expected)
    assert "10/10 shards" in capsys.readouterr().err
    path.write_text("".join([*LINES[:1500], "3 5:x\n", *LINES[1501:]]))
    with pytest.raises(StreamError, match=r"digits\.svm:1501:5: .* \(found 'x'\)") as raised:
        fit([path], LEARNER, n_shards=5)
    assert raised.value.__notes__ == ["in shard 4 of 5, counted from 0"]
    assert fit([path], LEARNER, n_shards=5, on_bad="skip").rounds_[0].bad == 1
    assert capsys.readouterr().err == ""


def test_bad_row_is_reported_with_its_shard(client):
    rows = X.copy()
    rows[700, 3] = np.nan
    with pytest.raises(maxcosine.BadRow, match="row 100") as raised:
        fit(dask.array.from_array(rows, chunks=(ROWS, 64)), LEARNER, y=arrays()[1])
    assert raised.value.__notes__ == ["in shard 2 of 6, counted from 0"]


def test_classifier_predicts_arrays(client, expected):
    rows, labels = arrays()
    learner = clone(DaskOnlineClassifier(LEARNER, **OPTIONS)).fit(rows, labels)
    assert_same(learner.to_local(), expected)
    predicted, scores = learner.predict(rows), learner.decision_function(rows)
    assert predicted.chunks == labels.chunks
    assert scores.shape == (len(Y), 10)
    assert np.array_equal(predicted.compute(), expected.predict(X))
    assert np.array_equal(scores.compute(), expected.decision_function(X))
    assert np.array_equal(learner.predict(sparse_array()).compute(), expected.predict(X))
    assert learner.score(X, Y) == expected.score(X, Y)  # NumPy arrays are predicted here
    binary = DaskOnlineClassifier().fit(rows, labels == 3)
    assert binary.decision_function(rows).compute().shape == Y.shape
    assert np.mean((binary.predict(rows) == (labels == 3)).compute()) > 0.9


def test_classifier_predicts_dataframes(client, expected):
    whole = frame()
    learner = DaskOnlineClassifier(LEARNER, **OPTIONS).fit(whole, "label")
    assert learner.to_local().feature_names_in_.tolist() == NAMES
    predicted = learner.predict(whole[NAMES])
    assert predicted.dtype == Y.dtype
    assert predicted.compute().tolist() == expected.predict(X).tolist()
    scores = learner.decision_function(whole[NAMES]).compute()
    assert scores.columns.tolist() == [str(k) for k in range(10)]
    assert scores.index.tolist() == list(range(len(Y)))
    assert np.array_equal(scores.to_numpy(), expected.decision_function(X))
    nothing = whole[whole["label"] > 9][NAMES]
    assert learner.predict(nothing).compute().shape == (0,)
    assert learner.decision_function(nothing).compute().shape == (0, 10)


def test_invalid_sources_are_refused(client):
    rows, labels = arrays()
    for source, params, message in [
        (X, {"y": Y}, "cannot learn from a ndarray"),
        (rows, {}, "pass them as y"),
        (rows, {"y": labels, "n_shards": 3}, "n_shards: only for files"),
        (frame(), {"y": "label", "sample_weight": labels}, "name the column of the weights"),
    ]:
        with pytest.raises(TypeError, match=message):
            fit(source, LEARNER, **params)
    with pytest.raises(ValueError, match="6, 1 partitions"):
        fit(rows, LEARNER, y=dask.array.from_array(Y, chunks=-1))
    for name in ("dask://somewhere", "dask-local:0", "spark://host:1"):
        with pytest.raises(ValueError, match="names no cluster"), connected(name):
            pass
    with pytest.raises(ValueError, match="names no cluster"):
        train_files("some.svm", LEARNER, "hadoop")


def test_closed_scheduler_is_an_error():
    cluster = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with Client(cluster, set_as_default=False) as client:
        closing = threading.Timer(0.5, cluster.close)
        closing.start()
        with pytest.raises(WorkersLost, match=r"scheduler is gone|no worker for 3 seconds"):
            fit([dask.delayed(chunk) for chunk in CHUNKS], LEARNER, patience=3.0, client=client)
        closing.join()
