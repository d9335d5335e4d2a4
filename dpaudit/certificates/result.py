"""What an audit ends in, and what follows from it: verdict, bounds and p-value over all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.exact_certificate import ExactCertificate
from dpaudit.certificates.one_run_certificate import OneRunCertificate
from dpaudit.certificates.searched import Searched
from dpaudit.certificates.traced import Trace
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.inputs.neighbouring import EQUAL, EQUAL_INPUTS


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
class Repeated:
    """Independent runs on the same input that make up one output.

    Attributes
    ----------
    times : int
        How many.
    claim : PrivacyClaim
        The claim for one of them; `AuditResult.claim` is for all.
    """

    times: int
    claim: PrivacyClaim


@dataclass(frozen=True, slots=True)
class Grouped:
    """Inputs that differ in several records.

    Attributes
    ----------
    size : int
        In how many, at most.
    claim : PrivacyClaim
        The claim for one record; what follows for the group is that of one run.
    """

    size: int
    claim: PrivacyClaim


# Beyond it, shares of an error probability are no numbers any more; a file may say anything.
_LARGEST_FAMILY = 10**9


@dataclass(frozen=True, slots=True)
class Family:
    """Audits that have one error probability together, by Holm's procedure (docs/method.md §9).

    Attributes
    ----------
    name : str
        What they stand in, such as a configuration file.
    size : int
        How many they are, at most 10⁹; those that chance has no part in do not count.
    confidence : float
        1 minus the probability that any of them is a false alarm, in (0, 1).
    level : float
        The largest p-value that refutes the claim of this audit. An equal share, `1 -
        AuditResult.confidence`, as long as the run goes on; then more where others were refuted.
    """

    name: str
    size: int
    confidence: float
    level: float

    def __post_init__(self) -> None:
        is_whole = 1 <= self.size <= _LARGEST_FAMILY
        if not (is_whole and 0 < self.confidence < 1 and 0 < self.level < 1):
            raise ValueError(f"{self} is no family of audits")


AnyCertificate = Certificate | ExactCertificate | OneRunCertificate


@dataclass(frozen=True, slots=True)
class Sampled:
    """An audit that drew from a mechanism.

    Attributes
    ----------
    certificates : tuple of Certificate
        One for each pair, at least one.
    """

    # Whether chance has a part in it.
    by_chance: ClassVar[bool] = True

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

    by_chance: ClassVar[bool] = False

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

    by_chance: ClassVar[bool] = True

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
    code : str or None
        Kind of the error (docs/errors.md); None in results of older versions.
    """

    by_chance: ClassVar[bool] = True

    error: str
    certificates: tuple[Certificate, ...] = ()
    code: str | None = None

    @property
    def deciding(self) -> Certificate | None:
        """The certificate with the smallest p-value; None when no pair was finished."""
        return min(self.certificates, key=lambda one: one.p_value, default=None)

    @property
    def p_value(self) -> float:
        return 1.0 if self.deciding is None else Sampled(self.certificates).p_value


# What an audit can end in.
Ending = Sampled | Recorded | Exact | Canaries | Failed


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult:
    """The result of one audit; printed, it is a report.

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
        Of dpaudit, numpy, scipy and Python, and of scikit-learn where it may have been used. And
        PYTHONHASHSEED, where a user has set it to another seed than the usual one.
    expect : {'violation', 'pass'} or None
        The verdict that was expected.
    warnings : tuple of str
        What is to be known about the run as a whole.
    repeated : Repeated or None
        Where an output is several runs; `claim` is then for all of them.
    grouped : Grouped or None
        Where the inputs differ in several records; `claim` is then for all of them.
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
    workers : int or None
        How many processes drew at the same time, at most; None where nothing was drawn.
    notes : tuple of str
        What explains the run, and is no doubt about it.
    family : Family or None
        The audits that this one shares an error probability with; `confidence` is then what its
        equal share leaves, at which all bounds of the family hold together.
    searched : Searched or None
        How the pairs were found, where nobody gave them.
    trace : Trace or None
        Where coupled runs of the refuted pair differ; None where nothing was refuted or traced.
    first_version : int or None
        The version of the result file that the audit was first written to, where that is older
        than 6: such an audit says nothing of rare outputs.
    strict : bool
        Whether a warning fails the audit; `failing_warnings` has those that do.

    Notes
    -----
    Of a mechanism that satisfies the claim on all pairs, the verdict is VIOLATION with probability
    at most 1 - confidence (docs/method.md §4); of a family, any is with probability at most
    1 - family.confidence. Equal seeds are no further evidence (§9).
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
    grouped: Grouped | None = None
    request: Mapping[str, Any] | None = None
    underpowered: str | None = None
    resumed: int = 0
    source: str | None = None
    command: str | None = None
    workers: int | None = None
    notes: tuple[str, ...] = ()
    family: Family | None = None
    searched: Searched | None = None
    trace: Trace | None = None
    first_version: int | None = field(default=None, compare=False)
    strict: bool = False

    @property
    def verdict(self) -> Verdict:
        """What the audit says."""
        if isinstance(self.ending, Failed):
            return Verdict.ERROR
        refuted = self.is_refuted_alone or (
            self.family is not None and self.p_value <= self.family.level
        )
        return Verdict.VIOLATION if refuted else Verdict.NO_VIOLATION_FOUND

    @property
    def is_refuted_alone(self) -> bool:
        """Whether the claim is refuted at `confidence`, whatever others of a family showed."""
        return any(one.refuted for one in self.ending.certificates)

    @property
    def level(self) -> float:
        """The largest p-value that refutes the claim."""
        return 1 - self.confidence if self.family is None else self.family.level

    @property
    def error(self) -> str | None:
        """Why the verdict is ERROR; None when it is another one."""
        return self.ending.error if isinstance(self.ending, Failed) else None

    @property
    def error_code(self) -> str | None:
        """Kind of the error (docs/errors.md); None without an error, and in older results."""
        return self.ending.code if isinstance(self.ending, Failed) else None

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

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings of the run and of its pairs, each once."""
        of_pairs = (text for one in self.by_pair for text in one.warnings)
        return tuple(dict.fromkeys([*self.warnings, *of_pairs]))

    @property
    def failing_warnings(self) -> tuple[str, ...]:
        """The warnings that alone fail the audit, since it is `strict`: none of an audit that fails
        by its verdict."""
        if not self.strict or not self.meets_expectation:
            return ()
        # Of equal inputs, `underpowered` says it, or a note where the audit allows it.
        is_said = EQUAL_INPUTS in (self.underpowered, *self.notes)
        return tuple(text for text in self.all_warnings if not (is_said and text == EQUAL))

    def report(self, *, verbose: bool = False) -> str:
        """Return the report in words, as the command line shows it.

        Parameters
        ----------
        verbose : bool, default False
            Whether to show every pair and event as well, and how the result came about.

        Returns
        -------
        str
            Lines of at most 80 columns where they can be broken, without a final newline.

        Examples
        --------
        >>> import dpaudit
        >>> def bit(x, size, rng):
        ...     return rng.integers(2, size=size) * x
        >>> result = dpaudit.audit(bit, 0, 1, dpaudit.PureDP(1.0), samples=2_000, name="bit")
        >>> print(result.report().splitlines()[0])
        VIOLATION  bit: refuted at 99 %: outputs > 0 appear in 50.5 % of draws for d2,
        """
        # Imported when it is called: the exception that the contract of the layers names.
        from dpaudit.reports.text import render

        return render(self, verbose=int(verbose))

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        from dpaudit.reports.text import render_line

        return f"<AuditResult {' '.join(render_line(self).split())}>"


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a running audit, for a progress display.

    Attributes
    ----------
    name, pair : str
        How reports call the audit, and the pair of inputs, in words.
    draws : int
        Draws made for this pair, of both inputs.
    budget : int
        All draws allowed for it; 0 while they are still to be planned by the clock (`time`).
    rate : float
        Draws a second.
    wealth, epsilon_lower : float
        The wealth of the bettors, and the lower bound for ε that betting gives, as they stand. The
        bound is valid at every moment (docs/method.md §4).
    remaining : float
        Seconds left at this rate.
    waiting : str
        What the audit waits for, where that is not the next block of draws.
    """

    name: str
    pair: str
    draws: int
    budget: int
    rate: float
    wealth: float
    epsilon_lower: float
    remaining: float
    waiting: str = ""
