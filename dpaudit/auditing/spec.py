"""`AuditSpec`: everything that the result of one audit depends on, in one frozen object.

config/, cli/ and api.py build it from files, flags and keywords, and engine.py runs the audit. The
constructor checks the values of all options and their combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dpaudit.auditing.options import (
    DEFAULTS,
    Journaling,
    Requirements,
    Sampling,
    Statistics,
    flag_of,
    verify,
)
from dpaudit.certificates.result import Grouped, Progress, Searched
from dpaudit.claims import PrivacyClaim, compose
from dpaudit.claims.base import ClaimSource
from dpaudit.errors import ClaimError, DpauditError, Name, UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import AnyTarget, RepeatedTarget, single_targets

if TYPE_CHECKING:
    from pathlib import Path


class PairSearch(Protocol):
    """A search for pairs of inputs, for an audit without given pairs (implemented in
    dpaudit/searching)."""

    def find(
        self, spec: AuditSpec, on_progress: Callable[[Progress], None] | None
    ) -> tuple[AuditSpec, Searched]:
        """Search, and return the audit with the pairs that were found, and a record of the search.
        Raise MechanismError for a mechanism that cannot be audited.

        on_progress: called with a Progress while the search runs; None without a display.
        """
        ...

    def describe(self) -> str:
        """Return a description of the inputs among which the search looks for pairs."""
        ...


def _conflict(*parts: str) -> UsageError:
    return UsageError(*parts, code="options-conflict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the settings of an audit come from.

    request: the settings of the user, which the result file keeps.
    command: command line that repeats this audit alone.
    files: files that the settings name. A result must not be written to one of them.
    flags: settings that were given as command-line flags; None for an audit from Python.
    pace: note on the number of draws that the audit chose by the speed of the mechanism; "" if the
        number was stated, or is the largest.
    """

    request: Mapping[str, Any] | None = None
    command: str | None = None
    files: tuple[Path, ...] = ()
    flags: frozenset[str] | None = None
    pace: str = ""

    def message(self, error: DpauditError) -> str:
        """Return the message of an error, which names each option as the user gave it."""
        if self.flags is None:
            return str(error)
        flags = self.flags
        return "".join(error.spelled(lambda name: flag_of(name) if name in flags else str(name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpec:
    """The specification of one audit, which tests a privacy claim for the target on pairs of
    inputs. Raise UsageError for a value outside its range, and for options that exclude each other.

    target: the mechanism, and how to call it.
    pairs: pairs of neighbouring inputs, each of which is audited.
    claim: the claim for one run of the mechanism; `tested` is that for one output, which may
        combine several runs.
    search: finds the pairs, if `pairs` is empty.
    group: largest number of records in which d1 and d2 may differ, according to `claim`.
    claimed_by: the library that made the claim; None if the user made it.
    grouped: the user's claim for inputs that differ in one record, from which `claim` follows; None
        if `group` is 1.
    """

    name: str
    target: AnyTarget
    pairs: tuple[NeighbouringPair, ...]
    claim: PrivacyClaim
    search: PairSearch | None = None
    group: int = DEFAULTS["group"]
    claimed_by: ClaimSource | None = None
    grouped: Grouped | None = None
    no_trace: bool = DEFAULTS["no_trace"]
    sampling: Sampling = field(default_factory=Sampling)
    statistics: Statistics = field(default_factory=Statistics)
    requirements: Requirements = field(default_factory=Requirements)
    journaling: Journaling = field(default_factory=Journaling)
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        verify(claim=self.claim, no_trace=self.no_trace)
        if not self.pairs and self.search is None:
            why = f"audit {self.name!r} has no pair of datasets; give d1 and d2"
            raise UsageError(why, code="option-missing")
        if self.search is not None and self.statistics.exact:
            why = " makes no draws; give one of them"
            raise _conflict("a search draws, and ", Name("exact"), why)
        for name in ("require_power", "require_rare"):
            if getattr(self.requirements, name) is not None:
                self._check_required(Name(name))
        if self.runs > 1:
            try:
                compose([self.claim] * self.runs)
            except ClaimError as error:
                why = f"={self.runs} leaves nothing to test: "
                raise ClaimError(Name("repeat"), why, *error.parts, code=error.code) from error

    def _check_required(self, name: Name) -> None:
        """Raise UsageError if even the most draws cannot meet the option `name`."""
        claim, points = self.tested, self.tested.points()
        if name == "require_power":
            if all(point.epsilon == 0 for point in points):
                why = " is a multiple of the claimed ε, which is 0 here; leave it out"
                raise _conflict(name, why)
            return
        probability, least = (
            self.requirements.require_rare or 0.0,
            min(point.delta for point in points),
        )
        if claim.counts_single_outputs:
            why = " is not known for the probabilistic definition; claim approximate DP, which it "
            raise _conflict(name, why, "implies, or leave it out")
        bound = self.statistics.bound
        if bound != "game":
            why = f" is not known for {bound}; leave one of them out"
            raise _conflict(name, " with ", Name("bound"), why)
        if probability <= least:
            raise _conflict(
                name,
                f"={probability:g} is at most the δ of the claim, {least:.3g}, which allows such "
                "outputs, so that no number of draws refutes them; give a larger probability",
            )

    @property
    def is_timed(self) -> bool:
        """Whether outputs depend on elapsed times, which differ between blocks and processes."""
        limits = [getattr(part, "limits", None) for part in single_targets(self.target)]
        return self.statistics.timing or any(part and part.timeout for part in limits)

    @property
    def runs(self) -> int:
        """Number of independent runs of the mechanism in one output."""
        return self.target.times if isinstance(self.target, RepeatedTarget) else 1

    @property
    def switches(self) -> frozenset[str]:
        """Names of the options that are switched on and may add scorers (attacks/scorers.py)."""
        return self.statistics.switches | ({"repeat"} if self.runs > 1 else frozenset())

    @property
    def tested(self) -> PrivacyClaim:
        """The claim for one output, which the audit tests: the claim for one run, composed over all
        runs of an output. Raise ClaimError if no claim follows for this number of runs."""
        return self.claim if self.runs == 1 else compose([self.claim] * self.runs)

    @property
    def alpha(self) -> float:
        """The allowed probability of a false alarm for each pair: (1 - confidence) / number of
        pairs."""
        return (1 - self.statistics.confidence) / max(1, len(self.pairs))

    def may_refute(self, p_value: float) -> bool:
        """Return whether Holm's procedure may refute the claim with this p-value of a pair,
        depending on the other audits of the family. Return False without a family."""
        family = self.statistics.family
        return family is not None and p_value * len(self.pairs) <= 1 - family.confidence
