"""The budget of one pair: number of draws, sizes of blocks, and the end of learning."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpaudit.auditing.options import MINIMUM_SAMPLES

# Draws before all others, which count for nothing: single calls, which show what a mechanism is
# like; and draws of each input, made twice from one seed, which show whether equal seeds give equal
# outcomes.
FIRST_CALLS = 4
PROBE = 32
PROBING_CALLS = FIRST_CALLS + 2 * 2 * PROBE

# Sample buffer: outcomes kept in memory for fitting, and the largest block. Fewer when outcomes
# have many columns, so that a buffer stays under about 50 MB.
MAX_BUFFERED_DRAWS = 100_000
_MAX_BUFFERED_VALUES = 4_000_000
_LEAST_BUFFERED_DRAWS = 2_000

# Blocks to learn from: the first one, and the factor by which each is larger than the last.
FIRST_BLOCK = 100
_BLOCK_GROWTH = 1.25
# The buffer takes an eighth of the budget; a quarter of a budget so small that this is fewer draws
# than a fit needs.
_FEW_DRAWS = 1_000

# Blocks that are only counted are 1/16 of the draws before them, within limits: a look costs
# little, and a refutation shows only at the end of a block.
_BLOCK_SHARE = 16
_LEAST_BLOCK = 64
_LARGEST_BLOCK = 131_072
# A mechanism that makes one draw a call is slow: smaller blocks keep the display alive, and several
# workers busy.
_LARGEST_BLOCK_OF_SINGLE_DRAWS = 32_768
# Blocks of a budget: at least 15, or there are too few to compare with each other; no more than
# about 200 while they can be shared out among many workers; never more than about 16,384, since a
# result keeps each.
_LEAST_BLOCKS = 15
_ENOUGH_BLOCKS = 200
_LARGEST_SHARED_BLOCK = 524_288
_MOST_BLOCKS = 16_384

# Draws of a confirmation, at least, and its blocks: enough to see whether draws depend on their
# call.
CONFIRMING = 1_000
_CONFIRMING_BLOCKS = 16

# A claim that is clearly refuted is frozen early: after 1/32 of the budget.
_EARLIEST_FREEZE = 1 / 32
# Refit schedule while counting: whenever draws have doubled, unless that is near the freeze.
_NEAR_FREEZE = 0.6
# With δ > 0, a rare output can refute as soon as it is bet on: refit after every factor of √2, but
# not within a factor of 1.2 before the next planned refit.
_REFIT_GROWTH_FOR_RARE = math.sqrt(2)
_NO_REFIT_BEFORE = 1.2
# Refit schedule of the buffer: after every block at first, then whenever draws have doubled. A run
# that a refutation does not end has no hurry: whenever draws have grown eightfold, and not before
# 1/16 of the buffer.
_REFIT_EACH_BLOCK_UNTIL = 1_000
_REFIT_GROWTH_OF_FULL_RUNS = 8
_FIRST_REFIT_OF_FULL_RUNS = 16

# Where the clock plans the budget. Learning ends after an eighth of the time, as it ends after an
# eighth of the draws elsewhere; after a quarter, if there are few draws by then.
_LEARNING_TIME = 1 / 8
_LEARNING_TIME_OF_FEW_DRAWS = 1 / 4
# The rate is measured during 5 % of the time, in at least 8 blocks of 4 or more draws.
_TIMING_TIME = 0.05
_TIMED_BLOCKS = 8
_LEAST_TIMED_BLOCK = 4
# Workers may take a third of the time left to start; the plan fills 90 % of the time.
_STARTING_TIME = 1 / 3
_PLANNED_TIME = 0.9
# A slow mechanism may learn from only this many draws, and certify with the rest of the fewest.
_LEAST_LEARNED = MINIMUM_SAMPLES // 4


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of memory, and the size of a confirmation, for the outputs of one mechanism.

    learned: outcomes in the sample buffer, at most.
    block: draws whose outcomes are in memory at a time. A block is larger only where a budget would
        have too many.
    confirming: draws of a confirmation, at least.
    """

    learned: int = MAX_BUFFERED_DRAWS
    block: int = _LARGEST_BLOCK
    confirming: int = CONFIRMING

    @property
    def single_draws(self) -> bool:
        """Whether the mechanism is called once for each draw."""
        return self.confirming < CONFIRMING


def limits_for(columns: int, *, single_draws: bool, by_outputs: bool = False) -> Limits:
    """Return the limits for outcomes with this number of columns.

    single_draws: the mechanism is called once for each draw, and so may be slow.
    by_outputs: single outputs are certified, which takes more draws.
    """
    columns = max(1, columns)
    least = min(_LEAST_BUFFERED_DRAWS, 10 * _MAX_BUFFERED_VALUES // columns)
    rows = max(least, _MAX_BUFFERED_VALUES // columns)
    block = _LARGEST_BLOCK_OF_SINGLE_DRAWS if single_draws else _LARGEST_BLOCK
    confirming = MINIMUM_SAMPLES if single_draws and not by_outputs else CONFIRMING
    return Limits(min(MAX_BUFFERED_DRAWS, rows), min(block, rows), confirming)


class Plan:
    """The budget of one pair, in draws of d1 and d2 together.

    It is given by `samples`, or planned by the clock while the pair learns, and then final.
    In all methods, `spent` is the number of draws made so far.
    """

    def __init__(
        self,
        samples: int,
        seconds: float | None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.perf_counter,
        late: Callable[[float, int], None] = lambda rate, spent: None,
    ) -> None:
        """seconds: time for this pair; None: `samples` is the budget.

        late: called with draws per second and draws made, when the time will not be enough.
        """
        self.limits = limits or Limits()
        self._budget = samples if seconds is None else None
        self._seconds, self._clock, self._start = seconds or 0.0, clock, clock()
        self._is_by_clock = seconds is not None
        self._late = late
        # Size at which the clock closed the buffer, and whether it may take half of the budget.
        self._closed_at: int | None = None
        self._keeps_half = False
        # Draws that were timed, since when, and draws per second.
        self._timed, self._timed_since = 0, math.nan
        self._rate: float | None = None

    @property
    def budget(self) -> int:
        """Draws allowed; until the clock has planned them, the most that learning may need."""
        return 8 * self.limits.learned if self._budget is None else self._budget

    @property
    def is_final(self) -> bool:
        """Whether the budget is planned, or was given."""
        return self._budget is not None

    @property
    def buffer_until(self) -> int:
        """Draws after which the sample buffer is closed; an upper limit until the clock does it."""
        if self._is_by_clock:
            return self.limits.learned if self._closed_at is None else self._closed_at
        return min(self.limits.learned, self.budget // 2 if self._keeps_half else self._usual)

    @property
    def freeze_at(self) -> int:
        """Draws to learn from, kept or counted, before the event of the exact bound is frozen."""
        return self._usual if self._usual >= 2 * self.limits.learned else self.buffer_until

    @property
    def _usual(self) -> int:
        return max(self.budget // 8, min(self.budget // 4, _FEW_DRAWS))

    def _elapsed(self) -> float:
        return self._clock() - self._start

    def extend_buffer(self) -> bool:
        """Extend the buffer to half of the budget, since the usual part showed no leak.

        Returns whether the buffer is larger now. It is not by the clock, which may leave no time
        for it, and not for few draws, which show even large leaks only later.
        """
        usual = self.buffer_until
        self._keeps_half = not self._is_by_clock and usual >= min(_FEW_DRAWS, self.limits.learned)
        return self.buffer_until > usual

    def close_buffer_if_due(self, spent: int) -> None:
        """Close the buffer after a block, if the clock says so."""
        if not self._is_by_clock:
            return
        elapsed = self._elapsed()
        is_late = elapsed >= _LEARNING_TIME_OF_FEW_DRAWS * self._seconds
        is_time = elapsed >= _LEARNING_TIME * self._seconds and spent >= _FEW_DRAWS
        is_full = spent >= self.limits.learned
        if is_full or is_time or (is_late and spent >= _LEAST_LEARNED):
            self._closed_at = spent
        elif is_late:
            self._check_rate(spent / max(elapsed, 1e-9), spent, elapsed)

    @property
    def seconds_to_start(self) -> float:
        """Seconds to wait for workers to start, before draws are timed."""
        return _STARTING_TIME * max(0.0, self._seconds - self._elapsed())

    def timed_sizes(self, spent: int) -> Iterator[int]:
        """Yield sizes of blocks that are drawn to measure the rate; none if no time is left.

        Each has twice the draws of the last, while that does not take too long: the time that a
        block takes in addition to its draws must be seen as in the blocks that certify. No more
        than twice: blocks of several workers arrive together, as if they had taken no time.
        """
        elapsed = self._elapsed()
        if elapsed >= _PLANNED_TIME * self._seconds:
            return
        first_rate = spent / max(elapsed, 1e-9)
        size = float(_FEW_DRAWS)
        while True:
            rate = first_rate if self._rate is None else self._rate
            most = rate * _TIMING_TIME * self._seconds / _TIMED_BLOCKS
            size = max(_LEAST_TIMED_BLOCK, min(size, most))
            yield int(size)
            size = min(2 * size, max(self.limits.block, _LARGEST_SHARED_BLOCK))

    def record_timed(self, size: int) -> bool:
        """Measure the rate after a block of this size; return whether that was the last one."""
        now = self._clock()
        if math.isnan(self._timed_since):  # the first block began at an unknown time
            self._timed_since = now
            return False
        self._timed += size
        self._rate = self._timed / max(now - self._timed_since, 1e-9)
        return now - self._timed_since >= _TIMING_TIME * self._seconds

    def plan_by_clock(self, spent: int) -> None:
        """Plan the budget, from the rate measured."""
        elapsed = self._elapsed()
        rate = spent / max(elapsed, 1e-9) if self._rate is None else self._rate
        self._check_rate(rate, spent, elapsed)
        self._plan(spent, elapsed, rate)

    def plan_again(self, spent: int) -> None:
        """Plan the rest of the budget by the clock again, before any draw for the exact bound.

        Learning takes time, too, and counting for it takes longer than counting alone.
        """
        if self._is_by_clock and self._rate is not None:
            self._plan(spent, self._elapsed(), self._rate)

    def _plan(self, spent: int, elapsed: float, rate: float) -> None:
        coming = int(rate * max(0.0, _PLANNED_TIME * self._seconds - elapsed))
        # Even out of time: without draws to certify with, all others would be useless.
        self._budget = spent + max(coming, spent // 8, MINIMUM_SAMPLES - _LEAST_LEARNED)

    def _check_rate(self, rate: float, spent: int, elapsed: float) -> None:
        left = max(0.0, _PLANNED_TIME * self._seconds - elapsed)
        if spent + rate * left < MINIMUM_SAMPLES:
            self._late(rate, spent)

    def learning_sizes(self, spent: int = 0) -> Iterator[int]:
        """Yield sizes of blocks for the buffer; the last one ends where the buffer is closed."""
        first = _LEAST_LEARNED if self._is_by_clock else FIRST_BLOCK
        size = first + (_BLOCK_GROWTH - 1) * spent
        while spent < self.buffer_until:
            block = min(round(size), self.buffer_until - spent, self.limits.block)
            yield block
            spent, size = spent + block, size * _BLOCK_GROWTH

    def next_freeze_check(self, spent: int) -> int:
        """Return the draws after which to decide, from the counts, whether to freeze."""
        is_near = _NEAR_FREEZE * self.freeze_at < 2 * spent and spent < self.freeze_at
        return self.freeze_at if is_near else 2 * spent

    @staticmethod
    def next_refit(spent: int, until: int, delta: float) -> int:
        """Return the draws after which to refit, at most `until`. delta: of the point tested."""
        early = round(_REFIT_GROWTH_FOR_RARE * spent)
        return early if delta > 0 and _NO_REFIT_BEFORE * early < until else until

    @staticmethod
    def most_until_refit(spent: int, delta: float) -> int:
        """Return an upper limit of the draws before the next refit."""
        growth = _REFIT_GROWTH_FOR_RARE * _NO_REFIT_BEFORE if delta > 0 else 2 / _NEAR_FREEZE
        return math.ceil((growth - 1) * spent)

    def may_freeze_early(self, spent: int) -> bool:
        """Return whether a claim that is clearly refuted may be frozen."""
        return spent >= int(_EARLIEST_FREEZE * self.budget)

    def may_double(self, spent: int) -> bool:
        """Return whether learning may take twice the draws: no more than half of the budget."""
        return 2 * spent <= self.budget // 2

    def may_count_after_buffer(self, spent: int) -> bool:
        """Return whether learning may go on by counting, since the buffer is full."""
        return spent >= self.limits.learned and self.may_double(spent)

    def counting_sizes(self, spent: int, until: int) -> Iterator[int]:
        """Yield sizes of blocks that are only counted, up to `until` draws."""
        least = min(_LEAST_BLOCK, self.budget // _LEAST_BLOCKS)
        while spent < until:
            block = min(max(spent // _BLOCK_SHARE, least), self._largest(), until - spent)
            yield block
            spent += block

    def certifying_sizes(self, spent: int) -> Iterator[int]:
        """Yield sizes of blocks to the end of the budget."""
        return self.counting_sizes(spent, self.budget)

    def confirming_sizes(self, spent: int) -> Iterator[int]:
        """Yield sizes of blocks of a confirmation.

        It repeats the number of draws made before, if they are left, in many blocks, which show
        draws that depend on their call.
        """
        size = min(self.budget - spent, max(spent, self.limits.confirming))
        block = min(self._largest(), -(-size // _CONFIRMING_BLOCKS))
        for start in range(0, size, block):
            yield min(block, size - start)

    def _largest(self) -> int:
        usual = min(self.budget // _ENOUGH_BLOCKS, _LARGEST_SHARED_BLOCK)
        return max(self.limits.block, usual, self.budget // _MOST_BLOCKS)


def wants_refit(
    learned_from: int, available: int, buffer_until: int, points: int = 1, *, full: bool = False
) -> bool:
    """Return whether to refit to the draws in the buffer; not shortly before it is closed.

    learned_from, available: draws at the last fit, and now.
    points: of the claim's profile. The choice among several waits for more draws.
    full: whether a refutation does not end the run.
    """
    is_patient = full or points > 1
    if is_patient and available < buffer_until // _FIRST_REFIT_OF_FULL_RUNS:
        return False
    if points > 1 and available < _REFIT_EACH_BLOCK_UNTIL:
        return False
    if available <= _REFIT_EACH_BLOCK_UNTIL:
        return not full or 2 * learned_from <= available
    growth = _REFIT_GROWTH_OF_FULL_RUNS if full else 2
    return growth * learned_from <= available <= buffer_until // 2


def look_stride(size: int) -> int:
    """Return the draws between two looks at the bets, within a shuffled block of this size."""
    return max(16, size // 24)


def late_words(seconds: float, rate: float, pairs: int, takes: float) -> str:
    """Return a warning that the time given is too short. takes: seconds of the fewest draws."""
    each = "an audit, which needs" if pairs == 1 else f"{pairs} pairs, each of which needs"
    return (
        f"at {_short(rate)} draws per second {each} {MINIMUM_SAMPLES:,}, will take about "
        f"{_short(takes)} s, not {_short(seconds)} s"
    )


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
