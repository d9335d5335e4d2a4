"""ε-differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from dpaudit.claims.base import Epsilon, PrivacyClaim, ProfilePoint, checked_epsilon, total


@dataclass(frozen=True, slots=True)
class PureDP(PrivacyClaim):
    """ε-differential privacy: P(E) ≤ e^ε Q(E) for every event E, in both directions.

    Parameters
    ----------
    epsilon : float
        ε, in nats. Finite, at least 0.

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    P and Q are the laws of the output on d1 and d2. An audit tests the point (ε, 0) of the privacy
    profile (docs/method.md §6). Source: Dwork & Roth 2014, Def. 2.4.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> PureDP(1.0).describe()
    '1-DP'
    >>> round(PureDP(1.0).profile(0.5), 3)
    0.288
    """

    key: ClassVar[str] = "pure"
    title: ClassVar[str] = "pure differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E)"

    epsilon: Epsilon

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, 0.0),)

    def describe(self) -> str:
        return f"{self.epsilon:.12g}-DP"

    def for_group(self, size: int) -> PureDP:
        """Return kε-DP (Lalanne, Prop. 1; Dwork & Roth 2014, Thm. 2.2)."""
        return PureDP(size * self.epsilon)

    def composed(self, claims: Sequence[Self]) -> PureDP:
        """Return the sum of all ε (Lalanne, Prop. 3; Dwork & Roth 2014, Thm. 3.16)."""
        return PureDP(total(claims, "epsilon"))
