"""What every definition shares: the points of its privacy profile, and checked parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

from dpaudit.errors import ClaimError, Name


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """One inequality that a claim implies: P(E) ≤ e^epsilon · Q(E) + delta for every event E."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class PrivacyClaim(ABC):
    """What a mechanism is said to satisfy; valid on construction.

    Subclasses are frozen dataclasses of their parameters, one file each, registered in
    `registry.py`.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]

    @abstractmethod
    def profile(self, epsilon: float) -> float:
        """Return δ(ε), the largest P(E) - e^ε Q(E) that the claim allows; rounded up.

        epsilon: finite, ≥ 0.
        """

    @abstractmethod
    def points(self) -> tuple[ProfilePoint, ...]:
        """Return the points of the profile that may be attacked; an audit picks one of them from
        draws that certify nothing. The first one stands for the claim where one has to."""

    @abstractmethod
    def describe(self) -> str:
        """Return the claim as a user would write it, e.g. `(1, 1e-05)-DP`."""

    def point(self) -> ProfilePoint:
        """Return the point that stands for the claim."""
        return self.points()[0]

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float] | None:
        """Return symbol and lower bound of the definition's own parameter, unless it is ε or δ.

        delta_lower: a lower bound for δ at `epsilon`, the ε of the point that was attacked.
        """
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class PointClaim(PrivacyClaim):
    """A claim of one (ε, δ), tested at this point of its profile.

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def profile(self, epsilon: float) -> float:
        return at_most_epsilon(self.point(), epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, self.delta),)


def checked_number(name: str, value: Any) -> float:
    """Return a number given by a user or a library, NumPy's among them, as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ClaimError(Name(name), f"={value!r} must be a number")
    try:
        return float(value)
    except OverflowError:
        why = " must be a finite number, not one too large for a float"
        raise ClaimError(Name(name), why) from None


def checked_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """Return a finite number, at least 0. Raises ClaimError for anything else."""
    number = checked_number(name, epsilon)
    if not (math.isfinite(number) and number >= 0):
        raise ClaimError(Name(name), f"={number!r} must be a finite number, at least 0")
    return number


def checked_delta(delta: Any) -> float:
    """Return a number in [0, 1). Raises ClaimError for anything else."""
    number = checked_number("delta", delta)
    if not 0 <= number < 1:
        raise ClaimError(Name("delta"), f"={number!r} must lie in [0, 1)")
    return number


def checked_positive(name: str, value: Any, most: float = math.inf) -> float:
    """Return a finite number above 0, at most `most`. Raises ClaimError for anything else."""
    number = checked_number(name, value)
    if not (math.isfinite(number) and 0 < number <= most):
        limit = f"lie in (0, {most:g}]" if most < math.inf else "be a finite number above 0"
        raise ClaimError(Name(name), f"={number!r} must {limit}")
    return number


def at_most_epsilon(point: ProfilePoint, epsilon: float) -> float:
    """Return the δ at any ε that (ε₀, δ₀)-DP implies, rounded up.

    Above ε₀ it is δ₀; below, δ₀ + (1 - δ₀)(e^ε₀ - e^ε) / (1 + e^ε₀), attained by randomized
    response (Kairouz, Oh & Viswanath 2015).
    """
    if epsilon >= point.epsilon:
        return point.delta
    gap = -math.expm1(epsilon - point.epsilon) / (1 + math.exp(-point.epsilon))
    return min(1.0, (point.delta + (1 - point.delta) * gap) * (1 + 1e-15))
