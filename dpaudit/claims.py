"""Privacy definitions, each seen as its privacy profile.

A definition is the curve δ(ε) = sup_E P(E) - e^ε Q(E) that it allows (docs/method.md §6). It is
refuted by refuting one point of that curve, so a claim hands the statistics nothing but points.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

from dpaudit.errors import ClaimError, did_you_mean


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """One inequality that a claim implies: P(E) ≤ e^epsilon · Q(E) + delta for every event E."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class PrivacyClaim(ABC):
    """What a mechanism is said to satisfy; valid on construction.

    Subclasses are frozen dataclasses of their parameters. Register a new one in `DEFINITIONS`.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]

    @abstractmethod
    def point(self) -> ProfilePoint:
        """Return the point of the profile that an audit attacks."""

    @abstractmethod
    def describe(self) -> str:
        """Return the claim as a user would write it, e.g. `(1, 1e-05)-DP`."""

    def parameters(self) -> dict[str, float]:
        """Return the parameters by name, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class PureDP(PrivacyClaim):
    """ε-differential privacy: P(E) ≤ e^ε Q(E) for every event (Dwork & Roth 2014, Def. 2.4).

    epsilon: finite, ≥ 0. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "pure"
    title: ClassVar[str] = "pure differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E)"

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checked_epsilon(self.epsilon))

    def point(self) -> ProfilePoint:
        return ProfilePoint(self.epsilon, 0.0)

    def describe(self) -> str:
        return f"{self.epsilon:.12g}-DP"


@dataclass(frozen=True, slots=True)
class ApproximateDP(PrivacyClaim):
    """(ε, δ)-differential privacy: P(E) ≤ e^ε Q(E) + δ for every event (Dwork & Roth 2014).

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "approximate"
    title: ClassVar[str] = "approximate differential privacy"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E) + δ"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", _checked_delta(self.delta))

    def point(self) -> ProfilePoint:
        return ProfilePoint(self.epsilon, self.delta)

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-DP"


@dataclass(frozen=True, slots=True)
class ProbabilisticDP(PrivacyClaim):
    """(ε, δ)-probabilistic differential privacy (Meiser 2018): outside a set of outputs of
    probability at most δ, the pure inequality holds. For discrete outputs, exactly when
    P({s : P(s) > e^ε Q(s)}) ≤ δ. Not closed under post-processing.

    epsilon: finite, ≥ 0. delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "probabilistic"
    title: ClassVar[str] = "probabilistic differential privacy"
    formula: ClassVar[str] = "P({s : P(s) > e^ε Q(s)}) ≤ δ"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", _checked_delta(self.delta))

    def point(self) -> ProfilePoint:
        """Return the point that it implies: PDP ⇒ approximate DP with the same (ε, δ)."""
        return ProfilePoint(self.epsilon, self.delta)

    def describe(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-probabilistic DP"


DEFINITIONS: Mapping[str, type[PrivacyClaim]] = {
    definition.key: definition for definition in (PureDP, ApproximateDP, ProbabilisticDP)
}


def make_claim(parameters: Mapping[str, Any], definition: str | None = None) -> PrivacyClaim:
    """Build a claim from named parameters, e.g. `{"epsilon": 1.0, "delta": 1e-5}`.

    Without `definition`: approximate when a δ > 0 is given, else pure. Raises ClaimError for an
    unknown definition, a missing, unknown or impossible parameter.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if definition is None:
        definition = "approximate" if given.get("delta") else "pure"
    if definition not in DEFINITIONS:
        raise ClaimError(
            f"unknown definition {definition!r}; known: {', '.join(DEFINITIONS)}."
            + did_you_mean(definition, DEFINITIONS)
        )
    wanted = [field.name for field in fields(DEFINITIONS[definition])]
    if definition == "pure" and given.get("delta") == 0:
        del given["delta"]
    for name in given:
        if name not in wanted:
            raise ClaimError(
                f"{name!r} is not a parameter of the {definition} definition; "
                f"it takes {', '.join(wanted)}." + did_you_mean(name, wanted)
            )
    missing = [name for name in wanted if name not in given]
    if missing:
        raise ClaimError(f"the {definition} definition needs {' and '.join(missing)}")
    return DEFINITIONS[definition](**{name: given[name] for name in wanted})


def _number(name: str, value: Any) -> float:
    """Return a number given by a user or a library, NumPy's among them, as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ClaimError(f"{name}={value!r} must be a number")
    try:
        return float(value)
    except OverflowError:
        raise ClaimError(f"{name} must be a finite number, not one too large for a float") from None


def _checked_epsilon(epsilon: Any) -> float:
    number = _number("epsilon", epsilon)
    if not (math.isfinite(number) and number >= 0):
        raise ClaimError(f"epsilon={number!r} must be a finite number, at least 0")
    return number


def _checked_delta(delta: Any) -> float:
    number = _number("delta", delta)
    if not 0 <= number < 1:
        raise ClaimError(f"delta={number!r} must lie in [0, 1)")
    return number
