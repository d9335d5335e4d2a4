"""Decide whether a set of a dict's keys may have the same order as the dict, under Python 3.8 and
without dpaudit.

The order of a set of strings is determined by the hash seed of the process. A mechanism that makes
a dict from a set reveals nothing by the order of the dict's keys, so all orders that a set may have
count as one order.
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

# Largest number of keys for which all orders of insertion (at most 24) are tried: a set is built in
# each order, and the order of its elements is compared with the order of the dict.
_MAX_PERMUTED_KEYS = 4
# Smallest number of slots of the hash table of a set in CPython (Objects/setobject.c), for up to 4
# elements. When three fifths of the slots are taken, the table grows to more than 4 slots per
# element.
_MIN_SLOTS = 8
# Possible numbers of slots of a set, relative to a set to which the same elements were added one by
# one. CPython uses half of the slots after a copy, and two or four times the slots after elements
# were removed.
_SIZES = (0.5, 1, 2, 4)
# Number of slots that CPython tries right after a taken slot (its constant LINEAR_PROBES).
_LINEAR_PROBES = 9
# Number of bits by which CPython shifts a hash to choose a slot further away (PERTURB_SHIFT).
_PERTURB_SHIFT = 5
# If the slot of a key's hash is taken, CPython puts the key into the first free slot that it tries.
# Another displaced key may have taken this slot before; the key is then put into the second. So two
# free slots are considered for each displaced key. With more, almost every order of keys would
# count as the order of a set.
_FREE_SLOTS = 2
# Smallest number of keys for which larger hash tables of a set are considered than the smallest one
# (8 slots). For 3/8 of all hash seeds, a set of two keys has one order in a table of 8 slots and
# the opposite order in a table of 32 slots. If both tables were considered, both orders of a dict
# with these keys would count as the order of a set, and no leak by the order would be seen.
_MIN_KEYS_OF_LARGER_TABLES = 3


def hash_seed() -> str | None:
    """Return the seed by which this process hashes strings, PYTHONHASHSEED. Return None if it was
    drawn at random, or if PYTHONHASHSEED was set to 0 after the start of this process."""
    if not sys.flags.hash_randomization:
        return "0"
    setting = "" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED", "")
    return None if setting in ("", "0", "random") else setting


def as_in_a_set(keys: tuple[Any, ...], *, texts: bool = True) -> bool:
    """Return whether the order of a dict's keys may be that of a set, so that the outcome must not
    show it. Return True also if the hash of some key differs from process to process, since two
    runs with equal seeds could then give different outcomes.

    texts: whether strings were hashed with the hash seed of this process. If not, their hashes
        count as different in each process.
    """
    is_fixed = texts and hash_seed() is not None
    return not all(_has_known_hash(key, is_fixed) for key in keys) or _can_be_of_a_set(keys)


def _has_known_hash(key: Any, is_fixed: bool) -> bool:
    if isinstance(key, (tuple, frozenset)):
        return all(_has_known_hash(part, is_fixed) for part in key)
    # A hash is known if it is the same in every process. Without a fixed hash seed, only hashes of
    # numbers are: dates and members of enumerations are hashed like strings. Before Python 3.12,
    # the hash of None is its address in memory, so it is never known.
    return isinstance(key, Number) or (is_fixed and key is not None)


@functools.lru_cache(maxsize=4096)
def _can_be_of_a_set(keys: tuple[Any, ...]) -> bool:
    """Return whether a set of these keys may have this order in this process."""
    # For three or more keys, the answer is an approximation. It is wrongly True for some orders
    # that no set has: a key whose hash collides with another hash is accepted at any place. It is
    # wrongly False for about 1 in 1,000 orders of sets with more than 15 keys, and for some sets
    # from which an element was removed, if the hash of a key had collided with its hash.
    if len(keys) < 2 or tuple(set(keys)) == keys:
        return True
    if len(keys) <= _MAX_PERMUTED_KEYS:
        # If hashes collide, the order of a set depends on the order in which its keys were
        # inserted. So all orders of insertion are tried.
        if any(tuple(set(order)) == keys for order in itertools.permutations(keys)):
            return True
        if len(keys) < _MIN_KEYS_OF_LARGER_TABLES:
            return False
    # CPython uses hashes as unsigned 64-bit integers, while `hash` may return a negative number.
    hashes = [hash(key) & 0xFFFFFFFFFFFFFFFF for key in keys]
    slots = _slots(len(keys))
    sizes = [max(_MIN_SLOTS, int(slots * size)) for size in _SIZES]
    return any(_rises(hashes, size) for size in sizes)


def _slots(elements: int) -> int:
    """Return the number of slots of a set to which elements were added one by one."""
    slots = _MIN_SLOTS
    while elements * 5 >= (slots - 1) * 3:
        used = -(-(slots - 1) * 3 // 5)
        while slots <= used * 4:
            slots *= 2
    return slots


def _rises(hashes: list[int], slots: int) -> bool:
    """Return whether a set with `slots` slots may list keys with these hashes in this order."""
    # A set lists its elements in the order of their slots. Only keys that must be in the slot of
    # their own hash are compared, because no other key can have taken this slot.
    mask = slots - 1
    owners: dict[int, list[int]] = {}
    for key, number in enumerate(hashes):
        owners.setdefault(number & mask, []).append(key)
    displaced = {key for keys in owners.values() if len(keys) > 1 for key in keys}
    pending = list(displaced)
    while pending:
        free = 0
        for slot in _probes(hashes[pending.pop()], mask):
            keys = owners.get(slot)
            if keys is None:
                free += 1
                if free == _FREE_SLOTS:
                    break
            elif keys[0] not in displaced:
                displaced.add(keys[0])
                pending.append(keys[0])
    settled = [number & mask for key, number in enumerate(hashes) if key not in displaced]
    return settled == sorted(settled)


def _probes(number: int, mask: int) -> Iterator[int]:
    """Yield the slots in which CPython tries to put an element, one after the other."""
    slot, perturb = number & mask, number
    for _ in range(mask + 1):
        probes = _LINEAR_PROBES if slot + _LINEAR_PROBES <= mask else 0
        yield from range(slot, slot + probes + 1)
        perturb >>= _PERTURB_SHIFT
        slot = (slot * 5 + 1 + perturb) & mask
