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
    total,
)
from dpaudit.claims.renyi import Rho, ZeroConcentratedDP
from dpaudit.errors import ClaimError


@dataclass(frozen=True, slots=True)
class ApproximateZCDP(PrivacyClaim):
    """δ-approximate ρ-zCDP: some event E of a run on d1 and some event F of a run on d2, each of
    probability at least 1 - δ, such that D_a(P|E ‖ Q|F) ≤ ρ a, and the other way round, for every
    a > 1 (Bun & Steinke 2016, Def. 8.1, with ξ = 0).

    It implies (ε, δ + (1 - δ) δ₀(ε))-DP, with δ₀ the profile of ρ-zCDP. Proof: the law of a run is
    P = (1 - δ) P₀ + δ P₁ with P₀ = P|E and some law P₁, into which goes what E has beyond 1 - δ;
    and Q = (1 - δ) Q₀ + δ Q₁. So P(S) - e^ε Q(S) ≤ (1 - δ) (P₀(S) - e^ε Q₀(S)) + δ P₁(S), at
    most (1 - δ) δ₀(ε) + δ. Where δ₀ is attained, so is this: P₁ and Q₁ may publish the input.

    rho: finite, > 0, at most 100. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
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
        points = (ProfilePoint(one, self.profile(one)) for one in epsilons)
        return tuple(one for one in points if one.delta < 1)

    def describe(self) -> str:
        return f"{self.delta:.12g}-approximate {self.rho:.12g}-zCDP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return the largest ρ, rounded down, whose δ stays below the bound, at the claimed δ."""
        inside = max(0.0, delta_lower - self.delta) / (1 - self.delta) * (1 - 1e-15)
        return ZeroConcentratedDP(self.rho).own_lower(epsilon, inside)

    def composed(self, claims: Sequence[Self]) -> ApproximateZCDP:
        """Return the sum of all ρ, and the probability that any of the releases fails: all of them
        are in their events with probability ∏ (1 - δ), and then divergences add up (Bun & Steinke
        2016, Section 8). It is at most the sum of all δ."""
        fails = -math.expm1(math.fsum(math.log1p(-one.delta) for one in claims)) * (1 + 1e-15)
        delta = meaningful(min(fails, total(claims, "delta")), "composition")
        return ApproximateZCDP(total(claims, "rho"), delta)
