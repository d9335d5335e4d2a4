"""The evidence about one pair of inputs: what is fixed before the draws, and what is counted after
them.

The numbers of a certificate follow from the evidence alone (certify.py). A result file contains the
evidence unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.draws import MAX_BLOCK, MAX_BUFFERED_DRAWS, IntArray, Tally
from dpaudit.stats.betting import Beliefs
from dpaudit.stats.witness import DivergenceWitness

Guess = Literal["d1", "d2"]
Stage = Literal["learning", "certification", "confirmation", "recorded"]
FixedStage = Literal["certification", "confirmation", "recorded", "betting", "interrupted"]
Method = Literal["game", "clopper-pearson", "probabilistic"]
RuleKind = Literal["main", "rare", "other"]
SuspectedOutput = tuple[str, Guess, int, int]

# Shares of a pair's error probability, which add up to 1. Betting has the first; the exact test has
# the second at the planned end, and the third if bets ended the run and new draws confirm them.
BETTING_SHARE = 0.2
CERTIFICATION_SHARE = 0.75
CONFIRMATION_SHARE = 0.05
# Share of betting in a run that ends as soon as bets refute the claim. The exact test has the rest.
EARLY_BETTING_SHARE = 0.9

# Number of draws below which a fit is poor and a test is weak.
FEW_DRAWS = 1_000

_STAGES = ("learning", "certification", "confirmation", "recorded")
_NOT_BET_ON = ("confirmation", "recorded")
# Stages of a run that ended before its planned end.
_ENDED = ("confirmation", "betting", "interrupted")


@dataclass(frozen=True, slots=True)
class DrawLimits:
    """Limits on memory, and the least size of a confirmation, for one mechanism.

    Attributes
    ----------
    buffer_draws : int
        Largest number of draws whose outputs are kept in memory to learn from.
    block : int
        Largest number of draws whose outputs are in memory at a time.
    confirming : int
        Least number of draws of a confirmation.
    ends_by_bets : bool
        Whether a refutation by bets ends the run without a confirmation.
    single_draws : bool
        Whether the mechanism is called once for each draw.
    """

    buffer_draws: int = MAX_BUFFERED_DRAWS
    block: int = MAX_BLOCK
    confirming: int = FEW_DRAWS
    ends_by_bets: bool = False
    single_draws: bool = False


@dataclass(frozen=True, slots=True)
class FrozenRule:
    """A rule that was fixed before the draws of the exact test.

    Attributes
    ----------
    kind : {'main', 'rare', 'other'}
        'main': the rule with the largest predicted bound. 'rare': a rule about outputs that only
        one input gave in the draws to learn from. 'other': the best rule of another kind of attack
        (docs/method.md §4).
    share : float
        Share of the error probability of all exact tests together, in (0, 1].
    attack : str
        Attack that found the rule.
    guesses : tuple of int
        Guess at each level: 1, -1 or 0.
    words : tuple of (str or None)
        Descriptions of the outputs for which the rule guesses d1, and of those for which it guesses
        d2; None for an event that is not shown.
    point : ProfilePoint or None
        Point of the claim that the rule tests; None: the point that the bets are made against.
    """

    kind: RuleKind
    share: float
    attack: str
    guesses: tuple[int, ...] = field(repr=False)
    words: tuple[str | None, str | None] = (None, None)
    point: ProfilePoint | None = None

    @property
    def guess(self) -> IntArray:
        """The guesses as an array of shape (levels,)."""
        return np.array(self.guesses, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of consecutive draws. The wealth of the bettors is computed at its end.

    Attributes
    ----------
    stage : {'learning', 'certification', 'confirmation', 'recorded'}
        Purpose of the draws.
    round : int or None
        Index into `Evidence.rounds` of the beliefs that bet on the block; None if nothing was bet.
    tally : Tally
        Numbers of draws of d1 and of d2 at each level.
    """

    stage: Stage
    round: int | None
    tally: Tally

    @property
    def draws(self) -> int:
        return self.tally.draws


@dataclass(frozen=True, slots=True)
class DivergenceBet:
    """The bets of one witness against a bound of a Rényi divergence (docs/method.md §6).

    Attributes
    ----------
    witness : DivergenceWitness
        The witness with its stakes, fixed before the draws that it bets on.
    share : float
        Share of the initial wealth that the witness bets. All shares add up to at most 1.
    tally : Tally
        Draws from the first to the last bet of the witness.
    """

    witness: DivergenceWitness
    share: float
    tally: Tally


@dataclass(frozen=True, slots=True)
class Recording:
    """Facts about recorded outputs, which were not drawn by dpaudit.

    Attributes
    ----------
    draws_d1, draws_d2 : int
        Number of recorded outputs for d1, and for d2.
    coin_flipped : bool
        Whether a fair coin chose the input of each draw. If not, the two numbers are taken as
        fixed.
    """

    draws_d1: int
    draws_d2: int
    coin_flipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is fixed before the draws of a pair, and what is counted after them.

    Attributes
    ----------
    point : ProfilePoint
        Point of the claim that is bet against. A rule without a point of its own is tested at it.
    points : tuple of ProfilePoint
        All points of the claim, if it has several; else empty.
    alpha : float
        Error probability of the pair, in (0, 1).
    confidence : float
        Confidence of the intervals that reports show, in (0, 1).
    budget : int
        Number of draws allowed. A certification ends when all are made.
    limits : DrawLimits or None
        Limits of the run; None for recorded outputs.
    by_clock : bool
        Whether the budget follows from a time limit.
    stage : {'certification', 'confirmation', 'recorded', 'betting', 'interrupted'}
        The stage whose blocks the exact test counts. 'betting' and 'interrupted': there is no exact
        test, since bets ended the run, or since it was interrupted.
    method : {'game', 'clopper-pearson', 'probabilistic'}
        Method of the exact test (docs/method.md §2 and §7).
    rules : tuple of FrozenRule
        Rules of the exact test, the main rule first.
    rounds : tuple of Beliefs
        Beliefs of the bettors, one entry for each time that they learned; empty without bets.
    divergences : tuple of (float, float)
        Order of each Rényi divergence that the claim bounds, and the largest that it allows, in
        nats.
    witness : DivergenceWitness or None
        The witness that is tested on the draws of the exact test, with one half of the error
        probability; None if no divergence is tested.
    recording : Recording or None
        Origin of recorded outputs; None if dpaudit made the draws.
    blocks : tuple of Block
        All draws, in their order.
    counted : int
        Number of draws of the learning blocks whose outputs were counted and not kept.
    refuted_after : int or None
        Number of draws after which bets refuted the claim; None if they did not.
    accused : tuple of (str, {'d1', 'd2'}, int, int)
        For the probabilistic definition, each single output to test: its description, the input
        that is expected to give it more often, and its draws of d1 and of d2. Else empty.
    declared : tuple of (str, int, int) or None
        Each possible output with its draws of d1 and of d2 in the certification. None unless the
        user declared all possible outputs and the run reached its planned end.
    unseen : tuple of (int, int) or None
        Draws of d1 and of d2 in the exact test whose outputs are new; None if not counted.
    ranges : bool
        Whether the outputs have a column of numbers that almost never repeat.
    new_texts : bool
        Whether at least half of the outputs to learn from are texts that occur once, even with `#`
        in place of each number. No rule sees what such texts say beside their numbers.
    divergence_bets : tuple of DivergenceBet or None
        Bets against a divergence, with half of the error probability of betting; None without.
    illustration : Tally or None
        If bets ended the run, counts of an event on draws made after it was chosen, by guess: d1,
        d2, none. If it was interrupted, counts of no draws.

    Raises
    ------
    ValueError
        If the parts contradict each other.
    """

    point: ProfilePoint
    points: tuple[ProfilePoint, ...] = ()
    alpha: float
    confidence: float
    budget: int
    limits: DrawLimits | None = None
    by_clock: bool = False
    stage: FixedStage
    method: Method
    rules: tuple[FrozenRule, ...]
    rounds: tuple[Beliefs, ...] = field(default=(), repr=False)
    divergences: tuple[tuple[float, float], ...] = ()
    witness: DivergenceWitness | None = field(default=None, repr=False)
    recording: Recording | None = None
    blocks: tuple[Block, ...] = field(repr=False)
    counted: int = 0
    refuted_after: int | None = None
    accused: tuple[SuspectedOutput, ...] = field(default=(), repr=False)
    declared: tuple[tuple[str, int, int], ...] | None = field(default=None, repr=False)
    unseen: tuple[int, int] | None = None
    ranges: bool = False
    new_texts: bool = False
    divergence_bets: tuple[DivergenceBet, ...] | None = field(default=None, repr=False)
    illustration: Tally | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for problem, is_found in self._problems():
            if is_found:
                raise ValueError(problem)

    def _problems(self) -> list[tuple[str, bool]]:
        return [*self._rule_problems(), *self._block_problems(), *self._draw_problems()]

    def _rule_problems(self) -> list[tuple[str, bool]]:
        kinds, shares = [rule.kind for rule in self.rules], [rule.share for rule in self.rules]
        levels = {len(rule.guesses) for rule in self.rules}
        tested = {len(block.tally.counts) for block in self.tested}
        return [
            ("no rule, or two of one kind", not kinds or len(set(kinds)) < len(kinds)),
            ("a confirmation has one rule", self.stage in _ENDED and len(kinds) > 1),
            ("no main rule", self.stage not in _ENDED and "main" not in kinds),
            ("a share of a rule is not in (0, 1]", not all(0 < share <= 1 for share in shares)),
            ("the shares of the rules exceed 1", math.fsum(shares) > 1 + 1e-9),
            ("rules of different numbers of levels", len(levels) > 1),
            ("a guess is none of -1, 0, 1", any(set(r.guesses) - {-1, 0, 1} for r in self.rules)),
            ("a tally does not fit the rules", bool(tested - levels)),
            ("a witness does not fit the rules", not self._is_witness_fit(levels)),
            ("a method without a test", self.illustration is not None and self.method != "game"),
            (
                "single outputs of another method",
                bool(self.accused) and self.method != "probabilistic",
            ),
        ]

    def _block_problems(self) -> list[tuple[str, bool]]:
        bettors = {(len(beliefs.posteriors), len(beliefs.rules)) for beliefs in self.rounds}
        stages = [_STAGES.index(block.stage) for block in self.blocks]
        rounds = [block.round for block in self.blocks if block.round is not None]
        certifying = {block.round for block in self.blocks if block.stage == "certification"}
        last = len(self.rounds) - 1 if self.rounds else None
        unbet = {block.round for block in self.blocks if block.stage in _NOT_BET_ON}
        early = {beliefs.early for beliefs in self.rounds}
        return [
            ("stages out of order", stages != sorted(stages)),
            ("rounds out of order", rounds != sorted(rounds)),
            ("a round does not exist", any(not 0 <= n < len(self.rounds) for n in rounds)),
            ("the certification does not bet by the last round", bool(certifying - {last})),
            ("a bet before anything was learned", self.blocks[0].round is not None),
            ("a bet in a confirmation", bool(unbet - {None})),
            ("other bettors in a later round", len(bettors) > 1),
            ("bets from the first draws on", not early <= {self.ends_by_bets}),
        ]

    def _draw_problems(self) -> list[tuple[str, bool]]:
        draws = self.draws
        return [
            ("more draws than the budget", self.recording is None and draws > self.budget),
            ("another number of draws than planned", self._planned not in (None, draws)),
            ("a confirmation that does not follow a refutation", self._is_misplaced()),
            ("counted draws that do not fit the buffer", not self._is_counted_fit()),
            ("no limits of a run", (self.limits is None) != (self.recording is not None)),
            ("recorded outputs", (self.stage == "recorded") != (self.recording is not None)),
            ("no event to show", (self.stage in _ENDED[1:]) != (self.illustration is not None)),
            (
                "the event was chosen before the first draw",
                self.illustration is not None and self.illustration.draws >= draws,
            ),
            (
                "the declared outputs are not all draws of the certification",
                self.declared is not None
                and (self.stage != "certification" or self._declared_arms != self.total.arms),
            ),
            (
                "a witness bet on more draws than were made",
                any(bet.tally.draws > draws for bet in self.divergence_bets or ()),
            ),
        ]

    @property
    def _planned(self) -> int | None:
        """Number of draws at the planned end; None if the end is not fixed by a number of draws."""
        if self.stage == "certification":
            return self.budget
        if self.stage == "betting":
            return -1 if self.refuted_after is None else self.refuted_after
        if self.stage != "confirmation" or self.limits is None:
            return None
        earlier = self.draws - self.total.draws
        return min(self.budget, earlier + max(earlier, self.limits.confirming))

    def _is_misplaced(self) -> bool:
        """Return whether a confirmation has no room, or does not follow the bets' refutation."""
        if self.stage != "confirmation" or self.limits is None:
            return False
        earlier, refuted_at = self.draws - self.total.draws, self.refuted_after
        if self.budget - earlier < self.limits.confirming:
            return True
        # With a time limit, the budget may have room for a confirmation only some draws later.
        return (
            refuted_at is None
            or earlier < refuted_at
            or (earlier > refuted_at and not self.by_clock)
        )

    def _is_counted_fit(self) -> bool:
        """Return whether just the learning draws beyond a full buffer were counted."""
        # With a time limit, the buffer may be closed earlier.
        if self.limits is None:
            return self.counted == 0
        least = max(0, self.learning_draws - self.limits.buffer_draws)
        return least <= self.counted <= (self.learning_draws if self.by_clock else least)

    @property
    def _declared_arms(self) -> tuple[int, int]:
        counts = self.declared or ()
        return sum(d1 for _, d1, _ in counts), sum(d2 for _, _, d2 in counts)

    def _is_witness_fit(self, levels: set[int]) -> bool:
        witness = self.witness
        return witness is None or (
            levels == {len(witness.values)} and witness.order in dict(self.divergences)
        )

    @property
    def draws(self) -> int:
        """Number of all draws."""
        return sum(block.draws for block in self.blocks)

    @property
    def tested(self) -> tuple[Block, ...]:
        """The blocks of the exact test."""
        return tuple(block for block in self.blocks if block.stage == self.stage)

    @property
    def total(self) -> Tally:
        """The counts of all draws of the exact test."""
        counts = (block.tally for block in self.tested)
        return sum(counts, Tally.empty(len(self.rules[0].guesses)))

    @property
    def learning_draws(self) -> int:
        """Number of draws that the rules were learned from."""
        return sum(block.draws for block in self.blocks if block.stage == "learning")

    @property
    def ends_by_bets(self) -> bool:
        """Whether a refutation by bets ends the run without a confirmation."""
        return self.limits is not None and self.limits.ends_by_bets

    @property
    def is_thinned(self) -> bool:
        """Whether the game uses only a random part of the recorded outputs, because the numbers of
        draws of d1 and d2 were fixed."""
        recording = self.recording
        return (
            recording is not None
            and not recording.coin_flipped
            and self.method != "clopper-pearson"
        )

    @property
    def betting_share(self) -> float:
        """Share of `alpha` for bets on rules. Bets against a divergence, if there are any, have the
        same share."""
        if self.stage == "recorded":
            return 0.0
        share = EARLY_BETTING_SHARE if self.ends_by_bets else BETTING_SHARE
        return share if self.divergence_bets is None else share / 2

    @property
    def fixed_share(self) -> float:
        """Share of `alpha` for the exact tests of all rules together. The test of a witness, if
        there is one, has the same share."""
        if self.stage == "recorded":
            from dpaudit.stats.binomial import (
                TOSSED_AGAIN,  # imports SciPy, which few commands need
            )

            share = 1 - TOSSED_AGAIN if self.is_thinned else 1.0
        elif self.ends_by_bets:
            share = 1 - EARLY_BETTING_SHARE
        else:
            share = CERTIFICATION_SHARE if self.stage == "certification" else CONFIRMATION_SHARE
        return share if self.witness is None else share / 2
