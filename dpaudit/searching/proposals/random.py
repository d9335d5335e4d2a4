"""Random pairs of neighbours, by Hypothesis, which draws edges more often than chance would."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.drawing import drawn
from dpaudit.searching.neighbours import (
    Ingredients,
    allowed,
    are_neighbours,
    candidates,
    item_of,
    present,
)
from dpaudit.searching.space import Space, identity, strategies
from dpaudit.searching.spaces.own import Own

# Of so many changes of one dataset, one is taken, and some after it if that makes no neighbour.
_CANDIDATES, _TRIES = 200, 20
_NONE = object()
# So many draws in a row without a new pair, and the space has no more of them.
_VAIN = 500


def random_pairs(space: Space, adjacency: Adjacency, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of neighbours, the same for a seed; they end where no new ones come."""
    known: set[Hashable] = set()
    vain = 0
    is_own = isinstance(present(space), Own) or bool(adjacency.path)
    for pair in drawn(_pairs(space, adjacency), seed, space.words(), is_own=is_own):
        vain += 1
        if pair is not None and (key := frozenset(map(identity, pair))) not in known:
            known.add(key)
            vain = 0
            yield pair
        if vain >= _VAIN:
            return


def pair_strategy(space: Space, adjacency: Adjacency) -> Any:
    """Return a strategy of pairs, for a search that is guided by what it finds; it gives None for a
    dataset without neighbours."""
    return _pairs(space, adjacency)


def _pairs(space: Space, adjacency: Adjacency) -> Any:
    """Return a strategy of pairs; it gives None for a dataset without neighbours."""
    st = strategies()
    datasets, records = space.strategy(), _records(space)
    hundredths = st.integers(-100, 100).filter(bool).map(lambda part: part / 100)
    parts = hundredths | st.sampled_from((1.0, -1.0))

    def pair(draw: Any) -> tuple[Any, Any] | None:
        d1 = draw(datasets)
        if adjacency.users is not None:
            d1 = allowed(d1, adjacency.users)
        by = Ingredients([draw(records) for _ in range(2)], (draw(parts), draw(parts)))
        found = list(islice(candidates(d1, space, adjacency, by), _CANDIDATES))
        start = draw(st.integers(0, max(0, len(found) - 1)))
        turned = islice([*found[start:], *found[:start]], _TRIES)
        d2 = next((one for one in turned if are_neighbours(d1, one, adjacency, space)), _NONE)
        if d2 is _NONE:
            return None
        return (d1, d2) if draw(st.booleans()) else (d2, d1)

    return st.composite(pair)()


def _records(space: Space) -> Any:
    """Return a strategy of records; a user's generator gives whole datasets, one of whose it is."""
    if not isinstance(present(space), Own):
        return item_of(space).strategy()
    st = strategies()
    filled = space.strategy().filter(lambda one: one != [])
    return filled.flatmap(
        lambda one: st.sampled_from(one) if isinstance(one, list) else st.just(one)
    )
