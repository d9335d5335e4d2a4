"""Certificates: the result for one pair of inputs, complete enough to be recomputed by others.

`Certificate` holds an audit that draws from a mechanism or reads recorded outputs, and
`ExactCertificate` an audit of laws that a mechanism states. one_run.py has the certificate of
guesses about the canaries of one run.

Words: d1 and d2 are the two inputs, P and Q the laws of the output on them, and an event E is a set
of outputs. A draw is an output with its input. A level is a bin of the outputs (docs/method.md §3).
A rule guesses the input of a draw from its level: d1 (1), d2 (-1), or no guess (0). A tally counts
draws by level and input. The point of a claim is the inequality P(E) ≤ e^ε Q(E) + δ for one (ε, δ).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast

from dpaudit.claims import ProfilePoint
from dpaudit.composed import part
from dpaudit.levels.portfolio import ScoreDistributions, Tried
from dpaudit.stats.witness import Witness

Guess = Literal["d1", "d2"]
Stage = Literal["learning", "certification", "confirmation", "recorded"]
FixedStage = Literal["certification", "confirmation", "recorded", "betting"]
Method = Literal["game", "clopper-pearson", "probabilistic"]
RuleKind = Literal["main", "rare", "other"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class EventCount:
    """Counts of an event that was fixed before the draws.

    Attributes
    ----------
    words : str
        The event, such as `output ≤ 0.13`.
    guess : {'d1', 'd2'}
        The input under which the event is expected more often.
    count_d1, count_d2 : int
        Number of draws in the event, by input.
    draws_d1, draws_d2 : int
        Number of all draws, by input.
    interval_d1, interval_d2 : tuple of float
        Two-sided Clopper-Pearson intervals of P(E) and of Q(E), each at the confidence of the
        audit.
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
class Block:
    """A block of consecutive draws; wealth is computed at the end of each block.

    Attributes
    ----------
    stage : {'learning', 'certification', 'confirmation', 'recorded'}
        Purpose of the draws.
    round : int or None
        Index into `Certificate.rounds` of the beliefs that were bet on this block; None without a
        bet, as before the first learning and after the end of betting.
    draws : int
        Number of draws.
    tally : tuple of pairs of int
        Number of draws of d1 and of d2 at each level (bin of the outputs).
    """

    stage: Stage
    round: int | None
    draws: int
    tally: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """Beliefs of the bettors between two times of learning.

    Attributes
    ----------
    posteriors : tuple of tuples of float
        Estimated probability that a draw is of d1, by bettor and level (bin of the outputs).
    rules : tuple of tuples of int
        Guess of each rule at each level.
    early : bool
        Whether the run bets from its first draws, with other shares of the initial wealth
        (docs/method.md §4).
    """

    posteriors: tuple[tuple[float, ...], ...]
    rules: tuple[tuple[int, ...], ...]
    early: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """Settings that, with the budget and the tallies, determine the sizes of the blocks.

    Attributes
    ----------
    learned, block : int
        Largest number of draws to keep and learn from; number of draws whose outcomes a worker
        holds.
    by_clock : bool
        Whether the budget was planned by the clock while learning.
    full : bool
        Whether the run was to continue to its planned end after a refutation.
    counted : int
        Number of draws that were counted to learn from, in addition to those that are kept; 0 in
        files of older versions.
    confirming : int
        Smallest number of draws of a confirmation, within the budget; 1,000 in files without it.
    bets : bool
        Whether bets alone end the run, without a confirmation (docs/method.md §4).
    """

    learned: int
    block: int
    by_clock: bool
    full: bool
    counted: int = 0
    confirming: int = 1_000
    bets: bool = False


@dataclass(frozen=True, slots=True)
class FixedTest:
    """The exact test of one rule, on draws that were not used before.

    Attributes
    ----------
    stage : {'certification', 'confirmation', 'recorded', 'betting'}
        The draws of the test: all draws kept for it, up to the planned end; a fresh block after an
        early refutation; or a random part of recorded outputs. 'betting': no test was carried out,
        since bets ended the run; the counts illustrate an event on the draws made after the event
        was chosen.
    method : {'game', 'clopper-pearson', 'probabilistic'}
        Method that turns counts into a bound (docs/method.md §2 and §7).
    alpha : float
        Error probability that this test spends.
    draws, correct, wrong : int
        Number of draws of both inputs, of right guesses and of wrong guesses.
    two_guesses : bool
        Whether the rule can guess both inputs (h = 1) or only one (h = ½).
    events : tuple of EventCount
        One or two events; for the probabilistic definition, the certified outputs.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the claimed δ, and for δ at the claimed ε; each valid with probability
        at least 1 - alpha.
    p_value : float
        p-value of the claim by this test alone.
    detectable_epsilon : float
        Smallest true ε that this test would have refuted with probability 0.9, if the leak were
        visible to its event; inf if there is none (docs/method.md §8).
    accused : tuple of tuples
        For the probabilistic definition, each single output that was tested: its words, the input
        that is expected to give it more often, and its draws of d1 and of d2.
    kind : {'main', 'rare', 'other'}
        Kind of the rule: the rule with the largest predicted bound; a rule on outputs that only one
        input gave while learning; or the best rule of another kind (docs/method.md §4).
    share : float
        Share of the exact test's error probability that the rule got when the rules were fixed, in
        (0, 1]. The shares of all rules add up to 1.
    attack : str
        Attack that found the rule.
    guesses : tuple of int
        Guess at each level: d1 (1), d2 (-1) or none (0).
    point : ProfilePoint or None
        Point of the claim that the rule tests; None for the point that was bet against.
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
    accused: tuple[tuple[str, Guess, int, int], ...] = ()
    kind: RuleKind = "main"
    share: float = 1.0
    attack: str = ""
    guesses: tuple[int, ...] = field(default=(), repr=False)
    point: ProfilePoint | None = None

    @property
    def refutes(self) -> bool:
        """Whether this test alone refutes the claim, at its own error probability."""
        return self.p_value <= self.alpha


@dataclass(frozen=True, slots=True)
class DivergenceTest:
    """The test of a Rényi divergence, on the draws of the exact test.

    Attributes
    ----------
    witness : Witness
        The function of the level from which the bound is computed, fixed before these draws.
    alpha : float
        Error probability that this test spends.
    allowed : float
        Largest divergence that the claim allows, in nats.
    lower : float
        Lower bound of the divergence, in nats; valid with probability at least 1 - alpha.
    p_value : float
        p-value of the claim by this test alone.

    Notes
    -----
    docs/method.md §6.
    """

    witness: Witness
    alpha: float
    allowed: float
    lower: float
    p_value: float


@dataclass(frozen=True, slots=True)
class DivergenceBet:
    """The bets of one witness against a bound of a Rényi divergence (docs/method.md §6).

    Attributes
    ----------
    witness : Witness
        The function of the level, with its stakes, fixed before the draws that it bets on.
    share : float
        Share of the initial stake. The shares of all witnesses add up to at most 1.
    counts : tuple of pairs of int
        Draws of d1 and of d2 at each level, from the first to the last bet of the witness.
    """

    witness: Witness
    share: float
    counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DivergenceBets:
    """The bets of all witnesses against a bound of a Rényi divergence.

    Attributes
    ----------
    alpha : float
        Error probability that these bets spend, equal to `Betting.alpha_betting`.
    wealth : float
        The bets refute the claim if this wealth, at the end of betting, is at least 1 / alpha.
    bets : tuple of DivergenceBet
        The bets of each witness.
    """

    alpha: float
    wealth: float
    bets: tuple[DivergenceBet, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unseen:
    """Counts of draws of the exact test with new outputs, from which no rule could learn.

    An output is new if it has a value, a label, or an entry at a place without entries, that no
    learning draw had. Where numbers almost never repeat, a number is new if it lies beyond all
    numbers of the learning draws.

    Attributes
    ----------
    count_d1, count_d2 : int
        Number of such draws, by input.
    delta : float
        Largest δ that such outputs can hide: the larger Clopper-Pearson upper bound of their
        probability under either input, valid with probability at least 1 - `Certificate.alpha`.
    ranges : bool
        Whether numbers almost never repeat in some column of the outputs.
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
        Ends of the interval, together valid with probability at least 1 - `Certificate.alpha`
        (docs/method.md §10); `upper` may be inf.
    atoms : tuple of tuples
        Each declared output in words, and its certification draws of d1 and of d2.
    """

    lower: float
    upper: float
    atoms: tuple[tuple[str, int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first exception of a kind that the mechanism raised.

    Attributes
    ----------
    message, where : str
        Message of the exception; file and line that raised it, such as `mine.py:12`, or "" if
        unknown (a crash, or a program in another language).
    """

    message: str
    where: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded outputs, which were drawn outside of dpaudit.

    Attributes
    ----------
    draws_d1, draws_d2 : int
        Number of recorded draws, by input.
    coin_flipped : bool
        Whether fair coins picked the input of every draw. If not, these numbers were fixed.
    """

    draws_d1: int
    draws_d2: int
    coin_flipped: bool


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A comparison of a refutation with draws of new processes.

    Attributes
    ----------
    processes, draws : int
        Number of new processes that were compared, and of their draws together.
    note : str
        Why fewer than eight processes were compared; "" if eight were.
    """

    processes: int
    draws: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The draws of one pair, with their counts.

    Attributes
    ----------
    draws, budget : int
        Number of draws made, and number of draws allowed, of both inputs together.
    failures : mapping of str to pair of int
        Draws of d1 and of d2 that were exceptions, by kind of exception.
    reproducible : bool
        Whether equal seeds gave equal outcomes. If not, a note or a warning says so.
    blocks : tuple of Block
        Tallies of all draws, in order.
    recording : Recording or None
        Origin of recorded outputs. These have no betting: `alpha_betting` is 0 and `wealth` 1.
    schedule : Schedule or None
        Settings that determine the sizes of the blocks; None for recorded outputs, and in files of
        older versions.
    first_failures : mapping of str to FirstFailure
        The first exception of each kind.
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
        Number of draws when betting refuted the claim; None if it did not.
    alpha_betting : float
        The part of `Certificate.alpha` that betting spends.
    wealth : float
        Betting refutes the claim if this wealth is at least 1 / alpha_betting. It is the smallest,
        over the claimed ε and all smaller values of a grid, of the largest wealth at the end of any
        block.
    epsilon_betting : float
        Lower bound for ε by betting. All bounds during the run are valid together with probability
        at least 1 - alpha_betting.
    rounds : tuple of Round
        Beliefs of the bettors, one entry for each time of learning.
    bet_against : ProfilePoint or None
        The point that was bet against; None if it is `Certificate.point`.
    divergence_bets : DivergenceBets or None
        The bets against the divergence, for Rényi and zero-concentrated DP. None for other claims,
        and in files of older versions.
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
    """The exact tests of one pair, all on the same draws, and how their rules were chosen.

    Attributes
    ----------
    fixed : FixedTest
        The exact test of the rule that is shown: the rule with the best bound.
    others : tuple of FixedTest
        The exact tests of the other rules.
    attacks : tuple of Tried
        The attacks that were considered for the exact test, with their predicted bounds.
    scores : ScoreDistributions or None
        Distributions of the score of the rule of `fixed` on learning draws, if it uses a score.
    divergence : DivergenceTest or None
        The test of a divergence, for Rényi and zero-concentrated DP, if it was predicted to show
        something.
    interval : EpsilonInterval or None
        Interval for ε, if all possible outputs were declared and the run reached its planned end.
    unseen : Unseen or None
        Counts of outputs that rules could not learn of, if the run reached its planned end. None
        also for outputs of more than 256 columns, and in files of older versions.
    detectable_rare : float or None
        Smallest probability of an output that only one input gives at which this run would have
        refuted the claim with probability 0.9 (docs/method.md §8); inf if there is none. The output
        is a value, a label, a key, a length or an exception that repeats. None after a
        confirmation, for the methods `probabilistic` and `clopper-pearson`, and in files of older
        versions.
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
        """The exact tests of all rules, in the order main, rare, other."""
        order = ("main", "rare", "other")
        return tuple(sorted((self.fixed, *self.others), key=lambda test: order.index(test.kind)))


@dataclass(frozen=True, slots=True)
class Remarks:
    """What a reader should know about a pair and its draws.

    Attributes
    ----------
    warnings : tuple of str
        Reasons to doubt the result.
    notes : tuple of str
        Remarks on the pair and its draws that are no reason for doubt.
    ignored : tuple of str
        Properties of the outputs that no attack looked at, each with the remedy.
    adjacency : str or None
        The stated relation between the inputs, or `not stated`; None for recorded outputs.
    redrawn : Redrawn or None
        The comparison with new processes after a refutation; None without a refutation, and for
        callables that a Python program audits (docs/guides/mechanism.md).
    """

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    adjacency: str | None = None
    # Not compared: the number of processes depends on the time that was left.
    redrawn: Redrawn | None = field(default=None, compare=False)


class _Of(Generic[Value]):
    """An attribute of a certificate that reads a field of one of its parts."""

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
        The pair in words.
    point : ProfilePoint
        The point of the claim that `fixed`, the test shown in reports, tests.
    refuted : bool
        Whether the claim was refuted on this pair.
    alpha : float
        Error probability of this pair.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the δ of the point, and for δ at the ε of the point; each valid with
        probability at least 1 - alpha. The bound for ε is the best of `epsilon_betting` and the
        bounds of all rules.
    p_value : float
        p-value of the claim, by betting and the exact test together.
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
    Bounds and p-value follow from the recorded counts; `dpaudit report` recomputes them
    (docs/method.md §2 to §4).
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
        """Whether bets alone ended the run, so that no exact test was carried out."""
        return self.tests.fixed.stage == "betting"

    @property
    def betting_point(self) -> ProfilePoint:
        """The point of the claim that was bet against."""
        return self.betting.bet_against or self.point


@dataclass(frozen=True, slots=True)
class ExactEvent:
    """An event and its exact probabilities.

    Attributes
    ----------
    words : str
        The event.
    guess : {'d1', 'd2'}
        The input under which the event is more likely.
    probability_d1, probability_d2 : float
        P(E) and Q(E).
    """

    words: str
    guess: Guess
    probability_d1: float
    probability_d2: float


@dataclass(frozen=True, slots=True)
class ExactCertificate:
    """The exact privacy parameters of one pair, from laws that the mechanism states.

    Attributes
    ----------
    pair : str
        The pair in words.
    point : ProfilePoint
        The point of the claim that is violated most, or comes nearest to being violated.
    refuted : bool
        Whether the claim fails on this pair, by more than rounding (`stats.exact.TOLERANCE`).
    epsilon : float
        Smallest ε that holds for the pair at δ = 0; may be inf.
    epsilon_lower, delta_lower : float
        Smallest ε at the δ of the point, and smallest δ at the ε of the point.
    probabilistic_delta : float
        Smallest δ of probabilistic DP at the ε of the point.
    event : ExactEvent or None
        An event that decides whether the claim holds; None if both laws are equal.
    law : tuple of tuples
        Each outcome in words, its probability under d1, and its probability under d2.
    warnings, adjacency, notes : tuple of str, str or None, tuple of str
        As in `Certificate`.

    Notes
    -----
    The result is true of this pair if the mechanism draws from the laws that it states
    (docs/method.md §10).
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
