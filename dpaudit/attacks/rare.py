"""The attack on what is rare: single values, labels and far tails that a sieve has kept whole.

It is about draws that were counted, not kept, and so no attack on selection draws like the others:
what is rare there was counted whole, and the rest of them is one level. What is rare and never the
same twice, such as a random key or a number beside a few answers, is one more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.cells import NO_OUTPUT, Cells, around, listed, short_below, shortened
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap
from dpaudit.levels.shrinkage import Law, by_level
from dpaudit.levels.sieve import Sieve, Usual
from dpaudit.outcomes import RAISED, Column, Outcomes, concatenate
from dpaudit.tally import by_arm

NAME = "rare outputs"
# Of one column: values and labels of their own, at most, each seen so often.
_MOST, _LEAST = 8, 2
_FARTHEST = 1e300
# Columns that are looked at, those that tell most.
_COLUMNS = 4
# The numbers of what is usual, and of what is rare in another way.
_REST, _OTHER = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class RareLevels(LevelMap):
    """The level of what a sieve lets through: of the first of some columns in which an outcome is
    in a cell, or of all that is in none; and one level of what it does not let through.

    cells: by column, to a number, 0 for an entry in none of them. level: (numbers,), the level of
    each. example: of outcomes that are let through and in no cell, in words; or nothing.
    """

    sieve: Sieve
    cells: tuple[Cells, ...]
    level: LevelArray
    example: str

    @property
    def levels(self) -> int:
        return int(self.level.max()) + 2

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        found = np.full(outcomes.size, self.level[_REST])
        rows = np.flatnonzero(self.sieve.strange(outcomes))
        if rows.size:
            found[rows] = self.level[_numbered(self.cells, outcomes.take(rows))]
        return found

    def words(self, chosen: NDArray[np.bool_]) -> str:
        every = np.asarray(chosen[self.level])
        if every.all():
            return "any output"
        if every[_REST]:
            return f"none of: {self.words(~chosen)}"
        parts = [one.words(every) for one in self.cells if every[_own(one)].any()]
        if every[_OTHER]:
            parts.append(self._other(is_alone=not parts))
        return listed(parts, "or") if parts else NO_OUTPUT

    def _other(self, *, is_alone: bool) -> str:
        """Return in words what is rare and in no cell."""
        such = f" such as {self.example}" if self.example else ""
        seen = f"(seen fewer than {self.sieve.often} times in {self.sieve.draws:,} draws)"
        if self.sieve.is_narrowed:
            seen = "(hardly ever seen while learning)"
        return f"{'a' if is_alone else 'another'} rare output{such} {seen}"


def rare(sieve: Sieve, kept: SelectionDraws, arms: IntArray) -> list[Candidate]:
    """Order what is rare among draws that were counted.

    kept: those that the sieve has let through. arms: (2,), all that were counted, by input.
    """
    if kept.size < _LEAST:
        return []
    every, law, telling = _looked_at(sieve, kept, arms)
    best = sorted(range(len(every)), key=lambda place: -telling[place])[:_COLUMNS]
    return [_of_columns(sieve, [every[place] for place in best], kept, arms, law)]


def rare_by_column(
    sieve: Sieve, kept: SelectionDraws, arms: IntArray
) -> list[tuple[str, Candidate]]:
    """Order what is rare in every column, and what is rare in no cell of it, by the column's name;
    as `rare`."""
    if kept.size < _LEAST:
        return []
    every, law, _ = _looked_at(sieve, kept, arms)
    return [(one.name, _of_columns(sieve, [one], kept, arms, law)) for one in every]


def _looked_at(
    sieve: Sieve, kept: SelectionDraws, arms: IntArray
) -> tuple[list[Cells], Law, list[float]]:
    """Return the rare cells of every column that has any, what all of them say together, and how
    much each column tells."""
    # Beside a usual outcome, since what all outcomes of a table have in common is no column.
    new = [one.name for one in sieve.new(concatenate([sieve.like, kept.outcomes]))]
    usual = [*sieve.columns, *(None for _ in new)]
    columns = kept.outcomes.named([*(one.name for one in sieve.columns), *new])
    found = [_cells(*both) for both in zip(usual, columns, strict=True)]
    every = [one for one in found if one is not None]
    # Shrunk by what the cells of all columns say together, of which the luckiest ones look telling.
    counts = [by_arm(one(kept.outcomes.column(one.name)), _size(one), kept.is_d1) for one in every]
    is_other = _numbered(_numbered_on(every), kept.outcomes) == _OTHER
    other = by_arm(is_other.astype(np.intp), 2, kept.is_d1)[1:]
    law = Law.of(np.concatenate([other, *(one[1:] for one in counts)]), arms)
    even = (arms[0] + 1) / (arms.sum() + 2)
    telling = [float(np.abs(law.expected(one[1:]).share - even).max()) for one in counts]
    return every, law, telling


def _of_columns(
    sieve: Sieve, columns: list[Cells], kept: SelectionDraws, arms: IntArray, law: Law
) -> Candidate:
    """Return the order of the rare cells of some columns, and of what is rare in another way."""
    cells = _numbered_on(columns)
    numbers = 1 + _OTHER + sum(_size(one) - 1 for one in columns)
    place = _numbered(cells, kept.outcomes)
    counts = by_arm(place, numbers, kept.is_d1)
    counts[_REST] = arms - counts[1:].sum(axis=0)
    share = law.expected(counts)
    came_up = np.asarray(counts.any(axis=1))
    came_up[_REST] = True
    order = np.flatnonzero(came_up)[np.argsort(share.share[came_up], kind="stable")]
    level = np.empty(numbers, dtype=np.intp)
    level[order] = np.arange(len(order))
    level[~came_up] = level[_REST]
    expected = by_level(share, counts.sum(axis=1), level, len(order))
    held_out = np.append(counts[order], [[0, 0]], axis=0)
    others = np.flatnonzero(place == _OTHER)[:1].tolist()
    example = "".join(map(_in_words, kept.outcomes.words(others)))
    freeze = partial(RareLevels, sieve, cells, level, example)
    return Candidate(NAME, held_out, tuning.PENALTY_ANY_ORDER, freeze, shrunk=expected)


def _in_words(word: str) -> str:
    if word.startswith(RAISED):
        return f"the exception {word.removeprefix(RAISED)}"
    return shortened(word)


def _cells(usual: Usual | None, column: Column) -> Cells | None:
    """Return the rare values, labels and tails of a column of what was kept, numbered from 1 on, 0
    for the rest of it; None where there are none. usual: None for a column that is new."""
    is_number = np.ones(len(column.numbers), bool) if column.codes is None else column.codes == 0
    numbers = np.sort(column.numbers[is_number])
    labels = _rare_labels(usual, column)
    if usual is not None and usual.is_range:
        low, high = usual.numbers
        high = max(low, high)  # of few numbers all are rare, and the ends of the range cross
        below, above = numbers[numbers < low], numbers[numbers > high]
        edges, values = _tails(low, below, high, above)
    else:
        known = np.empty(0) if usual is None else usual.numbers
        edges, values = _single(numbers[~np.isin(numbers, known)])
    start = int(values.max(initial=0)) + 1
    label_values = np.append(np.arange(start, start + len(labels)), _REST).astype(np.intp)
    if start == 1 and not labels:
        return None
    return Cells(column.name, edges, labels, values, label_values)


def _tails(
    low: float, below: FloatArray, high: float, above: FloatArray
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the edges and the numbers of intervals beyond both ends of a range."""
    with np.errstate(over="ignore"):
        above_high = np.nextafter(high, np.inf)
    left = np.unique([*_cut(below, low), low]) if len(below) >= _LEAST else np.empty(0)
    right = np.unique([above_high, *_cut(above, high)]) if len(above) >= _LEAST else np.empty(0)
    edges = np.concatenate([left[left > -np.inf], right])
    ids = np.arange(1, len(edges) + 1)
    inner = len(left[left > -np.inf])
    return edges, np.concatenate([ids[:inner], [_REST], ids[inner:]]).astype(np.intp)


def _cut(numbers: FloatArray, end: float) -> FloatArray:
    """Return where the sorted numbers beyond an end are cut: in the middle, and where they part:
    at the widest gap, as a multiple of the distance from the end."""
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.minimum(np.abs(numbers - end), _FARTHEST)
        gaps = np.abs(np.diff(np.log1p(distance / np.median(distance))))
    places = [len(numbers) // 2, int(np.argmax(gaps)) + 1]
    with np.errstate(over="ignore", invalid="ignore"):
        room = np.diff(numbers)
    return np.array([short_below(float(numbers[i]), float(room[i - 1])) for i in places])


def _single(numbers: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the edges and numbers of intervals of single values, those that came up most."""
    values, counts = np.unique(numbers, return_counts=True)
    chosen = np.argsort(-counts, kind="stable")[:_MOST]
    values = np.sort(values[chosen[counts[chosen] >= _LEAST]])
    edges = around(values)
    found = np.zeros(len(edges) + 1, dtype=np.intp)
    found[np.searchsorted(edges, values, side="right")] = np.arange(1, len(values) + 1)
    return edges, found


def _rare_labels(usual: Usual | None, column: Column) -> tuple[str, ...]:
    if column.codes is None or (usual is not None and usual.labels is None):
        return ()
    known = frozenset[str]() if usual is None or usual.labels is None else usual.labels
    counts = np.bincount(column.codes, minlength=len(column.labels) + 1)[1:]
    order = np.argsort(-counts, kind="stable")
    every = [column.labels[i] for i in order if counts[i] >= _LEAST]
    return tuple(label for label in every if label not in known)[:_MOST]


def _numbered_on(columns: list[Cells]) -> tuple[Cells, ...]:
    """Return columns whose numbers follow on one another, after that of what is in none."""
    cells: list[Cells] = []
    used = _OTHER
    for one in columns:
        values = np.append(one.values, one.label_values)
        moved = np.where(values == _REST, _REST, values + used).astype(np.intp)
        inner = one.intervals
        cells.append(Cells(one.name, one.edges, one.labels, moved[:inner], moved[inner:]))
        used += _size(one) - 1
    return tuple(cells)


def _size(cells: Cells) -> int:
    """Return how many numbers a column has, with that of the rest."""
    return int(max(cells.values.max(), cells.label_values.max())) + 1


def _numbered(cells: tuple[Cells, ...], outcomes: Outcomes) -> NDArray[np.intp]:
    """Return the numbers of outcomes that are rare."""
    found = np.full(outcomes.size, _REST, dtype=np.intp)
    for one, column in zip(cells, outcomes.named([one.name for one in cells]), strict=True):
        found = np.where(found == _REST, one(column), found)
    return np.where(found == _REST, _OTHER, found)


def _own(cells: Cells) -> NDArray[np.intp]:
    """Return the numbers of a column's cells."""
    values = np.unique(np.append(cells.values, cells.label_values))
    return np.asarray(values[values != _REST])
