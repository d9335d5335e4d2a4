"""(ε, δ)-computational differential privacy: against adversaries of limited means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from dpaudit.claims.base import (
    Adversary,
    Delta,
    Parameter,
    PointClaim,
    group_point,
    meaningful,
    total,
)
from dpaudit.errors import ClaimError


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
    limits_adversaries: ClassVar[bool] = True

    delta: Delta = 0.0
    adversary: Annotated[
        Adversary | str | None,
        Parameter(
            "For a computational claim: a function from an output to 1, 2 or None.",
            forms=("path",),
            metavar="PATH",
            is_telling=True,
        ),
    ] = None

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

    def for_group(self, size: int) -> ComputationalDP:
        return ComputationalDP(*group_point(self.point(), size), self.adversary)

    def composed(self, claims: Sequence[Self]) -> ComputationalDP:
        """Return the sums of all ε and δ, against who is named for every release."""
        delta = meaningful(total(claims, "delta"), "composition")
        common = all(one.adversary == self.adversary for one in claims)
        adversary = self.adversary if common else None
        return ComputationalDP(total(claims, "epsilon"), delta, adversary)
