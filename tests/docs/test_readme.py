"""What README.md and docs/index.md claim is true.

Their Python examples are doctests. Some claims have tests of their own: chunks, storages and new classes in
tests/contract, certificates in tests/contract/test_certificates.py and tests/adversarial, killed trainings in
tests/faults, merges in tests/merging, rules without Numba in tests/rules/test_own_rule.py, names of all public
classes in tests/test_package.py, the results of MNIST in tests/docs/test_results.py.
"""

import gzip
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
from safetensors import safe_open
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxcosine import RULES, MCPClassifier, OnePassClassifier, OnlineClassifier, save
from maxcosine.experiments.results import Results
from maxcosine.experiments.rule_styles import title_of
from maxcosine.experiments.summary import summarise
from maxcosine.model_file import digest
from tests.cli.examples import svm, vw
from tests.commands import run
from tests.docs.generators import DOCS, load_generator
from tests.estimators.test_checks import EXPECTED_FAILURES
from tests.estimators.test_probability import OF_TWO_CLASSES

ROOT = DOCS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
TEXT = " ".join(README.split())

X, y = load_digits(return_X_y=True)


@pytest.mark.parametrize("page", [README, INDEX], ids=["README.md", "index.md"])
def test_rules_are_fourteen_and_the_named_ones_are_among_them(page):
    assert "fourteen perceptron-like rules" in " ".join(page.lower().split())
    assert len(RULES) == 14
    for title in ("MCP", "PA", "ROMMA", "ALMA", "NORMA", "Perceptron"):
        assert title in page
        assert title in map(title_of, RULES)


@pytest.mark.parametrize(("page", "folder"), [(README, ROOT), (INDEX, DOCS)], ids=["README.md", "index.md"])
def test_links_lead_to_files(page, folder):
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page) if not link.startswith("https://")]
    assert len(links) >= 4
    assert [link for link in links if not (folder / link).is_file()] == []


def test_make_has_the_targets():
    targets = set(re.findall(r"make (\w+)", README))
    assert targets == {"demo", "test", "bench", "docs"}
    for target in targets:
        planned = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert planned.returncode == 0, planned.stderr
        assert ".venv/bin" in planned.stdout
        assert target != "demo" or "maxcosine reproduce" in planned.stdout
    project = (ROOT / "pyproject.toml").read_text()
    assert 'requires-python = ">=3.11"' in project
    assert 'license = "BSD-3-Clause"' in project
    assert "CMAKE_CXX_STANDARD 20" in (ROOT / "CMakeLists.txt").read_text()


def test_nothing_is_compiled_by_fit():
    code = (
        "import sys; sys.modules['numba'] = None\n"  # importing it would be an error
        "from maxcosine import MCPClassifier\n"
        "MCPClassifier(average=True).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1]).predict([[1.0, 0.0]])\n"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_may_have_any_of_the_storages(dtype):
    values = X.astype(dtype)
    expected = MCPClassifier().fit(values, y).decision_function(values)
    columns = [f"pixel{k}" for k in range(X.shape[1])]
    for rows in (
        scipy.sparse.csr_array(values),
        scipy.sparse.csc_matrix(values),
        pandas.DataFrame(values, columns=columns),
    ):
        assert np.array_equal(MCPClassifier().fit(rows, y).decision_function(rows), expected)
    rows = polars.DataFrame(values, schema=columns)  # learnt in float64
    assert np.allclose(MCPClassifier().fit(rows, y).decision_function(rows), expected, rtol=1e-3, atol=1e-2)


def test_pipelines_grid_searches_and_calibration():
    pipeline = make_pipeline(StandardScaler(), OnlineClassifier())
    search = GridSearchCV(pipeline, {"onlineclassifier__average": [False, True]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    calibrated = CalibratedClassifierCV(MCPClassifier(average=True), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert calibrated.score(X, y) > 0.85


def test_named_checks_are_the_expected_failures():  # tests/estimators/test_checks.py runs check_estimator
    assert set(re.findall(r"`(check_(?!estimator`)\w+)`", README)) == {*EXPECTED_FAILURES, *OF_TWO_CLASSES}
    assert len(EXPECTED_FAILURES) == 3


def test_size_of_chunks_does_not_change_a_bit():
    whole = MCPClassifier(average=True).partial_fit(X, y, classes=range(10))
    for size in (1, 7, 500):
        learner = MCPClassifier(average=True)
        for start in range(0, len(X), size):
            learner.partial_fit(X[start : start + size], y[start : start + size], classes=range(10))
        assert np.array_equal(learner.coef_, whole.coef_)
        assert repr(learner.certificate_) == repr(whole.certificate_)


def test_predictions_of_many_threads_are_those_of_one():
    learner = MCPClassifier(average=True).fit(X, y)
    expected = learner.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: learner.predict(X), range(40)):
            assert np.array_equal(found, expected)
    assert np.array_equal(learner.set_params(n_jobs=2).predict(X), expected)


def commands_of(section):
    """The commands in one section of the README."""
    text = README.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^    maxcosine (.+)$", text, re.MULTILINE)


def test_commands_for_raw_data_run(tmp_path):
    commands = commands_of("From raw data")
    assert [command.split()[0] for command in commands] == ["train", "train", "train", "score"]
    texts = ["good fun to read today", "dull and long and bad"] * 20
    pandas.DataFrame({"review": texts, "stars": [5, 1] * 20}).to_parquet(tmp_path / "reviews.parquet")
    pandas.DataFrame({"site": ["a", "b"] * 20, "age": range(40), "clicked": [1, 0] * 20}).to_csv(
        tmp_path / "clicks.csv", index=False
    )
    (tmp_path / "corpus").mkdir()
    for day in (1, 2):
        mails = pandas.DataFrame({"subject": ["win", "lunch"] * 50, "body": texts[:2] * 50, "spam": [True, False] * 50})
        mails.to_json(tmp_path / f"day-{day}.jsonl.gz", orient="records", lines=True)
        mails.drop(columns="spam").to_parquet(tmp_path / "corpus" / f"{day}.parquet")
    for command in commands:
        line = f'"{sys.executable}" -m maxcosine {command}'
        ran = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
    scored = [pandas.read_parquet(tmp_path / "scored" / f"{day}.parquet") for day in (1, 2)]
    assert sum(map(len, scored)) == 20
    assert all((table["predicted"] == "true").all() for table in scored)


def test_one_table_gives_the_same_model_from_each_format(tmp_path):
    import zstandard

    table = pandas.DataFrame({"size": [2.5, 3.0, None] * 20, "color": ["red", "blue", "red"] * 20, "y": [1, 0, 1] * 20})
    table["text"] = [f"some words and the number {number}" for number in range(60)]
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_feather(tmp_path / "a.arrow")
    content = (tmp_path / "a.csv").read_bytes()
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "b.csv.zst").write_bytes(zstandard.compress(content))
    sources = [str(path) for path in tmp_path.iterdir()]
    assert len(sources) == 7
    digests = set()
    for source in [*sources, table]:
        save(OnePassClassifier().fit_records(source, label="y"), tmp_path / "y.model")
        digests.add(digest(tmp_path / "y.model"))
    assert len(digests) == 1


def test_commands_run(tmp_path):
    commands = commands_of("Learn from files")
    assert [command.split()[0] for command in commands] == ["train", "predict", "inspect", "derive"]
    (tmp_path / "clicks.svm.gz").write_bytes(gzip.compress(svm(300).encode()))
    (tmp_path / "new.svm").write_text(svm(50, seed=1))
    printed = {}
    for command in commands:
        line = f'"{sys.executable}" -m maxcosine {command}'
        ran = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        printed[command.split()[0]] = ran.stdout
    assert len((tmp_path / "labels.txt").read_text().splitlines()) == 50
    assert "has a margin above" in printed["inspect"]
    assert "mistakes <= (R / gamma)^2" in printed["derive"]
    with safe_open(tmp_path / "clicks.model", framework="numpy") as model:
        assert list(model.keys())


def test_commands_read_all_formats(tmp_path):
    import zstandard

    found = {}
    for name, text in (("a.svm", svm(200)), ("a.vw", vw(200))):
        content = text.encode()
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
        (tmp_path / f"{name}.zst").write_bytes(zstandard.compress(content))
        inputs = [name, f"{name}.gz", f"{name}.zst", f"{name}.arrow", f"{name}.parquet"]
        for cache in inputs[3:]:
            ran = run(tmp_path, "convert", name, "--output", cache)
            assert ran.returncode == 0, ran.stderr
        for source in inputs:
            ran = run(tmp_path, "train", source, "--model", "a.model", "--json")
            assert ran.returncode == 0, (source, ran.stderr)
            found[source] = json.loads(ran.stdout)["margin_ceiling"]
        assert len({found[source] for source in inputs}) == 1


def test_ratios_of_speed_are_the_measured_ones():
    measured = json.loads((DOCS / "results" / "performance.json").read_text(encoding="utf-8"))
    sections = {section["title"]: section["results"] for section in measured["bench"]["sections"]}
    ratios = [one["ratio"] for one in sections["One pass over data in memory, one thread"]]
    stated = re.search(
        r"([\d.]+) times as fast on 20 Newsgroups, ([\d.]+) times on a synthetic stream with 2\^20 features, "
        r"([\d.]+) times on MNIST with ten classes as a sparse matrix, and ([\d.]+) times as a dense matrix",
        TEXT,
    )
    assert [float(number) for number in stated.groups()] == [round(ratio, 1) for ratio in ratios]
    (compiling,) = (one for one in sections["Start-up"] if one["work"] == "compiling a user's rule")
    assert compiling["unit"] == "s"
    assert "by Numba, in about a second" in TEXT
    assert compiling["ours"] < 1.5


def test_outcome_on_mnist_is_that_of_the_results():
    results = load_generator("generate_results").paper_only(Results.load(DOCS / "results" / "mnist.json"))
    verdict = summarise(results)[0]
    assert results.permutations == 20
    assert "holds for MNIST on each of the 10 labels on average; it is uncertain on 0, where" in verdict
    assert "on label 0 the difference could be chance" in TEXT
