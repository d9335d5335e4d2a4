"""Pairs like one that leaks: the same change made to both inputs, or another record in the place of
the one that differs; of answers to queries, entries elsewhere, or that move the other way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.neighbours import NUMERIC, are_neighbours, moved
from dpaudit.searching.proposals import Proposal
from dpaudit.searching.space import Space

_LIKE = "like one before: "
# Changes in a row, for each pair, that came out as no pair of neighbours.
_PATIENCE = 20


def around(
    pairs: Sequence[Proposal],
    values: Sequence[Any],
    space: Space,
    adjacency: Adjacency,
    rng: np.random.Generator,
) -> Iterator[Proposal]:
    """Yield pairs like those given, in turns, as long as changes come out as neighbours.

    values: records, or entries, to put in; at least one.
    """
    changed = _moved if adjacency.kind in NUMERIC else _changed
    fruitless = 0
    while fruitless < _PATIENCE * len(pairs):
        for pair in pairs:
            d1, d2 = changed(pair, values, rng)
            if not are_neighbours(d1, d2, adjacency, space):
                fruitless += 1
                continue
            fruitless = 0
            inside = space.contains(d1) and space.contains(d2)
            yield Proposal(d1, d2, _LIKE + pair.why.removeprefix(_LIKE), "random", inside)


def parts(dataset: Any) -> list[Any]:
    """Return the records of a dataset, or the one value that it is."""
    return dataset if isinstance(dataset, list) else [dataset]


def _changed(pair: Proposal, values: Sequence[Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Return both inputs after one change that chance picks."""
    new = _any(values, rng)
    d1, d2 = pair.d1, pair.d2
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return (new, d2) if rng.random() < 0.5 else (d1, new)
    both, only = _shared(d1, d2)
    kinds = ["add", *(["drop", "replace"] if both else []), *(["exchange"] if only else [])]
    match _any(kinds, rng):
        case "add":
            return [new, *d1], [new, *d2]
        case "drop":
            old = _any(both, rng)
            return _with(d1, old, []), _with(d2, old, [])
        case "replace":
            old = _any(both, rng)
            return _with(d1, old, [new]), _with(d2, old, [new])
        case _:
            old = _any(only, rng)
            return _with(d1, old, [new]), _with(d2, old, [new])


def _moved(pair: Proposal, values: Sequence[Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Return two lists of answers after one change that chance picks, of one entry or of all."""
    d1, d2 = pair.d1, pair.d2
    is_list = isinstance(d1, list) and isinstance(d2, list)
    if not (is_list and len(d1) == len(d2) > 0 and all(map(_is_number, [*d1, *d2]))):
        return _changed(pair, values, rng)
    places = range(len(d1)) if rng.random() < 0.5 else [_any(range(len(d1)), rng)]
    ours, theirs = list(d1), list(d2)
    match _any(["put", "like another", "other way", "still"], rng):
        case "put":
            new = _any(values, rng)
            if not _is_number(new):
                return d1, d2
            for place in places:
                (theirs[place],) = moved([new], [d2[place] - d1[place]])
                ours[place] = new
        case "like another":
            other = _any(range(len(d1)), rng)
            for place in places:
                ours[place], theirs[place] = d1[other], d2[other]
        case "other way":
            place = _any(places, rng)
            ours[place], theirs[place] = d2[place], d1[place]
        case _:
            place = _any(places, rng)
            theirs[place] = ours[place]
    return ours, theirs


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def _any(values: Sequence[Any], rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _with(dataset: list[Any], old: str, new: list[Any]) -> list[Any]:
    """Return a dataset with something else in the place of the first record written so."""
    place = next((n for n, record in enumerate(dataset) if repr(record) == old), None)
    return dataset if place is None else [*dataset[:place], *new, *dataset[place + 1 :]]


def _shared(d1: list[Any], d2: list[Any]) -> tuple[list[str], list[str]]:
    """Return the records that both inputs have, and those that one of them has alone, each as it
    is written: NaN is equal to itself there, and 0.0 is not -0.0."""
    ours, theirs = list(map(repr, d1)), list(map(repr, d2))
    both = [one for one in ours if one in theirs]
    return both, [one for one in ours if one not in theirs] + [
        one for one in theirs if one not in ours
    ]
