"""Pairs made from pairs that were tried: variations of the best pairs, and neighbours that differ
in whether the mechanism raises an exception."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.inputs.adjacency import Users
from dpaudit.searching.climbing import is_number
from dpaudit.searching.proposals import Proposal
from dpaudit.searching.relations import Relation
from dpaudit.searching.relations.steps import entries, moved
from dpaudit.searching.space import distinct
from dpaudit.searching.spaces.datasets import Lists

_LIKE = "like one before: "
# `around` makes random variations of pairs of inputs. It stops if this number of variations in a
# row, times the number of pairs, have inputs that are not neighbours.
_MAX_FAILURES = 20
# Largest number of times that `_closer` halves the distance between two inputs. It stops earlier if
# they are neighbours.
_MAX_HALVINGS = 60

# Type of functions that take a dataset and make a few draws of the mechanism on it. They return
# whether every draw raises an exception; None if no draw can be made.
Raises = Callable[[Any], bool | None]


def around(
    pairs: Sequence[Proposal],
    values: Sequence[Any],
    relation: Relation,
    rng: np.random.Generator,
) -> Iterator[Proposal]:
    """Yield random variations of pairs of inputs, each pair in turn. A variation whose inputs are
    not neighbours is left out. Stop after 20 of these per pair in a row.

    A variation of datasets makes the same change to both inputs, or replaces a record that only one
    input has. A variation of vectors of query answers changes the same entry of both inputs, or all
    entries: it sets new values with the same difference, copies the values of another entry,
    exchanges the values of d1 and d2, or makes them equal.

    values: records or entries to add, or to put in place of others; at least one.
    """
    changed = _moved if relation.is_of_answers else _changed
    fruitless = 0
    while fruitless < _MAX_FAILURES * len(pairs):
        for pair in pairs:
            d1, d2 = changed(pair, values, rng)
            if not relation.holds(d1, d2):
                fruitless += 1
                continue
            fruitless = 0
            why = _LIKE + pair.why.removeprefix(_LIKE)
            yield Proposal(d1, d2, why, "variation", relation.are_inside(d1, d2))


def parts(dataset: Any) -> list[Any]:
    """Return the records of a dataset; for a single value, a list that contains only this value."""
    return dataset if isinstance(dataset, list) else [dataset]


def _changed(pair: Proposal, values: Sequence[Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Make one random change to a pair: add, remove or replace a record in both inputs, or replace
    a record that only one input has. Return (d1, d2), the new inputs.

    values: records that are added or put in place of others.
    """
    new = _any(values, rng)
    d1, d2 = pair.d1, pair.d2
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return (new, d2) if rng.random() < 0.5 else (d1, new)
    ours, theirs = list(map(repr, d1)), list(map(repr, d2))
    both = [one for one in ours if one in theirs]
    only = [one for one in ours if one not in theirs] + [one for one in theirs if one not in ours]
    kinds = ["add", *(["drop", "replace"] if both else []), *(["exchange"] if only else [])]
    kind = _any(kinds, rng)
    if kind == "add":
        return [new, *d1], [new, *d2]
    old = _any(only if kind == "exchange" else both, rng)
    instead = [] if kind == "drop" else [new]
    return _with(d1, old, instead), _with(d2, old, instead)


def _moved(pair: Proposal, values: Sequence[Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Change one entry, or all entries, of a pair of lists of query answers at random. Return (d1,
    d2), the new inputs.

    values: entries to put in place of others.
    """
    d1, d2 = pair.d1, pair.d2
    is_list = isinstance(d1, list) and isinstance(d2, list)
    if not (is_list and len(d1) == len(d2) > 0 and all(map(is_number, [*d1, *d2]))):
        return _changed(pair, values, rng)
    places = range(len(d1)) if rng.random() < 0.5 else [_any(range(len(d1)), rng)]
    ours, theirs = list(d1), list(d2)
    match _any(["put", "like another", "other way", "still"], rng):
        case "put":
            new = _any(values, rng)
            if not is_number(new):
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


def _any(values: Sequence[Any], rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _with(dataset: list[Any], old: str, new: list[Any]) -> list[Any]:
    """Return a dataset in which new records replace the first record whose `repr` is `old`."""
    place = next((n for n, record in enumerate(dataset) if repr(record) == old), None)
    return dataset if place is None else [*dataset[:place], *new, *dataset[place + 1 :]]


def where_exceptions_begin(
    raising: Sequence[Any], quiet: Sequence[Any], relation: Relation, raises: Raises
) -> Iterator[Proposal]:
    """Yield pairs of neighbours such that the mechanism gives outputs for one input, and always
    raises an exception for the other: at most one pair for each dataset in `raising`.

    Make a path of neighbours from a dataset that gives outputs to a dataset that raises. At some
    step of the path, the exceptions begin: this step is a leak. Bisection finds it with few draws.
    The first path to a list adds its records one by one (or user by user), if neighbours differ in
    size. Other paths replace one record after the other. If inputs are vectors of query answers,
    the step is bisected further: the two vectors move closer together until they are neighbours.

    raising: datasets for which the mechanism raises.
    quiet: datasets for which the mechanism gives outputs.
    raises: function that returns whether the mechanism raises for a dataset; None if that is
    unknown.
    """
    for dataset in raising:
        for path in _paths(dataset, quiet, relation):
            step = _first_step(path, raises)
            if step is not None and relation.is_of_answers:
                step = _closer(*step, relation, raises)
            if step is not None and relation.holds(*step):
                inside = relation.are_inside(*step)
                yield Proposal(*step, "where exceptions begin", "raising", inside)
                break


def _paths(dataset: Any, quiet: Sequence[Any], relation: Relation) -> Iterator[list[Any]]:
    """Yield paths to a dataset for which the mechanism raises. A path is a list of datasets that
    ends with this dataset. Two successive datasets differ in one record, or in the records of one
    user. If datasets are not lists, a path has only two datasets: one of `quiet`, and the last one.

    quiet: datasets for which the mechanism gives outputs; most paths start with one of them.
    """
    inner = relation.inner
    if not (isinstance(inner, Lists) and isinstance(dataset, list)):
        yield from ([other, dataset] for other in quiet)
        return
    if relation.grows:
        prefixes = _prefixes(dataset, relation.adjacency.users)
        yield [one for one in prefixes if inner.fits(len(one))]
    for other in quiet:
        if isinstance(other, list) and other:
            same_size = [other[place % len(other)] for place in range(len(dataset))]
            yield list(_by_records(same_size, dataset, relation))


def _prefixes(dataset: list[Any], users: Users | None) -> Iterator[list[Any]]:
    """Yield the beginnings of a dataset: no record, the first record, the first two, …, all
    records. If `users` is given, each step adds all records of one user."""
    if users is None:
        yield from (dataset[:size] for size in range(len(dataset) + 1))
        return
    names = list(distinct(row[users.column] for row in dataset))
    for number in range(len(names) + 1):
        yield [row for row in dataset if row[users.column] in names[:number]]


def _by_records(start: list[Any], end: list[Any], relation: Relation) -> Iterator[Any]:
    """Yield the datasets of a path from the list `start` to the list `end` of the same size. Each
    step changes one record.

    If neighbours differ by one added or removed record, replacing a record takes two steps: the new
    record is added, then the old record is removed. If the list may not grow, the old record is
    removed first.
    """
    is_full = not relation.has_room(len(end) + 1)
    for place, record in enumerate(end):
        yield [*end[:place], *start[place:]]
        if relation.grows:
            between = [] if is_full else [record, start[place]]
            yield [*end[:place], *between, *start[place + 1 :]]
    yield end


def _first_step(path: list[Any], raises: Raises) -> tuple[Any, Any] | None:
    """Return two successive datasets of a path: the mechanism gives outputs for the first one, and
    always raises for the second one. Return None if it raises for the first dataset of the path, or
    gives outputs for the last dataset.

    path: list of datasets.
    raises: function that returns whether the mechanism always raises for a dataset; None if that is
    unknown.
    """
    low, high = 0, len(path) - 1
    if high < 1 or raises(path[low]) is not False or raises(path[high]) is not True:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if raises(path[middle]):
            high = middle
        else:
            low = middle
    return path[low], path[high]


def _closer(quiet: Any, raising: Any, relation: Relation, raises: Raises) -> tuple[Any, Any]:
    """Bisect the values between an input that gives outputs (`quiet`) and an input that raises,
    until the two are neighbours. Return (input that gives outputs, input that raises). If they do
    not become neighbours, return the last two inputs."""
    for _ in range(_MAX_HALVINGS):
        first, second = entries(quiet), entries(raising)
        if relation.holds(quiet, raising) or len(first) != len(second):
            break
        if not all(map(math.isfinite, first + second)):
            break
        middle = moved(quiet, [(high - low) / 2 for low, high in zip(first, second, strict=True)])
        if middle in (quiet, raising):
            break
        if raises(middle):
            raising = middle
        else:
            quiet = middle
    return quiet, raising
