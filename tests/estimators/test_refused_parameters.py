"""Parameters out of range, and matrices that lie about their indices."""

import itertools
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from maxcosine import ALMAClassifier, NORMAClassifier, OnlineClassifier, PAClassifier
from tests.learners import everything, points

ROOT = pathlib.Path(__file__).parents[2]

RANGE = r"must be a float in the range"

PARAMETERS = [
    (OnlineClassifier(), {"rule": "mpc"}, r"no rule 'mpc'; did you mean 'mcp'\? The rules are: .*perceptron"),
    (OnlineClassifier(), {"rule": 3}, r"'rule' parameter.*Got 3"),
    (OnlineClassifier(), {"rule": max}, r"'rule' parameter.*instance of .*Rule"),
    (OnlineClassifier(), {"rule_params": [1.0]}, r"'rule_params' parameter.*dict"),
    (OnlineClassifier(), {"rule_params": {"C": 1.0}}, r"'mcp' has no parameter 'C'; its parameters: none"),
    (OnlineClassifier("pa1"), {"rule_params": {"c": 1.0}}, r"'pa1' has no parameter 'c'; its parameters: C"),
    *(
        (OnlineClassifier("pa1"), {"rule_params": {"C": value}}, r"C.*'pa1'.*choose it in")
        for value in (0.0, -1.0, np.nan, np.inf)
    ),
    *(
        (OnlineClassifier("pa1"), {"rule_params": {"C": value}}, r"C=.*'pa1' is not a number; choose it in")
        for value in (None, "big")
    ),
    (OnlineClassifier("alma"), {"rule_params": {"alpha": 1.5}}, r"alpha=1.5.*choose it in"),
    (
        OnlineClassifier("norma"),
        {"rule_params": {"eta": 10.0, "lambda_reg": 0.1}},
        r"eta \* lambda_reg = 1.*below 1",
    ),
    (NORMAClassifier(), {"eta": 10.0, "lambda_reg": 0.1}, r"eta \* lambda_reg = 1.*below 1"),
    (NORMAClassifier(), {"eta": 0.0}, RANGE),
    (NORMAClassifier(), {"lambda_reg": -1.0}, RANGE),
    (NORMAClassifier(), {"nu": 1.1}, RANGE),
    (NORMAClassifier(), {"clip": "yes"}, r"'clip' parameter.*bool"),
    (PAClassifier(), {"variant": "pa3"}, r"'variant' parameter.*pa1"),
    *((PAClassifier("pa1"), {"C": value}, RANGE) for value in (0.0, -1.0, np.nan, np.inf)),
    *((ALMAClassifier(), {name: 0.0}, RANGE) for name in ("alpha", "B", "C")),
    (OnlineClassifier(), {"multiclass": "ovo"}, r"'multiclass' parameter.*ovr"),
    (OnlineClassifier(), {"passes": 0}, r"'passes' parameter.*\[1, inf\)"),
    (OnlineClassifier(), {"passes": 1.5}, r"'passes' parameter.*an int"),
    (OnlineClassifier(), {"random_state": "seed"}, "'random_state' parameter"),
    *(
        (OnlineClassifier(), {name: "yes"}, f"'{name}' parameter.*bool")
        for name in ("average", "fit_intercept", "shuffle", "grow_features")
    ),
]


@pytest.mark.parametrize(
    ("learner", "params", "match"),
    PARAMETERS,
    ids=[f"{learner}, {params}" for learner, params, _ in PARAMETERS],
)
def test_parameters_out_of_range_are_refused(learner, params, match):
    X, y = points()
    twin = type(learner)(**learner.get_params() | params)
    for call in (lambda: twin.fit(X, y), lambda: twin.partial_fit(X, y, classes=[0, 1])):
        with pytest.raises(ValueError, match=f"(?s){match}"):
            call()
        assert not twin.__sklearn_is_fitted__()

    good = learner.get_params()
    learner = type(learner)(**good).fit(X, y)
    before = everything(learner)
    with pytest.raises(ValueError, match=f"(?s){match}"):
        learner.set_params(**params).fit(X, y)
    assert everything(learner.set_params(**good)) == before


# Index arrays can point anywhere. A mistake here is a crash, so another process makes it.

CORRUPT = {
    "index beyond the columns": "indices[7] = 6",
    "index far beyond": "indices[-1] = 10**8",
    "negative index": "indices[3] = -1",
    "pointers beyond the values": "indptr[-1] = 10**8",
    "one pointer far beyond": "indptr[5] = 10**8",
    "one pointer a little beyond": "indptr[5] = len(data) + 1",
    "unsorted indices and a pointer beyond": "indices[:4] = indices[:4][::-1].copy(); indptr[5] = 10**8",
    "pointers that fall": "indptr[5] = 1",
    "negative pointer": "indptr[5] = -7",
    "pointers that start late": "indptr[0] = 2",
    "pointers for fewer rows": "X.indptr = indptr[:10].copy()",
    "no pointers": "X.indptr = indptr[:0].copy()",
    "fewer indices than values": "X.indices = indices[:9].copy()",
    "fewer values than indices": "X.data = data[:9].copy()",
}
SCRIPT = """
import sys
import scipy.sparse
from maxcosine import OnlineClassifier
from tests.learners import everything, points
rows, y = points()
for case in sys.argv[1:]:
    call, corrupt = case.split(": ")
    learner = OnlineClassifier().fit(rows, y)
    before = everything(learner)
    X = scipy.sparse.csr_array(rows)
    indptr, indices, data = X.indptr, X.indices, X.data
    exec(corrupt)
    try:
        getattr(learner, call)(X, *([] if call == "predict" else [y]))
        print("nothing was said", flush=True)
    except Exception as error:
        assert everything(learner) == before
        print(type(error).__name__, error, flush=True)
"""


@pytest.fixture(scope="module")
def outcomes():
    """What each call said of each corrupt matrix; after a crash, another process goes on."""
    cases = [
        (call, name, f"{call}: {code}")
        for call, (name, code) in itertools.product(("fit", "partial_fit", "predict"), CORRUPT.items())
    ]
    said = []
    while len(said) < len(cases):
        command = [sys.executable, "-c", SCRIPT, *(case for _, _, case in cases[len(said) :])]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        said += ran.stdout.splitlines()
        if ran.returncode:
            said.append(f"crashed with code {ran.returncode} {ran.stderr}")
    return {(call, name): text for (call, name, _), text in zip(cases, said, strict=True)}


@pytest.mark.parametrize("name", CORRUPT)
def test_index_arrays_that_point_outside_are_refused(name, outcomes):
    for call in ("fit", "partial_fit", "predict"):
        assert outcomes[call, name].startswith("ValueError X is not a valid CSR matrix")
        assert "check_format" in outcomes[call, name]
