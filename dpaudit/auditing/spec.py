"""What to audit: everything an audit depends on, in one frozen value."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from dpaudit.claims import PrivacyClaim, ProbabilisticDP, compose
from dpaudit.errors import ClaimError, UsageError, did_you_mean
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.executors import check_executor, is_serial
from dpaudit.targets.target import AnyTarget, RepeatedTarget

if TYPE_CHECKING:
    from concurrent.futures import Executor

BoundMethod = Literal["game", "clopper-pearson"]
OnError = Literal["outcome", "fail"]
Expectation = Literal["violation", "pass"]

MINIMUM_SAMPLES = 1_000
# Counts of so many are still exact as floats, in which the bounds are computed.
MAXIMUM_SAMPLES = 10**15


class DrawnSeed(int):
    """A seed that was drawn at random, as any other might have been: a journal keeps its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpec:
    """One audit: is `claim` refuted for `target` on one of `pairs`?

    claim: for one run of the mechanism; what is tested follows from it and the runs of the target.
    samples: draws for each pair, both arms together, from 1,000 to 10¹⁵.
    time: seconds for the whole audit; when given, plans the draws from the speed of the first
        blocks instead of `samples`.
    confidence: in (0, 1); 1 - confidence is shared by all pairs.
    seed: root of every random stream, ≥ 0.
    workers: processes that sample; 1 samples in this process.
    executor: who they are: serial, processes, dask, dask://host:8786, or a
        concurrent.futures.Executor that runs tasks in other processes, as many as workers says.
    bound: how the draws kept for certification become a bound (docs/method.md §2).
    full: go on to the last draw after a refutation, to tighten the bound.
    allow_underpowered: whether an audit that cannot fail may count as passed.
    on_error: an exception of the mechanism is an outcome, or ends the audit.
    range: all outputs that there are, failures by the name of the exception; gives an interval.
    exact: no draws; compute from the probability mass function that the mechanism states.
    floating_point: look at the low-order bits and decimals of numbers, too.
    timing: look at how long every call takes, too, of a mechanism that is called for one draw.
    attacks: further attacks: import paths, names of installed ones, or objects with `fit`.
    distinguisher: a function, or its import path, from an output to a score; all that is looked at
        are then its scores.
    expect: the verdict that the author of a configuration file foresees.
    group: in how many records the inputs may differ; the claim is for as many already.
    journal: the folder for a file that keeps what was drawn (docs/journal.md); resume: go on with
        the one that is there.
    request: the settings that all this was built from, as a result keeps them.

    Raises UsageError for a value outside its range.
    """

    name: str
    target: AnyTarget
    pairs: tuple[NeighbouringPair, ...]
    claim: PrivacyClaim
    samples: int = 1_000_000
    time: float | None = None
    confidence: float = 0.99
    seed: int = 0
    workers: int = 1
    executor: Executor | str | None = None
    bound: BoundMethod = "game"
    full: bool = False
    allow_underpowered: bool = False
    on_error: OnError = "outcome"
    range: tuple[Any, ...] | None = None
    exact: bool = False
    floating_point: bool = False
    timing: bool = False
    attacks: tuple[Any, ...] = ()
    distinguisher: Callable[[Any], Any] | str | None = None
    expect: Expectation | None = None
    group: int = 1
    journal: str | os.PathLike[str] | None = None
    resume: bool = False
    request: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if not self.pairs:
            raise UsageError(f"audit {self.name!r} has no pair of datasets; give d1 and d2")
        self._check_samples()
        if self.time is not None and not 0 < self.time < math.inf:
            raise UsageError(f"time={self.time!r} must be above 0 seconds, and finite")
        check_confidence(self.confidence)
        if self.range is not None and len(self.range) < 2:
            raise UsageError(f"range={list(self.range)!r} must list at least two outputs")
        check_seed(self.seed)
        if self.workers < 1:
            raise UsageError(f"workers={self.workers!r} must be at least 1")
        check_executor(self.executor, self.workers)
        if self.resume and self.journal is None:
            raise UsageError("resume needs the journal to go on with; give --journal DIR as well")
        self._check_attacks()

    def _check_types(self) -> None:
        """Raise for what a type checker would have found: the Python interface has none."""
        if not isinstance(self.claim, PrivacyClaim):
            raise UsageError(f"claim={self.claim!r} is not a claim; give one such as PureDP(1.0)")
        _check_choice("bound", self.bound, get_args(BoundMethod))
        _check_choice("on_error", self.on_error, get_args(OnError))
        for name in ("samples", "workers"):
            _check_number(name, getattr(self, name), Integral, "an integer")
        if self.time is not None:
            _check_number("time", self.time, Real, "a number of seconds")

    def _check_samples(self) -> None:
        if self.samples < MINIMUM_SAMPLES:
            raise UsageError(
                f"samples={self.samples} is too few to certify anything; "
                f"give at least {MINIMUM_SAMPLES:,}"
            )
        if self.samples > MAXIMUM_SAMPLES:
            raise UsageError(
                f"samples={Decimal(int(self.samples)):.3g} is more than can be counted exactly; "
                f"give at most {MAXIMUM_SAMPLES:,}"
            )

    def _check_attacks(self) -> None:
        if self.distinguisher is not None:
            self._check_distinguisher()
        for name in ("floating_point", "timing", "attacks"):
            if self.exact and getattr(self, name):
                raise UsageError(f"{name} looks at draws, and exact makes none; give one of them")
        try:
            compose([self.claim] * self.runs)
        except ClaimError as error:
            raise ClaimError(f"repeat={self.runs} leaves nothing to test: {error}") from error

    def _check_distinguisher(self) -> None:
        """Raise for what is asked of the outputs themselves, of which only scores are seen."""
        probabilistic = "a probabilistic claim" if isinstance(self.claim, ProbabilisticDP) else None
        adversary = getattr(self.claim, "adversary", None) and "an adversary"
        given = {"exact": self.exact, "range": self.range is not None}
        other = probabilistic or adversary or next((name for name in given if given[name]), None)
        if other is not None:
            raise UsageError(
                f"distinguisher and {other}: a distinguisher leaves nothing of outputs but scores, "
                f"and {other} is about outputs; give one of them"
            )

    def describe_target(self) -> str:
        """Return what is audited, and who scores it, as a reader would write it."""
        target = self.target.describe()
        if self.distinguisher is None:
            return target
        given = self.distinguisher
        name = given if isinstance(given, str) else getattr(given, "__qualname__", repr(given))
        return f"{target}, scored by {name}"

    @property
    def draws_ahead(self) -> bool:
        """Whether somebody else draws the next blocks while this process learns from the last."""
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
        return (1 - self.confidence) / len(self.pairs)


def check_confidence(confidence: float) -> None:
    """Raise UsageError for what is no confidence."""
    _check_number("confidence", confidence, Real, "a number")
    if not 0 < confidence < 1:
        raise UsageError(f"confidence={confidence!r} must lie in (0, 1), e.g. 0.99")


def check_seed(seed: int) -> None:
    """Raise UsageError for what is no seed."""
    _check_number("seed", seed, Integral, "an integer")
    if seed < 0:
        raise UsageError(f"seed={seed!r} must be an integer, at least 0")


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(
            f"{name}={value!r} is not known; known: {', '.join(known)}."
            + did_you_mean(str(value), known)
        )


def _check_number(name: str, value: object, kind: type, words: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{name}={value!r} must be {words}")
