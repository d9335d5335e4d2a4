"""Pairs that traces suggest: of what is proposed those that coupled runs tell apart most, and what
climbing from them leads to. Nothing of it is chance, so that nothing has to be corrected for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.climbing import Pair, Pool, climbed
from dpaudit.searching.neighbours import are_neighbours, present
from dpaudit.searching.proposals.proposal import Proposal
from dpaudit.searching.proposals.stream import catalogue
from dpaudit.searching.space import Space
from dpaudit.searching.spaces.own import Own

# Of the best pairs inside the space, and outside of it, so many are proposed again.
_INSIDE, _OUTSIDE = 4, 2
# This part of all scores is for pairs of the catalogue, the others for climbing.
_CATALOGUE = 0.6
# A pair that was climbed to has to score so many times as high as where the climb began: it is less
# simple.
_MUCH = 1.5

# Scores two inputs in plain Python; may raise DatasetError for those that have no other form.
Score = Callable[[Any, Any], float]


class _Enough(Exception):
    """There are no more scores, or there is no more time."""


def by_traces(
    space: Space,
    adjacency: Adjacency,
    score: Score,
    *,
    scores: int,
    inside_only: bool,
    seconds: float = math.inf,
) -> Iterator[Proposal]:
    """Yield pairs, the highest score first. scores: how many pairs may be scored.  seconds: after
    which no more are."""
    left, deadline = [scores], time.monotonic() + seconds
    pool = Pool(may_invent=not isinstance(present(space), Own))
    found: list[tuple[float, int, Proposal]] = []

    def scored(d1: Any, d2: Any) -> float:
        left[0] -= 1
        if left[0] < 0 or time.monotonic() > deadline:
            raise _Enough
        try:
            return score(d1, d2)
        except DatasetError:
            return -math.inf

    with suppress(_Enough):
        proposed = catalogue(space, adjacency, inside_only=inside_only)
        for number, one in enumerate(islice(proposed, int(_CATALOGUE * scores))):
            found.append((scored(one.d1, one.d2), number, one))
            if one.inside:
                pool.add(one.d1)
                pool.add(one.d2)
    ranked = [
        one for height, _, one in sorted(found, key=lambda one: (-one[0], one[1])) if height > 0
    ]
    inside = [one for one in ranked if one.inside][:_INSIDE]
    yield from _climbed(inside, space, adjacency, scored, pool)
    outside = [one for one in ranked if not one.inside][:_OUTSIDE]
    yield from (replace(one, origin="trace") for one in (*inside, *outside))


def _climbed(
    inside: list[Proposal], space: Space, adjacency: Adjacency, scored: Score, pool: Pool
) -> Iterator[Proposal]:
    """Yield the pair that climbing from the best one leads to, if to another one."""
    best: list[tuple[float, Pair]] = []

    def height(pair: Pair) -> float:
        is_pair = space.contains(pair.d1) and space.contains(pair.d2)
        if not (is_pair and are_neighbours(pair.d1, pair.d2, adjacency, space)):
            return -math.inf
        reached = scored(pair.d1, pair.d2)
        if not best or reached > best[-1][0]:
            best.append((reached, pair))
        return reached

    for start in inside[:1]:
        with suppress(_Enough):
            climbed(Pair(start.d1, start.d2), pool, height)
        if len(best) > 1 and best[-1][0] >= _MUCH * best[0][0]:
            pair = best[-1][1]
            yield Proposal(pair.d1, pair.d2, "climbed to by traces", "trace", True)
