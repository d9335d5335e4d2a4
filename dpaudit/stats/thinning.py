"""Samples whose sizes were fixed, thinned to what fair coins could have picked."""

from __future__ import annotations

from dpaudit.stats.binomial import upper_tail

# The probability, at most, that coins ask for more draws of an input than there are. They are then
# tossed again, so that what is tested after them holds at (1 - TOSSED_AGAIN) of its level.
TOSSED_AGAIN = 1e-3


def coin_flips(first: int, second: int) -> int:
    """Return the largest N such that N fair coins ask for more than `first` draws of d1, or more
    than `second` of d2, with probability at most TOSSED_AGAIN."""
    low, high = 0, 2 * min(first, second) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _excess(middle, first, second) else (low, middle)
    return low


def _excess(coins: int, first: int, second: int) -> bool:
    tails = upper_tail([first + 1, second + 1], coins, 0.5)
    return float(tails.sum()) <= TOSSED_AGAIN


def looks_tossed(first: int, second: int, changes: int, level: float) -> bool:
    """Return whether arms look like fair coins: how many there are of each, and how often a row's
    arm is another than that of the row before. Fair coins look otherwise with probability ≤ level.
    """
    rows = first + second
    tails = upper_tail(
        [max(first, second), max(changes, rows - 1 - changes)], [rows, rows - 1], 0.5
    )
    return bool((tails > level / 4).all())
