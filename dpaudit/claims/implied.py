"""Claims that follow from claims: for groups, compositions, a smaller ε, a chain of inputs.

Propositions of C. Lalanne's lesson (docs/seeds.md, 000) are cited next to their sources. Two of
them need no function: every claim except the probabilistic one is closed under post-processing
(Prop. 2 and 7; Prop. 4 is the exception), and a probabilistic claim implies the approximate one
(Prop. 5; `ProbabilisticDP.points`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

from dpaudit.claims.base import PrivacyClaim, below_one, checked_epsilon, checked_number, total
from dpaudit.claims.point_claims import ApproximateDP
from dpaudit.errors import ClaimError, Name


def group(claim: PrivacyClaim, size: int) -> PrivacyClaim:
    """Return the claim that follows for inputs that differ in `size` records.

    Parameters
    ----------
    claim : PrivacyClaim
        The claim for one record.
    size : int
        Number of records, at least 1.

    Returns
    -------
    PrivacyClaim
        The claim for the group: `PrivacyClaim.for_group`.

    Raises
    ------
    ClaimError
        For another size, if no simple claim is implied, and if δ would reach 1.

    Notes
    -----
    docs/method.md §6.

    Examples
    --------
    >>> group(ApproximateDP(0.5, 0), 3).describe()
    '(1.5, 0)-DP'
    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        why = f"={size!r} must be a whole number of records, at least 1"
        raise ClaimError(Name("group"), why, code="option-invalid")
    implied = claim.for_group(int(size))
    if implied is None:
        raise ClaimError(
            f"{claim.describe()} has no simple group bound; claim approximate DP, or zCDP",
            code="no-group-bound",
        )
    return implied


def compose(claims: Sequence[PrivacyClaim]) -> PrivacyClaim:
    """Return the claim for several independent releases together.

    Parameters
    ----------
    claims : sequence of PrivacyClaim
        One claim for each release, at least one.

    Returns
    -------
    PrivacyClaim
        The claim for all releases as one output.

    Raises
    ------
    ClaimError
        For no claims, and if δ would reach 1.

    Notes
    -----
    Claims of one definition compose by the rule of the definition, if it has one
    (`PrivacyClaim.composed`). Otherwise the (ε, δ) of their points are added up. Source: Lalanne,
    Prop. 3 and 8; Dwork & Roth 2014, Thm. 3.16; docs/method.md §6.

    Examples
    --------
    >>> from dpaudit.claims.point_claims import PureDP
    >>> compose([PureDP(0.5), ApproximateDP(1, 1e-6)]).describe()
    '(1.5, 1e-06)-DP'
    """
    if not claims:
        raise ClaimError("compose needs at least one claim", code="option-invalid")
    is_same = all(type(claim) is type(claims[0]) for claim in claims)
    own = claims[0].composed(claims) if is_same else None
    if own is not None:
        return own
    points = [claim.point() for claim in claims]
    delta = below_one(total(points, "delta"), "composition")
    return ApproximateDP(total(points, "epsilon"), delta)


def relax(claim: PrivacyClaim, epsilon: float, *, tight: bool = True) -> ApproximateDP:
    """Return the approximate claim at a smaller ε' that follows from a claim.

    Parameters
    ----------
    claim : PrivacyClaim
        The claim, whose point is (ε, δ).
    epsilon : float
        ε', in nats, in [0, ε].
    tight : bool, default True
        Whether δ' is the privacy profile at ε', rounded up. Otherwise it is δ + e^ε - e^ε', which
        is often above 1.

    Returns
    -------
    ApproximateDP
        The claim (ε', δ').

    Raises
    ------
    ClaimError
        For another ε', and if δ' would reach 1.

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
        raise ClaimError(
            f"epsilon={smaller!r} must be at most {point.epsilon!r} to relax to",
            code="option-invalid",
        )
    if tight:
        delta = claim.profile(smaller)
    else:
        gap = -math.expm1(smaller - point.epsilon)  # e^ε - e^ε', without overflow
        delta = point.delta + gap * math.exp(min(point.epsilon, 700.0))
    return ApproximateDP(smaller, below_one(delta, f"relaxation to ε = {smaller:g}"))


def chain(first: PrivacyClaim, second: PrivacyClaim) -> ApproximateDP:
    """Return the claim for d1 and d3 that follows from those for d1 and d2, and for d2 and d3.

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
        If δ would reach 1.

    Notes
    -----
    p ≤ e^ε₁ q + δ₁ and q ≤ e^ε₂ r + δ₂ give p ≤ e^(ε₁+ε₂) r + δ₁ + e^ε₁ δ₂ (docs/method.md §6;
    docs/seeds.md, 003, Exercise 7.2).

    Examples
    --------
    >>> chain(ApproximateDP(1.0, 0), ApproximateDP(0.5, 0)).epsilon
    1.5
    """
    near, far = first.point(), second.point()
    forwards = near.delta + math.exp(min(near.epsilon, 700.0)) * far.delta
    backwards = far.delta + math.exp(min(far.epsilon, 700.0)) * near.delta
    delta = below_one(max(forwards, backwards), "chain")
    return ApproximateDP(near.epsilon + far.epsilon, delta)


def posterior_bounds(epsilon: float, prior: float) -> tuple[float, float]:
    """Return bounds on the posterior probability of an input, given an output of an ε-DP mechanism.

    Parameters
    ----------
    epsilon, prior : float
        ε, in nats, finite, at least 0; the probability of the input before the output is seen, in
        [0, 1].

    Returns
    -------
    tuple of float
        The smallest and the largest probability of the input after the output was seen.

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
        raise ClaimError(f"prior={belief!r} must lie in [0, 1]", code="option-invalid")
    damped = math.exp(-largest)
    low = belief * damped / (belief * damped + 1 - belief) if belief < 1 else 1.0
    high = belief / (belief + (1 - belief) * damped) if belief > 0 else 0.0
    return low, high
