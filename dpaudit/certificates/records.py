"""Define the records that a certificate contains: counts, bets, tests and remarks.

Terms: d1 and d2 are the two inputs, P and Q the distributions of the output for them, and an event
E is a set of outputs. A draw is one output together with its input. A level is a bin of outputs
(docs/method.md §3). A rule guesses the input of a draw from its level: d1 (1), d2 (-1), or no guess
(0). A tally counts draws by level and input. A point of a claim is the inequality P(E) ≤ e^ε Q(E) +
δ for one (ε, δ).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dpaudit.claims import ProfilePoint
from dpaudit.stats.witness import Witness

Guess = Literal["d1", "d2"]
Stage = Literal["learning", "certification", "confirmation", "recorded"]
FixedStage = Literal["certification", "confirmation", "recorded", "betting", "interrupted"]
Method = Literal["game", "clopper-pearson", "probabilistic"]
RuleKind = Literal["main", "rare", "other"]


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
class Block:
    """A block of consecutive draws. The bettors' wealth is computed at its end.

    Attributes
    ----------
    stage : {'learning', 'certification', 'confirmation', 'recorded'}
        Purpose of the draws.
    round : int or None
        Index into `Certificate.rounds` of the beliefs with which the bettors bet on this block.
        None if nothing was bet: before the bettors first learned, and after the end of betting.
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
    """The bettors' beliefs, which hold until the bettors learn from draws again.

    Attributes
    ----------
    posteriors : tuple of tuples of float
        For each bettor and each level (bin of outputs), the estimated probability that a draw at
        this level has the input d1.
    rules : tuple of tuples of int
        For each rule and each level, the guess: d1 (1), d2 (-1) or none (0).
    early : bool
        Whether the run bets from its first draws on. If so, the initial wealth is divided
        differently among the bettors (docs/method.md §4).
    """

    posteriors: tuple[tuple[float, ...], ...]
    rules: tuple[tuple[int, ...], ...]
    early: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """Settings that, together with the budget and the counts, determine the size of every block
    (group of consecutive draws).

    Attributes
    ----------
    learned : int
        Largest number of draws whose outputs are kept in memory to learn from.
    block : int
        Largest number of draws that a worker process keeps in memory before it counts them.
    by_clock : bool
        Whether a time limit determined the budget, from the speed of the draws to learn from.
    full : bool
        Whether the user asked the run to continue to its planned end after a refutation.
    counted : int
        Number of draws from which the audit learned only by counting them, in addition to the draws
        that are kept.
    confirming : int
        Least number of draws of a confirmation (a test on new draws after an early refutation by
        bets). If fewer are left in the budget, it uses these.
    bets : bool
        Whether a refutation by bets ends the run without a confirmation (docs/method.md §4).
    """

    learned: int
    block: int
    by_clock: bool
    full: bool
    counted: int
    confirming: int
    bets: bool = False


@dataclass(frozen=True, slots=True)
class FixedTest:
    """The exact test of one rule, on draws that were not used before.

    Attributes
    ----------
    stage : {'certification', 'confirmation', 'recorded', 'betting', 'interrupted'}
        The draws of the test. 'certification': all draws reserved for it, up to the planned end.
        'confirmation': a new block of draws after an early refutation by bets. 'recorded': a random
        part of recorded outputs. 'betting': no test was made, since bets ended the run; the counts
        only illustrate an event, on draws made after the event was chosen. 'interrupted': no test
        was made, since the run was interrupted before its planned end.
    method : {'game', 'clopper-pearson', 'probabilistic'}
        Method that turns counts into a bound (docs/method.md §2 and §7).
    alpha : float
        Error probability of this test.
    draws, correct, wrong : int
        Number of draws of both inputs, number of right guesses, and number of wrong guesses.
    two_guesses : bool
        Whether the rule guesses d1 for some outputs and d2 for others (h = 1 in docs/method.md), or
        only one of the two (h = ½).
    events : tuple of EventCount
        One or two events: the outputs for which the rule guesses d1, and those for which it guesses
        d2. For the probabilistic definition, one event for each certified output.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the claimed δ, and for δ at the claimed ε; each valid with probability
        at least 1 - alpha.
    p_value : float
        p-value of the claim by this test alone.
    detectable_epsilon : float
        If the true ε were at least this number and the leak showed in the event, the test would
        have refuted the claim with probability 0.9; inf if no ε is large enough (docs/method.md
        §8).
    accused : tuple of tuples
        For the probabilistic definition, one entry for each single output that was tested: its
        description, the input that is expected to give it more often, and its numbers of draws of
        d1 and of d2. Empty for other definitions.
    kind : {'main', 'rare', 'other'}
        Kind of the rule. 'main': the rule with the largest predicted bound. 'rare': a rule about
        outputs that only one input gave in the draws to learn from. 'other': the best rule of
        another kind of attack (docs/method.md §4).
    share : float
        The rule's share of the error probability that all exact tests have together, in (0, 1]. It
        was fixed before the draws. The shares of all rules add up to 1.
    attack : str
        Attack that found the rule.
    guesses : tuple of int
        Guess at each level (bin of outputs): d1 (1), d2 (-1) or none (0).
    point : ProfilePoint or None
        Point (ε, δ) of the claim that the rule tests; None for the point that the bets were made
        against.
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
        """Whether this test alone, at its own error probability, refutes the claim."""
        return self.p_value <= self.alpha

    @property
    def h(self) -> float:
        """Factor of δ in the test: 1 if the rule can guess both inputs, else ½ (`stats.game`)."""
        return 1.0 if self.two_guesses else 0.5

    @property
    def guesses_by_input(self) -> tuple[int, int]:
        """Numbers of guesses of d1 and of d2."""
        of_d1 = [one.count_d1 + one.count_d2 for one in self.events if one.guess == "d1"]
        of_d2 = [one.count_d1 + one.count_d2 for one in self.events if one.guess == "d2"]
        every = self.correct + self.wrong
        return (sum(of_d1), every - sum(of_d1)) if of_d1 else (every - sum(of_d2), sum(of_d2))


@dataclass(frozen=True, slots=True)
class DivergenceTest:
    """The test of the claimed bound on a Rényi divergence. It uses the same draws as the exact test
    (`FixedTest`).

    Attributes
    ----------
    witness : Witness
        A function that assigns a number to each level (bin of outputs). It was fixed before these
        draws. The bound is computed from its means under d1 and under d2.
    alpha : float
        Error probability of this test.
    allowed : float
        Largest divergence that the claim allows, in nats.
    lower : float
        Lower bound for the divergence, in nats; valid with probability at least 1 - alpha.
    p_value : float
        p-value of the claim by this test alone.

    Notes
    -----
    The test is described in docs/method.md §6.
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
        A function that assigns a number to each level (bin of outputs), and the stakes of its bets.
        Both were fixed before the draws that it bets on.
    share : float
        Share of the initial wealth that this witness bets. The shares of all witnesses add up to at
        most 1.
    counts : tuple of pairs of int
        Number of draws of d1 and of d2 at each level, from the first to the last bet of this
        witness.
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
        Error probability of these bets, equal to `Betting.alpha_betting`.
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
    """Counts of draws of the exact test whose outputs are new, so that no rule has learned them.

    An output is new if it has a value or a label that no draw to learn from had, or an entry at a
    place (such as an index of a list) where no draw to learn from had one. In a column of numbers
    that almost never repeat, a number is new only if it is smaller or larger than all numbers of
    the draws to learn from.

    Attributes
    ----------
    count_d1, count_d2 : int
        Number of draws of d1, and of d2, with new outputs.
    delta : float
        Largest δ of a leak that new outputs can hide. It is the larger of the Clopper-Pearson upper
        bounds for the probability of a new output under d1 and under d2, valid with probability at
        least 1 - `Certificate.alpha`.
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
        Ends of the interval. Both are valid with probability at least 1 - `Certificate.alpha`
        (docs/method.md §10). `upper` may be inf.
    atoms : tuple of tuples
        For each declared output: its description, and its numbers of certification draws of d1 and
        of d2.
    """

    lower: float
    upper: float
    atoms: tuple[tuple[str, int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first exception of one type that the mechanism raised.

    Attributes
    ----------
    message, where : str
        Message of the exception, and the file and line that raised it, such as `mine.py:12`.
        `where` is "" if the line is unknown: after a crash, or for a program in another language.
    """

    message: str
    where: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Facts about recorded outputs, which were not drawn by dpaudit.

    Attributes
    ----------
    draws_d1, draws_d2 : int
        Number of recorded outputs for d1, and for d2.
    coin_flipped : bool
        Whether the toss of a fair coin chose the input of each draw. If not, the two numbers count
        as fixed beforehand.
    """

    draws_d1: int
    draws_d2: int
    coin_flipped: bool


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A comparison of draws made by new processes with draws of the audit, after a refutation.

    Attributes
    ----------
    processes, draws : int
        Number of new processes, and total number of their draws; both are 0 if no comparison was
        made.
    note : str
        Reason why there were fewer than eight processes; "" if there were eight, or four because
        the mechanism takes long to import.
    """

    processes: int
    draws: int
    note: str = ""
