"""(ε, δ)-differential privacy, and the definitions that are tested by the same inequality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import (
    PrivacyClaim,
    ProfilePoint,
    at_most_epsilon,
    checked_delta,
    checked_epsilon,
)


@dataclass(frozen=True, slots=True)
class ApproximateDP(PrivacyClaim):
    """(ε, δ)-differential privacy: P(E) ≤ e^ε Q(E) + δ for every event (Dwork & Roth 2014).

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "approximate"
    title: ClassVar[str] = "approximate differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E) + δ"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def profile(self, epsilon: float) -> float:
        return at_most_epsilon(self.point(), epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, self.delta),)

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-DP"
