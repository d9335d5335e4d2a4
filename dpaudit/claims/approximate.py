"""(ε, δ)-differential privacy, and the definitions that are tested by the same inequality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PointClaim, group_point


@dataclass(frozen=True, slots=True)
class ApproximateDP(PointClaim):
    """(ε, δ)-differential privacy: P(E) ≤ e^ε Q(E) + δ for every event E, in both directions.

    Parameters
    ----------
    epsilon, delta : float
        ε, in nats, finite, at least 0; δ, in [0, 1).

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    P and Q are the laws of the output on d1 and d2. An audit tests the point (ε, δ) of the privacy
    profile (docs/method.md §6). Source: Dwork & Roth 2014, Def. 2.4.

    Examples
    --------
    >>> from dpaudit import ApproximateDP
    >>> ApproximateDP(1.0, 1e-5).describe()
    '(1, 1e-05)-DP'
    """

    key: ClassVar[str] = "approximate"
    title: ClassVar[str] = "approximate differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E) + δ"

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-DP"

    def for_group(self, size: int) -> ApproximateDP:
        return ApproximateDP(*group_point(self.point(), size))
