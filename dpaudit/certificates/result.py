"""Define the result of an audit: verdict, bounds and p-value over all pairs of inputs.

The attribute `ending` of an `AuditResult` has the certificates of the pairs. Its class depends on
the kind of audit, and on whether the audit was interrupted or failed. `Searched` describes how a
search found the pairs, and `Progress` a running audit at one moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from dpaudit.certificates.canary_certificate import OneRunCertificate
from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.traced import Trace
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.claims.base import ClaimSource
from dpaudit.inputs.neighbouring import EQUAL, EQUAL_INPUTS
from dpaudit.targets.target import is_of_two

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes


class Verdict(Enum):
    """The verdict of an audit. No verdict says that a mechanism is private.

    Attributes
    ----------
    VIOLATION : Verdict
        The draws of at least one pair of inputs refute the claim.
    NO_VIOLATION_FOUND : Verdict
        The draws do not refute the claim. Rarer events, other inputs or more draws may refute it.
    ERROR : Verdict
        The audit could not be run, or its draws cannot be used. `AuditResult.error` has the reason.

    Notes
    -----
    If the mechanism satisfies the claim, the verdict is VIOLATION with probability at most
    1 - confidence (docs/method.md §1 and §4).
    """

    VIOLATION = "VIOLATION"
    NO_VIOLATION_FOUND = "NO VIOLATION FOUND"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Repeated:
    """An audit in which each output consists of several independent runs on the same input.

    Attributes
    ----------
    times : int
        Number of runs.
    claim : PrivacyClaim
        The claim for one run; `AuditResult.claim` is the claim for all runs together.
    """

    times: int
    claim: PrivacyClaim


@dataclass(frozen=True, slots=True)
class Grouped:
    """An audit of a claim for a group: the two inputs may differ in several records.

    Attributes
    ----------
    size : int
        Largest number of records in which the inputs differ.
    claim : PrivacyClaim
        The claim for one record and one run. `AuditResult.claim` is the claim for the group, which
        follows from it.
    """

    size: int
    claim: PrivacyClaim


# Largest number of audits in a family (audits that share one error probability). Holm's procedure
# needs memory for each audit; this limit protects against a damaged file of results that states a
# huge number.
MAX_FAMILY = 100_000


@dataclass(frozen=True, slots=True)
class Family:
    """Several audits that share one error probability, by Holm's procedure (docs/method.md §9).

    Attributes
    ----------
    name : str
        Name of the family, such as the path of a configuration file.
    size : int
        Number of audits, at most 100,000; exact audits, which draw nothing, do not count.
    confidence : float
        1 minus the probability that at least one audit of the family gives a false alarm, in
        (0, 1).
    level : float
        The largest p-value at which the claim of this audit is refuted. At first it is an equal
        share of the error probability, 1 - `AuditResult.confidence`. When all audits have ended,
        Holm's procedure may make it larger.
    """

    name: str
    size: int
    confidence: float
    level: float

    def __post_init__(self) -> None:
        is_whole = 1 <= self.size <= MAX_FAMILY
        if not (is_whole and 0 < self.confidence < 1 and 0 < self.level < 1):
            raise ValueError(f"{self} is no family of audits")


@dataclass(frozen=True, slots=True)
class Leader:
    """A pair of inputs that a search has tried.

    Attributes
    ----------
    d1, d2 : str
        The two inputs as Python code, shortened if long.
    why : str
        How the pair was made or what is special about it, in a few words.
    inside : bool
        Whether both inputs belong to the space of inputs that the user gave.
    estimate : float
        Estimate, at least 0, of the lower bound for ε (at the δ of the claim) of an audit of the
        pair; inf if the outputs are deterministic and differ. It certifies nothing, since the same
        draws were used to choose the pair.
    draws : int
        Number of draws of both inputs from which the estimate was made.
    apart : str
        Description of the record in which the two inputs differ, if they are long lists that differ
        in one record; else "".
    audited : bool
        Whether the search chose this pair for the audit.
    """

    d1: str
    d2: str
    why: str
    inside: bool
    estimate: float
    draws: int
    apart: str = ""
    audited: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """A search for the pair of neighbouring inputs on which a mechanism leaks most.

    Attributes
    ----------
    space : str
        Description of the space of inputs that the user gave.
    adjacency : str
        The relation between neighbouring inputs.
    pairs : int
        Number of pairs that were tried, at least 1. Pairs outside the space are included only if
        they count for the verdict.
    refused : int
        Number of pairs without an estimate, such as those for which every call raised an exception.
    refusal : str
        The reason for the first pair in `refused`; "" without one.
    draws : int
        Number of draws made by the search. They certify nothing.
    leaders : tuple of Leader
        The most promising pairs: the audited pairs, then the others by their estimates. Pairs with
        less than half of the largest number of draws come last.
    found : tuple of pairs
        The pairs (d1, d2) that were audited, with equal shares of the error probability. Inputs are
        plain values, even if the mechanism gets arrays or data frames.
    outside : tuple of bool
        For each pair of `found`, whether at least one of its inputs is outside the space.
    shrunk : bool
        Whether the last pair of `found` is a simpler form of the first.
    one_by_one : bool
        Whether the audit made one draw with each call, because calls for several raised exceptions.
    kept : tuple of str
        Variables of the mechanism that calls during the search have changed, and on which the
        draws that certify may depend.
    note : str
        What limited the search, and what the user can do; "" if nothing did.
    beyond : Leader or None
        A pair outside the space that seems to leak, if any. It was not audited, and does not count
        for the verdict.
    more_beyond : tuple of Leader
        Further such pairs, at most one for each kind of values outside the space: NaN, missing
        values, numbers beyond the bounds, other values.
    unsettled : tuple of pairs
        The pair (d1, d2) inside the space that was not audited and whose ε may exceed the claim by
        most, as far as the search can tell. Empty if there is none.
    unsettled_upper : float
        Upper end of a 95 % interval for the ε of the pair `unsettled`, from its most informative
        event; 0 without such a pair. It certifies nothing.
    """

    space: str
    adjacency: str
    pairs: int
    refused: int
    refusal: str
    draws: int
    leaders: tuple[Leader, ...]
    found: tuple[tuple[Any, Any], ...]
    outside: tuple[bool, ...]
    shrunk: bool = False
    one_by_one: bool = False
    kept: tuple[str, ...] = ()
    note: str = ""
    beyond: Leader | None = None
    more_beyond: tuple[Leader, ...] = ()
    unsettled: tuple[tuple[Any, Any], ...] = ()
    unsettled_upper: float = 0.0


@dataclass(frozen=True, slots=True)
class FreshCounts:
    """The guesses of the main rule of a pair on draws with a seed of their own.

    Attributes
    ----------
    right, wrong, none : int
        Numbers of draws with a right, a wrong and no guess. The rule was fixed before them.
    two_guesses : bool
        Whether the rule can guess both inputs (h = 1 in docs/method.md), or only one (h = ½).
    point : ProfilePoint
        The point of the claim for which the rule was learned.
    """

    right: Annotated[int, Meta(ge=0)]
    wrong: Annotated[int, Meta(ge=0)]
    none: Annotated[int, Meta(ge=0)]
    two_guesses: bool
    point: ProfilePoint

    @property
    def draws(self) -> int:
        """Number of draws."""
        return self.right + self.wrong + self.none


@dataclass(frozen=True, slots=True)
class LikelyFirst:
    """The night on which a leak that raised an alarm began most likely.

    Attributes
    ----------
    time : str
        When the audit of that night ended, in UTC.
    code : str
        Digests of the mechanism's files, each with the commit of its checkout if it has one.
    versions : mapping of str to str
        The versions of packages in that night.
    """

    time: str
    code: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Nights:
    """The evidence of an audit over several nights (docs/method.md §15).

    Attributes
    ----------
    count : int
        Number of nights in the record, with this one.
    since_alarm : int
        Number of these nights since the last alarm.
    evidence : float
        M_t after this night. While the claim holds, the mean number of nights until it reaches
        1 / level is at least 1 / level.
    level : float
        The alarm level, in (0, 1).
    first : LikelyFirst or None
        The likely first night of the leak; None without an alarm.
    """

    count: int
    since_alarm: int
    evidence: float
    level: float
    first: LikelyFirst | None = None


AnyCertificate = Certificate | ExactCertificate | OneRunCertificate


def _check(certificates: tuple[AnyCertificate, ...]) -> None:
    if not certificates:
        raise ValueError("certificates of an audit that ended are missing")


class Sampled(Struct, frozen=True, forbid_unknown_fields=True, tag="sampled", tag_field="kind"):
    """The ending of an audit that made draws of a mechanism.

    Attributes
    ----------
    certificates : tuple of Certificate
        One certificate for each pair of inputs, at least one.
    """

    # Whether draws, and so chance, determine the verdict.
    by_chance: ClassVar[bool] = True

    certificates: tuple[Certificate, ...]

    def __post_init__(self) -> None:
        _check(self.certificates)
        if any(certificate.is_interrupted for certificate in self.certificates):
            raise ValueError("only an interrupted audit has incomplete pairs")
        recorded = {certificate.evidence.recording is not None for certificate in self.certificates}
        if recorded != {isinstance(self, Recorded)}:
            raise ValueError("a recording belongs to an audit of recorded outputs, and to no other")

    @property
    def deciding(self) -> Certificate:
        """The certificate of the pair with the smallest p-value."""
        return min(self.certificates, key=lambda certificate: certificate.p_value)

    @property
    def p_value(self) -> float:
        """p-value of the claim for all pairs together, by Bonferroni's correction."""
        return min(1.0, len(self.certificates) * self.deciding.p_value)


class Recorded(Sampled, frozen=True, tag="recorded"):
    """The ending of an audit of recorded outputs.

    Attributes
    ----------
    certificates : tuple of Certificate
        A tuple with one certificate, since a recording has one pair of inputs.
    """


class Interrupted(Sampled, frozen=True, tag="interrupted"):
    """The ending of an audit that was interrupted, by a signal such as Ctrl-C.

    The last certificate may be of a pair that was not complete. It has only the results of bets,
    which are valid at every moment (docs/method.md §4).

    Attributes
    ----------
    certificates : tuple of Certificate
        The certificates of the pairs with draws, at least one.
    pairs : int
        Number of pairs of inputs that the audit had planned. They share the error probability.
    """

    pairs: int = 1

    def __post_init__(self) -> None:
        _check(self.certificates)
        if any(certificate.is_interrupted for certificate in self.certificates[:-1]):
            raise ValueError("only the last pair of an interrupted audit is incomplete")
        if len(self.certificates) > self.pairs:
            raise ValueError("more certificates than pairs")

    @property
    def p_value(self) -> float:
        return min(1.0, self.pairs * self.deciding.p_value)


class Exact(Struct, frozen=True, forbid_unknown_fields=True, tag="exact", tag_field="kind"):
    """The ending of an audit of exact output distributions that the mechanism states.

    Attributes
    ----------
    certificates : tuple of ExactCertificate
        One certificate for each pair of inputs, at least one.
    """

    by_chance: ClassVar[bool] = False

    certificates: tuple[ExactCertificate, ...]

    def __post_init__(self) -> None:
        _check(self.certificates)

    @property
    def deciding(self) -> ExactCertificate:
        """The certificate with the largest lower bound for ε, among those that refute the claim; if
        none does, among all."""
        return max(
            self.certificates,
            key=lambda certificate: (certificate.refuted, certificate.epsilon_lower),
        )

    @property
    def p_value(self) -> float:
        """0 if the claim is false for at least one pair, else 1, since chance plays no part."""
        return 0.0 if self.deciding.refuted else 1.0


class CanaryGuesses(
    Struct, frozen=True, forbid_unknown_fields=True, tag="canaries", tag_field="kind"
):
    """The ending of an audit of guesses about canaries.

    Attributes
    ----------
    certificates : tuple of OneRunCertificate
        The single certificate.
    """

    by_chance: ClassVar[bool] = True

    certificates: tuple[OneRunCertificate]

    @property
    def deciding(self) -> OneRunCertificate:
        return self.certificates[0]

    @property
    def p_value(self) -> float:
        return self.deciding.p_value


class Failed(Struct, frozen=True, forbid_unknown_fields=True, tag="failed", tag_field="kind"):
    """The ending of an audit that an error stopped.

    Attributes
    ----------
    error : str
        Message of the error.
    certificates : tuple of Certificate
        Certificates of the pairs of inputs that were complete before the error.
    code : str or None
        Code of the error (docs/errors.md).
    """

    by_chance: ClassVar[bool] = True

    error: str
    certificates: tuple[Certificate, ...] = ()
    code: str | None = None

    @property
    def deciding(self) -> Certificate | None:
        """Of the pairs that were complete, the certificate with the smallest p-value; None if there
        is none."""
        return Sampled(self.certificates).deciding if self.certificates else None

    @property
    def p_value(self) -> float:
        return Sampled(self.certificates).p_value if self.certificates else 1.0


Ending = Sampled | Recorded | Interrupted | Exact | CanaryGuesses | Failed


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult:
    """The result of one audit. Printing it shows the report.

    Attributes
    ----------
    name : str
        Name of the audit in reports.
    claim : PrivacyClaim
        The tested claim.
    target : str
        Description of the mechanism.
    confidence : float
        1 minus the probability of a false alarm, in (0, 1).
    seed : int
        Seed of all random numbers.
    ending : Sampled, Recorded, Interrupted, Exact, CanaryGuesses or Failed
        The certificates or the error, from which verdict, bounds and p-value follow.
    seconds : float
        Wall time.
    versions : mapping of str to str
        Versions of dpaudit, numpy, scipy and Python, and of scikit-learn if it may have been used.
        Also PYTHONHASHSEED, if the user chose an unusual value.
    expect : {'violation', 'pass'} or None
        The verdict that the user expects; None if the user stated none.
    warnings : tuple of str
        Reasons to doubt the whole run.
    repeated : Repeated or None
        The number of independent runs in each output, and the claim for one run; None for one run.
    grouped : Grouped or None
        The number of records in which the inputs may differ, and the claim for one record; None for
        one record.
    request : mapping of str to Any, or None
        The settings with which the audit can be run again, and the folder to which relative paths
        refer. None if a setting is not a plain value, such as a Python function.
    underpowered : str or None
        The reason why the audit could not have refuted its claim, and what the user can do; or that
        the audit was interrupted. None if the audit had enough power, or if the user allowed too
        little.
    resumed : int
        Number of earlier runs whose draws were taken from the audit's journal.
    source : str or None
        File and line of the mechanism's code, such as `mine.py:12`; None if unknown.
    command : str or None
        The command line that repeats the audit; None if a Python program started it.
    workers : int or None
        Largest number of processes that made draws at the same time; None if nothing was drawn.
    notes : tuple of str
        Facts about the run that are no reason for doubt.
    family : Family or None
        The family of audits with which this audit shares an error probability. `confidence` is then
        1 minus an equal share of it, so that the bounds of all audits of the family hold together.
    searched : Searched or None
        The search that found the pairs of inputs; None if the user gave them.
    trace : Trace or None
        The lines of code where runs with the same noise differ between the two inputs of a refuted
        pair; None if no trace was made.
    strict : bool
        Whether a warning makes the audit fail. `failing_warnings` lists such warnings.
    claimed_by : ClaimSource or None
        The library that stated the claim; None if the user stated it.
    pace : str
        The number of draws that the audit chose by the speed of the mechanism, with the reason; ""
        if the user stated the number or the time, or if it is the largest default.
    fresh : tuple of FreshCounts
        For each pair, the guesses on the draws that certify, if these have a seed of their own;
        else empty.
    nights : Nights or None
        The evidence over nights; None if no record keeps it. An alarm is a VIOLATION.

    Notes
    -----
    If the mechanism satisfies the claim on all pairs, the verdict is VIOLATION with probability at
    most 1 - confidence (docs/method.md §4), apart from alarms over nights (§15). In a family, at
    least one verdict is a false VIOLATION with probability at most 1 - family.confidence. Audits
    with equal seeds are not independent (§9).
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
    strict: bool = False
    claimed_by: ClaimSource | None = None
    pace: str = ""
    fresh: tuple[FreshCounts, ...] = ()
    nights: Nights | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict, which is VIOLATION, NO_VIOLATION_FOUND or ERROR."""
        if isinstance(self.ending, Failed):
            return Verdict.ERROR
        is_alarm = self.nights is not None and self.nights.first is not None
        refuted = is_alarm or self.is_refuted_tonight
        return Verdict.VIOLATION if refuted else Verdict.NO_VIOLATION_FOUND

    @property
    def is_refuted_tonight(self) -> bool:
        """Whether the draws of this run alone refute the claim, without those of other nights."""
        if isinstance(self.ending, Failed):
            return False
        in_family = self.family is not None and self.p_value <= self.family.level
        return self.is_refuted_alone or in_family

    @property
    def is_parity(self) -> bool:
        """Whether the audit compares two mechanisms, A (in place of d1) and B (of d2)."""
        return is_of_two(self.target)

    @property
    def refuted(self) -> bool:
        """Whether the draws refute the claim, alone or with those of other nights."""
        return self.verdict is Verdict.VIOLATION

    @property
    def is_refuted_alone(self) -> bool:
        """Whether the audit refutes the claim at its own `confidence`. In a family, this is 1 minus
        an equal share of the error probability. A refutation by Holm's procedure at a larger
        p-value does not count."""
        return any(certificate.refuted for certificate in self.ending.certificates)

    @property
    def level(self) -> float:
        """The largest p-value at which the claim is refuted."""
        return 1 - self.confidence if self.family is None else self.family.level

    @property
    def error(self) -> str | None:
        """The message of the error if the verdict is ERROR, else None."""
        return self.ending.error if isinstance(self.ending, Failed) else None

    @property
    def error_code(self) -> str | None:
        """Code of the error (docs/errors.md); None without an error."""
        return self.ending.code if isinstance(self.ending, Failed) else None

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates of pairs for which draws were made or recorded; empty for audits without
        draws."""
        return self.ending.certificates if isinstance(self.ending, Sampled | Failed) else ()

    @property
    def by_pair(self) -> tuple[AnyCertificate, ...]:
        """The certificates of all pairs, of any class."""
        return self.ending.certificates

    @property
    def decisive(self) -> AnyCertificate | None:
        """The certificate that decides the verdict; None if an error ended the audit before the
        first pair was complete."""
        return self.ending.deciding

    @property
    def point(self) -> ProfilePoint:
        """The point of the claim that `decisive` has tested; the first point if `decisive` is
        None."""
        return self.claim.point() if self.decisive is None else self.decisive.point

    @property
    def p_value(self) -> float:
        """p-value of the claim, for all pairs of inputs together; 1 if no pair was completed."""
        return self.ending.p_value

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound for ε over all pairs, at the δ of `point`, valid with probability
        at least `confidence`."""
        return max((certificate.epsilon_lower for certificate in self._comparable), default=0.0)

    @property
    def delta_lower(self) -> float:
        """The largest lower bound for δ over all pairs, at the ε of `point`, valid with probability
        at least `confidence`."""
        return max((certificate.delta_lower for certificate in self._comparable), default=0.0)

    @property
    def _comparable(self) -> list[AnyCertificate]:
        """The certificates at `point`: bounds at different points cannot be compared."""
        return [certificate for certificate in self.by_pair if certificate.point == self.point]

    @property
    def draws(self) -> int:
        """Number of draws of both inputs for all pairs together."""
        return sum(certificate.draws for certificate in self.certificates)

    @property
    def meets_expectation(self) -> bool:
        """Whether the verdict is the expected one, which is NO_VIOLATION_FOUND if `expect` is
        None."""
        wanted = Verdict.VIOLATION if self.expect == "violation" else Verdict.NO_VIOLATION_FOUND
        return self.verdict is wanted

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings about the run and about its pairs, without repetitions."""
        of_pairs = (text for certificate in self.by_pair for text in certificate.warnings)
        return tuple(dict.fromkeys([*self.warnings, *of_pairs]))

    @property
    def failing_warnings(self) -> tuple[str, ...]:
        """The warnings because of which a `strict` audit fails. Empty if the audit fails by its
        verdict already, or is not strict."""
        if not self.strict or not self.meets_expectation:
            return ()
        # If `underpowered` or a note already says that the inputs are equal, the warning about
        # equal inputs is left out.
        is_known = EQUAL_INPUTS in (self.underpowered, *self.notes)
        return tuple(text for text in self.all_warnings if not (is_known and text == EQUAL))

    def report(self, *, verbose: bool = False) -> str:
        """Return the report in words, as the command line shows it.

        Parameters
        ----------
        verbose : bool, default False
            Whether to show also every pair and event, and how the result came about.

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
        # Imported inside the method, since reports are a higher layer than certificates. The import
        # contract lists this exception.
        from dpaudit.reports.text import render

        return render(self, verbose=int(verbose))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain dicts, lists, texts and numbers.

        Returns
        -------
        dict
            The fields of the audit's entry in a result file (docs/files.md).
        """
        import json

        from dpaudit.reports.json import entry

        document: dict[str, Any] = json.loads(entry(self))
        return document

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to a file.

        Parameters
        ----------
        path : str or path
            The file, which is replaced if it exists. Its suffix chooses the format: `.html`,
            `.json`, `.md`, `.xml` (JUnit), `.sarif` or `.txt`.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        UsageError
            For another suffix, and if a package that the format needs is missing.
        """
        from dpaudit.reports.notebook import save

        return save(self, path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each input's share of draws in every level of outputs, with the event shaded.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on. Default: the axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        UsageError
            If matplotlib is not installed, or if the audit has no draws of a pair of inputs.
        """
        from dpaudit.reports.notebook import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        from dpaudit.reports.notebook import html

        return html(self)

    def __str__(self) -> str:
        return self.report()

    def __bool__(self) -> bool:
        """Raise TypeError: "true" could mean a violation as well as a pass."""
        raise TypeError("an AuditResult is neither true nor false; use .refuted or .verdict")

    def __repr__(self) -> str:
        from dpaudit.reports.text import render_line

        return f"<AuditResult {' '.join(render_line(self).split())}>"


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a running audit at one moment, for a display of its progress.

    Attributes
    ----------
    name, pair : str
        Name of the audit, and description of the pair of inputs.
    draws : int
        Number of draws of both inputs so far.
    budget : int
        Number of draws allowed for the pair. With a time limit (`time`), 0 until the speed of the
        mechanism is known.
    rate : float
        Draws per second.
    wealth, epsilon_lower : float
        Present wealth of the bettors, and present lower bound for ε from the bets. The lower bounds
        at all moments are valid together (docs/method.md §4).
    remaining : float
        Estimated seconds left at the present rate.
    waiting : str
        What the audit waits for, as text; "" if it waits for the next block of draws.
    needed : float or None
        Wealth at which the claim is refuted; None before the first draw.
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
    needed: float | None = None
