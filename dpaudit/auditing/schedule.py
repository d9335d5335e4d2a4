"""How many draws, in what blocks, and when learning gives way to certifying."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpaudit.auditing.options import MINIMUM_SAMPLES

# Draws before all others, which count for nothing: made one by one to see what a mechanism is like;
# and of each input, made twice from one seed to see whether the seed decides them.
FIRST_CALLS, PROBE = 4, 32
PROBING_CALLS = FIRST_CALLS + 2 * 2 * PROBE
FIRST_BLOCK = 100
# By the clock, the first block is all that a slow mechanism may learn from: a quarter of the fewest
# draws, as where these are asked for.
_FIRST_BY_CLOCK = MINIMUM_SAMPLES // 4
# Draws to certify with, at least, when the clock has run out.
_LEAST_CERTIFYING = MINIMUM_SAMPLES - _FIRST_BY_CLOCK
_GROWTH = 1.25
# Draws to learn from, and of the largest block; both less when an outcome has many columns, so that
# memory stays within some tens of megabytes.
_MOST_LEARNED = 100_000
_MOST_ENTRIES = 4_000_000
_LEAST_ROWS = 2_000
# Of what is counted, a clear refutation takes no more than this part of the budget.
_SOONEST = 32
# Later blocks are a sixteenth of what was drawn before, within these limits: a look costs little,
# and a refutation is not noticed before the end of its block.
_BLOCKS = 16
_SMALLEST, _LARGEST = 64, 131_072
# A small budget is cut into so many blocks, or there would be too few to compare.
_FEWEST_BLOCKS = 15
# So many blocks are enough to see how far a budget is, unless they get too large to share out among
# many workers: more only make work.
_ENOUGH_BLOCKS, _SHARED_OUT = 200, 524_288
# The fewest blocks of a confirmation, and its fewest draws; of a mechanism that is called once for
# each draw, and so may be slow, the fewest of a budget are enough.
_CONFIRMING_BLOCKS = 16
CONFIRMING = 1_000
# A budget is divided into no more than about so many blocks, since each one is kept in the result.
_MOST_BLOCKS = 16_384
# One call a draw is slow: smaller blocks keep the display alive and several workers busy.
_LARGEST_OF_SINGLE_DRAWS = 32_768
# From one time to learn from counts to the next, draws grow by so much at most where what is rare
# may refute: it is bet on as soon as it was seen. It is not learned so shortly before.
_SOONER, _NEARLY = math.sqrt(2), 1.2
# Twice the draws are as good as those after which to freeze, if they are this share of them.
_NEAR = 0.6
# Refitted after every block at first, later when the draws have doubled; where nothing ends sooner
# by it, when they have doubled at first, later when they are so many times as many. There, or to
# choose among points of a profile, not before this part of what is kept.
_EAGER = 1_000
_RARELY = 8
_FIRST_FIT = 16
# When draws are planned by the clock: the share of the time after which learning ends, as it ends
# after that share of the draws elsewhere, and the share if there are few draws by then; that for
# seeing how fast draws are made, in so many blocks at least; and what is planned for.
_LEARNING, _LEARNING_FEW = 1 / 8, 1 / 4
_FEW = 1_000
_TIMING, _TIMED_BLOCKS = 0.05, 8
_SMALLEST_TIMED = 4
# Share of what is left of the time that is waited for those who will draw.
_PATIENCE = 1 / 3
_MARGIN = 0.9


@dataclass(frozen=True, slots=True)
class Limits:
    """learned: draws to learn from at most. block: draws to hold the outcomes of at a time; a block
    is larger only where a budget would have too many. confirming: draws of a confirmation, at
    least."""

    learned: int = _MOST_LEARNED
    block: int = _LARGEST
    confirming: int = CONFIRMING

    @property
    def single_draws(self) -> bool:
        """Whether the mechanism is called once for each draw."""
        return self.confirming < CONFIRMING


def limits_for(columns: int, *, single_draws: bool, by_outputs: bool = False) -> Limits:
    """Return limits for outcomes of so many columns.

    by_outputs: single outputs are certified, of which few draws show none.
    """
    fewest = min(_LEAST_ROWS, 10 * _MOST_ENTRIES // max(1, columns))
    rows = max(fewest, _MOST_ENTRIES // max(1, columns))
    block = _LARGEST_OF_SINGLE_DRAWS if single_draws else _LARGEST
    confirming = MINIMUM_SAMPLES if single_draws and not by_outputs else CONFIRMING
    return Limits(min(_MOST_LEARNED, rows), min(block, rows), confirming)


class Plan:
    """The budget of one pair: fixed by `samples`, or by the clock while learning, and then final.

    seconds: time for this pair; None: `samples` holds.
    """

    def __init__(
        self,
        samples: int,
        seconds: float | None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.perf_counter,
        late: Callable[[float, int], None] = lambda rate, spent: None,
    ) -> None:
        """late: told the draws a second, and those made, when the time will not be enough."""
        self.limits = limits or Limits()
        self._budget = samples if seconds is None else None
        self._seconds, self._clock, self._start = seconds, clock, clock()
        self._late = late
        self._held: int | None = None
        self._keeps_half = False
        # Draws that were timed, since when, and how many that gives a second.
        self._timed, self._since = 0, math.nan
        self._rate: float | None = None

    @property
    def budget(self) -> int:
        """Draws allowed; while they are not planned, the most that learning may need."""
        return 8 * self.limits.learned if self._budget is None else self._budget

    @property
    def is_final(self) -> bool:
        """Whether the budget is planned, and not to be planned by the clock."""
        return self._budget is not None

    @property
    def hold_until(self) -> int:
        """Draws to keep and learn from; by the clock, the most that there may be until it says that
        there are enough."""
        if self._seconds is not None:
            return self.limits.learned if self._held is None else self._held
        return min(self.limits.learned, self.budget // 2 if self._keeps_half else self._usual)

    @property
    def freeze_at(self) -> int:
        """Draws to learn from before the event of the exact bound is frozen: those that are kept,
        and others that are counted, where these are as many again."""
        return self._usual if self._usual >= 2 * self.limits.learned else self.hold_until

    @property
    def _usual(self) -> int:
        return max(self.budget // 8, min(self.budget // 4, _FEW))

    def keep_half(self) -> bool:
        """Keep and learn from up to half of the budget, since the usual part showed nothing; return
        whether that is more. Not by the clock, which may not leave the time for it, and not of few
        draws, where even large leaks show nothing yet."""
        usual = self.hold_until
        self._keeps_half = self._seconds is None and usual >= min(_FEW, self.limits.learned)
        return self.hold_until > usual

    def learned(self, spent: int) -> None:
        """Take notice that a block has been learned from: by the clock, it may be enough."""
        if self._seconds is None:
            return
        elapsed = self._clock() - self._start
        is_time = elapsed >= _LEARNING * self._seconds
        is_late = elapsed >= _LEARNING_FEW * self._seconds
        is_enough = spent >= self.limits.learned or (is_time and spent >= _FEW)
        if is_enough or (is_late and spent >= MINIMUM_SAMPLES // 4):
            self._held = spent
        elif is_late:
            self._tell(spent / max(elapsed, 1e-9), spent, elapsed)

    @property
    def patience(self) -> float:
        """Seconds to wait for those who will draw, before draws are timed."""
        return _PATIENCE * max(0.0, (self._seconds or 0.0) - (self._clock() - self._start))

    def timed_sizes(self, spent: int) -> Iterator[int]:
        """Yield the sizes of blocks whose time is taken, without an end if any time is left: twice
        as many draws each time, as long as that does not take too long."""
        seconds, elapsed = self._seconds or 0.0, self._clock() - self._start
        if elapsed >= _MARGIN * seconds:
            return
        rate = spent / max(elapsed, 1e-9)
        size = float(_FEW)
        while True:
            known = rate if self._rate is None else self._rate
            most = known * _TIMING * seconds / _TIMED_BLOCKS
            size = max(_SMALLEST_TIMED, min(size, most))
            yield int(size)
            # As large as those that certify: what a small one takes beside its draws is seen, too.
            # Never more than twice the last one: blocks of several workers come at once, and look
            # as if they had taken no time.
            size = min(2 * size, max(self.limits.block, _SHARED_OUT))

    def timed(self, size: int) -> bool:
        """Take notice that such a block has come; return whether that is enough."""
        now = self._clock()
        if math.isnan(self._since):  # what came before it does not say how long it took
            self._since = now
            return False
        self._timed += size
        self._rate = self._timed / max(now - self._since, 1e-9)
        return now - self._since >= _TIMING * (self._seconds or 0.0)

    def ends_learning(self, spent: int) -> None:
        """Plan the budget by the clock, now that draws have been timed."""
        elapsed = self._clock() - self._start
        rate = spent / max(elapsed, 1e-9) if self._rate is None else self._rate
        self._tell(rate, spent, elapsed)
        self._plan(spent, elapsed, rate)

    def goes_on(self, spent: int) -> None:
        """Plan what is left anew by the clock, before anything is drawn for the exact bound: to
        learn takes time, and to count for it takes longer than to count."""
        if self._seconds is not None and self._rate is not None:
            self._plan(spent, self._clock() - self._start, self._rate)

    def _plan(self, spent: int, elapsed: float, rate: float) -> None:
        coming = int(rate * max(0.0, _MARGIN * (self._seconds or 0.0) - elapsed))
        # Out of time or not, without draws to certify with all the others would be for nothing.
        self._budget = spent + max(coming, spent // 8, _LEAST_CERTIFYING)

    def _tell(self, rate: float, spent: int, elapsed: float) -> None:
        if spent + rate * max(0.0, _MARGIN * (self._seconds or 0.0) - elapsed) < MINIMUM_SAMPLES:
            self._late(rate, spent)

    def learning_sizes(self, spent: int = 0) -> Iterator[int]:
        """Yield sizes of blocks that are kept, from `spent` draws on, the last one cut to end where
        that ends, as it stands when asked for."""
        first = FIRST_BLOCK if self._seconds is None else _FIRST_BY_CLOCK
        size = first + (_GROWTH - 1) * spent
        while spent < self.hold_until:
            block = min(round(size), self.hold_until - spent, self.limits.block)
            yield block
            spent, size = spent + block, size * _GROWTH

    def counting_until(self, spent: int) -> int:
        """Return the draws after which to see, from what was counted, whether to freeze."""
        is_near = _NEAR * self.freeze_at < 2 * spent and spent < self.freeze_at
        return self.freeze_at if is_near else 2 * spent

    @staticmethod
    def betting_until(spent: int, until: int, delta: float) -> int:
        """Return the draws after which to learn anew from what was counted, if only to bet on it:
        so many at most. Without a δ what is rare refutes no sooner than the rest."""
        sooner = round(_SOONER * spent)
        return sooner if delta > 0 and _NEARLY * sooner < until else until

    @staticmethod
    def counting_next(spent: int, delta: float) -> int:
        """Return how many draws come until the next time to learn anew from what was counted, at
        most, whatever the clock says."""
        times = _SOONER * _NEARLY if delta > 0 else 2 / _NEAR
        return math.ceil((times - 1) * spent)

    def may_freeze(self, spent: int) -> bool:
        """Return whether enough was learned from where the claim is sure to be refuted."""
        return spent >= self.budget // _SOONEST

    def may_count_on(self, spent: int) -> bool:
        """Return whether there is room to double what is learned from: to half of the budget."""
        return 2 * spent <= self.budget // 2

    def may_count_first(self, spent: int) -> bool:
        """Return whether there is room to count as many as were kept, of which no more may be."""
        return spent >= self.limits.learned and self.may_count_on(spent)

    def counting_sizes(self, spent: int, until: int) -> Iterator[int]:
        """Yield sizes of blocks to count and learn from, until so many draws were made."""
        while spent < until:
            block = min(max(spent // _BLOCKS, self._smallest()), self._largest(), until - spent)
            yield block
            spent += block

    def certifying_sizes(self, spent: int) -> Iterator[int]:
        """Yield block sizes from `spent` draws to the end of the budget."""
        while spent < self.budget:
            block = min(
                max(spent // _BLOCKS, self._smallest()), self._largest(), self.budget - spent
            )
            yield block
            spent += block

    def confirming_sizes(self, spent: int) -> Iterator[int]:
        """Yield block sizes of the confirmation of a refutation after `spent` draws: many, so that
        it shows when draws depend on the call that they were made in."""
        size = min(self.budget - spent, max(spent, self.limits.confirming))
        block = min(self._largest(), -(-size // _CONFIRMING_BLOCKS))
        for start in range(0, size, block):
            yield min(block, size - start)

    def _smallest(self) -> int:
        """Return the draws of the smallest block whose draws are only tallied."""
        return min(_SMALLEST, self.budget // _FEWEST_BLOCKS)

    def _largest(self) -> int:
        """Return the draws of the largest block whose draws are only tallied."""
        usual = min(self.budget // _ENOUGH_BLOCKS, _SHARED_OUT)
        return max(self.limits.block, usual, self.budget // _MOST_BLOCKS)


def wants_refit(
    learned_from: int, available: int, freeze_at: int, points: int = 1, *, full: bool = False
) -> bool:
    """Return whether to learn anew from `available` draws; not shortly before the freeze does.

    points: of the claim's profile. To choose one of several, more draws are waited for.  full:
    whether a refutation ends nothing, so that it need not come as soon as it can.
    """
    if (full or points > 1) and available < freeze_at // _FIRST_FIT:
        return False
    if points > 1 and available < _EAGER:
        return False
    if available <= _EAGER:
        return not full or 2 * learned_from <= available
    return (_RARELY if full else 2) * learned_from <= available <= freeze_at // 2


def look_stride(size: int) -> int:
    """Return how many draws apart the looks within a shuffled block are."""
    return max(16, size // 24)


def late_words(seconds: float, rate: float, pairs: int, takes: float) -> str:
    """Return that the time given is not enough, and how long the fewest draws take."""
    each = "an audit, which needs" if pairs == 1 else f"{pairs} pairs, each of which needs"
    return (
        f"at {_short(rate)} draws per second {each} {MINIMUM_SAMPLES:,}, will take about "
        f"{_short(takes)} s, not {_short(seconds)} s"
    )


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
