"""What every entry of a sequence says, given those before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.attacks.sequences.walk import LOST, Walk
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.stretches import expected

_NEWTON_STEPS = 8


def weights(trained: Sequence[IntArray], walk: Walk) -> list[FloatArray]:
    """Return what every past and symbol says, by entry, (fits, pasts * symbols), from the draws by
    entry: (fits, pasts, symbols, 2).

    Of every past each value is told apart from those that come after it in their order by an odds
    ratio. Those of one value in a row of entries are shrunk towards each other: of pasts that
    differ in nothing but how often their most frequent value came up, if that is kept.
    """
    ahead, behind, shapes = [], [], []
    rows: dict[tuple[int, ...], list[int]] = {}
    place = 0
    for one, before in zip(trained, walk.pasts, strict=True):
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
                place += 1
    every = np.concatenate(ahead, axis=1), np.concatenate(behind, axis=1)
    of_value, of_later = _log_ratios(*every, list(rows.values()))
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


def _log_ratios(
    ahead: IntArray, behind: IntArray, rows: Sequence[Sequence[int]]
) -> tuple[FloatArray, FloatArray]:
    """Return the log-ratios of a value and of those after it, both (fits, tables), from their draws
    by input, (fits, tables, 2). rows: of tables, whose odds ratios may be alike."""
    value, later = ahead + 0.5, behind + 0.5
    seen = np.log(value[..., 0] * later[..., 1] / (value[..., 1] * later[..., 0]))
    variance = (1 / value + 1 / later).sum(axis=2)
    tells = (ahead.sum(axis=(0, 2)) > 0) & (behind.sum(axis=(0, 2)) > 0)
    inside = [kept for row in rows if (kept := [place for place in row if tells[place]])]
    table = np.full((len(inside), max(map(len, inside), default=0)), -1)
    for row, places in zip(table, inside, strict=True):
        row[: len(places)] = np.searchsorted(np.flatnonzero(tells), places)
    odds_ratio = np.zeros_like(seen)
    odds_ratio[:, tells] = expected(seen[:, tells], variance[:, tells], table)
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
