"""The same data give the same model, to the bit, however they are read."""

import gzip

import numpy as np
import pytest
import zstandard

from maxcosine import RULES, model_file
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import Settings, StreamLearner
from maxcosine.stream.training import Training

RULE = RULES["mcp"]


def svmlight_lines(n=400, seed=0):
    """Examples of four classes, the last ones late; ids unsorted and repeated now and then."""
    random = np.random.default_rng(seed)
    lines = []
    for k in range(n):
        label = ("ham", "spam", "eggs", "toast")[random.integers(0, 2 if k < n // 2 else 4)]
        ids = random.integers(0, 60, random.integers(0, 12))
        if k % 7:
            ids = np.unique(ids)
        lines.append(f"{label} " + " ".join(f"{i}:{random.integers(1, 99) / 8:g}" for i in ids))
    return lines


def vw_lines(n=400, seed=0):
    random = np.random.default_rng(seed)
    lines = []
    for k, line in enumerate(svmlight_lines(n, seed)):
        label, *features = line.split()
        weight = f" {random.integers(0, 4) / 2:g}" if k % 3 == 0 else ""
        half = len(features) // 2
        lines.append(f"{label}{weight} |a {' '.join(features[:half])} |b {' '.join(features[half:])}")
    return lines


FILES = {"svm": svmlight_lines, "vw": vw_lines}
MODES = {"columns": {}, "hashed": {"bits": 6}, "exact": {"exact": True}}
setups = pytest.mark.parametrize(
    ("kind", "mode"),
    [("svm", "columns"), ("svm", "hashed"), ("svm", "exact"), ("vw", "hashed"), ("vw", "exact")],
)


@pytest.fixture
def path(tmp_path, kind):
    path = tmp_path / f"data.{kind}"
    path.write_text("\n".join(FILES[kind]()) + "\n")
    return path


def learner(average=True):
    return StreamLearner(Settings(RULE, RULE.make_params(), average=average, fit_intercept=True))


def digest(
    tmp_path, inputs, mode, *, passes=1, checkpoint=None, every=1000, resume=False, interrupt=None, **options
):
    """The digest of the model that is learnt from inputs."""

    def stop(training, codes, predicted):
        if interrupt is not None and training.status.examples >= interrupt:
            raise KeyboardInterrupt

    training = Training(
        lambda start: Stream(inputs, **MODES[mode], **options, labelled=True, start=start),
        learner(),
        passes=passes,
        checkpoint=checkpoint,
        every=every,
        on_rows=stop,
    )
    if resume:
        assert training.resume()
    training.run()
    model_file.save(training.model, tmp_path / "model")
    return model_file.digest(tmp_path / "model")


@setups
def test_threads_blocks_and_compression_change_nothing(tmp_path, path, mode):
    expected = digest(tmp_path, path, mode, threads=1)
    for threads, block_bytes in ((1, 300), (2, 1000), (3, 5000)):
        assert digest(tmp_path, path, mode, threads=threads, block_bytes=block_bytes) == expected
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert digest(tmp_path, packed, mode, block_bytes=700) == expected
    other = path.with_name(path.name + ".zst")
    other.write_bytes(zstandard.compress(path.read_bytes()))
    assert digest(tmp_path, other, mode, block_bytes=700) == expected


@setups
def test_one_file_is_as_many(tmp_path, path, mode):
    lines = path.read_text().splitlines()
    parts = [path.with_name(f"part-{k}{path.suffix}") for k in range(3)]
    for part, chosen in zip(parts, (lines[:100], lines[100:101], lines[101:]), strict=True):
        part.write_text("\n".join(chosen))  # the last line has no end
    expected = digest(tmp_path, path, mode)
    assert digest(tmp_path, parts, mode) == expected
    assert digest(tmp_path, str(path.with_name(f"part-*{path.suffix}")), mode) == expected


@setups
@pytest.mark.parametrize("interrupt", [1, 60, 333, 399])
def test_going_on_from_a_checkpoint_is_as_if_nothing_had_happened(tmp_path, path, mode, interrupt):
    expected = digest(tmp_path, path, mode)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        digest(tmp_path, path, mode, checkpoint=checkpoint, every=20, interrupt=interrupt, block_bytes=900)
    if interrupt < 20:
        assert not checkpoint.exists()
        return
    resumed = digest(tmp_path, path, mode, checkpoint=checkpoint, every=20, resume=True, block_bytes=1300)
    assert resumed == expected


@setups
@pytest.mark.parametrize("interrupt", [300, 400, 401, 950])
def test_several_passes_go_on_where_they_were(tmp_path, path, mode, interrupt):
    expected = digest(tmp_path, path, mode, passes=3)
    checkpoint = tmp_path / "checkpoint"
    options = {"passes": 3, "checkpoint": checkpoint, "every": 37}
    with pytest.raises(KeyboardInterrupt):
        digest(tmp_path, path, mode, **options, interrupt=interrupt, block_bytes=2000)
    assert digest(tmp_path, path, mode, **options, resume=True) == expected


def test_columns_are_learnt_as_exact_ids_are(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("\n".join(svmlight_lines()) + "\n")
    weights = {}
    for mode in MODES:
        stream, one = Stream(path, **MODES[mode]), learner(average=False)
        for rows in stream.rows():
            one.learn(stream, rows)
        w, _ = one.model.hypothesis()
        keys = one.model.features.keys().astype(int)
        weights[mode] = {key: w[:, k].tolist() for k, key in enumerate(keys) if w[:, k].any()}
    assert weights["columns"] == weights["hashed"] == weights["exact"]
