"""The documentation of the parameters and attributes that all classifiers share."""

from __future__ import annotations

from typing import TypeVar

C = TypeVar("C", bound=type)

PARAMETERS_AND_ATTRIBUTES = """average : bool, default=False
        Predict with the average of the hypotheses after each example.
    fit_intercept : bool, default=True
        Add a constant feature 1, which counts in the norm of each example.
    multiclass : {"ovr", "joint"}, default="ovr"
        Learn each class against the rest, or all classes by one joint hypothesis, which separates every
        class from the best wrong one.
    passes : int, default=1
        How many times `fit` visits each row.
    probability : bool, default=False
        Offer probabilities: `predict_proba`, `predict_log_proba` and `predict_proba_one`. They are fitted in the same
        pass to the scores that rows have before they are learnt, by online Platt scaling, so nothing is held out. With
        ``passes`` above 1, the rows of later passes count, too, although they were learnt before, and make the
        probabilities too sure. A merged model starts anew. Of two classes, `predict` returns the one that
        `decision_function` has above 0; where one class is rare, the other one may be more probable.
    shuffle : bool, default=False
        Visit the rows in random order, in a new one in each pass.
    random_state : int, RandomState instance or None, default=None
        The seed of `shuffle`.
    class_weight : dict, "balanced" or None, default=None
        Factors for the steps of each class. The value "balanced", for `fit` only, makes them inversely
        proportional to the frequencies of the classes.
    grow_features : bool, default=False
        Allow later calls of `partial_fit` to bring more columns. Rows may then have fewer columns, too.
    dtype : {"float32", "float64"} or None, default=None
        The type of the weights; None takes the type of X, and float64 for dicts.
    n_jobs : int or None, default=None
        The number of threads that predict; None is 1, and -1 is all processors.
    verbose : int, default=0
        Report progress on standard error if it is above 0.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    coef_ : array or sparse array of shape (1, n_features) or (n_classes, n_features)
        The weights; one row for two classes. Sparse after `sparsify`.
    intercept_ : array of shape (1,) or (n_classes,)
        The weights of the constant feature.
    certificate_ : Certificate
        What is proven of the hypothesis and of the examples seen.
    features_ : array of shape (n_features,)
        The name, the id or the column number of each feature.
    mistakes_ : int
        How many examples the last hypothesis predicted wrongly before they were learnt, in all passes.
    error_ : ProgressiveError
        The share of these examples, with an interval for the true error; after one pass only.
    updates_ : int or array of shape (n_classes,)
        How many examples changed the hypothesis.
    n_seen_ : int
        How many examples were seen, zero rows included.
    model_ : Model
        What was learnt, as a value that can be copied, merged and written to a file.
    trace_ : structured array of shape (n_steps,)
        What each hypothesis did with each example, with the fields example, row, head, mistake, margin, keep,
        add, norm, coef_sum and ell; only after `fit` or `partial_fit` with ``trace=True``. The how-to guide
        about traces describes the fields, and :class:`~maxcosine.TraceDisplay` plots them.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of shape (n_features,)
        The names of the columns of X; only if all of them are strings."""


EXAMPLE = """Examples
    --------
    >>> from maxcosine import {name}
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> learner = {name}().fit(X, ["right", "up", "right", "up"])
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']"""


def documented(cls: C) -> C:
    """Fill the shared parameters and attributes, and an example, into the docstring of a class."""
    text = (cls.__doc__ or "").replace("{parameters_and_attributes}", PARAMETERS_AND_ATTRIBUTES)
    cls.__doc__ = text.replace("{example}", EXAMPLE.format(name=cls.__name__))
    return cls
