"""Spaces of inputs like those of an audit, in which a search looks for a pair that shows more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import DpauditError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.pair_search import NeighbourSearch, neighbour_search

# Numbers of the wider space lie this number of ranges of the pair's numbers further out, where
# clipping that is missing shows.
_WIDER = 100


def space_of(spec: AuditSpec) -> Iterator[NeighbourSearch]:
    """Yield searches for pairs like those of an audit, the widest space first: that of the user if
    the audit has one; else values beyond those of its pairs, then values among them. Inputs that
    are neither numbers nor lists or arrays of numbers, texts and records have no such space."""
    if isinstance(spec.search, NeighbourSearch):
        yield spec.search
        return
    if not spec.pairs:
        return
    d1, d2 = spec.pairs[0].d1, spec.pairs[0].d2
    is_array = all(isinstance(data, np.ndarray) for data in (d1, d2))
    if is_array:
        d1, d2 = d1.tolist(), d2.tolist()
    adjacency = spec.pairs[0].adjacency or _relation(d1, d2)
    for wider in (_WIDER, 0):
        space = _dataset(d1, d2, wider)
        if space is not None and adjacency is not None:
            with suppress(DpauditError):  # the relation does not fit the space
                yield neighbour_search(space, adjacency, form="array" if is_array else None)


def _relation(d1: Any, d2: Any) -> Adjacency | None:
    if _is_number(d1) and _is_number(d2):
        return Adjacency("linf", abs(d1 - d2)) if d1 != d2 else None
    if isinstance(d1, list) and isinstance(d2, list):
        return Adjacency("replace" if len(d1) == len(d2) else "add-remove")
    return None


def _dataset(d1: Any, d2: Any, wider: int) -> str | None:
    """Return the description of a space with both inputs; None if there is none."""
    if _is_number(d1) and _is_number(d2):
        return _values([d1, d2], wider)
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return None
    records = [*d1, *d2]
    if records and all(isinstance(r, Mapping) and r.keys() == records[0].keys() for r in records):
        columns = {key: _values([record[key] for record in records], wider) for key in records[0]}
        if None in columns.values() or not all(map(str.isidentifier, columns)):
            return None
        return f"table {{{', '.join(f'{key}: {space}' for key, space in columns.items())}}}"
    lengths = {len(r) if isinstance(r, list) else -1 for r in records}
    if len(lengths) == 1 and -1 not in lengths:
        space = _values([value for record in records for value in record], wider)
        return None if space is None else f"list of vector of {lengths.pop()} {space}"
    space = _values(records, wider)
    return None if space is None else f"list of {space}"


def _values(values: list[Any], wider: int) -> str | None:
    """Return the description of a space with all values, which are numbers or texts."""
    if values and all(map(_is_number, values)):
        low, high = min(values), max(values)
        more = wider * max(1, high - low)
        kind = "integer" if all(isinstance(value, int) for value in values) else "number"
        return f"{kind} in [{low - more}, {high + more}]"
    if values and all(isinstance(value, str) for value in values):
        words = [json.dumps(word) for word in dict.fromkeys(values)]
        return f"category [{', '.join([*words, *(['new'] if wider else [])])}]"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
