"""Samples whose sizes were fixed, thinned to what fair coins could have picked."""

from __future__ import annotations

from bisect import bisect_left

from dpaudit.stats.binomial import upper_tail

# The probability, at most, that coins ask for more draws of an input than there are. They are then
# tossed again, so that what is tested after them holds at (1 - TOSSED_AGAIN) of its level.
TOSSED_AGAIN = 1e-3


def coin_flips(first: int, second: int) -> int:
    """Return for how many coin-flipped draws two samples of fixed sizes suffice.

    Parameters
    ----------
    first, second : int
        Draws of d1 and of d2 that there are, at least 0.

    Returns
    -------
    int
        The most fair coins that ask for more draws of an input than there are with probability at
        most `TOSSED_AGAIN`.

    Notes
    -----
    A test of the thinned draws is valid at (1 - TOSSED_AGAIN) of its level (docs/method.md §12).

    Examples
    --------
    >>> coin_flips(1_000, 1_000)
    1859
    """

    def ask_for_more(coins: int) -> bool:
        tails = upper_tail([first + 1, second + 1], coins, 0.5)
        return float(tails.sum()) > TOSSED_AGAIN

    return bisect_left(range(1, 2 * min(first, second) + 1), True, key=ask_for_more)
