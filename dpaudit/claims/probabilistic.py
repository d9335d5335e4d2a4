"""(ε, δ)-probabilistic differential privacy."""

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
class ProbabilisticDP(PrivacyClaim):
    """(ε, δ)-probabilistic differential privacy (Meiser 2018): outside a set of outputs of
    probability at most δ, the pure inequality holds. For discrete outputs, exactly when
    P({s : P(s) > e^ε Q(s)}) ≤ δ. Not closed under post-processing.

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "probabilistic"
    title: ClassVar[str] = "probabilistic differential privacy"
    formula: ClassVar[str] = "P({s : P(s) > e^ε Q(s)}) ≤ δ"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def profile(self, epsilon: float) -> float:
        """Return the δ of the approximate claim that it implies, with the same (ε, δ)."""
        return at_most_epsilon(self.point(), epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, self.delta),)

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-probabilistic DP"
