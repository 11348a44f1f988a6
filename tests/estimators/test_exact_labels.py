"""Labels keep their values: whole numbers beyond 2^53 are told apart, or refused, and no class is lost."""

import numpy as np
import pytest

import maxcosine
from maxcosine import OnlineClassifier
from maxcosine.labels import LabelEncoder
from tests.learners import everything

BIG = 2**53  # float64 has no 2^53 + 1
ROWS = np.eye(4)
DICTS = [{f"word {k}": 1.0} for k in range(4)]

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")


def by_rows(learner, rows, y):
    learner.partial_fit(ROWS[rows], y)


def by_dicts(learner, rows, y):
    learner.learn_many([DICTS[row] for row in rows], y)


def by_one(learner, rows, y):
    for row, label in zip(rows, y.tolist(), strict=True):
        learner.learn_one(DICTS[row], label)


@pytest.fixture(params=[by_rows, by_dicts, by_one])
def learn(request):
    return request.param


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (np.array([1, BIG + 1]), np.array([5.0])),
        (np.array([BIG, BIG + 1]), np.array([5.0])),
        (np.array([-BIG - 1, 1]), np.array([5.0], np.float32)),
        (np.array([2**63 + 1, 2**63], np.uint64), np.array([-5])),
        (np.array([1.0, 2.0]), np.array([BIG + 1])),
    ],
    ids=["one beyond", "two beyond", "negative", "unsigned", "float first"],
)
def test_labels_that_a_common_type_would_change_are_refused_and_leave_no_trace(multiclass, learn, first, then):
    learner = OnlineClassifier(multiclass=multiclass)
    learn(learner, [0, 1], first)
    before = everything(learner)
    with pytest.raises(ValueError, match=r"would change.*give all labels in one type"):
        learn(learner, [2], then)
    assert everything(learner) == before
    learn(learner, [0, 1], first)
    assert learner.classes_.tolist() == sorted(first.tolist())
    assert learner.n_seen_ == 4


@pytest.mark.parametrize("n_classes", [2, 4, 64])
def test_a_float_label_is_the_class_of_exactly_its_value(n_classes):
    classes = np.arange(BIG, BIG + n_classes)
    floats = classes[::2].astype(np.float64)
    assert LabelEncoder(classes).codes(floats).tolist() == list(range(0, n_classes, 2))
    assert LabelEncoder(floats).codes(classes).tolist() == [k // 2 if k % 2 == 0 else -1 for k in range(n_classes)]


@pytest.mark.parametrize("call", ["fit", "partial_fit", "learn_many"])
@pytest.mark.parametrize("y", [[BIG, BIG + 1, 5.0], [2**63, 2**63 + 1, -5]])
def test_lists_of_labels_that_numpy_would_change_are_refused(call, y):
    X = DICTS[:3] if call == "learn_many" else ROWS[:3]
    with pytest.raises(ValueError, match=r"would change .*give all labels in one type"):
        getattr(OnlineClassifier(), call)(X, y)
    with pytest.raises(ValueError, match=r"would change .*give all labels in one type"):
        OnlineClassifier().partial_fit(ROWS[:2], y[:2], classes=y)


def test_models_whose_labels_a_common_type_would_change_are_not_merged():
    parts = [OnlineClassifier().partial_fit(ROWS[:2], y) for y in ([1, BIG + 1], [1.0, 2.0])]
    with pytest.raises(ValueError, match="would change"):
        maxcosine.merge(parts)


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        (np.array([1.0, 2.0]), str(BIG + 1)),
        (np.array([1, 2], np.int8), "300"),
        (np.array([1.0, 2.0], np.float16), "2049"),
        (np.array([1, 2]), "ham"),
        (np.array([False, True]), "2"),
    ],
)
def test_text_that_is_no_label_in_the_type_of_the_classes_is_refused(classes, text):
    with pytest.raises(ValueError, match=f"the labels '{text}' cannot be added"):
        LabelEncoder(classes).parse([text])
    assert LabelEncoder(np.array([1.0, 2.0])).parse(["3"]).tolist() == [3.0]
