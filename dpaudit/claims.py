"""Privacy definitions, each seen as its privacy profile.

A definition is the curve δ(ε) = sup_E P(E) - e^ε Q(E) that it allows (docs/method.md §6). It is
refuted by refuting one point of that curve, so a claim hands the statistics nothing but points.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from numbers import Integral, Real
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

    def own_lower(self, delta_lower: float) -> tuple[str, float] | None:
        """Return symbol and lower bound of the definition's own parameter, unless it is ε or δ.

        delta_lower: a lower bound for δ at the ε of `point`.
        """
        return None

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


@dataclass(frozen=True, slots=True)
class TotalVariation(PrivacyClaim):
    """Total variation distance of at most δ: |P(E) - Q(E)| ≤ δ for every event, (0, δ)-DP.

    delta: 0 ≤ δ < 1. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "total-variation"
    title: ClassVar[str] = "total variation distance"
    formula: ClassVar[str] = "|P(E) - Q(E)| ≤ δ"

    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", _checked_delta(self.delta))

    def point(self) -> ProfilePoint:
        return ProfilePoint(0.0, self.delta)

    def describe(self) -> str:
        return f"total variation of at most {self.delta:.12g}"


@dataclass(frozen=True, slots=True)
class GaussianDP(PrivacyClaim):
    """μ-Gaussian differential privacy: no test tells P from Q better than N(0, 1) from N(μ, 1)
    (Dong, Roth & Su 2022). Attacked at the one point of the profile where a slightly larger μ
    shows best; which that is depends on μ alone.

    mu: finite, > 0, at most 10. Raises ClaimError otherwise.
    """

    key: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian differential privacy"
    formula: ClassVar[str] = "δ(ε) ≤ Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)"

    mu: float

    def __post_init__(self) -> None:
        mu = _number("mu", self.mu)
        if not 0 < mu <= _LARGEST_MU:
            raise ClaimError(f"mu={mu!r} must lie in (0, {_LARGEST_MU:g}]")
        object.__setattr__(self, "mu", mu)

    def point(self) -> ProfilePoint:
        return _gaussian_point(self.mu)

    def describe(self) -> str:
        return f"{self.mu:.12g}-Gaussian DP"

    def own_lower(self, delta_lower: float) -> tuple[str, float]:
        """Return the largest μ (within 10⁻⁶, rounded down) whose profile stays below the bound."""
        epsilon, low, high = self.point().epsilon, 0.0, 4 * _LARGEST_MU
        while high - low > 1e-6:
            middle = (low + high) / 2
            below = gaussian_delta(middle, epsilon) <= delta_lower
            low, high = (middle, high) if below else (low, middle)
        return "μ", low


_LARGEST_MU = 10.0


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ(ε) of N(0, 1) against N(μ, 1), rounded up, in [0, 1].

    Source: Balle & Wang 2018. mu > 0, epsilon ≥ 0.

    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    ahead, behind = _normal_tail(epsilon / mu - mu / 2), _normal_tail(epsilon / mu + mu / 2)
    # Rounded up by more than the two terms, which nearly cancel, can be wrong by.
    other = math.exp(epsilon) * behind if behind else 0.0
    return min(1.0, max(0.0, ahead - other) + 1e-13 * ahead)


def _normal_tail(x: float) -> float:
    """Return Pr[N(0, 1) > x]."""
    return 0.5 * math.erfc(x / math.sqrt(2))


@lru_cache(maxsize=256)
def _gaussian_point(mu: float) -> ProfilePoint:
    """Return the point at which μ · 1.1 stands out most, in standard errors of a draw."""
    larger = 1.1 * mu

    def evidence(epsilon: float) -> float:
        ahead = _normal_tail(epsilon / larger - larger / 2)
        behind = _normal_tail(epsilon / larger + larger / 2)
        ratio = math.exp(epsilon)
        excess = ahead - ratio * behind - gaussian_delta(mu, epsilon)
        return excess / math.sqrt(ahead + ratio**2 * behind)

    last = mu * (4 + mu)
    epsilon = max((last * step / 400 for step in range(401)), key=evidence)
    return ProfilePoint(epsilon, gaussian_delta(mu, epsilon))


DEFINITIONS: Mapping[str, type[PrivacyClaim]] = {
    definition.key: definition
    for definition in (PureDP, ApproximateDP, ProbabilisticDP, TotalVariation, GaussianDP)
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


def group(claim: PrivacyClaim, size: int) -> PrivacyClaim:
    """Return what a claim for one record implies for inputs that differ in `size` records.

    With k = size ≥ 1: kε for pure claims (Dwork & Roth 2014, Thm. 2.2), kε and
    δ (e^{kε} - 1) / (e^ε - 1) for approximate ones, kδ at ε = 0, kμ for Gaussian ones (Dong, Roth &
    Su 2022, Thm. 2.9). Raises ClaimError where nothing is implied: for the probabilistic definition
    (take the approximate claim that it implies), and when δ would reach 1.

    >>> group(PureDP(0.5), 3).describe()
    '1.5-DP'
    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ClaimError(f"group={size!r} must be a whole number of records, at least 1")
    number = int(size)
    if isinstance(claim, PureDP):
        return PureDP(number * claim.epsilon)
    if isinstance(claim, TotalVariation):
        return TotalVariation(_meaningful(number * claim.delta, f"group of {number}"))
    if isinstance(claim, GaussianDP):
        return GaussianDP(number * claim.mu)
    if not isinstance(claim, ApproximateDP):
        raise ClaimError(f"{claim.describe()} implies nothing for groups; claim approximate DP")
    delta = claim.delta * _geometric_sum(claim.epsilon, number) if claim.delta else 0.0
    return ApproximateDP(number * claim.epsilon, _meaningful(delta, f"group of {number}"))


def compose(claims: Sequence[PrivacyClaim]) -> PrivacyClaim:
    """Return what the claims of independent releases imply for all of them together.

    ε and δ add up (Dwork & Roth 2014, Thm. 3.16), the squares of μ do among Gaussian claims (Dong,
    Roth & Su 2022, Cor. 3.3); probabilistic claims count as the approximate
    ones that they imply (Meiser 2018). Raises ClaimError for no claims, and when δ would reach 1.

    >>> compose([PureDP(0.5), ApproximateDP(1, 1e-6)]).describe()
    '(1.5, 1e-06)-DP'
    """
    if not claims:
        raise ClaimError("compose needs at least one claim")
    points = [claim.point() for claim in claims]
    epsilon = math.fsum(point.epsilon for point in points)
    delta = math.fsum(point.delta for point in points)
    if all(isinstance(claim, PureDP) for claim in claims):
        return PureDP(epsilon)
    gaussians = [claim.mu for claim in claims if isinstance(claim, GaussianDP)]
    if len(gaussians) == len(claims):
        return GaussianDP(math.hypot(*gaussians))
    if all(isinstance(claim, TotalVariation) for claim in claims):
        return TotalVariation(_meaningful(delta, "composition"))
    return ApproximateDP(epsilon, _meaningful(delta, "composition"))


def relax(claim: PrivacyClaim, epsilon: float, *, tight: bool = True) -> ApproximateDP:
    """Return the approximate claim at a smaller ε' that a claim implies.

    tight: δ' = δ + (1 - δ)(e^ε - e^ε') / (1 + e^ε), the privacy profile (Kairouz et al. 2015); else
    the simpler δ' = δ + e^ε - e^ε', which is soon vacuous. Raises ClaimError when ε' > ε and when
    δ' would reach 1.

    >>> round(relax(ApproximateDP(1, 1e-5), 0.5).delta, 3)
    0.288
    """
    smaller, point = _checked_epsilon(epsilon), claim.point()
    if smaller > point.epsilon:
        raise ClaimError(f"epsilon={smaller!r} must be at most {point.epsilon!r} to relax to")
    # (e^ε - e^ε') / (1 + e^ε), without overflow.
    gap = -math.expm1(smaller - point.epsilon)
    if tight:
        delta = point.delta + (1 - point.delta) * gap / (1 + math.exp(-point.epsilon))
    else:
        delta = point.delta + gap * math.exp(min(point.epsilon, 700.0))
    return ApproximateDP(smaller, _meaningful(delta, f"relaxation to ε = {smaller:g}"))


def posterior_bounds(epsilon: float, prior: float) -> tuple[float, float]:
    """Return how far an output of an ε-DP mechanism may move a prior belief in one input.

    prior in [0, 1]. By Bayes' rule the odds change by a factor between e^-ε and e^ε.

    >>> low, high = posterior_bounds(1.1, 0.5)
    >>> round(low, 2), round(high, 2)
    (0.25, 0.75)
    """
    largest, belief = _checked_epsilon(epsilon), _number("prior", prior)
    if not 0 <= belief <= 1:
        raise ClaimError(f"prior={belief!r} must lie in [0, 1]")
    damped = math.exp(-largest)
    low = belief * damped / (belief * damped + 1 - belief) if belief < 1 else 1.0
    high = belief / (belief + (1 - belief) * damped) if belief > 0 else 0.0
    return low, high


def _geometric_sum(epsilon: float, terms: int) -> float:
    """Return 1 + e^ε + … + e^{(terms - 1) ε}; inf when it is too large for a float."""
    with suppress(OverflowError):
        return math.expm1(terms * epsilon) / math.expm1(epsilon) if epsilon else float(terms)
    return math.inf


def _meaningful(delta: float, what: str) -> float:
    if delta >= 1:
        raise ClaimError(f"{what}: δ would be {delta:.3g}, and a δ of 1 or more says nothing")
    return delta


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
