"""What every definition shares: the points of its privacy profile, and checked parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal

from dpaudit.errors import ClaimError, Name

# From an outcome to a guess: 1 for d1, 2 for d2, None for neither.
Adversary = Callable[[Any], int | None]
# What a user may write: a number; a text; the import path of a function, which stays a path, or of
# one that the claim is built from (its constructor then takes a `name`, too); pairs of numbers.
Form = Literal["number", "text", "path", "function", "table"]


@dataclass(frozen=True, slots=True)
class Instead:
    """What may be given in place of a parameter. same: the equation between the two.

    convert: from the value that is given to the parameter's. Raises ClaimError.
    """

    name: str
    help: str
    same: str
    convert: Callable[[Any], float]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is said of a field of a definition, as its annotation; flags and schemas come from it.

    forms: which values may be written, the first one on a command line. is_telling: whether who
    gives it means this definition. has_curve: whether `dpaudit explain` draws a curve for each
    value. has_flag: whether a command line takes it.
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
    """What a mechanism is said to satisfy: the base class of all definitions.

    Attributes
    ----------
    key, title, formula : str
        The name on the command line and in files, the name in words, the inequality in one line.
    counts_single_outputs : bool
        Whether the claim bounds the probability of outputs one by one, which no event shows.
    limits_adversaries : bool
        Whether only adversaries of limited means count.

    Notes
    -----
    A claim is valid on construction and does not change. An audit refutes it by refuting one point
    of its privacy profile δ(ε) (docs/method.md §6). Subclasses, one file each, say here all that
    sets them apart. They are frozen dataclasses of their parameters, each annotated with a
    `Parameter`, and registered in `definitions.py`.
    """

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
            δ(ε), the largest P(E) - e^ε Q(E) that the claim allows, rounded up. Unless it says
            more, its point (ε₀, δ₀) implies δ₀ from ε₀ on, and below
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
        """Return the points of the profile that may be attacked.

        Returns
        -------
        tuple of ProfilePoint
            The first one stands for the claim where one has to. An audit picks one of them from
            draws that certify nothing.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the claim as a user would write it, e.g. `(1, 1e-05)-DP`."""

    def point(self) -> ProfilePoint:
        """Return the point that stands for the claim."""
        return self.points()[0]

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float] | None:
        """Return a lower bound for the definition's own parameter, unless that is ε or δ.

        Parameters
        ----------
        epsilon, delta_lower : float
            The ε of the point that was attacked, and a lower bound for δ there.

        Returns
        -------
        tuple of str and float, or None
            The symbol of the parameter, and the bound, rounded down.
        """
        return None

    def divergences(self) -> tuple[tuple[float, float], ...]:
        """Return the Rényi divergences that the claim limits, in both directions.

        Returns
        -------
        tuple of pairs of float
            Orders above 1, each with the most that D_a may be, in nats; none where a point of the
            profile says all.
        """
        return ()

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float] | None:
        """Return a lower bound for the definition's own parameter that a divergence shows.

        Parameters
        ----------
        order : float
            One of those of `divergences`.
        lower : float
            A lower bound of the divergence of this order, in nats.

        Returns
        -------
        tuple of str and float, or None
            The symbol of the parameter, and the bound, rounded down.
        """
        return None

    def for_group(self, size: int) -> PrivacyClaim | None:
        """Return what the claim implies for inputs that differ in several records.

        Parameters
        ----------
        size : int
            How many records, at least 1.

        Returns
        -------
        PrivacyClaim or None
            None where nothing simple is implied.

        Raises
        ------
        ClaimError
            Where δ would reach 1.
        """
        return None

    def composed(self, claims: Sequence[Any]) -> PrivacyClaim | None:
        """Return what claims of this definition, for independent releases, imply together.

        Parameters
        ----------
        claims : sequence of claims of this class
            At least one, this one the first of them.

        Returns
        -------
        PrivacyClaim or None
            None where they imply no more than their points do.

        Raises
        ------
        ClaimError
            Where δ would reach 1.
        """
        return None

    def note_for_integers(self) -> str | None:
        """Return what to know where all outputs are integers; None for most definitions."""
        return None

    def own_tradeoff(self, alpha: float) -> float | None:
        """Return the trade-off function at α, where the definition has a form for it.

        Parameters
        ----------
        alpha : float
            The probability of a false alarm, in [0, 1].

        Returns
        -------
        float or None
            f(α), the least probability of a miss; None where the profile says it (`tradeoff`).
        """
        return None

    @property
    def adversary(self) -> Adversary | str | None:
        """Whose answers are all that is looked at, or None for whatever tells the inputs apart."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class PointClaim(PrivacyClaim):
    """A claim of one (ε, δ), tested at this point of its profile."""

    epsilon: Epsilon
    delta: Delta

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))

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


def checked_epsilon(epsilon: Any) -> float:
    number = checked_number("epsilon", epsilon)
    if not (math.isfinite(number) and number >= 0):
        raise ClaimError(Name("epsilon"), f"={number!r} must be a finite number, at least 0")
    return number


def checked_delta(delta: Any) -> float:
    number = checked_number("delta", delta)
    if not 0 <= number < 1:
        raise ClaimError(Name("delta"), f"={number!r} must lie in [0, 1)")
    return number


def checked_positive(name: str, value: Any, most: float = math.inf) -> float:
    number = checked_number(name, value)
    if not (math.isfinite(number) and 0 < number <= most):
        limit = f"lie in (0, {most:g}]" if most < math.inf else "be a finite number above 0"
        raise ClaimError(Name(name), f"={number!r} must {limit}")
    return number


def points_at(claim: PrivacyClaim, epsilons: Iterable[float]) -> tuple[ProfilePoint, ...]:
    """Return the points of a profile at some ε, but for those that say nothing."""
    points = (ProfilePoint(one, claim.profile(one)) for one in epsilons)
    return tuple(one for one in points if one.delta < 1)


def total(claims: Sequence[Any], name: str) -> float:
    """Return the sum of a parameter over claims."""
    return math.fsum(getattr(one, name) for one in claims)


def meaningful(delta: float, what: str) -> float:
    """Return a δ below 1. Raises ClaimError for one that says nothing, of `what`."""
    if delta >= 1:
        raise ClaimError(f"{what}: δ would be {delta:.3g}, and a δ of 1 or more says nothing")
    return delta


def group_point(point: ProfilePoint, size: int) -> tuple[float, float]:
    """Return the ε and δ that (ε, δ)-DP implies for groups: kε and δ (e^{kε} - 1) / (e^ε - 1),
    which is kδ at ε = 0 (Lalanne, Prop. 6)."""
    epsilon, times = size * point.epsilon, math.inf  # as it is when too large for a float
    with suppress(OverflowError):
        times = math.expm1(epsilon) / math.expm1(point.epsilon) if epsilon else float(size)
    delta = point.delta * times if point.delta else 0.0
    return epsilon, meaningful(delta, f"group of {size}")
