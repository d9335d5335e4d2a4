"""Total variation distance: (0, δ)-differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PrivacyClaim, ProfilePoint, checked_delta


@dataclass(frozen=True, slots=True)
class TotalVariation(PrivacyClaim):
    """Total variation distance of at most δ: |P(E) - Q(E)| ≤ δ for every event, (0, δ)-DP.

    delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "total-variation"
    title: ClassVar[str] = "total variation distance"
    formula: ClassVar[str] = "|P(E) - Q(E)| ≤ δ"

    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def profile(self, epsilon: float) -> float:
        return self.delta

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(0.0, self.delta),)

    def describe(self) -> str:
        return f"total variation of at most {self.delta:.12g}"
