"""Whatever a mechanism returned, as a table of columns.

Every place in an outcome (`output["Escargots"]`, `output[2].age`) is a column, and so is the length
of what has one where it varies. An entry is a number, or a label: a word for anything that is not a
number (a string, a Boolean, None, NaN, the type of an exception, "a dict", "absent"). Nothing is
rounded or merged, so that the definitions which are not closed under post-processing can be tested
on the same table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.outcomes.columns import ABSENT, KIND, Column, KeyArray, number_word
from dpaudit.outcomes.long_table import NamedColumns, joined, lengthened
from dpaudit.outcomes.raised import RAISED, Raised
from dpaudit.outcomes.reading.kinds import from_raw
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
    """Return all outcomes in one table."""
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
