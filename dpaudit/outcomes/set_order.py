"""Whether keys stand in an order that a set of them has: for Python 3.8 and later, no imports of
dpaudit, since drawing processes run this file too.

The order of a set of texts follows from the hash seed of the process. A mechanism that iterates
over a set reveals nothing by it, so all orders that such a set can have count as one.
"""

from __future__ import annotations

import functools
import itertools

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Up to this many keys, sets are built with every order of insertion: 24 at most.
_FEW_KEYS = 4
# Slots of larger hash tables, of a set that had more elements before. Not for two keys: in three of
# eight hash seeds, the table of 8 slots has one order and that of 32 slots the other, so that no
# order would count.
_LARGER_TABLES = (32, 128)
_FEWEST_KEYS_IN_LARGER_TABLES = 3


@functools.lru_cache(maxsize=4096)
def as_in_a_set(keys: tuple[Any, ...]) -> bool:
    """Return whether a set of these keys, in this process, can have them in this order."""
    if len(keys) < 2:
        return True
    built = [tuple(set(keys))]
    if built[0] == keys:
        return True
    if len(keys) >= _FEWEST_KEYS_IN_LARGER_TABLES:
        hashes = [hash(key) for key in keys]
        if any(_rises([one % slots for one in hashes]) for slots in _LARGER_TABLES):
            return True
    # Where hashes collide, the order of insertion matters.
    built += [tuple(set(order)) for order in _insertions(keys)]
    if len(keys) <= _FEW_KEYS:
        return keys in built
    return _agrees(keys, [{key: place for place, key in enumerate(one)} for one in built])


def _rises(slots: list[int]) -> bool:
    return all(one <= other for one, other in zip(slots, slots[1:]))  # noqa: B905, RUF007  # Python 3.8


def _insertions(keys: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if len(keys) <= _FEW_KEYS:
        return itertools.permutations(keys)
    half = len(keys) // 2
    return iter([keys[::-1], keys[half:] + keys[:half], keys[::2] + keys[1::2]])


def _agrees(keys: tuple[Any, ...], places: list[dict[Any, int]]) -> bool:
    """Return whether every two keys stand in an order that they have in some of the built sets;
    neighbours are compared first, since that settles it in most cases."""
    pairs = itertools.chain(zip(keys, keys[1:]), itertools.combinations(keys, 2))  # noqa: B905, RUF007
    return all(any(place[one] < place[other] for place in places) for one, other in pairs)
