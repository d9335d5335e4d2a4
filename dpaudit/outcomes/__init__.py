"""Outputs of a mechanism as a table of columns.

An outcome is one output, or an exception (`Raised`). `from_raw` converts a list of outcomes to an
`Outcomes` table. The table has one row per outcome, and one column per place in the outcomes:

    from_raw([{"age": 36, "tags": ["a"]}, {"age": 41.5, "tags": []}])

    output["age"]             36     41.5
    output["tags"]            a list a list
    output["tags"][0]         'a'    absent
    length of output["tags"]  1      0
    type of output["age"]     int    absent (the usual type of a number is float)

Path    A place in an outcome: its name, such as `output["tags"][0]`, and the steps that lead to it.
Entry   The content of one outcome at one place: a number (float64) or a label. A label is a text
        for a value that is not a number: a string in quotes, `True`, `None`, `NaN`,
        `raised ValueError`, `a dict`, or `absent` if the outcome does not have the place.
Content A text also has the entries of what it contains: of the structure in JSON, at
        `json(output)`, or else of its numbers, at `numbers(output)[0]`, ..., and of the text
        without them, at `words(output)`.
Column  The entries of all outcomes at one place: `numbers` (size,) float64, NaN for labels;
        `codes` (size,) int32, 0 for a number and k for `labels[k - 1]`; `codes` is None if all
        entries are numbers.
Table   Outcomes of one shape: a tuple of columns, and the entries that all outcomes share.
LongTable
        Outcomes of several shapes: one array of all entries, sorted by path.
TimedOutcomes
        A table with the duration of each call in nanoseconds, (size,).
Keys    64-bit hashes of outcomes, (size,) uint64: equal for equal outcomes, in every process.
Representation
        The properties of an outcome that == does not compare: types, signs of zero, orders of the
        keys of dicts. They have columns of their own.
Aspects Columns that are computed from another column: `lowest set bit of output`, `kind of output`.

No value is rounded or merged, since some privacy definitions are not closed under post-processing.

`columns` defines entries, labels, keys and paths. `scalars` and `representation` convert values to
entries and texts. `reader` and `reading` read raw outputs, `texts` the contents of texts. `tables`
and `long_table` store outcomes. `aspects` computes columns from other columns. `known` finds
outcomes among known outcomes. `frames` and `set_order` also run in the processes that call the
mechanism, under Python 3.8 and without dpaudit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.outcomes.columns import ABSENT as ABSENT
from dpaudit.outcomes.columns import ELAPSED as ELAPSED
from dpaudit.outcomes.columns import KIND as KIND
from dpaudit.outcomes.columns import RAISED as RAISED
from dpaudit.outcomes.columns import Column as Column
from dpaudit.outcomes.columns import KeyArray as KeyArray
from dpaudit.outcomes.columns import Raised as Raised
from dpaudit.outcomes.columns import number_word as number_word
from dpaudit.outcomes.reading import from_raw as from_raw
from dpaudit.outcomes.tables import NamedColumns as NamedColumns
from dpaudit.outcomes.tables import Outcomes as Outcomes
from dpaudit.outcomes.tables import Table, TimedOutcomes, are_alike, stacked
from dpaudit.outcomes.tables import failures as failures
from dpaudit.outcomes.tables import narrowed as narrowed
from dpaudit.outcomes.tables import raised as raised
from dpaudit.outcomes.tables import timed as timed


def concatenate(tables: Sequence[Outcomes]) -> Outcomes:
    """Return one table with the outcomes of several tables, in the order of the tables."""
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
    from dpaudit.outcomes.long_table import joined, lengthened  # only for different shapes

    return joined([lengthened(table) for table in tables])
