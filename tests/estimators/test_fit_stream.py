"""An estimator learns files as it learns arrays."""

import gzip

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from maxcosine import MCPClassifier, OnlineClassifier
from maxcosine.data import open_stream


@pytest.fixture
def examples(tmp_path):
    random = np.random.default_rng(0)
    X = scipy.sparse.random_array((300, 40), density=0.2, rng=random, format="csr")
    X.data = np.round(X.data, 3)
    y = random.integers(0, 3, 300)
    path = tmp_path / "some.svm"
    dump_svmlight_file(X, y, str(path), zero_based=True)
    return X, y, path


@pytest.mark.parametrize("average", [False, True])
def test_file_teaches_what_its_rows_teach(examples, average):
    X, y, path = examples
    learner = MCPClassifier(average=average, dtype="float64")
    from_file = learner.fit_stream(open_stream(path, dtype="float64", block_bytes=1000))
    from_rows = MCPClassifier(average=average, dtype="float64").partial_fit(X, y.astype(str))
    assert from_file.classes_.tolist() == ["0", "1", "2"]
    assert from_file.n_seen_ == 300
    assert np.array_equal(from_file.coef_, from_rows.coef_[:, : from_file.n_features_in_])
    assert not from_rows.coef_[:, from_file.n_features_in_ :].any()
    assert from_file.grow_features is False


def test_names_of_files_and_chunks_are_sources(examples, tmp_path):
    X, y, path = examples
    packed = tmp_path / "some.svm.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    learnt = [
        OnlineClassifier("pa1").fit_stream(source)
        for source in (path, str(path), [path], packed, open_stream(packed, threads=1))
    ]
    chunks = ((X[k : k + 50].astype(np.float32), y[k : k + 50].astype(str)) for k in range(0, 300, 50))
    learnt.append(OnlineClassifier("pa1").fit_stream(chunks))
    for learner in learnt:
        assert learner.predict(X).tolist() == learnt[0].predict(X).tolist()
        assert np.array_equal(learner.coef_, learnt[0].coef_)


def test_weights_of_a_stream_count():
    X, y = np.eye(2), np.array(["a", "b"])
    one = OnlineClassifier("perceptron").fit_stream([(X, y, np.array([1.0, 3.0]))])
    other = OnlineClassifier("perceptron").partial_fit(X, y, sample_weight=[1.0, 3.0])
    assert np.array_equal(one.coef_, other.coef_)


def test_stream_without_examples_is_an_error(tmp_path):
    (tmp_path / "empty.svm").write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"there is no example in .*empty.svm"):
        MCPClassifier().fit_stream(tmp_path / "empty.svm")
    with pytest.raises(ValueError, match="there is no example in the stream"):
        MCPClassifier().fit_stream(iter([]))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "a stream is the name of a file, several names, or an iterable of chunks .*, and not a int"),
        ([(np.eye(2), np.array([0, 1])), (np.eye(2),)], "chunk 1 of the stream is neither"),
        ([np.eye(2)], "chunk 0 of the stream is neither"),
    ],
)
def test_source_that_is_not_a_stream_is_refused(source, message):
    with pytest.raises(TypeError, match=message):
        MCPClassifier().fit_stream(source)
