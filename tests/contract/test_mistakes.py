"""`mistakes_` counts wrong predictions, `certificate_.mistakes` the margins <= 0 of each hypothesis."""

import itertools
import json

import numpy as np
import pytest

from maxcosine import OnlineClassifier
from tests.commands import run
from tests.contract.streams import are_examples, augmented, csr, late, signs, stream
from tests.learners import PAIRWISE_SETTINGS

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")


def replayed(learner, X, y, weights=None, passes=1, classes=None):
    """Predict each row before it is learnt, and count the wrong predictions, by hand."""
    wrong, known = 0, None if classes is None else classes[0]
    weights = np.ones(len(X)) if weights is None else weights
    for _, row in itertools.product(range(passes), range(len(X))):
        x, label, weight = X[row : row + 1], y[row : row + 1], weights[row : row + 1]
        fitted = learner.__sklearn_is_fitted__()
        predicted = learner.predict(x)[0] if fitted else known  # of named classes w = 0 predicts the first
        wrong += weight[0] > 0.0 and predicted != label[0]
        learner.partial_fit(x, label, classes=classes, sample_weight=weight)
    return wrong


def setting_stream(setting, noise=0.2):
    """Late classes, zero rows, and rows of weight 0 once all classes have come."""
    X, y = late(120, 6, [15, 0, 40, 31][: setting.n_classes], noise=noise, dtype=setting.dtype)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(X))
    weights[:41] = 1.0
    return X, y, weights


def test_mistakes_are_the_wrong_predictions_before_learning(some_rule):
    for setting in PAIRWISE_SETTINGS:
        X, y, weights = setting_stream(setting)
        last = setting.classifier(some_rule).set_params(average=False)
        expected = replayed(last, X, y, weights)
        assert 0 < expected < len(X)
        assert last.mistakes_ == expected
        # The last hypothesis is judged, also when averaging, and whatever the chunks.
        for storage, cuts in itertools.product((np.asarray, csr), ([], [1, 2, 30, 90], range(7, 120, 7))):
            learner = setting.classifier(some_rule)
            for start, stop in itertools.pairwise([0, *cuts, len(X)]):
                learner.partial_fit(storage(X[start:stop]), y[start:stop], sample_weight=weights[start:stop])
            assert learner.mistakes_ == expected, (setting, cuts)
        assert learner.model_.n_judged == learner.n_seen_ == np.count_nonzero(weights)


def test_mistakes_of_all_passes_count(some_rule):
    """`fit` knows all classes from the start."""
    for setting in PAIRWISE_SETTINGS[::2]:
        X, y, weights = setting_stream(setting)
        classes = np.arange(setting.n_classes)
        last = setting.classifier(some_rule).set_params(average=False)
        expected = replayed(last, X, y, weights, passes=2, classes=classes)
        learner = setting.classifier(some_rule, passes=2).fit(X, y, sample_weight=weights)
        assert learner.mistakes_ == last.mistakes_ == expected, setting
        assert learner.model_.n_judged == 2 * np.count_nonzero(weights)


def test_first_row_is_wrong_where_no_class_is_known():
    for multiclass, label in itertools.product(("ovr", "joint"), (0, 1)):
        learner = OnlineClassifier(multiclass=multiclass)
        learner.partial_fit([[1.0, 2.0]] * 3, [label] * 3)  # then the only class is predicted
        assert learner.mistakes_ == 1
        named = OnlineClassifier(multiclass=multiclass).partial_fit([[1.0, 2.0]], [label], classes=[0, 1])
        assert named.mistakes_ == label


def test_certificates_count_the_margins_of_each_head(some_rule):
    """With three classes no head's count is that of wrong predictions; a margin of 0 counts, skipped rows do not."""
    X, y = stream(150, 6, n_classes=3, noise=0.2)
    for fit_intercept in (False, True):
        learner = OnlineClassifier(some_rule, fit_intercept=fit_intercept)
        expected = np.zeros(3, int)
        for k in range(len(X)):
            if learner.__sklearn_is_fitted__():
                heads = learner.model_.heads
                w, constant = heads.hypotheses()
                margins = augmented(X[k : k + 1], True)[0] @ np.column_stack([w, constant]).T
            else:
                margins = np.zeros(3)
            if are_examples(X[k : k + 1], fit_intercept)[0]:
                expected += np.where(y[k] == np.arange(3), margins, -margins) <= 0.0
            learner.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1, 2])
        certificate = learner.certificate_
        assert certificate.mistakes.tolist() == expected.tolist()
        assert learner.mistakes_ not in expected.tolist()
        assert isinstance(learner.mistakes_, int)


def test_wrong_binary_predictions_are_margins_below_0_or_ties():
    """One head of two classes: a tie is right for the first class, and a mistake of the head for both."""
    X, y = stream(200, 5, noise=0.2)
    X[10::20] = 0.0
    learner = OnlineClassifier("perceptron", fit_intercept=False)
    ties = 0
    for k in range(len(X)):
        tied = not learner.__sklearn_is_fitted__() or not learner.decision_function(X[k : k + 1])[0]
        if tied and X[k].any():
            ties += signs(y[k : k + 1])[0] < 0
        elif tied:  # no head learns a row without features
            ties -= signs(y[k : k + 1])[0] > 0
        learner.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
    assert learner.certificate_.mistakes == learner.mistakes_ + ties != learner.mistakes_


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("options", [[], ["--average"], ["--multiclass", "joint"]], ids=" ".join)
def test_commands_count_what_mistakes_counts(tmp_path, options, passes):
    X, y = late(200, 8, [0, 3, 60, 90], noise=0.1)
    X = np.round(X, 3)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(X))
    weights[:100] = 1.0
    with open(tmp_path / "rows.vw", "w") as file:
        for x, label, weight in zip(X, y, weights, strict=True):
            features = " ".join(f"f{k}:{float(x[k])}" for k in np.flatnonzero(x))
            file.write(f"c{label} {weight} |a {features}\n")
    arguments = ["rows.vw", "--rule", "mcp", "--exact", "--passes", passes, *options]
    ran = run(tmp_path, "train", *arguments, "--model", "model", "--predictions", "predicted", "--json")
    assert ran.returncode == 0, ran.stderr
    multiclass = "joint" if "joint" in options else "ovr"
    learner = OnlineClassifier(multiclass=multiclass, fit_intercept=True)
    wrong = replayed(learner, X.astype(np.float32), y, weights, passes=passes)
    judged = passes * np.count_nonzero(weights)
    trained = json.loads(ran.stdout)
    assert trained["progressive_error"] == wrong / judged
    shown = json.loads(run(tmp_path, "inspect", "model", "--json").stdout)
    assert (shown["mistakes"], shown["judged"]) == (wrong, judged)
    assert shown["certificate"]["mistakes"] != shown["mistakes"]
    text = " ".join(run(tmp_path, "inspect", "model").stdout.split())
    assert f"progressive error {wrong / judged:.3%}: {wrong:,} of {judged:,} predicted wrongly" in text
    predicted = (tmp_path / "predicted").read_text().splitlines()
    assert predicted[0] == "" not in predicted[1:]
    if passes == 1:
        labels = [f"c{label}" for label in y]
        assert wrong == sum(a != b for a, b, w in zip(predicted, labels, weights, strict=True) if w > 0.0)
