"""Outputs of a mechanism as a table of columns.

An outcome is one output, or an exception (`Raised`). `from_raw` turns any list of outcomes into an
`Outcomes` table with one row an outcome and one column a place in outcomes:

    from_raw([{"age": 36, "tags": ["a"]}, {"age": 41.5, "tags": []}])

    output["age"]             36     41.5
    output["tags"]            a list a list
    output["tags"][0]         'a'    absent
    length of output["tags"]  1      0
    type of output["age"]     int    absent (the usual type of a number is float)

Path    the place of a column: its name, such as `output["tags"][0]`, and the steps to it.
Entry   what an outcome has at a place: a number (float64) or a label, a word for anything that is
        no number: a string in quotes, `True`, `None`, `NaN`, `raised ValueError`, `a dict`,
        `absent` if the outcome has no such place.
Column  the entries of all outcomes at one place: `numbers` (size,) float64, NaN for labels;
        `codes` (size,) int32, 0 for a number and k for `labels[k - 1]`, or None.
Table   outcomes of one shape: a tuple of columns, and entries that all outcomes share.
LongTable
        outcomes of several shapes: all entries in one array, with offsets by path.
TimedOutcomes
        a table with the duration of each call in nanoseconds, (size,).
Keys    64-bit hashes of outcomes, (size,) uint64: equal for equal outcomes, in every process.
Representation
        what == does not compare: types, signs of zero, orders of keys. Columns of their own.
Aspects columns made from others by name: `lowest set bit of output`, `kind of output`.

Nothing is rounded or merged, since some privacy definitions are not closed under post-processing.

`columns` has entries, labels, keys and paths; `scalars` and `representation` how values become
entries and words; `reader` and `reading` read raw outputs; `tables` and `long_table` hold them;
`aspects` and `known` make new columns and find outcomes again; `packing` writes tables to files;
`frames` and `set_order` also run inside processes that draw, under Python 3.8 without dpaudit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.outcomes.columns import (
    ABSENT,
    ELAPSED,
    KIND,
    RAISED,
    Column,
    KeyArray,
    Raised,
    number_word,
)
from dpaudit.outcomes.long_table import NamedColumns, joined, lengthened
from dpaudit.outcomes.reading import from_raw
from dpaudit.outcomes.tables import (
    Outcomes,
    Table,
    TimedOutcomes,
    are_alike,
    failures,
    narrowed,
    raised,
    stacked,
    timed,
)

__all__ = [
    "ABSENT",
    "ELAPSED",
    "KIND",
    "RAISED",
    "Column",
    "KeyArray",
    "NamedColumns",
    "Outcomes",
    "Raised",
    "concatenate",
    "failures",
    "from_raw",
    "narrowed",
    "number_word",
    "raised",
    "timed",
]


def concatenate(tables: Sequence[Outcomes]) -> Outcomes:
    """Return one table of the outcomes of several tables."""
    tables = [table for table in tables if table.size] or list(tables[:1]) or [from_raw([])]
    if len(tables) == 1:
        return tables[0]
    measured = [table for table in tables if isinstance(table, TimedOutcomes)]
    if len(measured) == len(tables):
        inner = concatenate([table.outcomes for table in measured])
        return TimedOutcomes(inner, np.concatenate([table.nanoseconds for table in measured]))
    plain = [table for table in tables if isinstance(table, Table)]
    if len(plain) == len(tables) and are_alike(plain):
        return stacked(plain)
    return joined([lengthened(table) for table in tables])
