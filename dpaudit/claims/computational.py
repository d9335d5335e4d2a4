"""(ε, δ)-computational differential privacy: against adversaries of limited means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dpaudit.claims.base import PointClaim
from dpaudit.errors import ClaimError

# From an outcome to a guess: 1 for d1, 2 for d2, None for neither.
Adversary = Callable[[Any], int | None]


@dataclass(frozen=True, slots=True)
class ComputationalDP(PointClaim):
    """(ε, δ)-computational differential privacy: no adversary of polynomial time finds an event
    with P(E) > e^ε Q(E) + δ (Mironov, Pandey, Reingold & Vadhan 2009; Meiser 2018).

    An audit refutes it by an adversary that ran to its end. Without `adversary` these are the
    attacks of this program; with one, its answers are all that is looked at.

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1.
    adversary: a callable from an outcome to 1 (d1), 2 (d2) or None, or the import path of one.
    Raises ClaimError for other values.
    """

    key: ClassVar[str] = "computational"
    title: ClassVar[str] = "computational differential privacy"
    formula: ClassVar[str] = "P(A = 1) ≤ e^ε Q(A = 1) + δ for every feasible A"

    delta: float = 0.0
    adversary: Adversary | str | None = None

    def __post_init__(self) -> None:
        # Not super(), which a dataclass with slots does not find.
        PointClaim.__post_init__(self)
        known = self.adversary is None or isinstance(self.adversary, str)
        if not known and not callable(self.adversary):
            raise ClaimError(
                f"adversary={self.adversary!r} must be a function of an outcome, or its import "
                "path, package.module:function"
            )

    def describe(self) -> str:
        against = f" against {self.adversary_name}" if self.adversary else ""
        return f"({self.epsilon:.12g}, {self.delta:.12g})-computational DP{against}"

    @property
    def adversary_name(self) -> str:
        """How reports call the adversary; empty without one."""
        if self.adversary is None or isinstance(self.adversary, str):
            return self.adversary or ""
        return getattr(self.adversary, "__qualname__", repr(self.adversary))

    def parameters(self) -> dict[str, Any]:
        given = {"epsilon": self.epsilon, "delta": self.delta}
        return {**given, "adversary": self.adversary_name} if self.adversary else given
