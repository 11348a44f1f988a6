"""River's evaluation loops and pipelines take our classifiers unchanged."""

import collections

import numpy as np
import pandas as pd
import pytest
from river import (
    base,
    compose,
    datasets,
    evaluate,
    feature_extraction,
    linear_model,
    metrics,
    preprocessing,
)

from maxcosine import OnlineClassifier, PAClassifier
from tests.learners import learnt

# After this, River takes them for classifiers.
base.Classifier.register(OnlineClassifier)
base.Classifier.register(PAClassifier)

PHISHING, SEGMENTS = (list(dataset().take(1000)) for dataset in (datasets.Phishing, datasets.ImageSegments))
each_dataset = pytest.mark.parametrize("examples", [PHISHING, SEGMENTS], ids=["phishing", "segments"])


def progressive_accuracy(model, examples):
    """The share of right predictions, each made before its example is learnt; the first may be None."""
    right = total = 0
    for x, y in examples:
        predicted = model.predict_one(x)
        total += predicted is not None
        right += predicted == y
        model.learn_one(x, y)
    return right / total


def most_frequent_class(examples):
    """The share of right predictions if the most frequent class is always predicted."""
    return max(collections.Counter(y for _, y in examples).values()) / len(examples)


def standardised(model):
    return preprocessing.StandardScaler() | model


@each_dataset
@pytest.mark.parametrize("rule", ["mcp", "pa1", "aggressive_romma", "norma"])
def test_progressive_validation_is_the_explicit_loop_and_beats_the_most_frequent_class(rule, examples):
    learner, twin = OnlineClassifier(rule), OnlineClassifier(rule)
    accuracy = evaluate.progressive_val_score(examples, learner, metrics.Accuracy()).get()
    assert accuracy == progressive_accuracy(twin, examples)
    assert learnt(learner) == learnt(twin)
    assert accuracy > most_frequent_class(examples) + 0.1
    assert learner.n_seen_ == len(examples)
    assert set(learner.features_) == set(examples[0][0])
    assert set(learner.classes_) == {y for _, y in examples}


@each_dataset
@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
def test_classifier_ends_a_pipeline(examples, multiclass):
    model = standardised(OnlineClassifier(multiclass=multiclass))
    accuracy = evaluate.progressive_val_score(examples, model, metrics.Accuracy()).get()
    assert accuracy == progressive_accuracy(standardised(OnlineClassifier(multiclass=multiclass)), examples)
    assert accuracy > progressive_accuracy(OnlineClassifier(multiclass=multiclass), examples)  # scales matter
    assert accuracy > 0.8


def test_all_rows_at_once_are_one_after_another():
    X, y = pd.DataFrame([x for x, _ in PHISHING]), pd.Series([y for _, y in PHISHING])
    many, single = OnlineClassifier(), OnlineClassifier()
    many.learn_many(X, y)
    for x, label in PHISHING:
        single.learn_one(x, label)
    assert many.predict_many(X).tolist() == [single.predict_one(x) for x, _ in PHISHING]
    assert np.array_equal(many.coef_, single.coef_)
    pipeline = standardised(OnlineClassifier())
    pipeline.learn_many(X.iloc[:600], y.iloc[:600])
    predicted = pipeline.predict_many(X.iloc[600:])
    assert predicted.index.equals(X.index[600:])
    assert (predicted == y.iloc[600:]).mean() > 0.8


def test_new_words_are_new_features():
    model = feature_extraction.BagOfWords() | OnlineClassifier("pa1")
    mails = [("cheap pills, buy now", "spam"), ("see you at noon", "ham"), ("lunch at noon?", "ham")]
    for text, label in 3 * mails:
        model.learn_one(text, label)
    assert [model.predict_one(text) for text, _ in mails] == ["spam", "ham", "ham"]
    assert model.predict_one("buy a sandwich now") == "spam"


def test_parts_of_an_example_may_be_transformed_separately():
    parts = compose.Select("https", "is_popular") + (
        compose.Discard("https", "is_popular") | preprocessing.StandardScaler()
    )
    model = parts | OnlineClassifier()
    metric = evaluate.progressive_val_score(PHISHING, model, metrics.Accuracy() + metrics.F1())
    assert min(metric.get()) > 0.8
    assert set(model["OnlineClassifier"].features_) == set(PHISHING[0][0])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("scale", [lambda model: model, standardised], ids=["plain", "standardised"])
def test_passive_aggressive_learning_is_that_of_river(mode, scale):
    theirs = linear_model.PAClassifier(C=0.5, mode=mode, learn_intercept=False)
    ours = PAClassifier(("pa", "pa1", "pa2")[mode], C=0.5, fit_intercept=False)
    their_model, our_model = scale(theirs), scale(ours)
    labels = [y for _, y in PHISHING]
    both = max(labels.index(True), labels.index(False)) + 1  # before, there is only one class to predict
    for row, (x, y) in enumerate(PHISHING):
        if row >= both:
            assert our_model.predict_one(x) == their_model.predict_one(x)
        their_model.learn_one(x, y)
        our_model.learn_one(x, y)
    weights = [theirs.weights[name] for name in ours.features_]
    np.testing.assert_allclose(ours.coef_[0], weights, atol=1e-12)


def test_weights_of_examples_reach_the_learner():
    examples = [(x, y, {"w": 0.5 if y else 2.0}) for x, y in PHISHING[:300]]
    learner, twin = OnlineClassifier("pa1"), OnlineClassifier("pa1", class_weight={True: 0.5, False: 2.0})
    evaluate.progressive_val_score(examples, learner, metrics.Accuracy())
    for x, y in PHISHING[:300]:
        twin.learn_one(x, y)
    assert learnt(learner) == learnt(twin)
