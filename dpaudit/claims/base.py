"""The base class of privacy definitions, and the description of their parameters.

A definition is a subclass of `PrivacyClaim`; a claim is an instance. Checks of values, command-line
flags, schemas and documentation are derived from the `Parameter` annotation of each field.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

from dpaudit.errors import ClaimError, Name

# A function from an output to a guess of the input: 1 for d1, 2 for d2, None for no guess.
Adversary = Callable[[Any], int | None]
# Kinds of values that a user may give for a parameter.
# "number": a number.
# "text": a text.
# "path": the import path of a function. The claim keeps the path as a text.
# "function": the import path of a function, such as `package.module:f`. The claim gets the function
# itself. The parameter called "name", the name of the function in reports, is set to the path
# unless the user gives a name.
# "table": a list of pairs of numbers.
Form = Literal["number", "text", "path", "function", "table"]
# A check of a parameter: called with the name of the parameter (for messages) and its value;
# returns the value for the claim, such as a float. It raises ClaimError for an impossible value.
Check = Callable[[str, Any], Any]


def invalid(*parts: str) -> ClaimError:
    """Return the ClaimError for a parameter with an impossible value. `parts` make up its
    message."""
    return ClaimError(*parts, code="option-invalid")


def checked_number(name: str, value: Any) -> float:
    """Return a number of Python or NumPy as a float. Raise ClaimError for any other value, such as
    a Boolean; `name` is the name of the parameter, for the message."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise invalid(Name(name), f"={value!r} must be a number")
    try:
        return float(value)
    except OverflowError:
        why = " must be a finite number, not one too large for a float"
        raise invalid(Name(name), why) from None


def number_that(must: str, holds: Callable[[float], bool]) -> Callable[[str, Any], float]:
    """Return a check that a parameter is a number with a certain property. The check takes the name
    and the value of the parameter. It returns the value as a float, or raises ClaimError.

    must: the property, as text for messages, such as "lie in [0, 1)".
    holds: function that returns whether a number has the property; it must return False for NaN.
    """

    def checked(name: str, value: Any) -> float:
        number = checked_number(name, value)
        if not holds(number):
            raise invalid(Name(name), f"={number!r} must {must}")
        return number

    return checked


def positive_up_to(most: float) -> Callable[[str, Any], float]:
    """Return a check, as `number_that` does, that a parameter lies in (0, most]."""
    return number_that(f"lie in (0, {most:g}]", lambda number: 0 < number <= most)


checked_epsilon = number_that("be a finite number, at least 0", lambda x: 0 <= x < math.inf)
checked_delta = number_that("lie in [0, 1)", lambda x: 0 <= x < 1)
checked_positive = number_that("be a finite number above 0", lambda x: 0 < x < math.inf)


@dataclass(frozen=True, slots=True)
class Instead:
    """A substitute for a parameter.

    name, help: name of the substitute, and its text in the command-line help.
    same: the equation between parameter and substitute, such as "mu = 1/sigma", for messages.
    convert: a function that computes the parameter from the substitute; raises ClaimError for an
        impossible value.
    """

    name: str
    help: str
    same: str
    convert: Callable[[Any], float]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A description of a field of a definition, from which checks, flags and schemas are derived.

    help: text of the command-line help.
    check: a function that checks a value and returns it. Default: every value is accepted
        unchanged.
    forms: accepted forms of the value in files; the command line accepts only the first.
    is_telling: whether the parameter implies its definition, so that users need not name the
        definition.
    has_curve: whether `dpaudit explain` accepts several values of the parameter, and draws a curve
        for each. A parameter without curves is accepted only together with one that has curves.
    has_flag: whether the command line has a flag for the parameter.
    instead: substitute that may be given in place of the parameter; None if there is none.
    symbol: symbol of the parameter in reports, such as "ρ"; "": its name is used. Another parameter
        may stand in braces and is replaced by its value, as in "D_{order:g}".
    """

    help: str
    check: Check = lambda name, value: value
    forms: tuple[Form, ...] = ("number",)
    is_telling: bool = False
    has_curve: bool = False
    has_flag: bool = True
    instead: Instead | None = None
    symbol: str = ""


Epsilon = Annotated[float, Parameter("The ε of the claim.", checked_epsilon, has_curve=True)]
Delta = Annotated[float, Parameter("The δ of the claim.", checked_delta)]


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """A point (ε, δ) of a privacy profile: the inequality P(E) ≤ e^ε Q(E) + δ for every event E.

    Parameters
    ----------
    epsilon, delta : float
        ε ≥ 0 in nats, δ in [0, 1).
    """

    epsilon: float
    delta: float


class PrivacyClaim(ABC):
    """A privacy guarantee that a mechanism claims: the base class of all definitions.

    Attributes
    ----------
    key, title, formula : str
        Name of the definition on the command line and in files, such as "pure"; name of the
        definition in words; inequality of the definition in one line.
    counts_single_outputs : bool
        Whether the definition is about the probabilities of single outputs. If so, a claim is
        tested output by output.
    limits_adversaries : bool
        Whether a claim is only about adversaries with limited computing power.
    is_distance : bool
        Whether a claim bounds the total variation distance, and nothing else. An audit then looks
        for the largest δ at ε = 0.

    Notes
    -----
    The constructor raises ClaimError for a parameter that is not a number or out of its range. A
    claim never changes. In the description of every definition P and Q are the laws of the output
    on d1 and d2, ε is in nats, and a claim holds in both directions: for (P, Q) and for (Q, P).

    An audit refutes a claim by refuting one point of its privacy profile δ(ε) (docs/method.md §6).
    A subclass is a frozen dataclass whose fields are the parameters, each annotated with a
    `Parameter`; `definitions.py` lists all subclasses. Other modules distinguish definitions only
    by their methods.
    """

    __slots__ = ()

    key: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    counts_single_outputs: ClassVar[bool] = False
    limits_adversaries: ClassVar[bool] = False
    is_distance: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, about in described(type(self)).items():
            object.__setattr__(self, name, about.check(name, getattr(self, name)))

    def profile(self, epsilon: float) -> float:
        """Return the privacy profile at ε.

        Parameters
        ----------
        epsilon : float
            ε, in nats. Finite, at least 0.

        Returns
        -------
        float
            δ(ε), the largest P(E) - e^ε Q(E) that the claim allows, rounded up. The base class
            derives it from `point()` = (ε₀, δ₀): δ(ε) = δ₀ for ε ≥ ε₀, and
            δ(ε) = δ₀ + (1 - δ₀)(e^ε₀ - e^ε) / (1 + e^ε₀) for ε < ε₀ (docs/method.md (6.6)), which
            randomized response attains (Kairouz, Oh & Viswanath 2015).
        """
        return implied_delta(self.point(), epsilon)

    @abstractmethod
    def points(self) -> tuple[ProfilePoint, ...]:
        """Return the points of the profile among which an audit chooses the point to test.

        Returns
        -------
        tuple of ProfilePoint
            At least one point. `point()` returns the first one, for uses that need a single point.
            An audit chooses the point to test by draws that it does not use to certify.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the claim as a user would write it, such as `(1, 1e-05)-DP`."""

    def point(self) -> ProfilePoint:
        """Return the point (ε, δ) that represents the claim: the first of `points`."""
        return self.points()[0]

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float] | None:
        """Return a lower bound for the definition's own parameter, such as ρ, from a bound for δ.

        Parameters
        ----------
        epsilon, delta_lower : float
            The ε of the tested point, in nats, and a lower bound for δ(ε).

        Returns
        -------
        tuple of str and float, or None
            The name of the parameter, such as "rho", and the bound, rounded down; None if the
            parameters are ε and δ themselves. Reports show the bound, with the symbol of the
            parameter, next to its value in the claim.
        """
        return None

    def divergences(self) -> tuple[tuple[float, float], ...]:
        """Return the Rényi divergences D_a that the claim bounds, in both directions.

        Returns
        -------
        tuple of pairs of float
            Pairs of an order a > 1 and the largest D_a that the claim allows, in nats; empty if no
            divergence is tested.
        """
        return ()

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float] | None:
        """Return a lower bound for the definition's own parameter, such as ρ, from a bound for D_a.

        Parameters
        ----------
        order : float
            An order of `divergences`.
        lower : float
            A lower bound for the divergence of this order, in nats.

        Returns
        -------
        tuple of str and float, or None
            The name of the parameter, such as "rho", and the bound, rounded down; None if the claim
            bounds no divergence.
        """
        return None

    def for_group(self, size: int) -> PrivacyClaim | None:
        """Return the claim that follows from this claim for inputs that differ in `size` records.

        Parameters
        ----------
        size : int
            Number of records, at least 1.

        Returns
        -------
        PrivacyClaim or None
            None if no simple claim follows.

        Raises
        ------
        ClaimError
            If δ would reach 1.
        """
        return None

    def composed(self, claims: Sequence[Any]) -> PrivacyClaim | None:
        """Return the claim that follows for several independent releases taken together.

        Parameters
        ----------
        claims : sequence of claims of this class
            One claim for each release, the first of which is this claim.

        Returns
        -------
        PrivacyClaim or None
            None if the definition has no rule of its own; the caller then adds up the ε and δ of
            the claims' points.

        Raises
        ------
        ClaimError
            If δ would reach 1.
        """
        return None

    def note_for_integers(self) -> str | None:
        """Return a note that reports show if all outputs are integers; None for no note.

        Discrete noise may satisfy another definition exactly, but not the definition of this claim:
        discrete Gaussian noise satisfies zCDP, but not Gaussian DP. Most definitions need no note.
        """
        return None

    def own_tradeoff(self, alpha: float) -> float | None:
        """Return the trade-off function of the claim at α, if it has a closed form.

        Parameters
        ----------
        alpha : float
            The probability of a false alarm, in [0, 1].

        Returns
        -------
        float or None
            f(α), the least probability of a miss of a test of d1 against d2. None without a closed
            form; `dpaudit.claims.tradeoff.tradeoff` then computes f from the profile.
        """
        return None

    @property
    def adversary(self) -> Adversary | str | None:
        """The function whose guesses an audit uses, or its import path; None if dpaudit chooses the
        guesses."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the values of the parameters by name, in the order of the constructor."""
        return {name: getattr(self, name) for name in described(type(self))}

    def symbol_of(self, parameter: str) -> str:
        """Return the symbol of a parameter in reports, such as "ρ" for the parameter `rho`.

        Parameters
        ----------
        parameter : str
            Name of a parameter of the definition.

        Returns
        -------
        str
            The symbol; the name itself if its `Parameter` has no symbol.
        """
        symbol = described(type(self))[parameter].symbol or parameter
        return symbol.format_map(self.parameters())


@dataclass(frozen=True, slots=True)
class PointClaim(PrivacyClaim):
    """Base class of the definitions that have parameters ε and δ and are tested at the point
    (ε, δ)."""

    epsilon: Epsilon
    delta: Delta

    def points(self) -> tuple[ProfilePoint, ...]:
        return (ProfilePoint(self.epsilon, self.delta),)


@lru_cache
def described(kind: Any) -> dict[str, Parameter]:
    """Return the `Parameter` of each field of a definition's class, by name, in the order of the
    constructor."""
    hints = get_type_hints(kind, include_extras=True)
    return {parameter.name: hints[parameter.name].__metadata__[0] for parameter in fields(kind)}


def why_misnamed(claim: PrivacyClaim) -> str | None:
    """Check that `own_lower` and `own_of_divergence` of a claim name a parameter of the definition.
    Return None if they do, else the end of an error message."""
    known = described(type(claim))
    bounds = [("own_lower", claim.own_lower(claim.point().epsilon, 0.0))]
    for order, _ in claim.divergences()[:1]:
        bounds.append(("own_of_divergence", claim.own_of_divergence(order, 0.0)))
    for method, bound in bounds:
        if bound is not None and bound[0] not in known:
            return (
                f"cannot be reported: its {method} names {bound[0]!r}, which is no parameter of "
                f"{type(claim).__name__}; return one of: {', '.join(known)}"
            )
    return None


def implied_delta(point: ProfilePoint, epsilon: float) -> float:
    """Return the δ at `epsilon` that the point (ε₀, δ₀) implies, rounded up (docs/method.md
    (6.6))."""
    if epsilon >= point.epsilon:
        return point.delta
    gap = -math.expm1(epsilon - point.epsilon) / (1 + math.exp(-point.epsilon))
    return min(1.0, (point.delta + (1 - point.delta) * gap) * (1 + 1e-15))


def points_at(claim: PrivacyClaim, epsilons: Iterable[float]) -> tuple[ProfilePoint, ...]:
    """Return the points (ε, δ(ε)) of a claim's privacy profile at the given ε. Points with δ ≥ 1
    are left out, since every mechanism satisfies them."""
    points = (ProfilePoint(epsilon, claim.profile(epsilon)) for epsilon in epsilons)
    return tuple(point for point in points if point.delta < 1)


def total(claims: Sequence[Any], name: str) -> float:
    """Return the sum of the parameter `name` over all claims."""
    return math.fsum(getattr(claim, name) for claim in claims)


def below_one(delta: float, what: str) -> float:
    """Return `delta` if it is below 1. Otherwise raise ClaimError, since every mechanism satisfies
    such a claim. `what` is the origin of δ, such as "group of 3", for the message."""
    if delta >= 1:
        raise ClaimError(
            f"{what}: δ would be {delta:.3g}, and a δ of 1 or more says nothing",
            code="claim-says-nothing",
        )
    return delta


def group_point(point: ProfilePoint, size: int) -> tuple[float, float]:
    """Return the point (ε', δ') that follows for inputs that differ in k = `size` records. ε' = kε,
    and δ' = δ (e^{kε} - 1) / (e^ε - 1), or kδ if ε = 0 (Lalanne, Prop. 6; docs/method.md (6.5)).
    Raise ClaimError if δ' would reach 1."""
    epsilon, times = size * point.epsilon, math.inf  # times: factor of δ, inf on overflow
    with suppress(OverflowError):
        times = math.expm1(epsilon) / math.expm1(point.epsilon) if epsilon else float(size)
    delta = point.delta * times if point.delta else 0.0
    return epsilon, below_one(delta, f"group of {size}")


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """The library that stated a claim, and the call that gave it.

    Attributes
    ----------
    library, version : str
        Name and installed version of the library.
    asked : str
        The call or attribute that gave the claim, such as "m.map(d_in=1)".
    answer : str
        The claim in the parameters of the library, such as "ε = 0.5".
    """

    library: str
    version: str
    asked: str
    answer: str

    def describe(self) -> str:
        """Return the source in one line, such as "OpenDP 0.14.2, m.map(d_in=1): ε = 0.5"."""
        return f"{self.library} {self.version}, {self.asked}: {self.answer}"
