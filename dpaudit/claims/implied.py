"""What claims imply: for groups, for several releases, at a smaller ε, along a chain of inputs.

The propositions of C. Lalanne's lesson (docs/seeds.md, 000) are cited beside their sources. What
needs no function: every claim but the probabilistic one survives post-processing (Prop. 2 and 7;
Prop. 4 is the exception), and a probabilistic claim implies the approximate one (Prop. 5), which
`ProbabilisticDP.points` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

from dpaudit.claims.base import PrivacyClaim, checked_epsilon, checked_number, meaningful, total
from dpaudit.claims.point_claims import ApproximateDP
from dpaudit.errors import ClaimError, Name


def group(claim: PrivacyClaim, size: int) -> PrivacyClaim:
    """Return what a claim for one record implies for inputs that differ in `size` records.

    Parameters
    ----------
    claim : PrivacyClaim
        The claim for one record.
    size : int
        How many records, at least 1.

    Returns
    -------
    PrivacyClaim
        The claim for the group: `PrivacyClaim.for_group`.

    Raises
    ------
    ClaimError
        For another size, where nothing simple is implied, and where δ would reach 1.

    Notes
    -----
    docs/method.md §6.

    Examples
    --------
    >>> group(ApproximateDP(0.5, 0), 3).describe()
    '(1.5, 0)-DP'
    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ClaimError(Name("group"), f"={size!r} must be a whole number of records, at least 1")
    implied = claim.for_group(int(size))
    if implied is None:
        raise ClaimError(
            f"{claim.describe()} has no simple group bound; claim approximate DP, or zCDP"
        )
    return implied


def compose(claims: Sequence[PrivacyClaim]) -> PrivacyClaim:
    """Return what the claims of independent releases imply for all of them together.

    Parameters
    ----------
    claims : sequence of PrivacyClaim
        One for each release, at least one.

    Returns
    -------
    PrivacyClaim
        The claim for all releases as one output.

    Raises
    ------
    ClaimError
        For no claims, and where δ would reach 1.

    Notes
    -----
    Claims of one definition compose by its own rule, where it has one (`PrivacyClaim.composed`).
    Otherwise each counts as the (ε, δ) of its point, and these add up. Source: Lalanne, Prop. 3 and
    8; Dwork & Roth 2014, Thm. 3.16; docs/method.md §6.

    Examples
    --------
    >>> from dpaudit.claims.point_claims import PureDP
    >>> compose([PureDP(0.5), ApproximateDP(1, 1e-6)]).describe()
    '(1.5, 1e-06)-DP'
    """
    if not claims:
        raise ClaimError("compose needs at least one claim")
    alike = all(type(one) is type(claims[0]) for one in claims)
    own = claims[0].composed(claims) if alike else None
    if own is not None:
        return own
    points = [claim.point() for claim in claims]
    delta = meaningful(total(points, "delta"), "composition")
    return ApproximateDP(total(points, "epsilon"), delta)


def relax(claim: PrivacyClaim, epsilon: float, *, tight: bool = True) -> ApproximateDP:
    """Return the approximate claim at a smaller ε' that a claim implies.

    Parameters
    ----------
    claim : PrivacyClaim
        The claim, whose point is (ε, δ).
    epsilon : float
        ε', in nats, in [0, ε].
    tight : bool, default True
        Whether δ' is from the privacy profile, rounded up; else it is δ + e^ε - e^ε', which is soon
        vacuous.

    Returns
    -------
    ApproximateDP
        The claim (ε', δ').

    Raises
    ------
    ClaimError
        For another ε', and where δ' would reach 1.

    Notes
    -----
    The tight δ' of (ε, δ)-DP is in `PrivacyClaim.profile`; the other one is Prop. 9 of Lalanne
    (docs/method.md §6).

    Examples
    --------
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
    return ApproximateDP(smaller, meaningful(delta, f"relaxation to ε = {smaller:g}"))


def chain(first: PrivacyClaim, second: PrivacyClaim) -> ApproximateDP:
    """Return what a claim for d1 and d2 and one for d2 and d3 imply for d1 and d3.

    Parameters
    ----------
    first, second : PrivacyClaim
        The claims for d1 and d2, and for d2 and d3; they count as their points, (ε₁, δ₁), (ε₂, δ₂).

    Returns
    -------
    ApproximateDP
        The claim (ε₁ + ε₂, δ), δ the larger of δ₁ + e^ε₁ δ₂ and, the other way round,
        δ₂ + e^ε₂ δ₁.

    Raises
    ------
    ClaimError
        Where δ would reach 1.

    Notes
    -----
    p ≤ e^ε₁ q + δ₁ and q ≤ e^ε₂ r + δ₂ give p ≤ e^(ε₁+ε₂) r + δ₁ + e^ε₁ δ₂ (docs/method.md §6;
    docs/seeds.md, 003, Exercise 7.2).

    Examples
    --------
    >>> chain(ApproximateDP(1.0, 0), ApproximateDP(0.5, 0)).epsilon
    1.5
    """
    one, other = first.point(), second.point()
    forwards = one.delta + math.exp(min(one.epsilon, 700.0)) * other.delta
    backwards = other.delta + math.exp(min(other.epsilon, 700.0)) * one.delta
    delta = meaningful(max(forwards, backwards), "chain")
    return ApproximateDP(one.epsilon + other.epsilon, delta)


def posterior_bounds(epsilon: float, prior: float) -> tuple[float, float]:
    """Return how far an output of an ε-DP mechanism may move a prior belief in one input.

    Parameters
    ----------
    epsilon, prior : float
        ε, in nats, finite, at least 0; the probability of this input before the output is seen, in
        [0, 1].

    Returns
    -------
    tuple of float
        Its smallest and its largest probability afterwards.

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    By Bayes' rule the odds change by a factor of e^-ε to e^ε. Source: Lalanne, eq. 5
    (docs/seeds.md, 000).

    Examples
    --------
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
