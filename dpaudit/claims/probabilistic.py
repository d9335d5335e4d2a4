"""(ε, δ)-probabilistic differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PointClaim


@dataclass(frozen=True, slots=True)
class ProbabilisticDP(PointClaim):
    """(ε, δ)-probabilistic differential privacy: ε-DP but for outputs of probability at most δ.

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
    P and Q are the laws of the output on d1 and d2. For discrete outputs the claim holds exactly
    when P({s : P(s) > e^ε Q(s)}) ≤ δ, in both directions. It is not closed under post-processing.
    It implies the approximate claim with the same ε and δ, and has its profile. An audit counts
    single outputs (docs/method.md §7). Source: Meiser 2018.

    Examples
    --------
    >>> from dpaudit import ProbabilisticDP
    >>> ProbabilisticDP(1.0, 0.01).describe()
    '(1, 0.01)-probabilistic DP'
    """

    key: ClassVar[str] = "probabilistic"
    title: ClassVar[str] = "probabilistic differential privacy"
    formula: ClassVar[str] = "P({s : P(s) > e^ε Q(s)}) ≤ δ"
    counts_single_outputs: ClassVar[bool] = True

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-probabilistic DP"
