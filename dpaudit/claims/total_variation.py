"""Total variation distance: (0, δ)-differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from dpaudit.claims.base import Delta, PrivacyClaim, ProfilePoint, checked_delta, meaningful, total


@dataclass(frozen=True, slots=True)
class TotalVariation(PrivacyClaim):
    """Total variation distance of at most δ: `|P(E) - Q(E)| ≤ δ` for every event E.

    Parameters
    ----------
    delta : float
        δ, in [0, 1).

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    P and Q are the laws of the output on d1 and d2. The claim is (0, δ)-DP, and an audit tests the
    point (0, δ) of the privacy profile (docs/method.md §6).

    Examples
    --------
    >>> from dpaudit import TotalVariation
    >>> TotalVariation(0.1).describe()
    'total variation of at most 0.1'
    """

    key: ClassVar[str] = "total-variation"
    title: ClassVar[str] = "total variation distance"
    formula: ClassVar[str] = "|P(E) - Q(E)| ≤ δ"

    delta: Delta

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(0.0, self.delta),)

    def describe(self) -> str:
        return f"total variation of at most {self.delta:.12g}"

    def for_group(self, size: int) -> TotalVariation:
        """Return kδ, by the triangle inequality."""
        return TotalVariation(meaningful(size * self.delta, f"group of {size}"))

    def composed(self, claims: Sequence[Self]) -> TotalVariation:
        """Return the sum of all δ (Lalanne, Prop. 8, at ε = 0)."""
        return TotalVariation(meaningful(total(claims, "delta"), "composition"))
