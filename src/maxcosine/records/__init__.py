"""Records as people have them, tables with named columns, and the features that they become.

`schema` says what the columns are, `inference` finds it out from the first rows, `conversion` brings columns of any
type into the one that their kind has, and `encoding` makes features of them.
"""

from maxcosine.records.schema import KINDS, STORED, Column, RecordOptions, RecordSchema, SchemaError, united_schema

__all__ = ["KINDS", "STORED", "Column", "RecordOptions", "RecordSchema", "SchemaError", "united_schema"]
