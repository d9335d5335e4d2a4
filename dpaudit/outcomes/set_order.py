"""Whether keys stand in an order that a set of them has: for Python 3.8 and later, without imports
of dpaudit, since drawing processes run this file too.

The order of a set of texts follows from the hash seed of the process. A mechanism that iterates
over a set reveals nothing by it, so all orders that such a set can have count as one.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from numbers import Number

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Up to this many keys, sets are built with every order of insertion: 24 at most.
_FEW_KEYS = 4
# CPython's table of a set (Objects/setobject.c): 8 slots for up to four elements; a table that is
# three fifths full grows to more than four times as many slots as elements. A copy of a set may
# have half as many slots, and a set that lost elements two or four times as many.
_FEWEST_SLOTS, _SIZES = 8, (0.5, 1, 2, 4)
_LINEAR_PROBES, _PERTURB_SHIFT = 9, 5
# Free slots that a key may come to if its own slot is taken: the first one, or the second if
# another displaced key has taken that. With more, few keys would be certain to be in a slot.
_FREE_SLOTS = 2
# Of two keys, the table of 8 slots alone: in three of eight hash seeds, that of 32 slots has their
# other order, and then no order of two keys would reveal anything.
_FEWEST_KEYS_OF_LARGER_TABLES = 3


def hash_seed() -> str | None:
    """Return the seed of the hashes of texts, PYTHONHASHSEED; None if every process draws its own.

    A variable that was set to 0 after the start of this process does not count.
    """
    if not sys.flags.hash_randomization:
        return "0"
    given = "" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED", "")
    return None if given in ("", "0", "random") else given


def as_in_a_set(keys: tuple[Any, ...], *, texts: bool = True) -> bool:
    """Return whether an order of keys reveals nothing: a set of them can have it in this process,
    or their hashes differ from process to process, so that the orders of sets differ, too, and
    equal seeds would not give equal results.

    texts: whether texts were hashed with the seed of this process.
    """
    is_fixed = texts and hash_seed() is not None
    return not all(_has_known_hash(key, is_fixed) for key in keys) or _can_be_of_a_set(keys)


def _has_known_hash(key: Any, is_fixed: bool) -> bool:
    if isinstance(key, (tuple, frozenset)):
        return all(_has_known_hash(part, is_fixed) for part in key)
    # Dates and members of enumerations hash texts; None hashes its address before Python 3.12.
    return isinstance(key, Number) or (is_fixed and key is not None)


@functools.lru_cache(maxsize=4096)
def _can_be_of_a_set(keys: tuple[Any, ...]) -> bool:
    """Return whether a set of these keys, in this process, can have them in this order.

    Of three keys and more, those that collide may stand anywhere, so that the answer is also True
    for orders that no set has. It is False for about one in a thousand orders of sets of more than
    fifteen keys, and for orders due to collisions with other elements, which the set has lost.
    """
    if len(keys) < 2 or tuple(set(keys)) == keys:
        return True
    if len(keys) <= _FEW_KEYS:
        # Where hashes collide, the order of insertion matters.
        if any(tuple(set(order)) == keys for order in itertools.permutations(keys)):
            return True
        if len(keys) < _FEWEST_KEYS_OF_LARGER_TABLES:
            return False
    # As size_t; of integers the hash may be negative.
    hashes = [hash(key) & 0xFFFFFFFFFFFFFFFF for key in keys]
    slots = _slots(len(keys))
    sizes = [max(_FEWEST_SLOTS, int(slots * size)) for size in _SIZES]
    return any(_rises(hashes, size) for size in sizes)


def _slots(elements: int) -> int:
    """Return the number of slots of a set after `elements` elements were added one by one."""
    slots = _FEWEST_SLOTS
    while elements * 5 >= (slots - 1) * 3:
        used = -(-(slots - 1) * 3 // 5)
        while slots <= used * 4:
            slots *= 2
    return slots


def _rises(hashes: list[int], slots: int) -> bool:
    """Return whether the keys that are surely in their own slots come in the order of these."""
    mask = slots - 1
    owners: dict[int, list[int]] = {}
    for key, number in enumerate(hashes):
        owners.setdefault(number & mask, []).append(key)
    displaced = {key for own in owners.values() if len(own) > 1 for key in own}
    pending = list(displaced)
    while pending:
        free = 0
        for slot in _probes(hashes[pending.pop()], mask):
            own = owners.get(slot)
            if own is None:
                free += 1
                if free == _FREE_SLOTS:
                    break
            elif own[0] not in displaced:
                displaced.add(own[0])
                pending.append(own[0])
    settled = [number & mask for key, number in enumerate(hashes) if key not in displaced]
    return settled == sorted(settled)


def _probes(number: int, mask: int) -> Iterator[int]:
    """Yield the slots that are tried for a hash, as long as they are not the same again."""
    slot, perturb = number & mask, number
    for _ in range(mask + 1):
        probes = _LINEAR_PROBES if slot + _LINEAR_PROBES <= mask else 0
        yield from range(slot, slot + probes + 1)
        perturb >>= _PERTURB_SHIFT
        slot = (slot * 5 + 1 + perturb) & mask
