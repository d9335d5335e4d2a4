"""What every entry of a sequence says, given those before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.sequences.walk import LOST, Walk
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.stretches import expected

_NEWTON_STEPS = 8
_TINY = 1e-9
# Tables that are learned from, those with the most draws: draws that are counted show more and more
# of them, which would take seconds.
_MOST_TABLES = 400


def weights(trained: Sequence[IntArray], walk: Walk) -> list[FloatArray]:
    """Return what every past and symbol says, by entry, (fits, pasts * symbols), from the draws by
    entry: (fits, pasts, symbols, 2).

    Of every past each value is told apart from those that come after it in their order by an odds
    ratio. What those of one value have in common over all pasts of an entry is shrunk towards that
    of the entries next to it, then what each past adds, in rows of entries: of pasts that differ in
    nothing but how often their most frequent value came up, if that is kept.
    """
    ahead, behind, shapes = [], [], []
    rows: dict[tuple[int, ...], list[int]] = {}
    entries: dict[tuple[int, int], list[int]] = {}
    place = 0
    for entry, (one, before) in enumerate(zip(trained, walk.pasts, strict=True)):
        train = one.copy()
        train[:, LOST] = 0
        later = np.cumsum(train[:, :, ::-1], axis=2)[:, :, ::-1]
        ahead.append(train[:, :, :-1].reshape(len(train), -1, 2))
        behind.append(later[:, :, 1:].reshape(len(train), -1, 2))
        shapes.append(train.shape[1:3])
        for last, *times in before:
            most = max(range(len(times)), key=times.__getitem__)
            for value in range(train.shape[2] - 1):
                key = (value, last, most, *times[:most], *times[most + 1 :])
                rows.setdefault(key, []).append(place)
                entries.setdefault((value, entry), []).append(place)
                place += 1
    every = np.concatenate(ahead, axis=1), np.concatenate(behind, axis=1)
    tables = _Tables.of(*every, list(rows.values()), entries)
    of_value, of_later = _log_ratios(*every, tables)
    found, start = [], 0
    for many, symbols in shapes:
        own = slice(start, start + many * (symbols - 1))
        start = own.stop
        by_past = len(of_value), many, symbols - 1
        total = np.zeros((len(of_value), many, symbols))
        total[:, :, 1:] = np.cumsum(of_later[:, own].reshape(by_past), axis=2)
        total[:, :, :-1] += of_value[:, own].reshape(by_past)
        total[:, :, -1] = 0.0  # an entry that is none of the values
        found.append(total.reshape(len(of_value), -1))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """Tables of a value against those after it, and what they have to do with each other.

    tells: (tables,), which tell anything. rows: of those that do, filled up with -1. entry: of
    each, the number of its value and entry. along: rows of these numbers, filled up with -1.
    """

    tells: NDArray[np.bool_]
    rows: IntArray
    entry: IntArray
    along: IntArray

    @classmethod
    def of(
        cls,
        ahead: IntArray,
        behind: IntArray,
        rows: Sequence[Sequence[int]],
        entries: Mapping[tuple[int, int], Sequence[int]],
    ) -> _Tables:
        """ahead, behind: draws of a value and of those after it, (fits, tables, 2).  rows: of
        tables that may be alike.  entries: the tables by value and entry."""
        least = np.minimum(ahead.sum(axis=(0, 2)), behind.sum(axis=(0, 2)))
        tells = np.zeros(len(least), dtype=bool)
        tells[np.argsort(-least, kind="stable")[:_MOST_TABLES]] = True
        tells &= least > 0
        place = np.cumsum(tells) - 1
        entry = np.zeros(int(tells.sum()), dtype=np.int64)
        along: dict[int, list[int]] = {}
        known = 0
        for value, number in sorted(entries):
            inside = [place[one] for one in entries[value, number] if tells[one]]
            if inside:
                entry[inside] = known
                along.setdefault(value, []).append(known)
                known += 1
        kept = [[int(place[one]) for one in row if tells[one]] for row in rows]
        return cls(tells, _filled(kept), entry, _filled(list(along.values())))

    def expected(self, seen: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the odds ratios to expect of those that tell, (fits, tables)."""
        weight = 1 / variance
        of_entry = _summed(weight, self.entry)
        common = expected(_summed(weight * seen, self.entry) / of_entry, 1 / of_entry, self.along)
        own = seen - common[:, self.entry]
        # Where one past has nearly all the draws of an entry, what is common is its own.
        others = np.maximum(1 - weight / of_entry[:, self.entry], _TINY)
        return np.asarray(common[:, self.entry] + expected(own, variance / others, self.rows))


def _filled(rows: Sequence[Sequence[int]]) -> IntArray:
    """Return rows of one length, filled up with -1; those without a place are left out."""
    rows = [row for row in rows if row]
    table = np.full((len(rows), max(map(len, rows), default=0)), -1)
    for own, places in zip(table, rows, strict=True):
        own[: len(places)] = places
    return table


def _summed(numbers: FloatArray, group: IntArray) -> FloatArray:
    """Return the sums of groups: (fits, groups)."""
    return np.stack([np.bincount(group, weights=one) for one in numbers])


def _log_ratios(
    ahead: IntArray, behind: IntArray, tables: _Tables
) -> tuple[FloatArray, FloatArray]:
    """Return the log-ratios of a value and of those after it, both (fits, tables), from their draws
    by input, (fits, tables, 2)."""
    value, later = ahead + 0.5, behind + 0.5
    seen = np.log(value[..., 0] * later[..., 1] / (value[..., 1] * later[..., 0]))
    variance = (1 / value + 1 / later).sum(axis=2)
    odds_ratio, tells = np.zeros_like(seen), tables.tells
    if tells.any():
        odds_ratio[:, tells] = tables.expected(seen[:, tells], variance[:, tells])
    # The log-odds of the value, in the middle of the two inputs, by its share of both.
    draws = (ahead + behind).astype(np.float64)
    wanted = ahead.sum(axis=2) + 0.5
    centre = np.log(wanted / (behind.sum(axis=2) + 0.5))
    draws += 0.5
    for _ in range(_NEWTON_STEPS):
        of_d1, of_d2 = _share(centre + odds_ratio / 2), _share(centre - odds_ratio / 2)
        off = wanted - draws[..., 0] * of_d1 - draws[..., 1] * of_d2
        bend = draws[..., 0] * of_d1 * (1 - of_d1) + draws[..., 1] * of_d2 * (1 - of_d2)
        centre += np.clip(off / np.maximum(bend, 1e-9), -1, 1)
    of_d2, of_d1 = centre - odds_ratio / 2, centre + odds_ratio / 2
    of_value = np.logaddexp(0, -of_d2) - np.logaddexp(0, -of_d1)
    of_later = np.logaddexp(0, of_d2) - np.logaddexp(0, of_d1)
    return np.where(tells, of_value, 0.0), np.where(tells, of_later, 0.0)


def _share(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-odds)))
