"""Files are divided at the ends of lines; every line is learnt once, and bad ones are told as in a stream."""

import gzip

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxcosine import MCPExactClassifier
from maxcosine.distributed import TextShard, fit, plan
from maxcosine.stream import Stream, StreamError
from maxcosine.stream.cache import writing
from maxcosine.stream.source import Span
from tests.contract.streams import bits

X, Y = load_digits(return_X_y=True)
LINES = [
    f"{label} " + " ".join(f"{k}:{v:g}" for k, v in enumerate(row, 1) if v)
    for row, label in zip(X, Y, strict=True)
]


def text(lines, end="\n"):
    return "".join(line + end for line in lines)


@pytest.fixture
def digits(tmp_path):
    path = tmp_path / "digits.svm"
    path.write_text(text(LINES))
    return path


def learnt(shards):
    """What each shard is read as: the labels of its rows."""
    found = []
    for shard in shards:
        names, spans = zip(*shard.spans, strict=True)
        stream = Stream(list(names), spans=list(spans), **shard.options)
        found.append([label for chunk in stream for label in chunk.labels.tolist()])
    return found


@pytest.mark.parametrize("last_end", ["\n", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_line_is_in_one_shard(tmp_path, end, last_end):
    path = tmp_path / "few.svm"
    lines = [f"c{k} {k % 5 + 1}:{'1' * (k % 13 + 1)}" for k in range(40)]
    path.write_bytes((text(lines[:-1], end) + lines[-1] + last_end).encode())
    for n in [*range(1, 50), 1000]:
        found = learnt(plan(path, n_shards=n))
        assert len(found) <= n
        assert all(found)
        assert [label for labels in found for label in labels] == [f"c{k}" for k in range(40)]


def test_caches_stay_whole(tmp_path):
    names = []
    for k, piece in enumerate(np.array_split(np.array(LINES, object), 3)):
        path = tmp_path / f"{k}.svm"
        path.write_text(text(piece))
        names.append(path.with_suffix(".arrow"))
        writing.write(Stream(path), names[-1])
    shards = plan(names, n_shards=5)
    assert len(shards) == 3
    assert learnt(shards) == [labels.tolist() for labels in np.array_split(Y.astype(str), 3)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_files_follow_one_another_and_packed_ones_stay_whole(tmp_path, n):
    pieces = np.array_split(np.array(LINES, object), 4)
    for k, piece in enumerate(pieces):
        content = text(piece).encode()
        (tmp_path / f"{k}.svm{'.gz' * (k == 2)}").write_bytes(gzip.compress(content) if k == 2 else content)
    (tmp_path / "1b.svm").touch()
    shards = plan(tmp_path / "*.svm*", n_shards=n)
    assert [int(label) for labels in learnt(shards) for label in labels] == Y.tolist()
    packed = [span for shard in shards for name, span in shard.spans if name.endswith("gz")]
    assert packed == [Span()]


def test_shards_are_of_the_size_that_is_asked_for(digits):
    sizes = [span.stop - span.start for shard in plan(digits, shard_bytes=40_000) for _, span in shard.spans]
    assert len(sizes) == -(-digits.stat().st_size // 40_000)
    assert max(sizes) < 42_000


def test_one_shard_is_a_stream(digits):
    assert bits(fit(plan(digits), MCPExactClassifier())._model) == bits(
        MCPExactClassifier().fit_stream(digits)._model
    )


def test_counts_of_rounds(digits):
    learner = fit(plan(digits, n_shards=6), MCPExactClassifier(), rounds=3, fan_in=2)
    assert learner.n_seen_ == 3 * len(Y)
    assert [tally.examples for tally in learner.rounds_] == [len(Y)] * 3
    assert learner.rounds_[2].mistakes < learner.rounds_[0].mistakes


def test_a_bad_line_is_told_by_its_number_in_the_file(digits):
    lines = [*LINES]
    lines[1500] = "3 5:x"
    digits.write_text(text(lines))
    with pytest.raises(StreamError, match=r"digits\.svm:1501:5: .* \(found 'x'\)"):
        fit(plan(digits, n_shards=6), MCPExactClassifier())
    learner = fit(plan(digits, n_shards=6, on_bad="skip"), MCPExactClassifier(), rounds=2)
    assert [tally.bad for tally in learner.rounds_] == [1, 1]
    assert "digits.svm:1501:5: " in learner.rounds_[0].first_bad[0]
    assert learner.n_seen_ == 2 * (len(Y) - 1)


def test_a_shard_of_bad_lines_only_is_counted(tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:1\n-1 2:1\n" + "x y\n" * 9)
    shards = [
        TextShard(((str(path), span),), {"on_bad": "skip", "format": "svmlight"})
        for span in (Span(0, 13), Span(13, 49))
    ]
    learner = fit(shards, MCPExactClassifier(), rounds=2)
    assert [(tally.examples, tally.bad) for tally in learner.rounds_] == [(2, 9)] * 2
    assert len(learner.rounds_[0].first_bad) == 5
    assert learner.rounds_[0].first_bad[0].startswith(f"{path}:3:")


def test_a_step_that_is_refused_is_told_by_its_line(tmp_path):
    path = tmp_path / "long.svm"
    path.write_text("1 1:1\n" * 50 + "1 1:1e30\n")
    with pytest.raises(StreamError, match=r"long\.svm:51:1: the example is too long"):
        fit(plan(path, n_shards=3), MCPExactClassifier())


def test_a_file_that_became_shorter_is_noticed(digits):
    shards = plan(digits, n_shards=3)
    digits.write_text(text(LINES[:1000]))
    with pytest.raises(StreamError, match=r"digits\.svm: ends before byte .*; it is not the file it was"):
        fit(shards, MCPExactClassifier())


def test_hashed_names_and_exact_names_are_the_same_in_all_shards(tmp_path):
    words = ["ant", "bee", "cat", "dog", "elk"]
    lines = [
        f"{1 if k % 2 else -1} | {words[k % 5]} {'odd' if k % 2 else 'even'}{k // 20 % 2}" for k in range(100)
    ]
    path = tmp_path / "animals.vw"
    path.write_text(text(lines))
    hashed = fit(plan(path, n_shards=4, bits=10, keep_names=True), MCPExactClassifier(), rounds=2)
    features = hashed._model.features
    assert features.bits == 10
    assert set(features.kept_names.values()) == {*words, "odd0", "odd1", "even0", "even1"}
    exact = fit(plan(path, n_shards=4, exact=True), MCPExactClassifier(), rounds=2)
    assert set(exact.features_.tolist()) == {*words, "odd0", "odd1", "even0", "even1"}
    assert exact.predict_one({"odd0": 1.0}) == "1"
    assert exact.predict_one({"even1": 1.0}) == "-1"


def test_class_weights(digits):
    plain = fit(plan(digits, n_shards=2), MCPExactClassifier())
    weighted = fit(plan(digits, n_shards=2), MCPExactClassifier(class_weight={"3": 4.0}))
    assert weighted.certificate_.weighted
    assert weighted.coef_.tobytes() != plain.coef_.tobytes()


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (["-"], {}, "standard input cannot be divided"),
        (["no.svm"], {}, "there is no such file"),
        (["/dev/null"], {}, "no plain file"),
    ],
)
def test_what_cannot_be_divided_is_refused(files, options, message):
    with pytest.raises(StreamError, match=message):
        plan(files, **options)


def test_no_shards_are_refused(digits):
    with pytest.raises(ValueError, match="n_shards=0"):
        plan(digits, n_shards=0)


def test_an_empty_file_is_one_shard_without_examples(tmp_path):
    path = tmp_path / "empty.svm"
    path.touch()
    [shard] = plan(path, n_shards=3)
    with pytest.raises(ValueError, match="no example"):
        fit([shard], MCPExactClassifier())
