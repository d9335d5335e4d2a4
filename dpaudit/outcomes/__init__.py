"""Outputs of a mechanism as a table of columns.

`from_raw` converts a list of outcomes to an `Outcomes` table, with one row per outcome, and one
column per place in the outcomes:

    from_raw([{"age": 36, "tags": ["a"]}, {"age": 41.5, "tags": []}])

    output["age"]             36     41.5
    output["tags"]            a list a list
    output["tags"][0]         'a'    absent
    length of output["tags"]  1      0
    type of output["age"]     int    absent (the usual type of a number is float)

outcome
    One output, or an exception (`Raised`).
path
    A place in an outcome: its name, such as `output["tags"][0]`, and the steps that lead to it.
entry
    The content of one outcome at one place: a number (float64) or a label.
label
    A text for a value that is not a number: a string in quotes, `True`, `None`, `NaN`,
    `raised ValueError`, `a dict`, or `absent` if the outcome does not have the place.
column
    The entries of all outcomes at one place: `numbers` (size,), NaN for labels; `codes` (size,), 0
    for a number and k for `labels[k - 1]`; `codes` is None if all entries are numbers.
content
    Of a text: its structure in JSON, at `json(output)`, or else its numbers, at
    `numbers(output)[0]`, ..., and the text without them, at `words(output)`.
table
    A `Table` has outcomes of one shape, a `LongTable` outcomes of several, `TimedOutcomes` also the
    duration of each call in nanoseconds.
keys
    64-bit hashes of outcomes, (size,): equal for equal outcomes, in every process.
representation, form
    The properties of an outcome that == does not compare: types, signs of zero, orders of the keys
    of dicts, digits of a Decimal. Each, except the sign, is an entry of its own, called a form. A
    usual property, such as the type float of a number, has no entry.
aspect
    A column that is computed from another column: `lowest set bit of output`, `kind of output`.
known outcomes
    Outcomes that were seen before. Later outcomes are found among them.
band
    An interval in place of the numbers in it, as a label such as `number < 3`.
symbol
    A small integer that stands for an entry of a column.

No value is rounded or merged, since some privacy definitions are not closed under post-processing.
`frames` and `set_order` also run in the processes that call the mechanism, under Python 3.8 and
without dpaudit.
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
from dpaudit.outcomes.raw_outputs import from_raw as from_raw
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
