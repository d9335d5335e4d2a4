"""Many ordered cells to few levels: neighbours that tell the most alike become one."""

from __future__ import annotations

import heapq

import numpy as np

from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.ramps import LEVELS

_NOTHING = 1e-9


def merged(share: FloatArray, draws: IntArray) -> tuple[IntArray, int]:
    """Return the level of every cell, rising with its share of d1, and the number of levels.

    share, draws: (cells,). Two neighbours at a time are joined, those first that lose the least
    information on the input by it: as with Ward's clusters, the squared distance of their shares in
    units of its variance. Cells of equal shares are always on one level.
    """
    distinct, place = np.unique(share, return_inverse=True)
    mass = np.maximum(np.bincount(place.ravel(), weights=draws), _NOTHING)
    ahead = mass * distinct
    cells = len(distinct)
    before, after = list(range(-1, cells - 1)), list(range(1, cells + 1))
    age = [0] * cells  # of a group, named by its first cell; -1 once it has joined another

    def entry(one: int) -> tuple[float, int, int, int, int]:
        other = after[one]
        both = mass[one] + mass[other]
        mean = (ahead[one] + ahead[other]) / both
        apart = ahead[one] / mass[one] - ahead[other] / mass[other]
        lost = mass[one] * mass[other] / both * apart**2 / max(mean * (1 - mean), _NOTHING)
        return lost, one, other, age[one], age[other]

    heap = [entry(one) for one in range(cells - 1)]
    heapq.heapify(heap)
    groups = cells
    while groups > LEVELS - 1:
        _, one, other, *ages = heapq.heappop(heap)
        if [age[one], age[other]] != ages:
            continue
        mass[one] += mass[other]
        ahead[one] += ahead[other]
        age[one], age[other] = age[one] + 1, -1
        after[one] = after[other]
        groups -= 1
        if after[one] < cells:
            before[after[one]] = one
            heapq.heappush(heap, entry(one))
        if before[one] >= 0:
            heapq.heappush(heap, entry(before[one]))
    level = np.cumsum(np.array(age) >= 0) - 1
    return level[place.ravel()].astype(np.int64), groups
