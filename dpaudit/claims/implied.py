"""What claims imply: for groups, for several releases, at a smaller ε, along a chain of inputs.

The propositions of C. Lalanne's lesson (docs/seeds.md, 000) are cited beside their sources. What
needs no function: every claim but the probabilistic one survives post-processing (Prop. 2 and 7;
Prop. 4 is the exception), and a probabilistic claim implies the approximate one (Prop. 5), which
`ProbabilisticDP.points` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

from dpaudit.claims.approximate import ApproximateDP
from dpaudit.claims.base import PrivacyClaim, checked_epsilon, checked_number
from dpaudit.claims.computational import Adversary, ComputationalDP
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.pure import PureDP
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.total_variation import TotalVariation
from dpaudit.errors import ClaimError, Name


def group(claim: PrivacyClaim, size: int) -> PrivacyClaim:
    """Return what a claim for one record implies for inputs that differ in `size` records.

    With k = size ≥ 1: kε for pure claims (Lalanne, Prop. 1; Dwork & Roth 2014, Thm. 2.2), kε and
    δ (e^{kε} - 1) / (e^ε - 1) for approximate and computational ones, kδ at ε = 0 (Prop. 6), kμ for
    Gaussian ones (Dong, Roth & Su 2022, Thm. 2.9), k²ρ for zCDP (Bun & Steinke 2016, Prop. 1.9).
    Raises ClaimError where nothing is implied, and when δ would reach 1.

    >>> group(PureDP(0.5), 3).describe()
    '1.5-DP'
    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ClaimError(Name("group"), f"={size!r} must be a whole number of records, at least 1")
    number = int(size)
    match claim:
        case PureDP():
            return PureDP(number * claim.epsilon)
        case TotalVariation():
            return TotalVariation(_meaningful(number * claim.delta, f"group of {number}"))
        case GaussianDP():
            return GaussianDP(number * claim.mu)
        case ZeroConcentratedDP():
            return ZeroConcentratedDP(number**2 * claim.rho)
        case ApproximateDP() | ComputationalDP():
            return _approximate_group(claim, number)
    raise ClaimError(
        f"{claim.describe()} implies nothing simple for groups; claim approximate DP, or zCDP"
    )


def compose(claims: Sequence[PrivacyClaim]) -> PrivacyClaim:
    """Return what the claims of independent releases imply for all of them together.

    ε and δ add up (Lalanne, Prop. 3 and 8; Dwork & Roth 2014, Thm. 3.16), so do ρ, Rényi ε of one
    order, and the squares of μ (Dong, Roth & Su 2022, Cor. 3.3). Among claims of different kinds,
    each counts as the (ε, δ) of its point. Raises ClaimError for no claims, and for δ from 1 on.

    >>> compose([PureDP(0.5), ApproximateDP(1, 1e-6)]).describe()
    '(1.5, 1e-06)-DP'
    """
    if not claims:
        raise ClaimError("compose needs at least one claim")
    return _composed_alike(claims) or _composed_points(claims)


def relax(claim: PrivacyClaim, epsilon: float, *, tight: bool = True) -> ApproximateDP:
    """Return the approximate claim at a smaller ε' that a claim implies.

    tight: δ' from the claim's privacy profile, for (ε, δ)-DP δ + (1 - δ)(e^ε - e^ε') / (1 + e^ε)
    (Kairouz et al. 2015); else the simpler δ' = δ + e^ε - e^ε' (Lalanne, Prop. 9), which is soon
    vacuous. Raises ClaimError when ε' > ε and when δ' would reach 1.

    >>> round(relax(ApproximateDP(1, 1e-5), 0.5).delta, 3)
    0.288
    """
    smaller, point = checked_epsilon(epsilon), claim.point()
    if smaller > point.epsilon:
        raise ClaimError(f"epsilon={smaller!r} must be at most {point.epsilon!r} to relax to")
    if tight:
        delta = claim.profile(smaller)
    else:
        gap = -math.expm1(smaller - point.epsilon)  # e^ε - e^ε', without overflow
        delta = point.delta + gap * math.exp(min(point.epsilon, 700.0))
    return ApproximateDP(smaller, _meaningful(delta, f"relaxation to ε = {smaller:g}"))


def chain(first: PrivacyClaim, second: PrivacyClaim) -> ApproximateDP:
    """Return how far apart d1 and d3 may be, given d1 from d2 and d2 from d3: transitivity of
    indistinguishability (docs/seeds.md, 003, Exercise 7.2).

    p ≤ e^ε₁ q + δ₁ and q ≤ e^ε₂ r + δ₂ give p ≤ e^(ε₁+ε₂) r + δ₁ + e^ε₁ δ₂, and the other way round
    δ₂ + e^ε₂ δ₁; the larger of the two is returned, since both directions are meant. Raises
    ClaimError when δ would reach 1.

    >>> chain(PureDP(1.0), PureDP(0.5)).epsilon
    1.5
    """
    one, other = first.point(), second.point()
    forwards = one.delta + math.exp(min(one.epsilon, 700.0)) * other.delta
    backwards = other.delta + math.exp(min(other.epsilon, 700.0)) * one.delta
    delta = _meaningful(max(forwards, backwards), "chain")
    return ApproximateDP(one.epsilon + other.epsilon, delta)


def posterior_bounds(epsilon: float, prior: float) -> tuple[float, float]:
    """Return how far an output of an ε-DP mechanism may move a prior belief in one input.

    prior in [0, 1]. By Bayes' rule the odds change by a factor of e^-ε to e^ε (Lalanne, eq. 5).

    >>> low, high = posterior_bounds(1.1, 0.5)
    >>> round(low, 2), round(high, 2)
    (0.25, 0.75)
    """
    largest, belief = checked_epsilon(epsilon), checked_number("prior", prior)
    if not 0 <= belief <= 1:
        raise ClaimError(f"prior={belief!r} must lie in [0, 1]")
    damped = math.exp(-largest)
    low = belief * damped / (belief * damped + 1 - belief) if belief < 1 else 1.0
    high = belief / (belief + (1 - belief) * damped) if belief > 0 else 0.0
    return low, high


def _approximate_group(claim: ApproximateDP | ComputationalDP, number: int) -> PrivacyClaim:
    delta = claim.delta * _geometric_sum(claim.epsilon, number) if claim.delta else 0.0
    point = number * claim.epsilon, _meaningful(delta, f"group of {number}")
    if isinstance(claim, ComputationalDP):
        return ComputationalDP(*point, claim.adversary)
    return ApproximateDP(*point)


def _composed_alike(claims: Sequence[PrivacyClaim]) -> PrivacyClaim | None:
    """Return the composition within one definition that has a rule of its own."""
    if len({type(claim) for claim in claims}) > 1:
        return None
    values = [claim.parameters() for claim in claims]

    def total(name: str) -> float:
        return math.fsum(one[name] for one in values)

    match claims[0]:
        case PureDP():
            return PureDP(total("epsilon"))
        case TotalVariation():
            return TotalVariation(_meaningful(total("delta"), "composition"))
        case GaussianDP():
            return GaussianDP(math.hypot(*(one["mu"] for one in values)))
        case ZeroConcentratedDP():
            return ZeroConcentratedDP(total("rho"))
        case RenyiDP(order=order) if len({one["order"] for one in values}) == 1:
            return RenyiDP(order, total("epsilon"))
        case ComputationalDP():
            delta = _meaningful(total("delta"), "composition")
            return ComputationalDP(total("epsilon"), delta, _common_adversary(claims))
    return None


def _common_adversary(claims: Sequence[PrivacyClaim]) -> Adversary | str | None:
    """Return who is named for every release, and attacks them all together."""
    first, *others = (getattr(claim, "adversary", None) for claim in claims)
    return first if all(one == first for one in others) else None


def _composed_points(claims: Sequence[PrivacyClaim]) -> ApproximateDP:
    points: list[Any] = [claim.point() for claim in claims]
    delta = math.fsum(point.delta for point in points)
    epsilon = math.fsum(point.epsilon for point in points)
    return ApproximateDP(epsilon, _meaningful(delta, "composition"))


def _geometric_sum(epsilon: float, terms: int) -> float:
    """Return 1 + e^ε + … + e^{(terms - 1) ε}; inf when it is too large for a float."""
    with suppress(OverflowError):
        return math.expm1(terms * epsilon) / math.expm1(epsilon) if epsilon else float(terms)
    return math.inf


def _meaningful(delta: float, what: str) -> float:
    if delta >= 1:
        raise ClaimError(f"{what}: δ would be {delta:.3g}, and a δ of 1 or more says nothing")
    return delta
