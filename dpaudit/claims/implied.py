"""Claims that follow from other claims: for groups, compositions, a smaller ε, a chain of inputs.

"Lalanne, Prop. n" cites C. Lalanne's lesson (docs/seeds.md, 000). Two of its facts need no code:
post-processing preserves every claim (Prop. 2 and 7) except a probabilistic claim (Prop. 4), and a
probabilistic claim implies the approximate claim with the same ε and δ (Prop. 5;
`ProbabilisticDP.points`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

from dpaudit.claims.base import (
    PrivacyClaim,
    below_one,
    checked_epsilon,
    checked_number,
    invalid,
    total,
)
from dpaudit.claims.point_claims import ApproximateDP
from dpaudit.errors import ClaimError, Name


def group(claim: PrivacyClaim, size: int) -> PrivacyClaim:
    """Return the claim that follows for inputs that differ in `size` records, by `claim.for_group`.
    For (ε, δ)-DP and k = size, it is (kε, δ (e^{kε} - 1) / (e^ε - 1))-DP (docs/method.md §6).

    Raise ClaimError if `size` is not a whole number of at least 1, if the definition has no simple
    rule for groups, or if δ would reach 1.

    >>> group(ApproximateDP(0.5, 0), 3).describe()
    '(1.5, 0)-DP'
    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise invalid(Name("group"), f"={size!r} must be a whole number of records, at least 1")
    implied = claim.for_group(int(size))
    if implied is None:
        raise ClaimError(
            f"{claim.describe()} has no simple group bound; claim approximate DP, or zCDP",
            code="no-group-bound",
        )
    return implied


def compose(claims: Sequence[PrivacyClaim]) -> PrivacyClaim:
    """Return the claim that follows for an output of several independent releases, one for each
    claim. Raise ClaimError if there are none, or if δ would reach 1.

    If all claims have the same definition, and it has a rule for compositions, this rule is used
    (`PrivacyClaim.composed`). Otherwise the ε and the δ of all points are added up. Source:
    Lalanne, Prop. 3 and 8; Dwork & Roth 2014, Thm. 3.16; docs/method.md §6.

    >>> from dpaudit.claims.point_claims import PureDP
    >>> compose([PureDP(0.5), ApproximateDP(1, 1e-6)]).describe()
    '(1.5, 1e-06)-DP'
    """
    if not claims:
        raise invalid("compose needs at least one claim")
    is_same = all(type(claim) is type(claims[0]) for claim in claims)
    composed = claims[0].composed(claims) if is_same else None
    if composed is not None:
        return composed
    points = [claim.point() for claim in claims]
    delta = below_one(total(points, "delta"), "composition")
    return ApproximateDP(total(points, "epsilon"), delta)


def relax(claim: PrivacyClaim, epsilon: float, *, tight: bool = True) -> ApproximateDP:
    """Return the claim of (ε', δ')-DP that follows from a claim, for a smaller ε' = `epsilon`. Let
    (ε, δ) be the point of the claim. Raise ClaimError if ε' is not in [0, ε], or if δ' would reach
    1.

    tight: whether δ' is the privacy profile of the claim at ε', rounded up. Otherwise δ' is
        δ + e^ε - e^ε', which is simpler and often above 1 (Lalanne, Prop. 9; docs/method.md §6).

    >>> round(relax(ApproximateDP(1, 1e-5), 0.5).delta, 3)
    0.288
    """
    smaller, point = checked_epsilon("epsilon", epsilon), claim.point()
    if smaller > point.epsilon:
        raise invalid(f"epsilon={smaller!r} must be at most {point.epsilon!r} to relax to")
    if tight:
        delta = claim.profile(smaller)
    else:
        gap = -math.expm1(smaller - point.epsilon)  # e^ε - e^ε', without overflow
        delta = point.delta + gap * math.exp(min(point.epsilon, 700.0))
    return ApproximateDP(smaller, below_one(delta, f"relaxation to ε = {smaller:g}"))


def chain(first: PrivacyClaim, second: PrivacyClaim) -> ApproximateDP:
    """Return the claim for the inputs (d1, d3) that follows from a claim for (d1, d2) and one for
    (d2, d3). If their points are (ε₁, δ₁) and (ε₂, δ₂), it is (ε₁ + ε₂, δ)-DP with
    δ = max{δ₁ + e^ε₁ δ₂, δ₂ + e^ε₂ δ₁}. Raise ClaimError if δ would reach 1.

    Let p, q and r be the probabilities of an event under d1, d2 and d3. p ≤ e^ε₁ q + δ₁ and
    q ≤ e^ε₂ r + δ₂ give p ≤ e^(ε₁+ε₂) r + δ₁ + e^ε₁ δ₂ (docs/method.md §6; docs/seeds.md, 003,
    Exercise 7.2).

    >>> chain(ApproximateDP(1.0, 0), ApproximateDP(0.5, 0)).epsilon
    1.5
    """
    near, far = first.point(), second.point()
    forwards = near.delta + math.exp(min(near.epsilon, 700.0)) * far.delta
    backwards = far.delta + math.exp(min(far.epsilon, 700.0)) * near.delta
    delta = below_one(max(forwards, backwards), "chain")
    return ApproximateDP(near.epsilon + far.epsilon, delta)


def posterior_bounds(epsilon: float, prior: float) -> tuple[float, float]:
    """Return (smallest, largest) probability that the input is d1, and not d2, after an output of
    an ε-DP mechanism was seen. Before, it was `prior`. Raise ClaimError if ε or the prior is not a
    number, or is out of range.

    By Bayes' rule an output multiplies the odds of d1 by a factor between e^-ε and e^ε. Source:
    Lalanne, eq. 5 (docs/seeds.md, 000).

    >>> low, high = posterior_bounds(1.1, 0.5)
    >>> round(low, 2), round(high, 2)
    (0.25, 0.75)
    """
    largest, belief = checked_epsilon("epsilon", epsilon), checked_number("prior", prior)
    if not 0 <= belief <= 1:
        raise invalid(Name("prior"), f"={belief!r} must lie in [0, 1]")
    damped = math.exp(-largest)
    low = belief * damped / (belief * damped + 1 - belief) if belief < 1 else 1.0
    high = belief / (belief + (1 - belief) * damped) if belief > 0 else 0.0
    return low, high
