"""Define certificates: the result for one pair of inputs, complete enough for others to recompute
its numbers.

`Certificate` is the result of draws from a mechanism or of recorded outputs. `ExactCertificate` is
the result of exact output distributions that a mechanism states. one_run.py has the certificate for
guesses about the canaries of one training run.

records.py has the smaller records that a certificate contains, and explains the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from dpaudit.certificates.records import (
    Block,
    DivergenceBets,
    DivergenceTest,
    EpsilonInterval,
    FirstFailure,
    FixedTest,
    Guess,
    Recording,
    Redrawn,
    Round,
    Schedule,
    Unseen,
)
from dpaudit.claims import ProfilePoint
from dpaudit.composed import part
from dpaudit.levels.portfolio import ScoreDistributions, Tried

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Drawn:
    """The draws of one pair, with their counts.

    Attributes
    ----------
    draws, budget : int
        Number of draws made, and number of draws allowed, of both inputs together.
    failures : mapping of str to pair of int
        Number of draws of d1 and of d2 in which the mechanism raised an exception, by the type of
        the exception.
    reproducible : bool
        Whether two runs with the same seed gave the same outputs. If not, a note or a warning says
        so.
    blocks : tuple of Block
        Counts of all draws by level (bin of outputs) and input, in the order of the draws.
    recording : Recording or None
        Origin of recorded outputs; None if dpaudit made the draws. For recorded outputs nothing is
        bet: `alpha_betting` is 0 and `wealth` is 1.
    schedule : Schedule or None
        Settings that determine the sizes of the blocks; None for recorded outputs.
    first_failures : mapping of str to FirstFailure
        The first exception of each type, by type.
    """

    draws: int
    budget: int
    failures: Mapping[str, tuple[int, int]]
    reproducible: bool
    blocks: tuple[Block, ...] = field(repr=False)
    recording: Recording | None = None
    schedule: Schedule | None = None
    first_failures: Mapping[str, FirstFailure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Betting:
    """Bets against the claim while draws were made (docs/method.md §4).

    Attributes
    ----------
    refuted_after : int or None
        Number of draws after which betting refuted the claim; None if it did not.
    alpha_betting : float
        Error probability of betting, a part of `Certificate.alpha`.
    wealth : float
        Betting refutes the claim if this number is at least 1 / alpha_betting. Bets are made
        against the claimed ε and against each smaller ε of a grid. Each ε has a largest wealth at
        the end of any block of draws; this number is the smallest of these.
    epsilon_betting : float
        Lower bound for ε from the bets. With probability at least 1 - alpha_betting, the bounds at
        all times of the run are valid.
    rounds : tuple of Round
        Beliefs of the bettors (estimated probabilities of d1 at each level), one entry for each
        time that the bettors learned from draws.
    bet_against : ProfilePoint or None
        The point (ε, δ) of the claim that the bets were made against; None if it is
        `Certificate.point`.
    divergence_bets : DivergenceBets or None
        The bets against a bound of a Rényi divergence, for Rényi and zero-concentrated DP. None for
        other claims, and in files of older versions.
    """

    refuted_after: int | None
    alpha_betting: float
    wealth: float
    epsilon_betting: float
    rounds: tuple[Round, ...] = field(repr=False)
    bet_against: ProfilePoint | None = None
    divergence_bets: DivergenceBets | None = None


@dataclass(frozen=True, slots=True)
class ExactTests:
    """The exact tests of one pair, all on the same draws, and the attacks behind their rules.

    Attributes
    ----------
    fixed : FixedTest
        The exact test that reports show, usually the one with the largest lower bound for ε.
    others : tuple of FixedTest
        The exact tests of the other rules.
    attacks : tuple of Tried
        The attacks that were considered, each with the lower bound for ε that it predicted.
    scores : ScoreDistributions or None
        Distributions of the score that the rule of `fixed` uses, on the draws to learn from; None
        if this rule uses no score.
    divergence : DivergenceTest or None
        The test of a Rényi divergence, for Rényi and zero-concentrated DP. None for other claims,
        and if the draws to learn from predicted that it would show nothing.
    interval : EpsilonInterval or None
        Confidence interval for ε; None unless all possible outputs were declared and the run
        reached its planned end.
    unseen : Unseen or None
        Counts of test draws whose outputs resemble no draw to learn from. None if the run stopped
        before its planned end, and for outputs of more than 256 columns.
    detectable_rare : float or None
        Smallest probability p with this property: if one input gave some output with probability p,
        and the other input never gave it, this run would have refuted the claim with probability
        0.9 (docs/method.md §8). inf if no p is large enough. The output may be a value, a label, a
        key, a length or an exception that repeats. None after a confirmation, for the methods
        `probabilistic` and `clopper-pearson`, and in files of older versions.
    """

    fixed: FixedTest
    others: tuple[FixedTest, ...] = field(default=(), repr=False)
    attacks: tuple[Tried, ...] = field(default=(), repr=False)
    scores: ScoreDistributions | None = field(default=None, repr=False)
    divergence: DivergenceTest | None = None
    interval: EpsilonInterval | None = None
    unseen: Unseen | None = None
    detectable_rare: float | None = None

    @property
    def rules(self) -> tuple[FixedTest, ...]:
        """The exact tests of all rules: main rule first, then the rule for rare outputs, then the
        other rules."""
        order = ("main", "rare", "other")
        return tuple(sorted((self.fixed, *self.others), key=lambda test: order.index(test.kind)))


@dataclass(frozen=True, slots=True)
class Remarks:
    """Warnings and notes about a pair of inputs and its draws.

    Attributes
    ----------
    warnings : tuple of str
        Reasons to doubt the result.
    notes : tuple of str
        Other facts, which are no reason for doubt.
    ignored : tuple of str
        Properties of the outputs that no attack examined, each with what the user can do.
    adjacency : str or None
        The stated relation between the inputs, or `not stated`; None for recorded outputs.
    redrawn : Redrawn or None
        Comparison of a refutation with draws of new processes. None without a refutation, and if a
        Python program passed the mechanism as a function (docs/guides/mechanism.md).
    """

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    adjacency: str | None = None
    # Comparisons of certificates ignore this field: the number of new processes depends on the time
    # that the audit had left, so it differs between equal runs.
    redrawn: Redrawn | None = field(default=None, compare=False)


class _Of(Generic[Value]):
    """Descriptor by which a certificate returns a field of one of its parts.

    For example, `certificate.draws` returns `certificate.drawn.draws`.
    """

    def __init__(self, read: Callable[[Certificate], Value]) -> None:
        self._read = read

    def __get__(self, certificate: Certificate | None, kind: type[Any] | None = None) -> Value:
        return cast(Value, self) if certificate is None else self._read(certificate)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The result for one pair of inputs, with the counts from which all numbers follow.

    The fields of `drawn`, `betting`, `tests` and `remarks` are also attributes of the certificate,
    as in result files.

    Attributes
    ----------
    pair : str
        Description of the two inputs.
    point : ProfilePoint
        The point (ε, δ) of the claim at which `fixed`, the test that reports show, was made.
    refuted : bool
        Whether the draws of this pair refute the claim.
    alpha : float
        Error probability of this pair.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the δ of the point, and for δ at the ε of the point; each valid with
        probability at least 1 - alpha. The bound for ε is the largest of `epsilon_betting` and the
        bounds of all exact tests at the point.
    p_value : float
        p-value of the claim from betting and the exact tests together.
    drawn : Drawn
        The draws and their counts.
    betting : Betting
        The bets against the claim.
    tests : ExactTests
        The exact tests.
    remarks : Remarks
        Warnings and notes.

    Notes
    -----
    Bounds and p-value can be computed from the recorded counts; `dpaudit report` does this and
    compares (docs/method.md §2 to §4).
    """

    pair: str
    point: ProfilePoint
    refuted: bool
    alpha: float
    epsilon_lower: float
    delta_lower: float
    p_value: float
    drawn: Drawn = field(metadata=part(Drawn))
    betting: Betting = field(metadata=part(Betting))
    tests: ExactTests = field(metadata=part(ExactTests))
    remarks: Remarks = field(metadata=part(Remarks))

    draws = _Of(lambda one: one.drawn.draws)
    budget = _Of(lambda one: one.drawn.budget)
    failures = _Of(lambda one: one.drawn.failures)
    reproducible = _Of(lambda one: one.drawn.reproducible)
    blocks = _Of(lambda one: one.drawn.blocks)
    recording = _Of(lambda one: one.drawn.recording)
    schedule = _Of(lambda one: one.drawn.schedule)
    first_failures = _Of(lambda one: one.drawn.first_failures)

    refuted_after = _Of(lambda one: one.betting.refuted_after)
    alpha_betting = _Of(lambda one: one.betting.alpha_betting)
    wealth = _Of(lambda one: one.betting.wealth)
    epsilon_betting = _Of(lambda one: one.betting.epsilon_betting)
    rounds = _Of(lambda one: one.betting.rounds)
    bet_against = _Of(lambda one: one.betting.bet_against)
    divergence_bets = _Of(lambda one: one.betting.divergence_bets)

    fixed = _Of(lambda one: one.tests.fixed)
    others = _Of(lambda one: one.tests.others)
    attacks = _Of(lambda one: one.tests.attacks)
    scores = _Of(lambda one: one.tests.scores)
    divergence = _Of(lambda one: one.tests.divergence)
    interval = _Of(lambda one: one.tests.interval)
    unseen = _Of(lambda one: one.tests.unseen)
    detectable_rare = _Of(lambda one: one.tests.detectable_rare)
    rules = _Of(lambda one: one.tests.rules)
    attack = _Of(lambda one: one.tests.fixed.attack)
    guesses = _Of(lambda one: one.tests.fixed.guesses)

    warnings = _Of(lambda one: one.remarks.warnings)
    notes = _Of(lambda one: one.remarks.notes)
    ignored = _Of(lambda one: one.remarks.ignored)
    adjacency = _Of(lambda one: one.remarks.adjacency)
    redrawn = _Of(lambda one: one.remarks.redrawn)

    @property
    def ended_by_bets(self) -> bool:
        """Whether the run stopped because its bets refuted the claim, so that no exact test was
        made."""
        return self.tests.fixed.stage == "betting"

    @property
    def is_interrupted(self) -> bool:
        """Whether the run was interrupted before its planned end, so that no exact test was
        made."""
        return self.tests.fixed.stage == "interrupted"

    @property
    def betting_point(self) -> ProfilePoint:
        """The point (ε, δ) of the claim that the bets were made against."""
        return self.betting.bet_against or self.point


@dataclass(frozen=True, slots=True)
class ExactEvent:
    """An event and its exact probabilities.

    Attributes
    ----------
    words : str
        Description of the event E.
    guess : {'d1', 'd2'}
        The input under which the event is more likely.
    probability_d1, probability_d2 : float
        Probability of the event under d1 and under d2.
    """

    words: str
    guess: Guess
    probability_d1: float
    probability_d2: float


@dataclass(frozen=True, slots=True)
class ExactCertificate:
    """The exact privacy parameters of one pair, from distributions that the mechanism states.

    Attributes
    ----------
    pair : str
        Description of the two inputs.
    point : ProfilePoint
        The point (ε, δ) of the claim that the pair violates most, or is nearest to violating.
    refuted : bool
        Whether the pair violates the claim by more than rounding (`stats.exact.TOLERANCE`).
    epsilon : float
        Smallest ε for which the pair satisfies ε-DP; may be inf.
    epsilon_lower, delta_lower : float
        Smallest ε that holds at the δ of the point, and smallest δ that holds at its ε.
    probabilistic_delta : float
        Smallest δ for which the pair satisfies probabilistic DP at the ε of the point.
    event : ExactEvent or None
        An event whose two probabilities decide whether the claim holds; None if both distributions
        are equal.
    law : tuple of tuples
        For each outcome: its description, its probability under d1, and its probability under d2.
    warnings, adjacency, notes : tuple of str, str or None, tuple of str
        As in `Certificate`.

    Notes
    -----
    The result is valid for this pair if the mechanism's code draws from the distributions that it
    states (docs/method.md §10).
    """

    pair: str
    point: ProfilePoint
    refuted: bool
    epsilon: float
    epsilon_lower: float
    delta_lower: float
    probabilistic_delta: float
    event: ExactEvent | None
    law: tuple[tuple[str, float, float], ...] = field(repr=False)
    warnings: tuple[str, ...] = ()
    adjacency: str | None = None
    notes: tuple[str, ...] = ()
