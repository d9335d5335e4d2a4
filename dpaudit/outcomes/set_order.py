"""Decide whether a set of a dict's keys may have the same order as the dict.

The order of a set of strings is determined by the hash seed of the process. A mechanism that
iterates over a set reveals nothing by this order, so all orders that a set may have count as one.
Processes that draw also run this file, so it works in Python 3.8 and imports nothing of dpaudit.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from numbers import Number

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# For up to 4 keys, sets are built in every order of insertion, which are at most 24 orders.
_FEW_KEYS = 4
# Numbers of slots of the hash table of a set in CPython (Objects/setobject.c). _FEWEST_SLOTS: 8
# slots for up to 4 elements; a table that is three fifths full grows to more than 4 slots per
# element. _SIZES: a copy of a set may have half of these slots; a set from which elements were
# removed may have twice or four times this number.
_FEWEST_SLOTS, _SIZES = 8, (0.5, 1, 2, 4)
# CPython's constants LINEAR_PROBES and PERTURB_SHIFT, which determine the slots that it tries.
_LINEAR_PROBES, _PERTURB_SHIFT = 9, 5
# A key whose own slot is taken may be in the first free slot, or in the second free slot if another
# displaced key has taken the first. With a third, few keys would be certain to be in their slots.
_FREE_SLOTS = 2
# Larger tables are considered for 3 or more keys only. For 3 of 8 hash seeds, two keys have one
# order in the table of 8 slots and the other order in the table of 32 slots, so that with both
# tables no order of two keys would reveal anything.
_FEWEST_KEYS_OF_LARGER_TABLES = 3


def hash_seed() -> str | None:
    """Return the hash seed of strings, PYTHONHASHSEED; None if each process draws a random one.

    If PYTHONHASHSEED is 0 but was set after the start of this process, the result is None.
    """
    if not sys.flags.hash_randomization:
        return "0"
    given = "" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED", "")
    return None if given in ("", "0", "random") else given


def as_in_a_set(keys: tuple[Any, ...], *, texts: bool = True) -> bool:
    """Return whether an order of keys counts as the order of a set, and so reveals nothing.

    The result is True if a set of these keys may have the order in this process. It is also True if
    the hashes of the keys differ between processes, since equal seeds would otherwise not give
    equal outcomes.

    texts: whether strings were hashed with the hash seed of this process.
    """
    is_fixed = texts and hash_seed() is not None
    return not all(_has_known_hash(key, is_fixed) for key in keys) or _can_be_of_a_set(keys)


def _has_known_hash(key: Any, is_fixed: bool) -> bool:
    if isinstance(key, (tuple, frozenset)):
        return all(_has_known_hash(part, is_fixed) for part in key)
    # Dates and members of enumerations are hashed like texts. Before Python 3.12, the hash of None
    # is its address, which differs between processes.
    return isinstance(key, Number) or (is_fixed and key is not None)


@functools.lru_cache(maxsize=4096)
def _can_be_of_a_set(keys: tuple[Any, ...]) -> bool:
    """Return whether a set of these keys may have this order in this process.

    The answer is approximate for three or more keys. It is wrongly True for some orders that no set
    has, since colliding keys are allowed in any place. It is wrongly False for about 1 in 1,000
    orders of sets of more than 15 keys, and for orders that are due to collisions with elements
    that were removed from the set.
    """
    if len(keys) < 2 or tuple(set(keys)) == keys:
        return True
    if len(keys) <= _FEW_KEYS:
        # If hashes collide, the order of a set depends on the order of insertion.
        if any(tuple(set(order)) == keys for order in itertools.permutations(keys)):
            return True
        if len(keys) < _FEWEST_KEYS_OF_LARGER_TABLES:
            return False
    # Hashes as unsigned 64-bit integers, as in CPython; `hash` may be negative.
    hashes = [hash(key) & 0xFFFFFFFFFFFFFFFF for key in keys]
    slots = _slots(len(keys))
    sizes = [max(_FEWEST_SLOTS, int(slots * size)) for size in _SIZES]
    return any(_rises(hashes, size) for size in sizes)


def _slots(elements: int) -> int:
    """Return the number of slots in the hash table of a set to which `elements` elements were added
    one by one."""
    slots = _FEWEST_SLOTS
    while elements * 5 >= (slots - 1) * 3:
        used = -(-(slots - 1) * 3 // 5)
        while slots <= used * 4:
            slots *= 2
    return slots


def _rises(hashes: list[int], slots: int) -> bool:
    """Return whether a set whose hash table has `slots` slots may have the order of the keys.

    A set lists its elements in the order of their slots. The result is True if this order holds for
    the keys that are certain to be in the slot of their own hash, without a collision.

    hashes: hash of each key, in the order of the keys.
    slots: number of slots of the table.
    """
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
    """Yield the slots that CPython tries for an element, one after the other, until they repeat.

    number: hash of the element.
    mask: number of slots minus 1.
    """
    slot, perturb = number & mask, number
    for _ in range(mask + 1):
        probes = _LINEAR_PROBES if slot + _LINEAR_PROBES <= mask else 0
        yield from range(slot, slot + probes + 1)
        perturb >>= _PERTURB_SHIFT
        slot = (slot * 5 + 1 + perturb) & mask
