"""(ε, δ)-probabilistic differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PointClaim


@dataclass(frozen=True, slots=True)
class ProbabilisticDP(PointClaim):
    """(ε, δ)-probabilistic differential privacy (Meiser 2018): outside a set of outputs of
    probability at most δ, the pure inequality holds. For discrete outputs, exactly when
    P({s : P(s) > e^ε Q(s)}) ≤ δ. Not closed under post-processing. It implies the approximate
    claim with the same (ε, δ), whose profile it has.

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "probabilistic"
    title: ClassVar[str] = "probabilistic differential privacy"
    formula: ClassVar[str] = "P({s : P(s) > e^ε Q(s)}) ≤ δ"
    counts_single_outputs: ClassVar[bool] = True

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-probabilistic DP"
