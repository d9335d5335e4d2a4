"""What to audit: everything an audit depends on, in one frozen value."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpaudit.auditing.options import DEFAULTS, BoundMethod, Expectation, OnError, owned, verify
from dpaudit.certificates.result import Family, Grouped, Progress
from dpaudit.certificates.searched import Searched
from dpaudit.claims import PrivacyClaim, compose
from dpaudit.errors import ClaimError, Name, UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.executors import Workers, check_executor, is_serial
from dpaudit.targets.target import AnyTarget, RepeatedTarget

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path


class DrawnSeed(int):
    """A seed that was drawn at random, as any other might have been: a journal keeps its own."""


class PairSearch(Protocol):
    """Finds pairs for an audit that has none; the search itself is in a room above."""

    def find(
        self, spec: AuditSpec, on_progress: Callable[[Progress], None] | None
    ) -> tuple[AuditSpec, Searched]:
        """Return the audit with pairs, and how they were found. Raises MechanismError."""
        ...

    def describe(self) -> str:
        """Return in words what is searched."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpec:
    """One audit: is `claim` refuted for `target` on one of `pairs`?

    search: finds the pairs, where there are none.

    claim: for one run of the mechanism; what is tested follows from it and the runs of the target.
    group: in how many records the inputs may differ; the claim is for as many already.
    grouped: where these are several, the claim for one.
    request: the settings that all this was built from, as a result keeps them.
    command: the command line that asks for this audit alone.
    files: those that the settings name, so that no result is written over them.
    family: audits that it shares an error probability with; `confidence` is what that leaves it.
    All others are options: dpaudit/auditing/options.py, docs/options.md.

    Raises UsageError for a value outside its range.
    """

    name: str
    target: AnyTarget
    pairs: tuple[NeighbouringPair, ...]
    claim: PrivacyClaim
    search: PairSearch | None = None
    samples: int = DEFAULTS["samples"]
    time: float | None = DEFAULTS["time"]
    confidence: float = DEFAULTS["confidence"]
    seed: int = DEFAULTS["seed"]
    workers: Workers = DEFAULTS["workers"]
    executor: Executor | str | None = DEFAULTS["executor"]
    bound: BoundMethod = DEFAULTS["bound"]
    full: bool = DEFAULTS["full"]
    allow_underpowered: bool = DEFAULTS["allow_underpowered"]
    require_power: float | None = DEFAULTS["require_power"]
    require_rare: float | None = DEFAULTS["require_rare"]
    strict: bool = DEFAULTS["strict"]
    on_error: OnError = DEFAULTS["on_error"]
    range: tuple[Any, ...] | None = DEFAULTS["range"]
    exact: bool = DEFAULTS["exact"]
    floating_point: bool = DEFAULTS["floating_point"]
    timing: bool = DEFAULTS["timing"]
    attacks: tuple[Any, ...] = DEFAULTS["attacks"]
    expect: Expectation | None = DEFAULTS["expect"]
    no_trace: bool = DEFAULTS["no_trace"]
    group: int = DEFAULTS["group"]
    grouped: Grouped | None = None
    journal: str | os.PathLike[str] | None = DEFAULTS["journal"]
    resume: bool = DEFAULTS["resume"]
    request: Mapping[str, Any] | None = None
    command: str | None = None
    files: tuple[Path, ...] = ()
    family: Family | None = None

    def __post_init__(self) -> None:
        verify(claim=self.claim)
        if not self.pairs and self.search is None:
            raise UsageError(f"audit {self.name!r} has no pair of datasets; give d1 and d2")
        if self.search is not None and self.exact:
            raise UsageError(
                *("a search draws, and ", Name("exact"), " makes no draws; "),
                "give one of them",
            )
        verify(**{one.name: getattr(self, one.name) for one in owned("audit")})
        check_executor(self.executor, self.workers)
        if self.resume and self.journal is None:
            why = " needs the journal to continue from; give "
            raise UsageError(Name("resume"), why, Name("journal"), " DIR as well")
        if self.require_power is not None:
            self._check_power()
        if self.require_rare is not None:
            self._check_rare(self.require_rare)
        for name in ("floating_point", "timing", "attacks"):
            if self.exact and getattr(self, name):
                why = " makes no draws; give one of them"
                raise UsageError(Name(name), " needs draws, and ", Name("exact"), why)
        try:
            compose([self.claim] * self.runs)
        except ClaimError as error:
            why = f"={self.runs} leaves nothing to test: "
            raise ClaimError(Name("repeat"), why, *error.parts) from error

    def _check_power(self) -> None:
        power, allowed = Name("require_power"), Name("allow_underpowered")
        if self.allow_underpowered:
            raise UsageError("give ", power, " or ", allowed, ", not both: they ask for opposites")
        if all(point.epsilon == 0 for point in self.tested.points()):
            why = " is a multiple of the claimed ε, which is 0 here; leave it out"
            raise UsageError(power, why)

    def _check_rare(self, probability: float) -> None:
        rare, allowed = Name("require_rare"), Name("allow_underpowered")
        if self.allow_underpowered:
            raise UsageError("give ", rare, " or ", allowed, ", not both: they ask for opposites")
        if self.tested.counts_single_outputs:
            why = " is not known for the probabilistic definition; claim approximate DP, which it "
            raise UsageError(rare, why, "implies, or leave it out")
        if self.bound != "game":
            why = f" is not known for {self.bound}; leave one of them out"
            raise UsageError(rare, " with ", Name("bound"), why)
        least = min(point.delta for point in self.tested.points())
        if probability <= least:
            why = (
                f"={probability:g} is at most the δ of the claim, {least:.3g}, which allows such "
                "outputs, so that no number of draws refutes them; give a larger probability"
            )
            raise UsageError(rare, why)

    @property
    def draws_ahead(self) -> bool:
        """Whether from the start somebody else draws the next blocks while this process learns from
        the last."""
        return not is_serial(self.executor, self.workers)

    @property
    def runs(self) -> int:
        """How many independent runs of the mechanism are one output."""
        return self.target.times if isinstance(self.target, RepeatedTarget) else 1

    @property
    def tested(self) -> PrivacyClaim:
        """The claim for all runs of an output together. Raises ClaimError where none follows."""
        return self.claim if self.runs == 1 else compose([self.claim] * self.runs)

    @property
    def alpha(self) -> float:
        """Probability of error that one pair may spend."""
        return (1 - self.confidence) / max(1, len(self.pairs))

    def may_refute(self, p_value: float) -> bool:
        """Return whether a p-value of one pair may yet refute the claim, by what other audits of a
        family show; at the level of the audit alone a certificate says it."""
        family = self.family
        return family is not None and p_value * len(self.pairs) <= 1 - family.confidence
