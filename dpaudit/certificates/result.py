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
    """The only three things that an audit says. None of them says that something is private."""

    VIOLATION = "VIOLATION"
    NO_VIOLATION_FOUND = "NO VIOLATION FOUND"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class EventCount:
    """How often one fixed event happened on draws that had no part in choosing it.

    words: the event, e.g. `output ≤ 0.13`.  guess: the input that the event is evidence for.
    count_d1, count_d2: draws in the event, by arm, of draws_d1 and draws_d2.
    interval_d1, interval_d2: two-sided Clopper-Pearson intervals of P(E) and Q(E), each at the
        confidence of the audit.
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
    """Draws between two looks: `tally[level] = (draws of d1, draws of d2)`.

    round: the index into `Certificate.rounds` of what was bet on this block (None: nothing was,
    the block came before anything had been learned or after the betting had ended).
    """

    stage: Stage
    round: int | None
    draws: int
    tally: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """What the bettors believed from one time they learned to the next.

    posteriors: by bettor and level, estimated Pr[d1 | level].  rules: by rule and level, a guess of
    d1 (1) or d2 (-1), or none (0).
    """

    posteriors: tuple[tuple[float, ...], ...]
    rules: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the sizes of blocks follow from, beside the budget and the tallies.

    learned: draws to learn from, at most.  block: draws of which a worker holds the outcomes.
    by_clock: whether the budget was planned by the clock while learning.  full: whether the run was
    to go on to its planned end after a refutation.
    """

    learned: int
    block: int
    by_clock: bool
    full: bool


@dataclass(frozen=True, slots=True)
class FixedTest:
    """The exact bound on one fixed event, from draws that nothing had looked at before.

    stage: `certification` (all draws kept for it, up to the planned end), `confirmation` (a
        fresh block after an early refutation) or `recorded` (a random part of draws made
        elsewhere).
    alpha: the share of the error probability that this test spends.
    method: `game`, `clopper-pearson` or `probabilistic`.
    draws: certification draws.  correct, wrong: guesses of the game (docs/method.md §2).
    two_guesses: whether the rule can guess both inputs (h = 1) or only one (h = ½).
    events: one or two events; for the probabilistic definition, the certified atoms.
    accused: for the probabilistic definition, every atom that was to be certified: its words, the
        input it is evidence for, and its draws of d1 and of d2.
    epsilon_lower: lower bound for ε at the claimed δ, at 1 - alpha; delta_lower: for δ at the
        claimed ε.  p_value: of the claim, this test alone.
    detectable_epsilon: the smallest true ε that this test would have refuted with probability
        0.9, had the leak been visible to its event; inf when no ε would.
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
    """For a declared finite range: an interval for the pair's smallest ε at δ = 0, both ends
    together valid at 1 - `Certificate.alpha`; `upper` is inf when nothing bounds it.

    atoms: every declared output in words, and its certification draws of d1 and of d2.
    """

    lower: float
    upper: float
    atoms: tuple[tuple[str, int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first exception of a kind: its message, and where it was raised, as `mine.py:12`, or
    nothing where that is not known (a crash, or a program in another language)."""

    message: str
    where: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Draws that were made elsewhere: how many of each input there were, and whether fair coins
    had picked the input of every draw, or the numbers were fixed."""

    draws_d1: int
    draws_d2: int
    coin_flipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What follows from the evidence of one pair (`certificates.evidence`).

    draws: all draws made, for both inputs.
    alpha: error probability of this pair; alpha_betting: the share of betting.
    wealth: against the claim and every smaller ε of the grid the largest wealth at a recorded
        look, and of these the smallest (betting refutes when it is ≥ 1 / alpha_betting).
    epsilon_betting: the bound that betting gives at alpha_betting.
    epsilon_lower: the better of epsilon_betting and fixed.epsilon_lower, for the δ of the point;
        valid at 1 - alpha.
    delta_lower: lower bound for δ at the ε of the point.
    p_value: of the claim, over betting and the fixed test together.
    """

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
    """The outcome for one pair of inputs: its `Numbers`, what they follow from, and remarks.

    pair: the pair in words.  attack: what found the event, in words.
    point: the inequality that was tested, one of those that the claim implies.
    budget: all draws allowed.
    refuted_after: draws when betting refuted the claim, or None.
    failures: outcomes that were exceptions: kind -> (draws of d1, draws of d2). first_failures:
        the first one of each kind.
    adjacency: the relation of the inputs that was stated, `not stated`, or None for draws that were
        made elsewhere. notes: what is worth knowing about the pair, and no reason for doubt.
    interval: for ε, where the range of outputs was declared and the run came to its planned end.
    ignored: what outputs had that no attack looked at, and how to have it looked at.
    attacks: those that were considered for the exact test, and what they promised. scores: how the
        score that it is about fell on selection draws, if it is about one.
    recording: for draws made elsewhere, on which nothing is bet (alpha_betting is 0, wealth 1).
    schedule: what the blocks must follow (None: recorded draws, or a file of an older format).
    reproducible: whether equal seeds gave equal outcomes; `warnings` says so when they did not.
    rounds: what the bettors believed, one entry for each time they learned. guesses: the rule of
        the exact test, by level.
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

    times: how many. claim: for one of them; `AuditResult.claim` is what follows for all.
    """

    times: int
    claim: PrivacyClaim


AnyCertificate = Certificate | ExactCertificate | OneRunCertificate


@dataclass(frozen=True, slots=True)
class Sampled:
    """An audit that drew from a mechanism: a certificate for each pair."""

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
    """An audit of recorded outputs: one certificate."""


@dataclass(frozen=True, slots=True)
class Exact:
    """An audit of stated laws, which draws nothing: a certificate for each pair."""

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
    """An audit of guesses about the canaries of one run: one certificate."""

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

    error: why.  certificates: of the pairs that were finished before.
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
    """One audit, ended.

    ending: what it ended in; verdict, bounds and p-value follow from it.
    seconds: wall time.  versions: of dpaudit, numpy, scipy and Python, and of scikit-learn where it
        may have been used.
    repeated: where an output is several runs; `claim` is then for all of them.
    resumed: how many runs with the same journal there were before the one that ended it.
    underpowered: why the audit could not have refuted its claim, whatever the mechanism does, and
        the remedy; None when it could, or where that is allowed.
    source: file and line of the mechanism's code, as `mine.py:12`, where they are known.
    command: the command line that runs the audit again, where it came from one.
    request: the settings that the audit was built from, and the folder that relative files are
        looked for in, so that it can be run again; None where they are not plain values.
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

    draws of budget; rate in draws a second; wealth and epsilon_lower as they stand (the bound is
    valid at every moment, docs/method.md §4); remaining: seconds left at this rate.
    """

    name: str
    pair: str
    draws: int
    budget: int
    rate: float
    wealth: float
    epsilon_lower: float
    remaining: float
