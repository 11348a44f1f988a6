"""Files are divided at the ends of lines; every line is learnt once."""

import gzip

import numpy as np
import pytest

from maxcosine import MCPExactClassifier
from maxcosine.data import ReadOptions, Span, Stream, StreamError, write_cache
from maxcosine.distributed import TextShard, fit, plan
from tests.distributed.digits import LINES, Y


@pytest.fixture
def digits(tmp_path):
    path = tmp_path / "digits.svm"
    path.write_text("".join(LINES))
    return path


def labels_of(shards):
    """The labels of each shard, in order."""
    found = []
    for shard in shards:
        names, spans = zip(*shard.spans, strict=True)
        stream = Stream(names, shard.options, spans=spans)
        found.append([label for chunk in stream for label in chunk.labels.tolist()])
    return found


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_line_is_in_one_shard(tmp_path, end):
    path = tmp_path / "few.svm"
    lines = [f"c{k} {k % 5 + 1}:{'1' * (k % 13 + 1)}" for k in range(40)]
    for last_end in (end, ""):
        path.write_bytes((end.join(lines) + last_end).encode())
        for n in [*range(1, 50, 3), 1000]:
            found = labels_of(plan(path, n_shards=n))
            assert len(found) <= n
            assert all(found)
            assert [label for labels in found for label in labels] == [f"c{k}" for k in range(40)]


def test_compressed_files_are_not_divided(tmp_path):
    for k, lines in enumerate(np.array_split(np.array(LINES, object), 4)):
        content = "".join(lines).encode()
        (tmp_path / f"{k}.svm{'.gz' * (k == 2)}").write_bytes(gzip.compress(content) if k == 2 else content)
    (tmp_path / "1b.svm").touch()
    for n in (1, 2, 3, 5, 8):
        shards = plan(tmp_path / "*.svm*", n_shards=n)
        assert [int(label) for labels in labels_of(shards) for label in labels] == Y.tolist()
        assert [span for shard in shards for name, span in shard.spans if name.endswith("gz")] == [Span()]


def test_converted_files_are_not_divided(tmp_path):
    names = []
    for k, lines in enumerate(np.array_split(np.array(LINES, object), 3)):
        path = tmp_path / f"{k}.svm"
        path.write_text("".join(lines))
        names.append(path.with_suffix(".arrow"))
        write_cache(Stream(path), names[-1])
    shards = plan(names, n_shards=5)
    assert labels_of(shards) == [labels.tolist() for labels in np.array_split(Y.astype(str), 3)]


def test_shards_have_the_requested_size(digits):
    sizes = [span.stop - span.start for shard in plan(digits, shard_bytes=40_000) for _, span in shard.spans]
    assert len(sizes) == -(-digits.stat().st_size // 40_000)
    assert max(sizes) < 42_000


def test_one_shard_is_a_stream(digits):
    found, expected = fit(plan(digits), MCPExactClassifier()), MCPExactClassifier().fit_stream(digits)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.certificate_ == expected.certificate_


def test_bad_line_is_reported_by_its_number_in_the_file(digits):
    digits.write_text("".join([*LINES[:1500], "3 5:x\n", *LINES[1501:]]))
    with pytest.raises(StreamError, match=r"digits\.svm:1501:5: .* \(found 'x'\)"):
        fit(plan(digits, n_shards=6), MCPExactClassifier())
    learner = fit(plan(digits, n_shards=6, on_bad="skip"), MCPExactClassifier(), rounds=2, fan_in=2)
    assert [(tally.examples, tally.bad) for tally in learner.rounds_] == [(len(Y) - 1, 1)] * 2
    assert "digits.svm:1501:5: " in learner.rounds_[0].first_bad[0]
    assert learner.n_seen_ == 2 * (len(Y) - 1)


def test_shard_of_bad_lines_only_is_counted(tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:1\n-1 2:1\n" + "x y\n" * 9)
    options = ReadOptions(on_bad="skip", format="svmlight")
    shards = [TextShard(((str(path), span),), options) for span in (Span(0, 13), Span(13, 49))]
    learner = fit(shards, MCPExactClassifier(), rounds=2)
    assert [(tally.examples, tally.bad) for tally in learner.rounds_] == [(2, 9)] * 2
    assert len(learner.rounds_[0].first_bad) == 5
    assert learner.rounds_[0].first_bad[0].startswith(f"{path}:3:")


def test_unusable_example_is_reported_by_its_line(tmp_path):
    path = tmp_path / "long.svm"
    path.write_text("1 1:1\n" * 50 + "1 1:1e30\n")
    with pytest.raises(StreamError, match=r"long\.svm:51:1: "):
        fit(plan(path, n_shards=3), MCPExactClassifier())


def test_file_that_became_shorter_is_an_error(digits):
    shards = plan(digits, n_shards=3)
    digits.write_text("".join(LINES[:1000]))
    with pytest.raises(StreamError, match=r"digits\.svm: ends before byte"):
        fit(shards, MCPExactClassifier())


def test_names_are_the_same_features_in_all_shards(tmp_path):
    words = ["ant", "bee", "cat", "dog", "elk"]
    path, names = tmp_path / "animals.vw", {*words, "odd0", "odd1", "even0", "even1"}
    path.write_text(
        "".join(
            f"{1 if k % 2 else -1} | {words[k % 5]} {'odd' if k % 2 else 'even'}{k // 20 % 2}\n" for k in range(100)
        )
    )
    hashed = fit(plan(path, n_shards=4, bits=10), MCPExactClassifier(), rounds=2)
    assert hashed.n_features_in_ == 2**10
    exact = fit(plan(path, n_shards=4, exact=True), MCPExactClassifier(), rounds=2)
    assert set(exact.features_.tolist()) == names
    assert exact.predict_one({"odd0": 1.0}) == "1"
    assert exact.predict_one({"even1": 1.0}) == "-1"


def test_class_weights(digits):
    plain = fit(plan(digits, n_shards=2), MCPExactClassifier())
    weighted = fit(plan(digits, n_shards=2), MCPExactClassifier(class_weight={"3": 4.0}))
    assert weighted.certificate_.weighted
    assert weighted.coef_.tobytes() != plain.coef_.tobytes()


def test_what_cannot_be_divided_is_an_error(digits, tmp_path):
    for name, message in [
        ("-", "only regular files"),
        ("no.svm", "no.svm: "),
        ("/dev/null", "only regular files"),
    ]:
        with pytest.raises(StreamError, match=message):
            plan([name])
    with pytest.raises(ValueError, match="n_shards=0"):
        plan(digits, n_shards=0)
    empty = tmp_path / "empty.svm"
    empty.touch()
    [shard] = plan(empty, n_shards=3)
    with pytest.raises(ValueError, match="no examples"):
        fit([shard], MCPExactClassifier())
