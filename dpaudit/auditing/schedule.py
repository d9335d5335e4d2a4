"""The schedule of one pair: number of draws, sizes of blocks, and end of learning.

`Plan` computes it from the budget, or from the clock if the audit has a time limit. pair_audit.py
and counted_learning.py draw by a plan; recheck.py and underpowered.py compute with plans
(docs/method.md §4).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from dpaudit.auditing.options import MIN_SAMPLES
from dpaudit.certificates.evidence import FEW_DRAWS, DrawLimits
from dpaudit.draws import MAX_BLOCK, MAX_BUFFERED_DRAWS
from dpaudit.levels.limits import MIN_DRAWS_TO_RANK

# Number of calls at the start of an audit that make one draw each. They show how many columns an
# output has (one for each number or label), and how long a call takes. Their outputs count neither
# for nor against the claim.
FIRST_CALLS = 4
# Number of draws for two checks; they do not count for or against the claim. A quarter of the draws
# is made, then another quarter repeats them with the same seed, to check that equal seeds give
# equal outputs. The other half, a quarter for each input, checks that later calls do not change an
# earlier output.
PROBE_CALLS = 128
# A mechanism is slow if each call makes one draw and takes longer than this number of seconds. By
# default, an audit of a slow mechanism ends as soon as bets refute the claim, without a
# confirmation by further draws.
SLOW_DRAW = 0.005

# `FEW_DRAWS` has three uses.
# Learning: if 1/8 of the budget, the usual share, is fewer draws, learning takes up to 1/4 of the
#     budget.
# Refits: below this number of draws, rules are refitted after every block.
# Confirmation: has at least this number of draws, unless the mechanism makes one draw per call.

# Largest number of values (draws times columns) in the sample buffer or in a block, so that its
# memory stays below about 50 MB.
_MAX_BUFFERED_VALUES = 4_000_000

# Growth factor of two schedules.
# Blocks: each block that fills the buffer is larger than the block before it by this factor, unless
#     bets alone may end the run (`_EARLY_BLOCK_SHARE`).
# Refits: if bets alone may end the run, the rules are refitted each time that the number of draws
#     has grown by this factor, from 1,000 draws until the buffer is half full.
_GROWTH = 1.25
# A block whose draws are only counted, and not kept in memory, has 1/16 as many draws as were made
# before it. Bets are evaluated at the end of a block, so smaller blocks show a refutation earlier.
# A confirmation has about 16 blocks or more, enough to see whether draws depend on the call that
# made them.
BLOCK_SHARE = 16
# If bets alone may end the run, which is the default for slow draws (`SLOW_DRAW`), a block has 1/12
# as many draws as were made before it. Rules are refitted after each block, up to 1,000 draws: a
# better rule may refute the claim with fewer draws, which saves more time than the fit takes.
_EARLY_BLOCK_SHARE = 12
# Smallest size, in draws, of a block whose draws are only counted and not kept in memory. If the
# budget is small, blocks may be smaller.
_MIN_BLOCK = 64
# Factor by which blocks may differ from their usual size. Blocks are smaller by this factor if each
# call makes one draw: such draws are slow, and small blocks update the display in time and keep
# several workers busy. For a large budget, blocks are larger by up to this factor, so that many
# workers can share one.
_SIZE_RANGE = 4
# A budget of more than 200 blocks of the usual largest size is large. To limit the number of
# blocks, each block of a large budget may have up to 1/200 of the budget, but at most `_SIZE_RANGE`
# (4) times `MAX_BLOCK` (131,072) draws.
_ENOUGH_BLOCKS = 200
# Largest number of blocks, roughly, since a result stores each block. If a budget needs more,
# blocks are made larger.
_MAX_BLOCKS = 16_384

# While draws are only counted, rules are refitted each time that the number of draws has doubled,
# until it reaches `Plan.freeze_at`, where the rules are frozen (fixed for the rest of the audit).
# If a doubling leads to more than this fraction of `freeze_at`, the next refit is made at
# `freeze_at` instead.
_NEAR_FREEZE = 0.6
# With δ > 0, rules are refitted whenever draws have grown by a factor of √2, since a rare output
# can refute the claim as soon as it is bet on.
_REFIT_GROWTH_FOR_RARE = math.sqrt(2)
# A refit for rare outputs (`_REFIT_GROWTH_FOR_RARE`) is left out if the next usual refit, after a
# doubling of the number of draws or at the freeze, would come soon: before the number of draws has
# grown by this factor from the refit for rare outputs.
_NO_REFIT_BEFORE = 1.2

# Share of the draws that learning usually takes (with a time limit: share of the time). If this is
# fewer than `FEW_DRAWS` draws, learning goes on up to `FEW_DRAWS` draws, but takes at most twice
# this share.
_LEARNING_SHARE = 1 / 8
# Fraction of the time limit in which the number of draws per second is measured.
_TIMING_TIME = 0.05
# If there is a time limit, the draws per second are measured in at least this number of blocks. The
# blocks are made small enough for that.
_TIMED_BLOCKS = 8
# The budget is planned to fill this fraction of the time limit; the rest is a reserve.
_PLANNED_TIME = 0.9
# Least number of draws to learn from if there is a time limit. Also the least number of draws of
# each input in a recording.
MIN_LEARNED = MIN_SAMPLES // 4


def limits_for(columns: int, *, single_draws: bool, by_outputs: bool = False) -> DrawLimits:
    """Return the limits for outputs with `columns` columns.

    single_draws: whether each draw is a call of the mechanism, so that draws may be slow.
    by_outputs: whether the claim is about single outputs, which need more draws to be certified.
    """
    columns = max(1, columns)
    # The buffer holds enough draws for all scorers (`MIN_DRAWS_TO_RANK`) also if outcomes have many
    # columns: for this, it may exceed `_MAX_BUFFERED_VALUES` up to ten times. If outcomes have
    # still more columns, it holds fewer draws.
    least = min(MIN_DRAWS_TO_RANK, 10 * _MAX_BUFFERED_VALUES // columns)
    rows = max(least, _MAX_BUFFERED_VALUES // columns)
    block = MAX_BLOCK // _SIZE_RANGE if single_draws else MAX_BLOCK
    confirming = MIN_SAMPLES if single_draws and not by_outputs else FEW_DRAWS
    return DrawLimits(
        buffer_draws=min(MAX_BUFFERED_DRAWS, rows),
        block=min(block, rows),
        confirming=confirming,
        single_draws=single_draws,
    )


class Plan:
    """The budget of one pair, in draws of d1 and d2 together, and the schedule of these draws. With
    a time limit, the budget is computed from the speed that is measured during learning."""

    def __init__(
        self,
        samples: int,
        seconds: float | None,
        limits: DrawLimits | None = None,
        clock: Callable[[], float] = time.perf_counter,
        late: Callable[[float, int], None] = lambda rate, spent: None,
    ) -> None:
        """Make the plan of a pair.

        samples: budget in draws; ignored if `seconds` is given.
        seconds: time for this pair; None: `samples` is the budget.
        clock: returns the present time in seconds.
        late: called with (draws per second, draws made) if the time is too short for the minimum
            number of draws.
        """
        self.limits = limits or DrawLimits()
        self._budget = samples if seconds is None else None
        self._seconds, self._clock, self._start = seconds or 0.0, clock, clock()
        self._is_by_clock = seconds is not None
        self._late = late
        # With a time limit, the buffer of learning draws is closed (takes no more draws) when it is
        # full or learning has taken its share of the time. Number of draws in the buffer at that
        # time; None before, and without a time limit.
        self._closed_at: int | None = None
        # Whether the buffer may take up to half of the budget, instead of the usual share.
        self._keeps_half = False
        # _timed: number of draws whose speed was measured.
        # _timed_since: time when the first block of these draws ended; NaN before.
        self._timed, self._timed_since = 0, math.nan
        self._rate: float | None = None

    @property
    def budget(self) -> int:
        """Largest number of draws for this pair. With a time limit, it is only an upper limit until
        `plan_by_clock` is called."""
        return 8 * self.limits.buffer_draws if self._budget is None else self._budget

    @property
    def is_final(self) -> bool:
        """Whether the budget is known: it was given in draws, or `plan_by_clock` was called."""
        return self._budget is not None

    @property
    def buffer_until(self) -> int:
        """Number of draws after which the sample buffer takes no more. With a time limit, it is
        only an upper limit until the buffer is closed."""
        if self._is_by_clock:
            return self.limits.buffer_draws if self._closed_at is None else self._closed_at
        return min(self.limits.buffer_draws, self.budget // 2 if self._keeps_half else self._usual)

    @property
    def freeze_at(self) -> int:
        """Planned number of learning draws, including those that are only counted. Learning may end
        earlier if the claim is clearly refuted, and later if further draws are predicted to improve
        the rules."""
        return self._usual if self._usual >= 2 * self.limits.buffer_draws else self.buffer_until

    @property
    def _usual(self) -> int:
        share = int(_LEARNING_SHARE * self.budget)
        return max(share, min(int(2 * _LEARNING_SHARE * self.budget), FEW_DRAWS))

    def _elapsed(self) -> float:
        return self._clock() - self._start

    def extend_buffer(self) -> bool:
        """Let the sample buffer take half of the budget, instead of about an eighth, since no leak
        has been found. Return whether the buffer is larger now. It is not extended with a time
        limit, which may be too short, nor if it holds fewer than 1,000 draws, too few to judge."""
        usual = self.buffer_until
        is_enough = usual >= min(FEW_DRAWS, self.limits.buffer_draws)
        self._keeps_half = is_enough and not self._is_by_clock
        return self.buffer_until > usual

    def close_buffer_if_due(self, spent: int) -> None:
        """After a block, close the sample buffer if it is full or learning has taken its share of
        the time. Do nothing without a time limit.

        If learning has taken twice its share of the time, and draws are too slow to make the
        minimum number of them in time, call `late`.
        """
        if not self._is_by_clock:
            return
        elapsed = self._elapsed()
        is_late = elapsed >= 2 * _LEARNING_SHARE * self._seconds
        is_time = elapsed >= _LEARNING_SHARE * self._seconds and spent >= FEW_DRAWS
        is_full = spent >= self.limits.buffer_draws
        if is_full or is_time or (is_late and spent >= MIN_LEARNED):
            self._closed_at = spent
        elif is_late:
            self._check_rate(spent / max(elapsed, 1e-9), spent, elapsed)

    def timed_sizes(self, spent: int) -> Iterator[int]:
        """Yield the sizes of the blocks by which the draws per second are measured; none if no time
        is left.

        Sizes double until the overhead per block is as small as in certifying blocks. They grow no
        faster, since the results of several workers may arrive together.
        """
        elapsed = self._elapsed()
        if self._seconds_left(elapsed) == 0.0:
            return
        first_rate = spent / max(elapsed, 1e-9)
        size = float(FEW_DRAWS)
        while True:
            rate = first_rate if self._rate is None else self._rate
            limit = rate * _TIMING_TIME * self._seconds / _TIMED_BLOCKS
            size = max(1.0, min(size, limit))
            yield int(size)
            size = min(2 * size, max(self.limits.block, _SIZE_RANGE * MAX_BLOCK))

    def record_timed(self, size: int) -> bool:
        """Update the draws per second after a block of `size` draws. Return whether it was measured
        long enough."""
        now = self._clock()
        if math.isnan(self._timed_since):  # the start of the first block is unknown
            self._timed_since = now
            return False
        self._timed += size
        self._rate = self._timed / max(now - self._timed_since, 1e-9)
        return now - self._timed_since >= _TIMING_TIME * self._seconds

    def plan_by_clock(self, spent: int) -> None:
        """Compute the budget from the time left and the measured draws per second."""
        elapsed = self._elapsed()
        rate = spent / max(elapsed, 1e-9) if self._rate is None else self._rate
        self._check_rate(rate, spent, elapsed)
        self._plan(spent, elapsed, rate)

    def plan_again(self, spent: int) -> None:
        """Compute the budget again from the time left; only before the first draw for the exact
        test. Do nothing without a time limit.

        The first budget is too large: it does not allow for the time of fits, and it assumes that
        learning draws are counted as fast as certifying draws.
        """
        if self._is_by_clock and self._rate is not None:
            self._plan(spent, self._elapsed(), self._rate)

    def _seconds_left(self, elapsed: float) -> float:
        """Return the seconds that planned draws may take: the remaining time minus a reserve."""
        return max(0.0, _PLANNED_TIME * self._seconds - elapsed)

    def _plan(self, spent: int, elapsed: float, rate: float) -> None:
        future_draws = int(rate * self._seconds_left(elapsed))
        # Some draws are planned even if no time is left, since an audit needs draws to certify
        # with.
        self._budget = spent + max(future_draws, spent // 8, MIN_SAMPLES - MIN_LEARNED)

    def _check_rate(self, rate: float, spent: int, elapsed: float) -> None:
        if spent + rate * self._seconds_left(elapsed) < MIN_SAMPLES:
            self._late(rate, spent)

    def learning_sizes(self, spent: int = 0) -> Iterator[int]:
        """Yield the sizes of the blocks that fill the buffer, up to `buffer_until`."""
        if self.limits.ends_by_bets:
            yield from self._early_sizes(spent)
            return
        first = MIN_LEARNED if self._is_by_clock else MIN_SAMPLES
        size = first + (_GROWTH - 1) * spent
        while spent < self.buffer_until:
            block = min(round(size), self.buffer_until - spent, self.limits.block)
            yield block
            spent, size = spent + block, size * _GROWTH

    def _early_sizes(self, spent: int) -> Iterator[int]:
        while spent < self.buffer_until:
            usual = max(2, spent // _EARLY_BLOCK_SHARE) if spent else BLOCK_SHARE
            block = min(usual, self.buffer_until - spent, self.limits.block)
            yield block
            spent += block

    def next_freeze_check(self, spent: int) -> int:
        """Return at how many draws the audit next decides whether to freeze the rules."""
        is_near = _NEAR_FREEZE * self.freeze_at < 2 * spent and spent < self.freeze_at
        return self.freeze_at if is_near else 2 * spent

    @staticmethod
    def next_refit(spent: int, until: int, delta: float) -> int:
        """Return at how many draws to refit the rules next.

        until: number of draws at the next decision whether to freeze, an upper limit.
        delta: δ of the point that is bet against. If it is above 0, refits are more frequent.
        """
        early = round(_REFIT_GROWTH_FOR_RARE * spent)
        return early if delta > 0 and _NO_REFIT_BEFORE * early < until else until

    @staticmethod
    def most_until_refit(spent: int, delta: float) -> int:
        """Return an upper limit for the number of draws between now and the next refit. Refits are
        more frequent if `delta`, δ of the point that is bet against, is above 0."""
        growth = _REFIT_GROWTH_FOR_RARE * _NO_REFIT_BEFORE if delta > 0 else 2 / _NEAR_FREEZE
        return math.ceil((growth - 1) * spent)

    def may_freeze_early(self, spent: int) -> bool:
        """Return whether enough learning draws were made to freeze early if the claim is clearly
        refuted: a quarter of the usual share of the budget."""
        return spent >= int(_LEARNING_SHARE / 4 * self.budget)

    def may_double(self, spent: int) -> bool:
        """Return whether learning may make as many draws again: whether half of the budget would be
        left."""
        return 2 * spent <= self.budget // 2

    def may_count_after_buffer(self, spent: int) -> bool:
        """Return whether learning may continue with draws that are only counted. The buffer must be
        full, at its largest possible size, and `may_double` must allow it."""
        return spent >= self.limits.buffer_draws and self.may_double(spent)

    def counting_sizes(self, spent: int, until: int) -> Iterator[int]:
        """Yield the sizes of blocks whose draws are only counted, until the pair has made `until`
        draws."""
        # Even a small budget is divided into about `BLOCK_SHARE` blocks, since checks compare
        # blocks with each other: into this number minus one, and a remainder.
        least = min(_MIN_BLOCK, self.budget // (BLOCK_SHARE - 1))
        while spent < until:
            block = min(max(spent // BLOCK_SHARE, least), self._largest(), until - spent)
            yield block
            spent += block

    def certifying_sizes(self, spent: int) -> Iterator[int]:
        """Yield the sizes of certifying blocks, to the end of the budget."""
        return self.counting_sizes(spent, self.budget)

    def confirming(self, spent: int) -> int:
        """Return the number of draws of a confirmation. It has as many draws as were made so far,
        at least a minimum, and at most the remaining budget."""
        return min(self.budget - spent, max(spent, self.limits.confirming))

    def confirming_sizes(self, spent: int) -> Iterator[int]:
        """Yield the sizes of the blocks of a confirmation. There are about 16 blocks, or more if
        they would be too large. With many blocks it can be checked whether draws depend on their
        call."""
        size = self.confirming(spent)
        block = min(self._largest(), -(-size // BLOCK_SHARE))
        for start in range(0, size, block):
            yield min(block, size - start)

    def _largest(self) -> int:
        usual = min(self.budget // _ENOUGH_BLOCKS, _SIZE_RANGE * MAX_BLOCK)
        return max(self.limits.block, usual, self.budget // _MAX_BLOCKS)


def wants_refit(
    learned_from: int,
    available: int,
    buffer_until: int,
    points: int = 1,
    *,
    full: bool = False,
    ends_by_bets: bool = False,
) -> bool:
    """Return whether to refit the rules now, while the sample buffer fills. With more than 1,000
    draws, rules are not refitted between half full and full.

    learned_from, available: number of draws at the last fit, and now.
    points: number of points of the claim. With several, the first fit waits for more draws.
    full: whether the run continues after a refutation. If so, refits are later and rarer.
    ends_by_bets: whether bets alone may end the run. Draws are then slow, and refits are more
        frequent, since each may save draws.
    """
    if ends_by_bets and available <= FEW_DRAWS:
        # If the claim has several points, the first fit waits for the smallest size of a counted
        # block, or for half of the sample buffer if that is smaller.
        return points == 1 or available >= min(_MIN_BLOCK, buffer_until // 2)
    # A run that continues after a refutation makes its first fit when 1/16 of the buffer is full,
    # and its second when half is full (8 · 1/16). An earlier fit would be replaced before a bet
    # depends on it. A claim of several points also waits until 1/16 of the buffer is full.
    is_patient = full or points > 1
    if is_patient and available < buffer_until // BLOCK_SHARE:
        return False
    if points > 1 and available < FEW_DRAWS:
        return False
    if available <= FEW_DRAWS:
        return not full or 2 * learned_from <= available
    growth = _GROWTH if ends_by_bets else BLOCK_SHARE // 2 if full else 2
    return growth * learned_from <= available <= buffer_until // 2


def look_stride(size: int, *, ends_by_bets: bool = False) -> int:
    """Return the number of draws after which bets are evaluated again, within a block of `size`
    draws. It is at least 16, unless the run `ends_by_bets`, where an early refutation saves draws.
    """
    return max(1 if ends_by_bets else 16, size // 24)
