"""δ-approximate ρ-zero-concentrated differential privacy: zCDP but for a probability of δ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from dpaudit.claims.base import (
    Delta,
    PrivacyClaim,
    ProfilePoint,
    checked_delta,
    meaningful,
    points_at,
    total,
)
from dpaudit.claims.renyi import Rho, ZeroConcentratedDP
from dpaudit.errors import ClaimError


@dataclass(frozen=True, slots=True)
class ApproximateZCDP(PrivacyClaim):
    """δ-approximate ρ-zCDP: ρ-zCDP within events of probability at least 1 - δ.

    Parameters
    ----------
    rho, delta : float
        ρ, in nats for each unit of the order, in (0, 100]; δ, in [0, 1).

    Raises
    ------
    ClaimError
        For any other value, and for a δ so near 1 that nothing is claimed.

    Notes
    -----
    P and Q are the laws of a run on d1 and d2. Some events E and F of probability P(E) ≥ 1 - δ and
    Q(F) ≥ 1 - δ satisfy D_a(P|E ‖ Q|F) ≤ ρ a, and the other way round, for every a > 1. This
    implies (ε, δ + (1 - δ) δ₀(ε))-DP, with δ₀ the profile of ρ-zCDP; docs/method.md §6 proves it.
    Where δ₀ is attained, so is this: P and Q may publish the input outside of their events.
    Source: Bun & Steinke 2016, Def. 8.1, with ξ = 0.

    Examples
    --------
    >>> from dpaudit import ApproximateZCDP
    >>> ApproximateZCDP(0.5, 1e-6).describe()
    '1e-06-approximate 0.5-zCDP'
    """

    key: ClassVar[str] = "approximate-zcdp"
    title: ClassVar[str] = "approximate zero-concentrated differential privacy"
    formula: ClassVar[str] = "D_a(P|E ‖ Q|F) ≤ ρ a for all a > 1, with P(E) ≥ 1 - δ, Q(F) ≥ 1 - δ"

    rho: Rho
    delta: Delta

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", ZeroConcentratedDP(self.rho).rho)
        object.__setattr__(self, "delta", checked_delta(self.delta))
        if not self.points():
            raise ClaimError(f"delta={self.delta!r} allows every event, which claims nothing")

    def profile(self, epsilon: float) -> float:
        inside = ZeroConcentratedDP(self.rho).profile(epsilon)
        return min(1.0, (self.delta + (1 - self.delta) * inside) * (1 + 1e-15))

    def points(self) -> tuple[ProfilePoint, ...]:
        """Return points at the ε of zCDP's own, and where hardly more than δ is allowed."""
        epsilons = [one.epsilon for one in ZeroConcentratedDP(self.rho).points()]
        if self.delta:
            tail = math.log(10 / self.delta)
            epsilons.append(self.rho + 2 * math.sqrt(self.rho * tail))
        return points_at(self, epsilons)

    def describe(self) -> str:
        return f"{self.delta:.12g}-approximate {self.rho:.12g}-zCDP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return the largest ρ, rounded down, whose δ stays below the bound, at the claimed δ."""
        inside = max(0.0, delta_lower - self.delta) / (1 - self.delta) * (1 - 1e-15)
        return ZeroConcentratedDP(self.rho).own_lower(epsilon, inside)

    def composed(self, claims: Sequence[Self]) -> ApproximateZCDP:
        """Return the sum of all ρ, and the probability that a release is not in its event: all are
        with probability ∏ (1 - δ) (Bun & Steinke 2016, Section 8). The sum of all δ is no less."""
        fails = -math.expm1(math.fsum(math.log1p(-one.delta) for one in claims)) * (1 + 1e-15)
        delta = meaningful(min(fails, total(claims, "delta")), "composition")
        return ApproximateZCDP(total(claims, "rho"), delta)
