"""What one pair of inputs has shown: frozen values, complete enough to be checked by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dpaudit.claims import ProfilePoint
from dpaudit.levels.portfolio import ScoreDistributions, Tried
from dpaudit.stats.witness import Witness

Guess = Literal["d1", "d2"]
Stage = Literal["learning", "certification", "confirmation", "recorded"]
FixedStage = Literal["certification", "confirmation", "recorded"]
Method = Literal["game", "clopper-pearson", "probabilistic"]
RuleKind = Literal["main", "rare", "other"]


@dataclass(frozen=True, slots=True)
class EventCount:
    """How often one fixed event happened on draws that had no part in choosing it.

    Attributes
    ----------
    words : str
        The event, e.g. `output ≤ 0.13`.
    guess : {'d1', 'd2'}
        The input that the event is evidence for.
    count_d1, count_d2 : int
        Draws in the event, by input.
    draws_d1, draws_d2 : int
        All draws, by input.
    interval_d1, interval_d2 : tuple of float
        Two-sided Clopper-Pearson intervals of P(E) and Q(E), each at the confidence of the audit.
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
    """Draws between two looks.

    Attributes
    ----------
    stage : {'learning', 'certification', 'confirmation', 'recorded'}
        What the draws were for.
    round : int or None
        The index into `Certificate.rounds` of what was bet on this block. None: nothing was bet,
        since the block came before anything had been learned, or after the betting had ended.
    draws : int
        How many there are.
    tally : tuple of pairs of int
        Draws of d1 and of d2, by level.
    """

    stage: Stage
    round: int | None
    draws: int
    tally: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """What the bettors believed from one time they learned to the next.

    Attributes
    ----------
    posteriors : tuple of tuples of float
        Estimated Pr[d1 | level], by bettor and level.
    rules : tuple of tuples of int
        A guess of d1 (1), of d2 (-1), or none (0), by rule and level.
    """

    posteriors: tuple[tuple[float, ...], ...]
    rules: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the sizes of blocks follow from, beside the budget and the tallies.

    Attributes
    ----------
    learned, block : int
        Draws to keep and learn from, at most, and draws of which a worker holds the outcomes.
    by_clock, full : bool
        Whether the budget was planned by the clock while learning; whether the run was to go on to
        its planned end after a refutation.
    counted : int
        Draws beyond those that are kept, which were counted to learn from. None in older files.
    confirming : int
        Draws of a confirmation, at least, within the budget; 1,000 in files that do not say.
    """

    learned: int
    block: int
    by_clock: bool
    full: bool
    counted: int = 0
    confirming: int = 1_000


@dataclass(frozen=True, slots=True)
class FixedTest:
    """The exact bound on one fixed event, from draws that nothing had looked at before.

    Attributes
    ----------
    stage : {'certification', 'confirmation', 'recorded'}
        All draws kept for the test, up to the planned end; a fresh block after an early refutation;
        or a random part of recorded outputs.
    method : {'game', 'clopper-pearson', 'probabilistic'}
        How counts became a bound (docs/method.md §2 and §7).
    alpha : float
        The share of the error probability that this test spends.
    draws, correct, wrong : int
        Certification draws, of both inputs; right and wrong guesses of the game.
    two_guesses : bool
        Whether the rule can guess both inputs (h = 1) or only one (h = ½).
    events : tuple of EventCount
        One or two events; for the probabilistic definition, the certified atoms.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the claimed δ and for δ at the claimed ε, each valid at 1 - alpha.
    p_value : float
        Of the claim, by this test alone.
    detectable_epsilon : float
        The smallest true ε that this test would have refuted with probability 0.9, had the leak
        been visible to its event; inf when no ε would (docs/method.md §8).
    accused : tuple of tuples
        For the probabilistic definition, every atom that was to be certified: its words, the input
        it is evidence for, and its draws of d1 and of d2.
    kind : {'main', 'rare', 'other'}
        The rule of the portfolio that was tested: the one with the largest predicted bound; outputs
        that one input alone gave while learning; or the best rule of another kind (docs/method.md
        §2).
    share : float
        The part of the exact test's error probability that the rule got when the portfolio was
        frozen, in (0, 1]. The shares of all rules add up to 1.
    attack : str
        The attack that found the rule.
    guesses : tuple of int
        The rule: a guess of d1 (1), of d2 (-1), or none (0), by level.
    point : ProfilePoint or None
        The inequality that the rule tests. None: the one that was bet against.
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
        """Whether this test refutes the claim by itself, at its own share."""
        return self.p_value <= self.alpha


@dataclass(frozen=True, slots=True)
class DivergenceTest:
    """The lower bound of a Rényi divergence, from the draws of the exact test.

    Attributes
    ----------
    witness : Witness
        What was fixed before these draws: order, direction, a number for every level, stakes.
    alpha : float
        The share of the error probability that this test spends.
    allowed : float
        The most that the claim allows the divergence to be, in nats.
    lower : float
        The lower bound, in nats, valid at 1 - alpha.
    p_value : float
        Of the claim, by this test alone.

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
class Unseen:
    """Draws of the exact test with anything that no draw to learn from had: a value, a label, an
    entry at a place that had none; of numbers that hardly ever repeat, one beyond all others. No
    rule could learn of them.

    Attributes
    ----------
    count_d1, count_d2 : int
        How many there were, by input.
    delta : float
        The largest δ that such outputs can hide, valid at 1 - `Certificate.alpha`: the larger one
        of two Clopper-Pearson upper bounds of their probability, by input.
    ranges : bool
        Whether somewhere in the outputs numbers hardly ever repeat, so that only those beyond all
        others count.
    """

    count_d1: int
    count_d2: int
    delta: float
    ranges: bool


@dataclass(frozen=True, slots=True)
class EpsilonInterval:
    """An interval for the pair's smallest ε at δ = 0, where all outputs were declared.

    Attributes
    ----------
    lower, upper : float
        The ends, together valid at 1 - `Certificate.alpha` (docs/method.md §10); upper is inf when
        nothing bounds ε.
    atoms : tuple of tuples
        Every declared output in words, and its certification draws of d1 and of d2.
    """

    lower: float
    upper: float
    atoms: tuple[tuple[str, int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first exception of a kind.

    Attributes
    ----------
    message, where : str
        What it said, and where it was raised, as `mine.py:12`; empty where that is not known (a
        crash, or a program in another language).
    """

    message: str
    where: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Draws that were made elsewhere.

    Attributes
    ----------
    draws_d1, draws_d2 : int
        How many there were, by input.
    coin_flipped : bool
        Whether fair coins had picked the input of every draw, or the numbers were fixed.
    """

    draws_d1: int
    draws_d2: int
    coin_flipped: bool


@dataclass(frozen=True, slots=True)
class Redrawn:
    """New processes that drew as the first one did, after a refutation.

    Attributes
    ----------
    processes, draws : int
        How many new processes were compared, and their draws together.
    note : str
        Why none was compared, or fewer than eight; otherwise the empty text.
    """

    processes: int
    draws: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome for one pair of inputs: the numbers, what they follow from, and remarks.

    Attributes
    ----------
    pair : str
        The pair in words.
    point : ProfilePoint
        The inequality that the rule shown tests, one of those that the claim implies.
    refuted : bool
        Whether the claim was refuted on this pair.
    draws, budget : int
        All draws made, for both inputs, and all that were allowed.
    refuted_after : int or None
        Draws when betting refuted the claim.
    alpha, alpha_betting : float
        Error probability of this pair, and the share of it that betting spends.
    wealth : float
        The smallest, over the claimed ε and every smaller one of the grid, of the largest wealth at
        a recorded look. Betting refutes when it is at least 1 / alpha_betting.
    epsilon_betting : float
        Lower bound for ε that betting gives, valid at 1 - alpha_betting at every moment.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the δ of the point, the best of epsilon_betting and the bounds of all
        rules, and for δ at the ε of the point; each valid at 1 - alpha.
    p_value : float
        Of the claim, by betting and the exact test together.
    fixed : FixedTest
        The exact test of the rule with the best bound at its own share.
    failures : mapping of str to pair of int
        Outcomes that were exceptions: draws of d1 and of d2, by kind.
    reproducible : bool
        Whether equal seeds gave equal outcomes; a note says so when they did not, or a warning
        where calls have changed variables of the mechanism, too.
    rounds : tuple of Round
        What the bettors believed, one entry for each time they learned.
    blocks : tuple of Block
        The tallies of all draws, in order.
    warnings : tuple of str
        Reasons for doubt.
    interval : EpsilonInterval or None
        For ε, where the range of outputs was declared and the run came to its planned end.
    recording : Recording or None
        For recorded outputs, on which nothing is bet (alpha_betting is 0, wealth 1).
    ignored : tuple of str
        What outputs had that no attack looked at, and how to have it looked at.
    attacks : tuple of Tried
        The attacks that were considered for the exact test, and what they promised.
    scores : ScoreDistributions or None
        How the score that the exact test is about fell on selection draws, if it is about one.
    schedule : Schedule or None
        What the blocks must follow; None for recorded draws, and for a file of an older format.
    first_failures : mapping of str to FirstFailure
        The first exception of each kind.
    adjacency : str or None
        The relation of the inputs that was stated, `not stated`, or None for draws that were made
        elsewhere.
    notes : tuple of str
        What is worth knowing about the pair and its draws, and no reason for doubt.
    divergence : DivergenceTest or None
        For Rényi and zero-concentrated DP, where a divergence promised to show anything.
    unseen : Unseen or None
        Of the draws of the exact test, where the run came to its planned end. None as well for
        outputs of more columns than are looked at one by one, and in older files.
    others : tuple of FixedTest
        The exact tests of the other rules of the portfolio, on the same draws.
    detectable_rare : float or None
        The smallest probability of an output that only one input gives which this run would have
        refuted with probability 0.9 (docs/method.md §8); inf when it could not. The output is one
        value, label, key, length or exception, which repeats. None after a
        confirmation, for the probabilistic definition and `clopper-pearson`, and in older files.
    bet_against : ProfilePoint or None
        The inequality that was bet against, where that is another one than `point`.
    redrawn : Redrawn or None
        The comparison with new processes after a refutation. None: nothing was refuted, or a Python
        program audits a callable (docs/guides/mechanism.md).

    Notes
    -----
    The bounds and the p-value follow from what is recorded here; `dpaudit report` computes them
    again (docs/method.md §2 to §4).
    """

    pair: str
    point: ProfilePoint
    refuted: bool
    draws: int
    budget: int
    refuted_after: int | None
    alpha: float
    alpha_betting: float
    wealth: float
    epsilon_betting: float
    epsilon_lower: float
    delta_lower: float
    p_value: float
    fixed: FixedTest
    failures: Mapping[str, tuple[int, int]]
    reproducible: bool
    rounds: tuple[Round, ...] = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()
    interval: EpsilonInterval | None = None
    recording: Recording | None = None
    ignored: tuple[str, ...] = ()
    attacks: tuple[Tried, ...] = field(default=(), repr=False)
    scores: ScoreDistributions | None = field(default=None, repr=False)
    schedule: Schedule | None = None
    first_failures: Mapping[str, FirstFailure] = field(default_factory=dict)
    adjacency: str | None = None
    notes: tuple[str, ...] = ()
    divergence: DivergenceTest | None = None
    unseen: Unseen | None = None
    others: tuple[FixedTest, ...] = field(default=(), repr=False)
    detectable_rare: float | None = None
    bet_against: ProfilePoint | None = None
    # How many processes there was time for is no part of what was found.
    redrawn: Redrawn | None = field(default=None, compare=False)

    @property
    def betting_point(self) -> ProfilePoint:
        """The inequality that was bet against."""
        return self.bet_against or self.point

    @property
    def attack(self) -> str:
        """The attack that found the rule that is shown."""
        return self.fixed.attack

    @property
    def guesses(self) -> tuple[int, ...]:
        """The guesses of the rule that is shown, by level."""
        return self.fixed.guesses

    @property
    def rules(self) -> tuple[FixedTest, ...]:
        """The exact tests of all rules, the main one first."""
        order = ("main", "rare", "other")
        return tuple(sorted((self.fixed, *self.others), key=lambda one: order.index(one.kind)))
