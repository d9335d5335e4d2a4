"""(ε, δ)-differential privacy, and the definitions that are tested by the same inequality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PointClaim, group_point


@dataclass(frozen=True, slots=True)
class ApproximateDP(PointClaim):
    """(ε, δ)-differential privacy: P(E) ≤ e^ε Q(E) + δ for every event (Dwork & Roth 2014).

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "approximate"
    title: ClassVar[str] = "approximate differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E) + δ"

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-DP"

    def for_group(self, size: int) -> ApproximateDP:
        return ApproximateDP(*group_point(self.point(), size))
