"""What the columns of records are, as values that models and checkpoints store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

KINDS = ("number", "boolean", "category", "date", "text", "set")
LABEL_TYPES = ("integer", "boolean", "text")
STORED = ("string", "integer", "float", "boolean", "strings")
MAX_NGRAMS = 10
MAX_CHARS = 20


class SchemaError(ValueError):
    """Columns that records cannot have, or that they lack."""


@dataclass(frozen=True)
class RecordOptions:
    """What a user says about the columns of records; everything else is inferred from the first rows.

    Parameters
    ----------
    label : str
        The column of the labels.
    weight : str or None, default=None
        The column of the weights.
    numeric, categorical, text, drop : tuple of str
        Columns that are numbers, categories or texts, whatever they look like, and columns that are left out.
    ngrams : int, default=1
        Of texts: up to so many words in a row are a feature; 0 for characters only.
    chars : tuple of int or None, default=None
        Of texts: from so many to so many characters in a row are a feature, too.

    Examples
    --------
    >>> from maxcosine.records import RecordOptions
    >>> RecordOptions(label="spam", text=("subject", "body"), ngrams=2).kind_of("body")
    'text'
    """

    label: str | None = None
    weight: str | None = None
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    ngrams: int = 1
    chars: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name in ("numeric", "categorical", "text", "drop"):
            columns = getattr(self, name)
            object.__setattr__(self, name, (columns,) if isinstance(columns, str) else tuple(columns))
        if self.chars is not None:
            object.__setattr__(self, "chars", tuple(self.chars))
        said = [("label", self.label), ("weight", self.weight)]
        said += [
            (name, column) for name in ("numeric", "categorical", "text", "drop") for column in getattr(self, name)
        ]
        roles: dict[str, str] = {}
        for role, column in said:
            if column is not None and roles.setdefault(column, role) != role:
                raise SchemaError(f"the column {column!r} is {roles[column]} and {role}; choose one")
        check_ngrams(self.ngrams, self.chars)

    def kind_of(self, column: str) -> str | None:
        """Return the kind that the user gave a column, if any."""
        if column in self.numeric:
            return "number"
        if column in self.categorical:
            return "category"
        return "text" if column in self.text else None

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON, which has lists in place of tuples."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @property
    def named(self) -> list[str]:
        """The columns that the user named."""
        both = [column for column in (self.label, self.weight) if column is not None]
        return [*both, *self.numeric, *self.categorical, *self.text, *self.drop]


def check_ngrams(ngrams: int, chars: tuple[int, int] | None) -> None:
    """Refuse lengths of n-grams that make no sense."""
    if not 0 <= ngrams <= MAX_NGRAMS:
        raise SchemaError(f"ngrams is {ngrams}; it is a number of words, from 0 to {MAX_NGRAMS}")
    if chars is not None and not (len([*chars]) == 2 and 1 <= chars[0] <= chars[1] <= MAX_CHARS):
        raise SchemaError(f"chars is {chars}; give the least and the most characters, such as 3..5, up to {MAX_CHARS}")
    if ngrams == 0 and chars is None:
        raise SchemaError("ngrams is 0, and chars is not given: texts would have no features; give chars, such as 3..5")


@dataclass(frozen=True)
class Column:
    """One column that becomes features.

    Parameters
    ----------
    name : str
        Its name; that of a nested object is "a.b".
    kind : str or None
        One of `KINDS`; None as long as all its values are missing.
    stored : str or None
        The type of its values in the data, one of `STORED`; None if it is not known, or another.
    required : bool
        Whether no value was missing among the first rows.
    """

    name: str
    kind: str | None
    stored: str | None = None
    required: bool = False


@dataclass(frozen=True)
class RecordSchema:
    """What the columns of records are, and how their texts are cut into features.

    Parameters
    ----------
    columns : tuple of Column
        The columns that become features, in the order of the first records.
    label, weight : Column or None
        The columns of labels, a category, and weights, a number.
    label_type : {"integer", "boolean", "text"}
        What the labels of the first rows look like, for Python.
    drop : tuple of str
        Columns that are left out.
    ngrams, chars
        As in `RecordOptions`.
    normalize, log1p
        What is done to the values of each row, as in `maxcosine.data.ReadOptions`.
    """

    columns: tuple[Column, ...]
    label: Column | None = None
    weight: Column | None = None
    label_type: str = "text"
    drop: tuple[str, ...] = ()
    ngrams: int = 1
    chars: tuple[int, int] | None = None
    normalize: str | None = None
    log1p: bool = False

    def with_column(self, column: Column) -> RecordSchema:
        """Return the schema with what is known of a column now."""
        return replace(self, columns=tuple(column if one.name == column.name else one for one in self.columns))

    @property
    def unknown(self) -> list[str]:
        """The columns of which no value has come."""
        return [column.name for column in self.columns if column.kind is None]

    @property
    def all_columns(self) -> list[Column]:
        """The columns, those of labels and weights included."""
        return [*self.columns, *(one for one in (self.label, self.weight) if one is not None)]

    @property
    def known_names(self) -> set[str]:
        """The names of all columns that the schema mentions."""
        return {column.name for column in self.all_columns} | {*self.drop}

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON, which has lists in place of tuples."""
        found = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {**found, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_json(cls, value: Any) -> RecordSchema:
        """Return the schema that `to_json` wrote; refuse anything else with a SchemaError."""
        try:
            fields = dict(value)
            fields["columns"] = tuple(Column(**column) for column in fields["columns"])
            for name in ("label", "weight"):
                fields[name] = None if fields[name] is None else Column(**fields[name])
            fields["drop"] = tuple(fields["drop"])
            fields["chars"] = None if fields["chars"] is None else tuple(fields["chars"])
            schema = cls(**fields)
            schema._check()
        except (TypeError, ValueError, KeyError) as error:
            raise SchemaError(f"the schema of records cannot be understood: {error}") from None
        return schema

    def _check(self) -> None:
        """Refuse values of wrong types."""
        names = [column.name for column in self.all_columns]
        good = len(set(names)) == len(names) and self.label_type in LABEL_TYPES
        good = good and all(isinstance(name, str) for name in [*names, *self.drop])
        for column in self.all_columns:
            good = good and column.kind in (None, *KINDS) and column.stored in (None, *STORED)
            good = good and isinstance(column.required, bool)
        good = good and self.normalize in (None, "l2") and isinstance(self.log1p, bool)
        good = good and all(type(number) is int for number in [self.ngrams, *(self.chars or ())])
        if not good:
            raise SchemaError("a column has a wrong name, kind or type")
        check_ngrams(self.ngrams, self.chars)

    @property
    def by_kind(self) -> dict[str, list[str]]:
        """The names of the columns by kind; that of the label first, and those that are left out last."""
        found: dict[str, list[str]] = {}
        for role, column in (("label", self.label), ("weight", self.weight)):
            if column is not None:
                found[role] = [column.name]
        for kind in (*KINDS, None):
            names = [column.name for column in self.columns if column.kind == kind]
            if names:
                found[kind or "empty so far"] = names
        return found | ({"left out": list(self.drop)} if self.drop else {})

    def describe(self) -> str:
        """Return the columns by kind, one kind a line, for people."""
        width = max(map(len, self.by_kind))
        return "\n".join(f"{kind:{width}}  {', '.join(names)}" for kind, names in self.by_kind.items())


def united_schema(schemas: Sequence[RecordSchema | None]) -> RecordSchema | None:
    """Return the schema of several models together; refuse schemas that contradict each other."""
    first = schemas[0]
    for number, schema in enumerate(schemas[1:], 1):
        if first is None or schema is None:
            if schema is not first:
                raise SchemaError(
                    f"only one of model 0 and model {number} was learnt from records; merge models of one kind"
                )
            continue
        if [one.name for one in first.columns] != [one.name for one in schema.columns]:
            raise SchemaError(f"model 0 and model {number} were learnt from records with other columns")
        for here, there in zip(first.columns, schema.columns, strict=True):
            if here.kind is None:
                first = first.with_column(there)
            elif there.kind not in (None, here.kind):
                raise SchemaError(
                    f"the column {here.name!r} is a {here.kind} in model 0 and a {there.kind} in model {number}; say "
                    "what it is when you train"
                )
        for name in ("ngrams", "chars", "normalize", "log1p"):
            if getattr(first, name) != getattr(schema, name):
                raise SchemaError(f"model 0 and model {number} differ in {name}; merge models of one kind")
    return first


def missing_feature(column: str) -> str:
    """Return the name of the feature that stands for a missing value.

    >>> missing_feature("age")
    'age (missing)'
    """
    return f"{column} (missing)"
