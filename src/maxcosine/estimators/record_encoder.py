"""A transformer of scikit-learn for records."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxcosine.data import ReadOptions
from maxcosine.estimators.record_streams import joined_rows, open_records, tell_new_columns
from maxcosine.features import Features
from maxcosine.records import RecordOptions
from maxcosine.rows import csr_of_slots
from maxcosine.training import rows_of


class RecordEncoder(TransformerMixin, BaseEstimator):
    """From records, tables with named columns of any kind, to a sparse matrix; usable before any classifier.

    Columns become features by what they are; see :meth:`maxcosine.OnePassClassifier.fit_records`. Texts need no
    vocabulary: their words are hashed, or, with `exact`, are those of the rows given to `fit`.

    Parameters
    ----------
    numeric, categorical, text, drop : str or sequence of str, default=()
        Columns that are numbers, categories or texts, whatever they look like, and columns that are left out.
    ngrams : int, default=1
        Of texts: up to so many words in a row are a feature; 0 for characters only.
    chars : tuple of int or None, default=None
        Of texts: from so many to so many characters in a row are a feature, too.
    bits : int, default=20
        Features are hashed to 2^bits columns, unless `exact`.
    exact : bool, default=False
        One column for each feature of the rows given to `fit`; others are left out later.
    dtype : {"float32", "float64"}, default="float64"
        The type of the values.

    Attributes
    ----------
    schema_ : RecordSchema
        What the columns are.
    index_ : FeatureIndex
        The names of the features, if `exact`.

    Examples
    --------
    >>> from maxcosine import RecordEncoder
    >>> encoder = RecordEncoder(exact=True).fit([{"color": "red", "size": 2.5}, {"color": "blue", "size": None}])
    >>> encoder.get_feature_names_out().tolist()
    ['color=red', 'size', 'size=2.5..3', 'color=blue', 'size (missing)']
    >>> encoder.transform([{"color": "blue", "size": 1.0}]).toarray().tolist()
    [[0.0, 1.0, 0.0, 1.0, 0.0]]
    """

    def __init__(
        self,
        *,
        numeric: Any = (),
        categorical: Any = (),
        text: Any = (),
        drop: Any = (),
        ngrams: int = 1,
        chars: Any = None,
        bits: int = 20,
        exact: bool = False,
        dtype: str = "float64",
    ) -> None:
        self.numeric, self.categorical, self.text, self.drop = numeric, categorical, text, drop
        self.ngrams, self.chars = ngrams, chars
        self.bits, self.exact, self.dtype = bits, exact, dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out what the columns are and, if `exact`, which features there are.

        Parameters
        ----------
        X : data frame, Arrow data, iterable of dicts, or names of files
            The records.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted encoder.
        """
        records = RecordOptions(
            numeric=self.numeric,
            categorical=self.categorical,
            text=self.text,
            drop=self.drop,
            ngrams=self.ngrams,
            chars=self.chars,
        )
        stream = open_records(X, self._options(records=records))
        features = Features.by_key("names")
        for batch in stream.batches():
            if not self.exact:
                break  # hashed features need no second look
            rows_of(stream, features, batch, grow=True)
        if stream.options.schema is None:
            raise ValueError("there is no record to fit")
        self.schema_, self.index_ = stream.options.schema, features.index if self.exact else None
        return self

    def transform(self, X: Any) -> Any:
        """Encode records.

        Parameters
        ----------
        X : data frame, Arrow data, iterable of dicts, or names of files
            The records; columns that were not in `fit` are ignored with a warning.

        Returns
        -------
        sparse array of shape (n_samples, n_features)
            One row for each record, in CSR.
        """
        check_is_fitted(self)
        stream = open_records(X, self._options(schema=self.schema_))
        features = Features(None, index=self.index_) if self.exact else Features(1 << self.bits, bits=self.bits)
        features.records = self.schema_
        parts = [rows_of(stream, features, batch, grow=False) for batch in stream.batches()]
        tell_new_columns(stream)
        X = csr_of_slots(joined_rows(parts, features.n_slots, np.dtype(self.dtype)), features.n_slots, self.dtype)
        X.sort_indices()
        return X

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, if they are exact.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        array of str
            One name for each column.
        """
        check_is_fitted(self)
        if self.index_ is None:
            raise ValueError("hashed features have no names; encode with exact=True")
        return np.asarray(self.index_.keys(), object)

    def _options(self, **more: Any) -> ReadOptions:
        return ReadOptions(bits=0 if self.exact else self.bits, exact=self.exact, dtype=self.dtype, **more)
