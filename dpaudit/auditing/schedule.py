"""How many draws, in what blocks, and when learning gives way to certifying."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dpaudit.auditing.spec import MINIMUM_SAMPLES

FIRST_BLOCK = 100
_GROWTH = 1.25
_MOST_LEARNED = 100_000
# Later blocks are a sixteenth of what was drawn before, within these limits: a look costs little,
# and a refutation is not noticed before the end of its block.
_BLOCKS = 16
_SMALLEST, LARGEST = 64, 131_072
# Refitted after every block at first, later when the draws have doubled.
_EAGER = 1_000
# When draws are planned by the clock: not before this share of the time has been used, so that
# what starts slowly is not taken for slow.
_MEASURED = 0.05
_MARGIN = 0.9


class Plan:
    """The budget of one pair: fixed by `samples`, or by the clock while learning, and then final.

    seconds: time for this pair; None: `samples` holds.
    """

    def __init__(
        self, samples: int, seconds: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._budget = samples if seconds is None else None
        self._seconds, self._clock, self._start = seconds, clock, clock()

    @property
    def is_fixed(self) -> bool:
        return self._budget is not None

    @property
    def budget(self) -> int:
        """Draws allowed; while they are not planned, the most that learning may need."""
        return 8 * _MOST_LEARNED if self._budget is None else self._budget

    @property
    def freeze_at(self) -> int:
        """Draws to learn from before the event of the exact bound is frozen."""
        budget = self.budget
        return min(_MOST_LEARNED, max(budget // 8, min(budget // 4, 1_000)))

    def learned(self, spent: int) -> None:
        """Take notice of a block's end; fixes the budget by the clock once that is due."""
        if self._budget is not None or self._seconds is None:
            return
        elapsed = self._clock() - self._start
        if elapsed < _MEASURED * self._seconds and spent < _MOST_LEARNED:
            return
        rate = spent / max(elapsed, 1e-9)
        coming = int(rate * max(0.0, _MARGIN * self._seconds - elapsed))
        self._budget = max(MINIMUM_SAMPLES, spent + coming)

    def learning_sizes(self) -> Iterator[int]:
        """Yield block sizes, the last one cut to end at the freeze, as it stands when asked for."""
        spent, size = 0, float(FIRST_BLOCK)
        while spent < self.freeze_at:
            block = min(round(size), self.freeze_at - spent, LARGEST)
            yield block
            spent, size = spent + block, size * _GROWTH

    @staticmethod
    def certifying_sizes(spent: int, until: int) -> Iterator[int]:
        """Yield block sizes from `spent` to `until`."""
        while spent < until:
            block = min(max(spent // _BLOCKS, _SMALLEST), LARGEST, until - spent)
            yield block
            spent += block


def wants_refit(learned_from: int, available: int) -> bool:
    """Return whether to learn anew from `available` draws."""
    return available <= _EAGER or available >= 2 * learned_from


def look_stride(size: int) -> int:
    """Return how many draws apart the looks within a shuffled block are."""
    return max(16, size // 24)
