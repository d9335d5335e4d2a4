"""The base class of privacy definitions, and the checks of their parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal

from dpaudit.errors import ClaimError, Name

# Maps an outcome to a guess: 1 for d1, 2 for d2, None for neither.
Adversary = Callable[[Any], int | None]
# Forms in which a user may write a parameter: a number; a text; the import path of a function, kept
# as a path ("path") or imported before the claim is made, with `name` ("function"); pairs of
# numbers.
Form = Literal["number", "text", "path", "function", "table"]


@dataclass(frozen=True, slots=True)
class Instead:
    """A number that may be given in place of a parameter.

    same: the equation between the two, in words. convert: maps the given value to the value of the
    parameter; raises ClaimError.
    """

    name: str
    help: str
    same: str
    convert: Callable[[Any], float]


@dataclass(frozen=True, slots=True)
class Parameter:
    """The annotation of a field of a definition, from which flags and schemas are derived.

    forms: accepted forms of the value; a command line takes the first. is_telling: whether giving
    the parameter implies this definition. has_curve: whether `dpaudit explain` takes several values
    and draws a curve for each. has_flag: whether the parameter is a flag of the command line.
    """

    help: str
    forms: tuple[Form, ...] = ("number",)
    is_telling: bool = False
    has_curve: bool = False
    has_flag: bool = True
    instead: Instead | None = None


Epsilon = Annotated[float, Parameter("The ε of the claim.", has_curve=True)]
Delta = Annotated[float, Parameter("The δ of the claim.")]


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """One inequality that a claim implies: P(E) ≤ e^ε Q(E) + δ for every event E.

    Parameters
    ----------
    epsilon, delta : float
        ε ≥ 0 in nats, δ in [0, 1).
    """

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class PrivacyClaim(ABC):
    """A privacy guarantee that a mechanism claims: the base class of all definitions.

    Attributes
    ----------
    key, title, formula : str
        Name on the command line and in files, name in words, and the inequality in one line.
    counts_single_outputs : bool
        Whether the claim is about single outputs, so that it is tested output by output.
    limits_adversaries : bool
        Whether the claim holds against computationally limited adversaries only.

    Notes
    -----
    A claim is valid on construction and does not change. An audit refutes it by refuting one point
    of its privacy profile δ(ε) (docs/method.md §6). A subclass is a frozen dataclass of its
    parameters, each annotated with a `Parameter`, and is registered in `definitions.py`. Its
    methods are all that distinguishes it: no other module names it."""

    key: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    counts_single_outputs: ClassVar[bool] = False
    limits_adversaries: ClassVar[bool] = False

    def profile(self, epsilon: float) -> float:
        """Return the privacy profile at ε.

        Parameters
        ----------
        epsilon : float
            ε, in nats. Finite, at least 0.

        Returns
        -------
        float
            δ(ε), the largest P(E) - e^ε Q(E) that the claim allows, rounded up. By default, it
            follows from the point (ε₀, δ₀): δ₀ for ε ≥ ε₀, else
            δ₀ + (1 - δ₀)(e^ε₀ - e^ε) / (1 + e^ε₀), which randomized response attains (Kairouz, Oh &
            Viswanath 2015).
        """
        point = self.point()
        if epsilon >= point.epsilon:
            return point.delta
        gap = -math.expm1(epsilon - point.epsilon) / (1 + math.exp(-point.epsilon))
        return min(1.0, (point.delta + (1 - point.delta) * gap) * (1 + 1e-15))

    @abstractmethod
    def points(self) -> tuple[ProfilePoint, ...]:
        """Return points of the profile, one of which an audit tests.

        Returns
        -------
        tuple of ProfilePoint
            The first represents the claim if only one can be used. An audit picks one of them by
            draws that it does not certify with.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the claim as a user would write it, e.g. `(1, 1e-05)-DP`."""

    def point(self) -> ProfilePoint:
        """Return the point that represents the claim."""
        return self.points()[0]

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float] | None:
        """Return a lower bound for the definition's own parameter, if that is neither ε nor δ.

        Parameters
        ----------
        epsilon, delta_lower : float
            The ε of the tested point, and a lower bound for δ at that ε.

        Returns
        -------
        tuple of str and float, or None
            The symbol of the parameter, and the bound, rounded down.
        """
        return None

    def divergences(self) -> tuple[tuple[float, float], ...]:
        """Return the Rényi divergences that the claim bounds, in both directions.

        Returns
        -------
        tuple of pairs of float
            Pairs of an order a > 1 and the largest D_a that the claim allows, in nats; empty if the
            claim is defined by its profile.
        """
        return ()

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float] | None:
        """Return a lower bound for the definition's own parameter from that of a divergence.

        Parameters
        ----------
        order : float
            An order of `divergences`.
        lower : float
            A lower bound for the divergence of this order, in nats.

        Returns
        -------
        tuple of str and float, or None
            The symbol of the parameter, and the bound, rounded down.
        """
        return None

    def for_group(self, size: int) -> PrivacyClaim | None:
        """Return the claim that this one implies for inputs that differ in several records.

        Parameters
        ----------
        size : int
            Number of records, at least 1.

        Returns
        -------
        PrivacyClaim or None
            None if no simple claim is implied.

        Raises
        ------
        ClaimError
            If δ would reach 1.
        """
        return None

    def composed(self, claims: Sequence[Any]) -> PrivacyClaim | None:
        """Return the claim for several independent releases, each with a claim of this definition.

        Parameters
        ----------
        claims : sequence of claims of this class
            At least one; the first is this claim.

        Returns
        -------
        PrivacyClaim or None
            None if the definition has no rule of its own; the points are then added up.

        Raises
        ------
        ClaimError
            If δ would reach 1.
        """
        return None

    def note_for_integers(self) -> str | None:
        """Return a note for outputs that are all integers; None for most definitions."""
        return None

    def own_tradeoff(self, alpha: float) -> float | None:
        """Return the trade-off function at α, if the definition has a closed form.

        Parameters
        ----------
        alpha : float
            The probability of a false alarm, in [0, 1].

        Returns
        -------
        float or None
            f(α), the least probability of a miss; None if it follows from the profile (`tradeoff`).
        """
        return None

    @property
    def adversary(self) -> Adversary | str | None:
        """The only adversary of the claim, or its import path; None if every adversary counts."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class PointClaim(PrivacyClaim):
    """A claim with one (ε, δ), which is the point of its profile that an audit tests."""

    epsilon: Epsilon
    delta: Delta

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, self.delta),)


def checked_number(name: str, value: Any) -> float:
    """Return a number as a float; NumPy's numbers are accepted, Booleans are not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ClaimError(Name(name), f"={value!r} must be a number", code="option-invalid")
    try:
        return float(value)
    except OverflowError:
        why = " must be a finite number, not one too large for a float"
        raise ClaimError(Name(name), why, code="option-invalid") from None


def checked_epsilon(epsilon: Any) -> float:
    number = checked_number("epsilon", epsilon)
    if not (math.isfinite(number) and number >= 0):
        why = f"={number!r} must be a finite number, at least 0"
        raise ClaimError(Name("epsilon"), why, code="option-invalid")
    return number


def checked_delta(delta: Any) -> float:
    number = checked_number("delta", delta)
    if not 0 <= number < 1:
        raise ClaimError(Name("delta"), f"={number!r} must lie in [0, 1)", code="option-invalid")
    return number


def checked_positive(name: str, value: Any, most: float = math.inf) -> float:
    number = checked_number(name, value)
    if not (math.isfinite(number) and 0 < number <= most):
        limit = f"lie in (0, {most:g}]" if most < math.inf else "be a finite number above 0"
        raise ClaimError(Name(name), f"={number!r} must {limit}", code="option-invalid")
    return number


def points_at(claim: PrivacyClaim, epsilons: Iterable[float]) -> tuple[ProfilePoint, ...]:
    """Return the points of a profile at the given ε, without those with δ ≥ 1, which allow all."""
    points = (ProfilePoint(epsilon, claim.profile(epsilon)) for epsilon in epsilons)
    return tuple(point for point in points if point.delta < 1)


def total(claims: Sequence[Any], name: str) -> float:
    """Return the sum of a parameter over claims."""
    return math.fsum(getattr(claim, name) for claim in claims)


def below_one(delta: float, what: str) -> float:
    """Return δ. Raises ClaimError, which names `what`, if δ ≥ 1, which every mechanism
    satisfies."""
    if delta >= 1:
        raise ClaimError(
            f"{what}: δ would be {delta:.3g}, and a δ of 1 or more says nothing",
            code="claim-says-nothing",
        )
    return delta


def group_point(point: ProfilePoint, size: int) -> tuple[float, float]:
    """Return the ε and δ that (ε, δ)-DP implies for groups: kε and δ (e^{kε} - 1) / (e^ε - 1),
    which is kδ at ε = 0 (Lalanne, Prop. 6)."""
    epsilon, times = size * point.epsilon, math.inf  # inf if too large for a float
    with suppress(OverflowError):
        times = math.expm1(epsilon) / math.expm1(point.epsilon) if epsilon else float(size)
    delta = point.delta * times if point.delta else 0.0
    return epsilon, below_one(delta, f"group of {size}")
