"""What to audit: everything an audit depends on, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError
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
    expect: Expectation | None = None

    def __post_init__(self) -> None:
        if not self.pairs:
            raise UsageError(f"audit {self.name!r} has no pair of datasets; give d1 and d2")
        if self.samples < MINIMUM_SAMPLES:
            raise UsageError(
                f"samples={self.samples} is too few to certify anything; "
                f"give at least {MINIMUM_SAMPLES:,}"
            )
        if self.time is not None and not self.time > 0:
            raise UsageError(f"time={self.time!r} must be above 0 seconds")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence={self.confidence!r} must lie in (0, 1), e.g. 0.99")
        if self.seed < 0:
            raise UsageError(f"seed={self.seed!r} must be an integer, at least 0")
        if self.workers < 1:
            raise UsageError(f"workers={self.workers!r} must be at least 1")

    @property
    def alpha(self) -> float:
        """Probability of error that one pair may spend."""
        return (1 - self.confidence) / len(self.pairs)
