"""Definitions that are tested at a single point: pure, approximate, probabilistic and computational
differential privacy, and total variation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from dpaudit.claims.base import (
    Adversary,
    Delta,
    Epsilon,
    Parameter,
    PointClaim,
    PrivacyClaim,
    ProfilePoint,
    below_one,
    group_point,
    invalid,
    total,
)


def _checked_adversary(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str) or callable(value):
        return value
    why = "must be a function of an outcome, or its import path, package.module:function"
    raise invalid(f"{name}={value!r} {why}")


@dataclass(frozen=True, slots=True)
class PureDP(PrivacyClaim):
    """ε-differential privacy: P(E) ≤ e^ε Q(E) for every event E, in both directions.

    Parameters
    ----------
    epsilon : float
        ε, in nats, finite, at least 0.

    Notes
    -----
    An audit tests the point (ε, 0) of the privacy profile (docs/method.md §6). Source: Dwork & Roth
    2014, Def. 2.4.

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

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, 0.0),)

    def describe(self) -> str:
        return f"{self.epsilon:.12g}-DP"

    def for_group(self, size: int) -> PureDP:
        """Return kε-DP for k = `size` records (Lalanne, Prop. 1; Dwork & Roth 2014, Thm. 2.2)."""
        return PureDP(size * self.epsilon)

    def composed(self, claims: Sequence[Self]) -> PureDP:
        """Return the claim with the sum of all ε (Lalanne, Prop. 3; Dwork & Roth, Thm. 3.16)."""
        return PureDP(total(claims, "epsilon"))


@dataclass(frozen=True, slots=True)
class ApproximateDP(PointClaim):
    """(ε, δ)-differential privacy: P(E) ≤ e^ε Q(E) + δ for every event E, in both directions.

    Parameters
    ----------
    epsilon, delta : float
        ε, in nats, finite, at least 0; δ, in [0, 1).

    Notes
    -----
    An audit tests the point (ε, δ) of the privacy profile (docs/method.md §6). Source: Dwork & Roth
    2014, Def. 2.4.

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


@dataclass(frozen=True, slots=True)
class ProbabilisticDP(PointClaim):
    """(ε, δ)-probabilistic differential privacy: ε-DP except on a set of probability ≤ δ.

    Parameters
    ----------
    epsilon, delta : float
        ε, in nats, finite, at least 0; δ, in [0, 1).

    Notes
    -----
    For discrete outputs the claim holds if and only if P({s : P(s) > e^ε Q(s)}) ≤ δ. The claim
    implies (ε, δ)-DP, with the same privacy profile; post-processing may break it. An audit counts
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


@dataclass(frozen=True, slots=True)
class ComputationalDP(PointClaim):
    """(ε, δ)-computational differential privacy: no adversary of polynomial time refutes (ε, δ)-DP.

    Parameters
    ----------
    epsilon : float
        ε, in nats, finite, at least 0.
    delta : float, default 0
        δ, in [0, 1).
    adversary : callable or str, optional
        A function from an output to a guess (1 for d1, 2 for d2, None for no guess), or its import
        path. An audit then uses only the guesses of this function. Default: the attacks of dpaudit.

    Notes
    -----
    The claim: no adversary of polynomial time finds an event E with P(E) > e^ε Q(E) + δ. An audit
    refutes the claim by running such an adversary (docs/method.md §6). Source: Mironov, Pandey,
    Reingold & Vadhan 2009; Meiser 2018.

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
            _checked_adversary,
            forms=("path",),
            is_telling=True,
        ),
    ] = None

    def describe(self) -> str:
        against = f" against {self.adversary_name}" if self.adversary else ""
        return f"({self.epsilon:.12g}, {self.delta:.12g})-computational DP{against}"

    @property
    def adversary_name(self) -> str:
        """The name of the adversary in reports; `""` if the claim names no adversary."""
        if self.adversary is None or isinstance(self.adversary, str):
            return self.adversary or ""
        return getattr(self.adversary, "__qualname__", repr(self.adversary))

    def parameters(self) -> dict[str, Any]:
        parameters = {"epsilon": self.epsilon, "delta": self.delta}
        return {**parameters, "adversary": self.adversary_name} if self.adversary else parameters

    def for_group(self, size: int) -> ComputationalDP:
        return ComputationalDP(*group_point(self.point(), size), self.adversary)

    def composed(self, claims: Sequence[Self]) -> ComputationalDP:
        """Return the claim with the sum of all ε and the sum of all δ. It names an adversary only
        if all claims name the same one."""
        delta = below_one(total(claims, "delta"), "composition")
        common = all(claim.adversary == self.adversary for claim in claims)
        adversary = self.adversary if common else None
        return ComputationalDP(total(claims, "epsilon"), delta, adversary)


@dataclass(frozen=True, slots=True)
class TotalVariation(PrivacyClaim):
    """Total variation distance of at most δ: `|P(E) - Q(E)| ≤ δ` for every event E.

    Parameters
    ----------
    delta : float
        δ, in [0, 1).

    Notes
    -----
    The claim is (0, δ)-DP, and an audit tests the point (0, δ) of the privacy profile
    (docs/method.md §6).

    Examples
    --------
    >>> from dpaudit import TotalVariation
    >>> TotalVariation(0.1).describe()
    'total variation of at most 0.1'
    """

    key: ClassVar[str] = "total-variation"
    title: ClassVar[str] = "total variation distance"
    formula: ClassVar[str] = "|P(E) - Q(E)| ≤ δ"
    is_distance: ClassVar[bool] = True

    delta: Delta

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(0.0, self.delta),)

    def describe(self) -> str:
        return f"total variation of at most {self.delta:.12g}"

    def for_group(self, size: int) -> TotalVariation:
        """Return a total variation of at most kδ for k = `size` records (triangle inequality)."""
        return TotalVariation(below_one(size * self.delta, f"group of {size}"))

    def composed(self, claims: Sequence[Self]) -> TotalVariation:
        """Return the claim with the sum of all δ (Lalanne, Prop. 8, at ε = 0)."""
        return TotalVariation(below_one(total(claims, "delta"), "composition"))
