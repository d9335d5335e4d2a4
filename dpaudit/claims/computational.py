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
    """(ε, δ)-computational differential privacy: no feasible adversary refutes (ε, δ)-DP.

    Parameters
    ----------
    epsilon : float
        ε, in nats. Finite, at least 0.
    delta : float, default 0
        δ, in [0, 1).
    adversary : callable or str, optional
        A function from an output to 1 (a guess of d1), 2 (d2) or None (no guess), or its import
        path. Its answers are then all that an audit looks at. Without it, the attacks of dpaudit
        are the adversaries.

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    The claim: no adversary of polynomial time finds an event E with P(E) > e^ε Q(E) + δ, where P
    and Q are the laws of the output on d1 and d2. An audit refutes it by an adversary that ran to
    its end (docs/method.md §6). Source: Mironov, Pandey, Reingold & Vadhan 2009; Meiser 2018.

    Examples
    --------
    >>> from dpaudit import ComputationalDP
    >>> def parity(output):
    ...     return 1 if output % 2 else 2
    >>> ComputationalDP(1.0, 1e-6, parity).describe()
    '(1, 1e-06)-computational DP against parity'
    """

    key: ClassVar[str] = "computational"
    title: ClassVar[str] = "computational differential privacy"
    formula: ClassVar[str] = "P(A = 1) ≤ e^ε Q(A = 1) + δ for every feasible A"
    limits_adversaries: ClassVar[bool] = True

    delta: Delta = 0.0
    adversary: Annotated[
        Adversary | str | None,
        Parameter(
            "The adversary of a computational claim: a function from an output to 1, 2 or None.",
            forms=("path",),
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
