"""ε-differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PrivacyClaim, ProfilePoint, at_most_epsilon, checked_epsilon


@dataclass(frozen=True, slots=True)
class PureDP(PrivacyClaim):
    """ε-differential privacy: P(E) ≤ e^ε Q(E) for every event (Dwork & Roth 2014, Def. 2.4).

    epsilon: finite, ≥ 0. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "pure"
    title: ClassVar[str] = "pure differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E)"

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    def profile(self, epsilon: float) -> float:
        return at_most_epsilon(self.point(), epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, 0.0),)

    def describe(self) -> str:
        return f"{self.epsilon:.12g}-DP"
