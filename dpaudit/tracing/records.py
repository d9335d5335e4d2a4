"""What the record that differs would change of a sum that does not bound it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from numbers import Real
from typing import Any, NamedTuple

from dpaudit.inputs.records import records_of


class Changes(NamedTuple):
    """How much a sum over a column changes, for each column with numbers. is_replaced: whether one
    record has another one in its place; else one is there for one input alone."""

    sizes: frozenset[float]
    is_replaced: bool


def changes(d1: Any, d2: Any) -> Changes | None:
    """Return what two inputs that differ in one record change; None for others."""
    first, second = records_of(d1), records_of(d2)
    if first is None or second is None:
        return None
    ours, theirs = Counter(first), Counter(second)
    alone = list((ours - theirs).elements()), list((theirs - ours).elements())
    if sorted(map(len, alone)) == [0, 1]:
        (record,) = alone[0] or alone[1]
        sizes = dict(_numbers(record)).values()
    elif list(map(len, alone)) == [1, 1]:
        one, other = (dict(_numbers(records[0])) for records in alone)
        sizes = {name: one[name] - other[name] for name in one.keys() & other.keys()}.values()
    else:
        return None
    # A count changes by 1, too, whatever the record is.
    return Changes(frozenset(map(abs, sizes)) - {0.0, 1.0}, bool(alone[0] and alone[1]))


def _numbers(record: Hashable) -> Iterator[tuple[Hashable, float]]:
    """Yield the numbers of a record, by column: it is one, or a tuple, or the items of a
    mapping."""
    columns: list[tuple[Hashable, Any]] = [(None, record)]
    if isinstance(record, tuple):
        columns = list(enumerate(record))
    elif isinstance(record, frozenset):
        columns = [one for one in record if isinstance(one, tuple) and len(one) == 2]
    for name, value in columns:
        if isinstance(value, Real) and not isinstance(value, bool):
            yield name, float(value)
