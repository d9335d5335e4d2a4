"""Spaces of inputs like those of an audit, in which a search looks for a pair that shows more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import DpauditError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.pair_search import NeighbourSearch, neighbour_search
from dpaudit.searching.space import quoted

# Numbers of the wider space lie this number of ranges of the pair's numbers further out, where
# clipping that is missing shows.
_WIDER = 100


def space_of(spec: AuditSpec) -> Iterator[NeighbourSearch]:
    """Yield searches for pairs like those of an audit, the widest space first: that of the user if
    the audit has one; else values beyond those of its pairs, then values among them. Inputs that
    are neither numbers nor lists or arrays of numbers, texts, lists and records have no such
    space."""
    if isinstance(spec.search, NeighbourSearch):
        yield spec.search
        return
    for pair in spec.pairs[:1]:
        is_array = isinstance(pair.d1, np.ndarray) and isinstance(pair.d2, np.ndarray)
        d1, d2 = (data.tolist() if is_array else data for data in (pair.d1, pair.d2))
        for wider in (_WIDER, 0):
            with suppress(DpauditError):  # there is no space, or the relation does not fit it
                space, relation = _like(d1, d2, wider)
                form = "array" if is_array else None
                yield neighbour_search(space, pair.adjacency or relation, form=form)


def _like(d1: Any, d2: Any, wider: int) -> tuple[str, Adjacency | None]:
    """Return the description of a space with both inputs, and their relation."""
    if isinstance(d1, list) and isinstance(d2, list):
        relation = Adjacency("replace" if len(d1) == len(d2) else "add-remove")
        return f"list of {_described([*d1, *d2], wider)}", relation
    if _is_number(d1) and _is_number(d2):
        return _described([d1, d2], wider), Adjacency("linf", abs(d1 - d2))
    return "", None


def _described(values: list[Any], wider: int) -> str:
    """Return the description of a space with all values; "" if there is none."""
    if values and all(map(_is_number, values)):
        low, high = min(values), max(values)
        more = wider * max(1, high - low)
        kind = "integer" if all(isinstance(value, int) for value in values) else "number"
        return f"{kind} in [{low - more}, {high + more}]"
    if values and all(isinstance(value, str) for value in values):
        words = map(quoted, dict.fromkeys(values))
        return f"category [{', '.join([*words, *(['new'] if wider else [])])}]"
    keys = {frozenset(value) for value in values if isinstance(value, Mapping)}
    if len(keys) == 1 and all(isinstance(value, Mapping) for value in values):
        columns = {key: _described([value[key] for value in values], wider) for key in values[0]}
        return f"record {{{', '.join(f'{quoted(str(key))}: {columns[key]}' for key in columns)}}}"
    lengths = {len(value) if isinstance(value, list) else -1 for value in values}
    if len(lengths) == 1 and -1 not in lengths:
        entries = [entry for value in values for entry in value]
        return f"vector of {lengths.pop()} {_described(entries, wider)}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
