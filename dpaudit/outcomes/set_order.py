"""Whether the keys of a dict are in an order that a set of them may have.

The order of a set of strings follows from the hash seed of the process. A mechanism that iterates
over a set reveals nothing by that order, so all orders that a set may have count as one. Processes
that draw run this file too, so it works in Python 3.8 and imports nothing of dpaudit.
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

# Most keys for which sets are built in every order of insertion, of which there are at most 24.
_FEW_KEYS = 4
# CPython's table of a set (Objects/setobject.c): 8 slots for up to four elements; a table that is
# three fifths full grows to more than four times as many slots as elements. A copy of a set may
# have half as many slots, and a set that lost elements two or four times as many.
_FEWEST_SLOTS, _SIZES = 8, (0.5, 1, 2, 4)
_LINEAR_PROBES, _PERTURB_SHIFT = 9, 5
# Free slots in which a key may be if its own slot is taken: the first, or the second if another
# displaced key has taken the first. With more, few keys would be certain to be in a slot.
_FREE_SLOTS = 2
# Of two keys, the table of 8 slots alone: in three of eight hash seeds, that of 32 slots has their
# other order, and then no order of two keys would reveal anything.
_FEWEST_KEYS_OF_LARGER_TABLES = 3


def hash_seed() -> str | None:
    """Return the hash seed of strings, PYTHONHASHSEED; None if every process draws its own.

    The value 0 does not count if it was set after the start of this process.
    """
    if not sys.flags.hash_randomization:
        return "0"
    given = "" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED", "")
    return None if given in ("", "0", "random") else given


def as_in_a_set(keys: tuple[Any, ...], *, texts: bool = True) -> bool:
    """Return whether an order of keys counts as the order of a set, and so reveals nothing.

    This is so if a set of these keys may have the order in this process, or if their hashes differ
    between processes, where equal seeds would not give equal results.
    texts: whether strings were hashed with the hash seed of this process.
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
    """Return whether a set of these keys may have this order in this process.

    Of three or more keys, those that collide may be anywhere, so that the answer is also True for
    orders that no set has. It is wrongly False for about 1 in 1,000 orders of sets of more than 15
    keys, and for orders due to collisions with elements that were removed from the set.
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
    """Return whether the keys that are certain to be in their own slots come in slot order."""
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
    """Yield the slots that CPython tries for a hash, until they repeat."""
    slot, perturb = number & mask, number
    for _ in range(mask + 1):
        probes = _LINEAR_PROBES if slot + _LINEAR_PROBES <= mask else 0
        yield from range(slot, slot + probes + 1)
        perturb >>= _PERTURB_SHIFT
        slot = (slot * 5 + 1 + perturb) & mask
