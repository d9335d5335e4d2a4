"""What came out of an audit: frozen values, complete enough to be checked by somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from dpaudit.certificates.exact_certificate import ExactCertificate
from dpaudit.certificates.one_run_certificate import OneRunCertificate
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.levels.tried import ScoreDistributions, Tried

Guess = Literal["d1", "d2"]
Stage = Literal["learning", "certification", "confirmation", "recorded"]
FixedStage = Literal["certification", "confirmation", "recorded"]
Method = Literal["game", "clopper-pearson", "probabilistic"]


class Verdict(Enum):
    """What an audit says: one of three things, and none says that something is private.

    Attributes
    ----------
    VIOLATION : Verdict
        The claim is refuted on one of the pairs of inputs, at least.
    NO_VIOLATION_FOUND : Verdict
        The draws do not refute the claim. Rarer events, other inputs or more draws still may.
    ERROR : Verdict
        The audit could not be carried out, or its draws mean nothing; `AuditResult.error` says why.

    Notes
    -----
    A mechanism that satisfies the claim gets VIOLATION with probability at most 1 - confidence
    (docs/method.md §1 and §4).
    """

    VIOLATION = "VIOLATION"
    NO_VIOLATION_FOUND = "NO VIOLATION FOUND"
    ERROR = "ERROR"


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
    learned : int
        Draws to learn from, at most.
    block : int
        Draws of which a worker holds the outcomes.
    by_clock : bool
        Whether the budget was planned by the clock while learning.
    full : bool
        Whether the run was to go on to its planned end after a refutation.
    """

    learned: int
    block: int
    by_clock: bool
    full: bool


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
    draws : int
        Certification draws, of both inputs.
    correct, wrong : int
        Guesses of the game.
    two_guesses : bool
        Whether the rule can guess both inputs (h = 1) or only one (h = ½).
    events : tuple of EventCount
        One or two events; for the probabilistic definition, the certified atoms.
    epsilon_lower : float
        Lower bound for ε at the claimed δ, valid at 1 - alpha.
    delta_lower : float
        Lower bound for δ at the claimed ε, valid at 1 - alpha.
    p_value : float
        Of the claim, by this test alone.
    detectable_epsilon : float
        The smallest true ε that this test would have refuted with probability 0.9, had the leak
        been visible to its event; inf when no ε would (docs/method.md §8).
    accused : tuple of tuples
        For the probabilistic definition, every atom that was to be certified: its words, the input
        it is evidence for, and its draws of d1 and of d2.
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


@dataclass(frozen=True, slots=True)
class EpsilonInterval:
    """An interval for the pair's smallest ε at δ = 0, where all outputs were declared.

    Attributes
    ----------
    lower, upper : float
        The ends, together valid at 1 - `Certificate.alpha`; upper is inf when nothing bounds ε.
    atoms : tuple of tuples
        Every declared output in words, and its certification draws of d1 and of d2.

    Notes
    -----
    docs/method.md §10.
    """

    lower: float
    upper: float
    atoms: tuple[tuple[str, int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first exception of a kind.

    Attributes
    ----------
    message : str
        Its message.
    where : str
        Where it was raised, as `mine.py:12`; empty where that is not known (a crash, or a program
        in another language).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What follows from the evidence of one pair (`certificates.evidence`); the fields of
    `Certificate` with the same names."""

    refuted: bool
    draws: int
    alpha: float
    alpha_betting: float
    wealth: float
    epsilon_betting: float
    epsilon_lower: float
    delta_lower: float
    p_value: float
    fixed: FixedTest


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome for one pair of inputs: the numbers, what they follow from, and remarks.

    Attributes
    ----------
    pair : str
        The pair in words.
    point : ProfilePoint
        The inequality that was tested, one of those that the claim implies.
    refuted : bool
        Whether the claim was refuted on this pair.
    attack : str
        What found the event, in words.
    draws : int
        All draws made, for both inputs.
    budget : int
        All draws allowed.
    refuted_after : int or None
        Draws when betting refuted the claim.
    alpha : float
        Error probability of this pair.
    alpha_betting : float
        The share of betting.
    wealth : float
        The smallest, over the claimed ε and every smaller one of the grid, of the largest wealth at
        a recorded look. Betting refutes when it is at least 1 / alpha_betting.
    epsilon_betting : float
        Lower bound for ε that betting gives, valid at 1 - alpha_betting at every moment.
    epsilon_lower : float
        Lower bound for ε at the δ of the point, the better of epsilon_betting and
        fixed.epsilon_lower; valid at 1 - alpha.
    delta_lower : float
        Lower bound for δ at the ε of the point, valid at 1 - alpha.
    p_value : float
        Of the claim, by betting and the exact test together.
    fixed : FixedTest
        The exact test.
    failures : mapping of str to pair of int
        Outcomes that were exceptions: draws of d1 and of d2, by kind.
    reproducible : bool
        Whether equal seeds gave equal outcomes; `warnings` says so when they did not.
    rounds : tuple of Round
        What the bettors believed, one entry for each time they learned.
    blocks : tuple of Block
        The tallies of all draws, in order.
    guesses : tuple of int
        The rule of the exact test: a guess of d1 (1), of d2 (-1), or none (0), by level.
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
        What is worth knowing about the pair, and no reason for doubt.

    Notes
    -----
    The bounds and the p-value follow from what is recorded here; `dpaudit report` computes them
    again (docs/method.md §2 to §4).
    """

    pair: str
    point: ProfilePoint
    refuted: bool
    attack: str
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
    guesses: tuple[int, ...] = field(repr=False)
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


@dataclass(frozen=True, slots=True)
class Repeated:
    """Independent runs on the same input that make up one output.

    Attributes
    ----------
    times : int
        How many.
    claim : PrivacyClaim
        The claim for one of them; `AuditResult.claim` is what follows for all.
    """

    times: int
    claim: PrivacyClaim


AnyCertificate = Certificate | ExactCertificate | OneRunCertificate


@dataclass(frozen=True, slots=True)
class Sampled:
    """An audit that drew from a mechanism.

    Attributes
    ----------
    certificates : tuple of Certificate
        One for each pair, at least one.
    """

    certificates: tuple[Certificate, ...]

    @property
    def deciding(self) -> Certificate:
        """The certificate with the smallest p-value."""
        return min(self.certificates, key=lambda one: one.p_value)

    @property
    def p_value(self) -> float:
        """Of the claim on all pairs (Bonferroni)."""
        return min(1.0, len(self.certificates) * self.deciding.p_value)


@dataclass(frozen=True, slots=True)
class Recorded(Sampled):
    """An audit of recorded outputs.

    Attributes
    ----------
    certificates : tuple of Certificate
        A single one.
    """


@dataclass(frozen=True, slots=True)
class Exact:
    """An audit of stated laws, which draws nothing.

    Attributes
    ----------
    certificates : tuple of ExactCertificate
        One for each pair, at least one.
    """

    certificates: tuple[ExactCertificate, ...]

    @property
    def deciding(self) -> ExactCertificate:
        """The pair that is refuted, or has the largest ε."""
        return max(self.certificates, key=lambda one: (one.refuted, one.epsilon_lower))

    @property
    def p_value(self) -> float:
        """0 when the claim fails and 1 when it does not: chance has no part in it."""
        return 0.0 if self.deciding.refuted else 1.0


@dataclass(frozen=True, slots=True)
class Canaries:
    """An audit of guesses about the canaries of one run.

    Attributes
    ----------
    certificates : tuple of OneRunCertificate
        A single one.
    """

    certificates: tuple[OneRunCertificate]

    @property
    def deciding(self) -> OneRunCertificate:
        return self.certificates[0]

    @property
    def p_value(self) -> float:
        return self.deciding.p_value


@dataclass(frozen=True, slots=True)
class Failed:
    """An audit that did not come to its end.

    Attributes
    ----------
    error : str
        Why.
    certificates : tuple of Certificate
        Of the pairs that were finished before.
    """

    error: str
    certificates: tuple[Certificate, ...] = ()

    @property
    def deciding(self) -> Certificate | None:
        """The certificate with the smallest p-value; None when no pair was finished."""
        return min(self.certificates, key=lambda one: one.p_value, default=None)

    @property
    def p_value(self) -> float:
        return 1.0 if self.deciding is None else Sampled(self.certificates).p_value


# What an audit can end in.
Ending = Sampled | Recorded | Exact | Canaries | Failed


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of one audit.

    Attributes
    ----------
    name : str
        How reports call the audit.
    claim : PrivacyClaim
        What was put to the test.
    target : str
        What drew, in words.
    confidence : float
        1 minus the probability of a false alarm, in (0, 1).
    seed : int
        The root of all randomness.
    ending : Sampled, Recorded, Exact, Canaries or Failed
        What it ended in. Verdict, bounds and p-value follow from it.
    seconds : float
        Wall time.
    versions : mapping of str to str
        Of dpaudit, numpy, scipy and Python, and of scikit-learn where it may have been used.
    expect : {'violation', 'pass'} or None
        The verdict that was expected.
    warnings : tuple of str
        What is to be known about the run as a whole.
    repeated : Repeated or None
        Where an output is several runs; `claim` is then for all of them.
    request : mapping of str to Any, or None
        The settings that the audit was built from, and the folder that relative files are looked
        for in, so that it can be run again; None where they are not plain values.
    underpowered : str or None
        Why the audit could not have refuted its claim, whatever the mechanism does, and the remedy;
        None when it could, or where that is allowed.
    resumed : int
        How many runs with the same journal there were before the one that ended it.
    source : str or None
        File and line of the mechanism's code, as `mine.py:12`, where they are known.
    command : str or None
        The command line that runs the audit again, where it came from one.

    Notes
    -----
    Of a mechanism that satisfies the claim on all pairs, the verdict is VIOLATION with probability
    at most 1 - confidence (docs/method.md §4). Equal seeds are no further evidence (§9).
    """

    name: str
    claim: PrivacyClaim
    target: str
    confidence: float
    seed: int
    ending: Ending
    seconds: float
    versions: Mapping[str, str]
    expect: Literal["violation", "pass"] | None = None
    warnings: tuple[str, ...] = ()
    repeated: Repeated | None = None
    request: Mapping[str, Any] | None = field(default=None, repr=False)
    underpowered: str | None = None
    resumed: int = 0
    source: str | None = None
    command: str | None = None

    @property
    def verdict(self) -> Verdict:
        """What the audit says."""
        if isinstance(self.ending, Failed):
            return Verdict.ERROR
        refuted = any(one.refuted for one in self.ending.certificates)
        return Verdict.VIOLATION if refuted else Verdict.NO_VIOLATION_FOUND

    @property
    def error(self) -> str | None:
        """Why the verdict is ERROR; None when it is another one."""
        return self.ending.error if isinstance(self.ending, Failed) else None

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Of every pair that was drawn for; none where nothing was drawn."""
        return self.ending.certificates if isinstance(self.ending, Sampled | Failed) else ()

    @property
    def by_pair(self) -> tuple[AnyCertificate, ...]:
        """The certificates, of whichever kind they are."""
        return self.ending.certificates

    @property
    def decisive(self) -> AnyCertificate | None:
        """The certificate that decides; None when no pair was finished."""
        return self.ending.deciding

    @property
    def point(self) -> ProfilePoint:
        """The inequality that the decisive pair tested; the claim's own before there is one."""
        return self.claim.point() if self.decisive is None else self.decisive.point

    @property
    def _comparable(self) -> list[AnyCertificate]:
        """The pairs that tested the same inequality as the decisive one, usually all."""
        return [one for one in self.by_pair if one.point == self.point]

    @property
    def p_value(self) -> float:
        """Of the claim on all pairs; 1 when no pair was finished."""
        return self.ending.p_value

    @property
    def epsilon_lower(self) -> float:
        """The best lower bound over the pairs for ε at the δ of `point`, valid at `confidence`."""
        return max((one.epsilon_lower for one in self._comparable), default=0.0)

    @property
    def delta_lower(self) -> float:
        """The best lower bound over the pairs for δ at the ε of `point`, valid at `confidence`."""
        return max((one.delta_lower for one in self._comparable), default=0.0)

    @property
    def draws(self) -> int:
        """Draws made over all pairs, both arms."""
        return sum(one.draws for one in self.certificates)

    @property
    def meets_expectation(self) -> bool:
        """Whether `expect` was met; True when nothing was expected and no violation found."""
        wanted = Verdict.VIOLATION if self.expect == "violation" else Verdict.NO_VIOLATION_FOUND
        return self.verdict is wanted


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a running audit, for a progress display.

    Attributes
    ----------
    name : str
        How reports call the audit.
    pair : str
        The pair of inputs, in words.
    draws : int
        Draws made for this pair, of both inputs.
    budget : int
        All draws allowed for it.
    rate : float
        Draws a second.
    wealth : float
        The wealth of the bettors, as it stands.
    epsilon_lower : float
        The lower bound for ε that betting gives, as it stands.
    remaining : float
        Seconds left at this rate.

    Notes
    -----
    The bound is valid at every moment (docs/method.md §4).
    """

    name: str
    pair: str
    draws: int
    budget: int
    rate: float
    wealth: float
    epsilon_lower: float
    remaining: float
