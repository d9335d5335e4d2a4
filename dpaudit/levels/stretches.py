"""What to expect of log-ratios in a row, where neighbours may be alike.

Noise that is alike from place to place gives log-ratios that stay the same over a stretch and jump
at its end. How often they jump, and to what, is learned from all rows together: what is jumped to
is drawn from a law on a grid that makes all that was found most likely (as in `shrinkage.py`), and
so is the chance to jump at a place. Where every place has a log-ratio of its own it goes to 1, and
neighbours say nothing about each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.shrinkage import GAP, GRID

_STEPS = 20
_FIRST_CHANCE = 0.2
# No log-ratio is ruled out by the others, nor that one stays, nor that it jumps.
_LEAST, _LEAST_CHANCE = 1e-9, 1e-3
# Numbers of a place, of all rows, that stay in the cache while fits are found together.
_TOGETHER = 32_768


def expected(found: FloatArray, variance: FloatArray, rows: IntArray) -> FloatArray:
    """Return the means to expect of log-ratios by several fits, (fits, places).

    found, variance: (fits, places), with normal errors of such variance; infinite: nothing was
    found. rows: (rows, length), the places of every row in their order, filled up with -1.
    """
    if found.shape[1] == 0:
        return found
    together = max(1, _TOGETHER // (len(rows) * len(GRID)))
    starts = range(0, len(found), together)
    some = [slice(start, start + together) for start in starts]
    return np.concatenate([_expected(found[one], variance[one], rows) for one in some])


def _expected(found: FloatArray, variance: FloatArray, rows: IntArray) -> FloatArray:
    gap = np.interp(found, GRID, GAP)
    # An error within which no point of the grid may lie is taken to be as wide as the grid.
    error = np.sqrt(variance + (gap / 2) ** 2)
    logs = -0.5 * ((found[..., None] - GRID) / error[..., None]) ** 2
    logs -= logs.max(axis=2, keepdims=True)
    likelihood = np.exp(logs)
    inside = rows >= 0
    is_there = inside[..., None, None]
    # (length, rows, fits, grid)
    seen = np.where(is_there, likelihood.transpose(1, 0, 2)[rows], 1.0).swapaxes(0, 1)
    is_there = is_there.swapaxes(0, 1)
    law = np.full((len(found), len(GRID)), 1 / len(GRID))
    chance = np.full((len(found), 1), _FIRST_CHANCE)
    for _ in range(_STEPS):
        law, chance, mean = _improved(seen, is_there, law, chance)
    told = np.empty_like(found)
    told[:, rows[inside]] = mean.swapaxes(0, 1)[inside].T
    is_known = np.sqrt(variance) < gap / 2
    return np.where(is_known, found, told)


def _improved(
    seen: FloatArray, is_there: NDArray[np.bool_], law: FloatArray, chance: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the law and the chance after a step of EM, and the means by those before it."""
    length = len(seen)
    ahead, jumping = np.empty_like(seen), np.empty_like(seen)
    for place in range(length):
        jumped = law if place == 0 else chance * law
        here = np.broadcast_to(jumped, seen.shape[1:]) * seen[place]
        jumping[place] = here
        if place:
            here = here + (1 - chance) * ahead[place - 1] * seen[place]
        total = here.sum(axis=2, keepdims=True)
        ahead[place], jumping[place] = here / total, jumping[place] / total
    behind = np.ones_like(seen)
    for place in range(length - 2, -1, -1):
        next_one = behind[place + 1] * seen[place + 1]
        jumped = chance * (law * next_one).sum(axis=2, keepdims=True)
        here = (1 - chance) * next_one + jumped
        behind[place] = here / here.max(axis=2, keepdims=True)
    both = ahead * behind
    norm = both.sum(axis=3, keepdims=True)
    mean = (both / norm) @ GRID
    jumps = np.where(is_there, jumping * behind / norm, 0.0)
    drawn = jumps.sum(axis=(0, 1))
    law = drawn + _LEAST
    law /= law.sum(axis=1, keepdims=True)
    moves = np.maximum(1, is_there[1:].sum())
    chance = jumps[1:].sum(axis=(0, 1, 3))[:, None] / moves
    return law, np.clip(chance, _LEAST_CHANCE, 1 - _LEAST_CHANCE), mean
