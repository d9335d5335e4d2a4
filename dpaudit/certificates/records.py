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
FixedStage = Literal["certification", "confirmation", "recorded", "betting"]
Method = Literal["game", "clopper-pearson", "probabilistic"]
RuleKind = Literal["main", "rare", "other"]


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
        """Whether this test alone, at its own error probability, refutes the claim."""
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
