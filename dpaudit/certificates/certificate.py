"""Define certificates. A certificate is the result for one pair of inputs, with the counts from
which its numbers can be computed again.

`Certificate` is for draws from a mechanism and for recorded outputs. `ExactCertificate` is for a
mechanism that states its output distributions. canary_certificate.py defines the certificate for
guesses about canaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpaudit.certificates.evidence import Evidence, FixedStage, FrozenRule, Guess, Method
from dpaudit.claims import ProfilePoint
from dpaudit.levels.portfolio import ScoreDistributions, Tried
from dpaudit.stats.witness import DivergenceWitness


@dataclass(frozen=True, slots=True)
class EventCount:
    """Counts of an event that was fixed before the draws.

    Attributes
    ----------
    words : str
        Description of the event, such as `output ≤ 0.13`.
    guess : {'d1', 'd2'}
        The input that is expected to give the event more often.
    count_d1, count_d2 : int
        Number of draws of d1, and of d2, whose output is in the event.
    draws_d1, draws_d2 : int
        Number of all draws of d1, and of d2.
    interval_d1, interval_d2 : tuple of float
        Two-sided Clopper-Pearson intervals for the event's probability under d1 and under d2, each
        at the confidence of the audit.
    """

    words: str
    guess: Guess
    count_d1: int
    count_d2: int
    draws_d1: int
    draws_d2: int
    interval_d1: tuple[float, float]
    interval_d2: tuple[float, float]


@dataclass(frozen=True, slots=True)
class FixedTest:
    """The exact test of one rule, on draws that were not used before.

    Attributes
    ----------
    stage : {'certification', 'confirmation', 'recorded', 'betting', 'interrupted'}
        The draws of the test. 'certification': all draws reserved for it. 'confirmation': new draws
        after an early refutation by bets. 'recorded': a random part of recorded outputs. 'betting'
        and 'interrupted': no test was made, since bets ended the run, or since it was interrupted.
        After bets, the counts show an event, on draws made after the event was chosen.
    method : {'game', 'clopper-pearson', 'probabilistic'}
        Method that turns counts into a bound (docs/method.md §2 and §7).
    alpha : float
        Error probability of this test.
    draws, correct, wrong : int
        Number of draws of both inputs, of right guesses, and of wrong guesses.
    two_guesses : bool
        Whether the rule can guess both inputs (h = 1 in docs/method.md), or only one (h = ½).
    events : tuple of EventCount
        One event for each input that the rule can guess: the outputs for which it guesses d1, and
        those for which it guesses d2. For the probabilistic definition, one event for each
        certified output.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the claimed δ, and for δ at the claimed ε; each valid with probability
        at least 1 - alpha.
    p_value : float
        p-value of the claim by this test alone.
    detectable_epsilon : float
        If the true ε were at least this number and the leak showed in the event, the test would
        have refuted the claim with probability 0.9; may be inf (docs/method.md §8).
    rule : FrozenRule
        The rule.
    """

    stage: FixedStage
    method: Method
    alpha: float
    draws: int
    correct: int
    wrong: int
    two_guesses: bool
    events: tuple[EventCount, ...]
    epsilon_lower: float
    delta_lower: float
    p_value: float
    detectable_epsilon: float
    rule: FrozenRule

    @property
    def refutes(self) -> bool:
        """Whether this test alone, at its own error probability, refutes the claim."""
        return self.p_value <= self.alpha

    @property
    def h(self) -> float:
        """Factor of δ in the test: 1 if the rule can guess both d1 and d2, else ½
        (`stats.game`)."""
        return 1.0 if self.two_guesses else 0.5

    @property
    def guesses_by_input(self) -> tuple[int, int]:
        """Numbers of guesses of d1 and of d2."""
        of_d1 = [event.count_d1 + event.count_d2 for event in self.events if event.guess == "d1"]
        of_d2 = [event.count_d1 + event.count_d2 for event in self.events if event.guess == "d2"]
        every = self.correct + self.wrong
        return (sum(of_d1), every - sum(of_d1)) if of_d1 else (every - sum(of_d2), sum(of_d2))


@dataclass(frozen=True, slots=True)
class DivergenceTest:
    """The test of the claimed bound on a Rényi divergence, on the draws of the exact test.

    Attributes
    ----------
    witness : DivergenceWitness
        A function of the level, fixed before these draws. Its means give the bound.
    alpha : float
        Error probability of this test.
    allowed : float
        Largest divergence that the claim allows, in nats.
    lower : float
        Lower bound for the divergence, in nats; valid with probability at least 1 - alpha
        (docs/method.md §6).
    p_value : float
        p-value of the claim by this test alone.
    """

    witness: DivergenceWitness
    alpha: float
    allowed: float
    lower: float
    p_value: float


@dataclass(frozen=True, slots=True)
class DivergenceBets:
    """The bets of all witnesses against a bound of a Rényi divergence.

    Attributes
    ----------
    alpha : float
        Error probability of these bets, equal to `Certificate.alpha_betting`.
    wealth : float
        The bets refute the claim if this wealth, at the end of betting, is at least 1 / alpha.
    """

    alpha: float
    wealth: float


@dataclass(frozen=True, slots=True)
class Unseen:
    """Counts of draws of the exact test whose outputs are new, so that no rule has learned them.

    An output is new if it has a value or a label that no draw to learn from had, or an entry at a
    place (such as an index of a list) where no draw to learn from had one. In a column of numbers
    that almost never repeat, a number is new only if it is beyond all numbers of these draws.

    Attributes
    ----------
    count_d1, count_d2 : int
        Number of draws of d1, and of d2, with new outputs.
    delta : float
        Upper bound for the δ of a leak that new outputs can hide, valid with probability at least
        1 - `Certificate.alpha`: the larger of the upper bounds for the probability of a new output
        on d1 and on d2.
    ranges : bool
        Whether the outputs have a column of numbers that almost never repeat.
    """

    count_d1: int
    count_d2: int
    delta: float
    ranges: bool


@dataclass(frozen=True, slots=True)
class EpsilonInterval:
    """A confidence interval for the smallest ε at δ = 0, if all possible outputs were declared.

    Attributes
    ----------
    lower, upper : float
        Ends of the interval, valid with probability at least 1 - `Certificate.alpha`
        (docs/method.md §10). `upper` may be inf.
    """

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first exception of one type that the mechanism raised.

    Attributes
    ----------
    message, where : str
        Message of the exception, and the file and line that raised it, such as `mine.py:12`; "" if
        unknown, as after a crash.
    """

    message: str
    where: str


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A comparison of draws made by new processes with draws of the audit, after a refutation.

    Attributes
    ----------
    processes, draws : int
        Number of new processes, and number of all their draws; 0 if no comparison was made.
    note : str
        Reason why there were fewer than eight processes; "" if there were eight, or four because
        the mechanism takes long to import.
    """

    processes: int
    draws: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The result for one pair of inputs, with the evidence from which its numbers follow.

    Attributes
    ----------
    pair : str
        Description of the two inputs.
    evidence : Evidence
        What was fixed before the draws and counted after them. All numbers follow from it.
    point : ProfilePoint
        The point of the claim that was tested by `fixed`, the test that reports show.
    refuted : bool
        Whether the draws of this pair refute the claim.
    alpha : float
        Error probability of this pair.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the δ of the point, and for δ at its ε; each valid with probability at
        least 1 - alpha. The bound for ε is the largest of `epsilon_betting` and of all exact tests.
    p_value : float
        p-value of the claim from betting and the exact tests together.
    draws : int
        Number of draws made, of both inputs together.
    alpha_betting : float
        Error probability of betting, a part of `Certificate.alpha`.
    wealth : float
        Betting refutes the claim if this number is at least 1 / alpha_betting. Bets are made
        against the claimed ε and against smaller ones. For each, the largest wealth at the end of a
        block counts; this number is the smallest of these.
    epsilon_betting : float
        Lower bound for ε from the bets. With probability at least 1 - alpha_betting, the bounds at
        all moments of the run are valid together.
    bet_against : ProfilePoint or None
        The point that the bets were made against; None if it is `Certificate.point`.
    divergence_bets : DivergenceBets or None
        The bets against a bound of a Rényi divergence; None for claims without one.
    fixed : FixedTest
        The exact test that reports show, usually the one with the largest lower bound for ε.
    others : tuple of FixedTest
        The exact tests of the other rules.
    divergence : DivergenceTest or None
        The test of a Rényi divergence; None for claims without one, and if the draws to learn from
        predicted that it would show nothing.
    interval : EpsilonInterval or None
        Confidence interval for ε; None unless all possible outputs were declared and the run
        reached its planned end.
    unseen : Unseen or None
        Counts of test draws with new outputs. None if the run stopped before its planned end, and
        for outputs of more than 256 columns.
    detectable_rare : float or None
        Let one input give an output with probability p, and the other never. This is the smallest p
        at which this run would have refuted the claim with probability 0.9 (docs/method.md §8); may
        be inf. The output may be a value, a label, a key, a length or an exception that repeats.
        None after a confirmation, and for the methods `probabilistic` and `clopper-pearson`.
    attacks : tuple of Tried
        The attacks that were considered, each with the lower bound for ε that it predicted.
    scores : ScoreDistributions or None
        Distributions of the score that the rule of `fixed` uses, on the draws to learn from; None
        without a score.
    failures : mapping of str to pair of int
        Number of draws of d1 and of d2 that raised an exception, by the type of the exception.
    first_failures : mapping of str to FirstFailure
        The first exception of each type, by type.
    reproducible : bool
        Whether two runs with the same seed gave the same outputs.
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

    Notes
    -----
    Bounds and p-value can be computed from the recorded counts; `dpaudit report` does this and
    compares (docs/method.md §2 to §4).
    """

    pair: str = ""
    evidence: Evidence
    point: ProfilePoint
    refuted: bool
    alpha: float
    epsilon_lower: float
    delta_lower: float
    p_value: float
    draws: int
    alpha_betting: float
    wealth: float
    epsilon_betting: float
    bet_against: ProfilePoint | None = None
    divergence_bets: DivergenceBets | None = None
    fixed: FixedTest
    others: tuple[FixedTest, ...] = field(default=(), repr=False)
    divergence: DivergenceTest | None = None
    interval: EpsilonInterval | None = None
    unseen: Unseen | None = None
    detectable_rare: float | None = None
    attacks: tuple[Tried, ...] = field(default=(), repr=False)
    scores: ScoreDistributions | None = field(default=None, repr=False)
    failures: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    first_failures: Mapping[str, FirstFailure] = field(default_factory=dict)
    reproducible: bool = True
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    adjacency: str | None = None
    # Comparisons of certificates ignore this field: the number of new processes depends on the time
    # that the audit had left, so it differs between equal runs.
    redrawn: Redrawn | None = field(default=None, compare=False)

    @property
    def rules(self) -> tuple[FixedTest, ...]:
        """The exact tests of all rules, in the order 'main', 'rare', 'other'."""
        order = ("main", "rare", "other")
        return tuple(
            sorted((self.fixed, *self.others), key=lambda test: order.index(test.rule.kind))
        )

    @property
    def ended_by_bets(self) -> bool:
        """Whether the run stopped because its bets refuted the claim, so that no exact test was
        made."""
        return self.fixed.stage == "betting"

    @property
    def is_interrupted(self) -> bool:
        """Whether the run was interrupted before its planned end, so that no exact test was
        made."""
        return self.fixed.stage == "interrupted"

    @property
    def betting_point(self) -> ProfilePoint:
        """The point (ε, δ) of the claim that the bets were made against."""
        return self.bet_against or self.point


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
