"""What to audit: everything an audit depends on, in one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError, did_you_mean
from dpaudit.pairs import NeighbouringPair
from dpaudit.targets.target import AnyTarget

BoundMethod = Literal["game", "clopper-pearson"]
OnError = Literal["outcome", "fail"]
Expectation = Literal["violation", "pass"]

MINIMUM_SAMPLES = 1_000

# How a pair's error probability is shared out (docs/method.md §4): betting, the exact test at the
# planned end, and the one on a confirmation block after an early stop. They add up to 1, so that
# the union bound holds whichever of the two exact tests a run comes to.
BETTING_SHARE = 0.2
CERTIFICATION_SHARE = 0.75
CONFIRMATION_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpec:
    """One audit: is `claim` refuted for `target` on one of `pairs`?

    samples: draws for each pair, both arms together, at least 1,000.
    time: seconds for the whole audit; when given, plans the draws from the speed of the first
        blocks instead of `samples`.
    confidence: in (0, 1); 1 - confidence is shared by all pairs.
    seed: root of every random stream, ≥ 0.
    workers: processes that sample; 1 samples in this process.
    bound: how the draws kept for certification become a bound (docs/method.md §2).
    full: go on to the last draw after a refutation, to tighten the bound.
    on_error: an exception of the mechanism is an outcome, or ends the audit.
    range: all outputs that there are, failures by the name of the exception; gives an interval.
    exact: no draws; compute from the probability mass function that the mechanism states.
    expect: the verdict that the author of a configuration file foresees.

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
    bound: BoundMethod = "game"
    full: bool = False
    on_error: OnError = "outcome"
    range: tuple[Any, ...] | None = None
    exact: bool = False
    expect: Expectation | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if not self.pairs:
            raise UsageError(f"audit {self.name!r} has no pair of datasets; give d1 and d2")
        if self.samples < MINIMUM_SAMPLES:
            raise UsageError(
                f"samples={self.samples} is too few to certify anything; "
                f"give at least {MINIMUM_SAMPLES:,}"
            )
        if self.time is not None and not 0 < self.time < math.inf:
            raise UsageError(f"time={self.time!r} must be above 0 seconds, and finite")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence={self.confidence!r} must lie in (0, 1), e.g. 0.99")
        if self.range is not None and len(self.range) < 2:
            raise UsageError(f"range={list(self.range)!r} must list at least two outputs")
        if self.seed < 0:
            raise UsageError(f"seed={self.seed!r} must be an integer, at least 0")
        if self.workers < 1:
            raise UsageError(f"workers={self.workers!r} must be at least 1")

    def _check_types(self) -> None:
        """Raise for what a type checker would have found: the Python interface has none."""
        if not isinstance(self.claim, PrivacyClaim):
            raise UsageError(f"claim={self.claim!r} is not a claim; give one such as PureDP(1.0)")
        _check_choice("bound", self.bound, get_args(BoundMethod))
        _check_choice("on_error", self.on_error, get_args(OnError))
        for name in ("samples", "seed", "workers"):
            _check_number(name, getattr(self, name), Integral, "an integer")
        _check_number("confidence", self.confidence, Real, "a number")
        if self.time is not None:
            _check_number("time", self.time, Real, "a number of seconds")

    @property
    def alpha(self) -> float:
        """Probability of error that one pair may spend."""
        return (1 - self.confidence) / len(self.pairs)


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(
            f"{name}={value!r} is not known; known: {', '.join(known)}."
            + did_you_mean(str(value), known)
        )


def _check_number(name: str, value: object, kind: type, words: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{name}={value!r} must be {words}")
