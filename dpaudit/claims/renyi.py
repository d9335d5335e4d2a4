"""Definitions by Rényi divergences: Rényi DP, zCDP (zero-concentrated DP) and approximate zCDP.

Rényi DP bounds the divergence of a single order a, zCDP those of all orders a > 1, in both
directions. For an event E with p = P(E) and q = Q(E), the divergence of two coins with
probabilities p and q is at most D_a(P ‖ Q), by data processing. So δ(ε) is at most the largest
p - e^ε q over all pairs (p, q) that the bound allows (docs/method.md (6.2)). For a single order no
conversion is tighter, since one event attains the supremum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, ClassVar, Self

from dpaudit.claims.base import (
    Delta,
    Parameter,
    PrivacyClaim,
    ProfilePoint,
    below_one,
    number_that,
    points_at,
    positive_up_to,
    total,
)
from dpaudit.claims.solving import crossing, largest_parameter, peak
from dpaudit.errors import ClaimError

# Largest order that a Rényi claim may have.
_MAX_ORDER = 1e4
# Largest divergence of a Rényi claim, in nats; also the largest ρ of a zCDP claim.
_MAX_DIVERGENCE = 100.0
# An audit of a Rényi or zCDP claim tests several points (ε, δ) of its privacy profile. Each number
# in this list leads to one of them: the point at the ε for which the usual conversion of the claim
# to (ε, δ)-DP gives this number as δ.
_DELTAS = (0.3, 0.1, 1e-2, 1e-3, 1e-5)
# Orders a of the divergences D_a that an audit of a zCDP claim may test directly.
_ORDERS = (1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
# Largest error of log q in the search for the q that maximises p - e^ε q.
_LOG_Q_ERROR = 1e-7
# Largest ε, in nats, at which the privacy profile δ(ε) of a Rényi claim is computed. For a larger
# ε, e^-ε would nearly underflow, so δ(650) is returned. It is at least δ(ε), so no mechanism that
# satisfies the claim is refuted.
_MAX_EPSILON = 650.0

Order = Annotated[
    float,
    Parameter(
        "The order of a Rényi claim.",
        number_that(
            f"lie in (1, {_MAX_ORDER:g}]; the definition of infinite order is pure",
            lambda order: 1 < order <= _MAX_ORDER,
        ),
        is_telling=True,
    ),
]
Divergence = Annotated[
    float,
    Parameter(
        "The ε of the claim.",
        number_that(
            f"lie in [0, {_MAX_DIVERGENCE:g}]", lambda epsilon: 0 <= epsilon <= _MAX_DIVERGENCE
        ),
        has_curve=True,
        symbol="D_{order:g}",
    ),
]
Rho = Annotated[
    float,
    Parameter(
        "The ρ of a zCDP claim.",
        positive_up_to(_MAX_DIVERGENCE),
        is_telling=True,
        has_curve=True,
        symbol="ρ",
    ),
]


@dataclass(frozen=True, slots=True)
class RenyiDP(PrivacyClaim):
    """(a, ε)-Rényi differential privacy: D_a(P ‖ Q) ≤ ε and D_a(Q ‖ P) ≤ ε.

    Parameters
    ----------
    order, epsilon : float
        a, the order, in (1, 10,000]; ε, the largest divergence, in nats, in [0, 100].

    Notes
    -----
    D_a is the Rényi divergence of order a; P and Q are the distributions of the output on two
    neighbouring inputs. An audit makes two tests (docs/method.md §6). One tests a point (ε, δ) of
    the privacy profile that the claim implies, the other tests D_a itself. Source: Mironov 2017,
    Def. 4.

    Examples
    --------
    >>> from dpaudit import RenyiDP
    >>> RenyiDP(2.0, 0.5).describe()
    '(2, 0.5)-Rényi DP'
    >>> round(RenyiDP(2.0, 0.5).profile(1.0), 3)
    0.09
    """

    key: ClassVar[str] = "renyi"
    title: ClassVar[str] = "Rényi differential privacy"
    formula: ClassVar[str] = "log E_Q[(P/Q)^a] / (a - 1) ≤ ε"

    order: Order
    epsilon: Divergence

    def profile(self, epsilon: float) -> float:
        return _renyi_delta(self.order, self.epsilon, epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        tails = (self.epsilon + math.log(1 / delta) / (self.order - 1) for delta in _DELTAS)
        every = (self.epsilon, self.epsilon / 2, 0.0, *tails)
        return points_at(self, dict.fromkeys(every))

    def describe(self) -> str:
        return f"({self.order:.12g}, {self.epsilon:.12g})-Rényi DP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return ("epsilon", lower bound for D_a): the largest limit on D_a for which the privacy
        profile at `epsilon` is still at most `delta_lower`."""
        delta_of = partial(_renyi_delta, self.order, epsilon=epsilon)
        near = _least_divergence(self.order, epsilon, delta_lower)
        return "epsilon", largest_parameter(delta_of, delta_lower, _MAX_DIVERGENCE, near)

    def divergences(self) -> tuple[tuple[float, float], ...]:
        return ((self.order, self.epsilon),)

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float]:
        return "epsilon", lower

    def composed(self, claims: Sequence[Self]) -> RenyiDP | None:
        """Return the claim with the sum of all ε (Mironov 2017, Prop. 1); None if orders differ."""
        if any(claim.order != self.order for claim in claims):
            return None
        return RenyiDP(self.order, total(claims, "epsilon"))


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(PrivacyClaim):
    """ρ-zero-concentrated differential privacy: D_a(P ‖ Q) ≤ ρ a for every order a > 1.

    Parameters
    ----------
    rho : float
        ρ, in nats per unit of the order, in (0, 100].

    Notes
    -----
    An audit makes two tests (docs/method.md §6). One tests a point (ε, δ) of the privacy profile;
    δ(ε) is the smallest of the bounds that several orders a give. The other tests D_a itself at one
    order. Source: Bun & Steinke 2016, Def. 1.1.

    Examples
    --------
    >>> from dpaudit import ZeroConcentratedDP
    >>> ZeroConcentratedDP(0.5).describe()
    '0.5-zCDP'
    >>> round(ZeroConcentratedDP(0.5).profile(1.0), 3)
    0.215
    """

    key: ClassVar[str] = "zcdp"
    title: ClassVar[str] = "zero-concentrated differential privacy"
    formula: ClassVar[str] = "D_a(P ‖ Q) ≤ ρ a for all a > 1"

    rho: Rho

    def profile(self, epsilon: float) -> float:
        return _concentrated_delta(self.rho, epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        tails = (self.rho + 2 * math.sqrt(self.rho * math.log(1 / delta)) for delta in _DELTAS)
        every = (math.sqrt(2 * self.rho), self.rho, 0.0, *tails)
        return points_at(self, dict.fromkeys(every))

    def describe(self) -> str:
        return f"{self.rho:.12g}-zCDP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return ("rho", value): the largest ρ whose privacy profile at `epsilon` is at most
        `delta_lower`."""
        delta_of = partial(_concentrated_delta, epsilon=epsilon)
        near = _least_concentration(epsilon, delta_lower)
        return "rho", largest_parameter(delta_of, delta_lower, _MAX_DIVERGENCE, near)

    def divergences(self) -> tuple[tuple[float, float], ...]:
        return tuple((order, self.rho * order) for order in _ORDERS)

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float]:
        return "rho", lower / order * (1 - 1e-15)

    def for_group(self, size: int) -> ZeroConcentratedDP:
        """Return k²ρ-zCDP for k = `size` records (Bun & Steinke 2016, Prop. 1.9)."""
        return ZeroConcentratedDP(size**2 * self.rho)

    def composed(self, claims: Sequence[Self]) -> ZeroConcentratedDP:
        """Return the claim with the sum of all ρ (Bun & Steinke 2016, Lemma 1.7)."""
        return ZeroConcentratedDP(total(claims, "rho"))


@lru_cache(maxsize=4096)
def _renyi_delta(
    order: float, divergence: float, epsilon: float, enough: float = math.inf
) -> float:
    """Return sup p - e^ε q with D_a(p ‖ q), D_a(q ‖ p) ≤ divergence (in nats), rounded up."""
    # If the result would be at least `enough`, any number of at least `enough` may be returned,
    # which saves time.
    # The profile δ(ε) falls with ε. So for an ε above the limit, the returned δ is larger than
    # δ(ε). This is safe: a claim with a larger δ is harder to refute.
    epsilon = min(epsilon, _MAX_EPSILON)
    factor = math.exp(epsilon)

    def gain(log_q: float) -> float:
        q = math.exp(log_q)
        return _largest_p(q, order, divergence) - factor * q

    # p - e^ε q is positive only for q < e^-ε. The allowed pairs (p, q) form a convex set, so that
    # the difference has a single peak in log q. `peak` finds its place up to `_LOG_Q_ERROR`. If the
    # peak is a corner, the difference is then too small by up to about p · `_LOG_Q_ERROR`, so twice
    # this number is added below.
    log_q = peak(gain, -epsilon - 40.0, -epsilon, _LOG_Q_ERROR, enough)
    p = _largest_p(math.exp(log_q), order, divergence)
    return min(1.0, max(0.0, gain(log_q)) + 2 * _LOG_Q_ERROR * p)


def _least_divergence(order: float, epsilon: float, delta: float) -> float:
    """Return the smallest divergence, in nats, at which `_renyi_delta` is δ; inf if none."""
    factor, room = math.exp(min(epsilon, _MAX_EPSILON)), 1 - delta
    if not 0 < delta < 1:
        return math.inf

    def closeness(log_q: float) -> float:
        q = math.exp(log_q)
        return -_larger_divergence(q, order)(min(1.0, delta + factor * q))

    # The divergence is jointly quasi-convex in (p, q), so it has one minimum on the line p = δ +
    # e^ε q. `peak` finds it. The largest possible log q belongs to p = 1.
    largest = math.log(room / factor)
    return -closeness(peak(closeness, largest - 40.0, largest, 1e-9))


@lru_cache(maxsize=4096)
def _concentrated_delta(rho: float, epsilon: float) -> float:
    """Return an upper bound of the privacy profile of ρ-zCDP at ε, rounded up."""
    # ρ-zCDP implies (a, ρa)-Rényi DP for every order a, and the profile of each is a bound.
    orders, log_delta = _orders(rho, epsilon)
    least = math.exp(min(0.0, log_delta)) * (1 + 1e-12)
    for a in orders:
        least = min(least, _renyi_delta(a, rho * a, epsilon, least))
    return least


def _orders(rho: float, epsilon: float) -> tuple[tuple[float, ...], float]:
    """Return (Rényi orders that `_concentrated_delta` tries, log δ by a closed form)."""
    # The closed form is the conversion of Canonne, Kamath & Steinke 2020 (Prop. 12), at its best
    # order. The orders are two near 1, which are best at small ε, two below the best order of the
    # closed form, and this best order.

    def log_delta(log_excess: float) -> float:
        a = 1 + math.exp(log_excess)
        return (a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a)

    best = peak(lambda log_excess: -log_delta(log_excess), -8.0, math.log(_MAX_ORDER), 1e-3)
    below = (1 + math.exp(best + step) for step in (-0.5, -0.25, 0.0))
    return (1.001, 1.05, *below), log_delta(best)


def _least_concentration(epsilon: float, delta: float) -> float:
    """Return about the ρ at which `_concentrated_delta` is δ; inf if there is none."""
    if not 0 < delta < 1:
        return math.inf
    orders: tuple[float, ...] = (1.001, 1.05, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0)
    # The best orders depend a little on ρ, so orders and ρ are computed in turns, three times.
    for _ in range(3):
        rho = max(_least_divergence(a, epsilon, delta) / a for a in orders)
        orders, _ = _orders(min(rho, _MAX_DIVERGENCE), epsilon)
    return max(_least_divergence(a, epsilon, delta) / a for a in orders)


def _binary_divergence(p: float, q: float, order: float) -> float:
    """Return D_a(p ‖ q) of two coins, in nats (Mironov 2017, Def. 3)."""
    if p == q:
        return 0.0
    if q in (0.0, 1.0):
        return math.inf
    if p == 0.0:
        return -math.log1p(-q)
    first = order * math.log(p) + (1 - order) * math.log(q)
    if p == 1.0:
        return first / (order - 1)
    second = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
    return max(0.0, _log_add(first, second)) / (order - 1)


def _largest_p(q: float, order: float, divergence: float) -> float:
    """Return the largest p ≥ q with D_a(p ‖ q), D_a(q ‖ p) ≤ divergence, rounded up."""
    larger_divergence = _larger_divergence(q, order)

    def excess(log_p: float) -> float:
        # Values of this function are cut off at `divergence + 0.001`: they can be very large if p
        # is near 1, and would slow down the search for its zero. The cut is above 0, so the zero
        # stays the same.
        return min(larger_divergence(math.exp(log_p)) - divergence, divergence + 1e-3)

    if excess(0.0) <= 0:
        return 1.0
    return math.exp(crossing(excess, math.log(q), 0.0, 1e-10)[1])


def _larger_divergence(q: float, order: float) -> Callable[[float], float]:
    """Return the function p ↦ max(D_a(p ‖ q), D_a(q ‖ p)) of two coins, in nats."""
    # Logarithms of q are computed in advance, since a profile calls the function thousands of
    # times.
    if not 0 < q < 1:
        return lambda p: max(_binary_divergence(p, q, order), _binary_divergence(q, p, order))
    less, log_q, log_not_q = 1 - order, math.log(q), math.log1p(-q)

    def larger(p: float) -> float:
        if p == q:
            return 0.0
        if not 0 < p < 1:
            return max(_binary_divergence(p, q, order), _binary_divergence(q, p, order))
        log_p, log_not_p = math.log(p), math.log1p(-p)
        first, second = order * log_p + less * log_q, order * log_not_p + less * log_not_q
        forwards = _log_add(first, second)
        first, second = order * log_q + less * log_p, order * log_not_q + less * log_not_p
        return max(0.0, forwards, _log_add(first, second)) / (order - 1)

    return larger


def _log_add(first: float, second: float) -> float:
    if first > second:
        return first + math.log1p(math.exp(second - first))
    return second + math.log1p(math.exp(first - second))


@dataclass(frozen=True, slots=True)
class ApproximateZCDP(PrivacyClaim):
    """δ-approximate ρ-zCDP: ρ-zCDP given that events of probability at least 1 - δ occur.

    Parameters
    ----------
    rho, delta : float
        ρ, in nats per unit of the order, in (0, 100]; δ, in [0, 1).

    Raises
    ------
    ClaimError
        For values out of range, and for δ so close to 1 that the claim allows every event.

    Notes
    -----
    P and Q are the laws of a run on d1 and d2. The claim: there are events E and F with
    P(E) ≥ 1 - δ, Q(F) ≥ 1 - δ, and D_a(P|E ‖ Q|F) ≤ ρ a and D_a(Q|F ‖ P|E) ≤ ρ a for every a > 1.
    It implies (ε, δ + (1 - δ) δ₀(ε))-DP, with δ₀ the privacy profile of ρ-zCDP (docs/method.md
    (6.3)). If some mechanism attains δ₀, then a mechanism that also publishes its input outside of
    the events attains this profile. Source: Bun & Steinke 2016, Def. 8.1, with ξ = 0.

    Examples
    --------
    >>> from dpaudit import ApproximateZCDP
    >>> ApproximateZCDP(0.5, 1e-6).describe()
    '1e-06-approximate 0.5-zCDP'
    """

    key: ClassVar[str] = "approximate-zcdp"
    title: ClassVar[str] = "approximate zero-concentrated differential privacy"
    formula: ClassVar[str] = "D_a(P|E ‖ Q|F) ≤ ρ a for all a > 1, with P(E) ≥ 1 - δ, Q(F) ≥ 1 - δ"

    rho: Rho
    delta: Delta

    def __post_init__(self) -> None:
        PrivacyClaim.__post_init__(self)  # `super()` fails in dataclasses with slots
        if not self.points():
            why = f"delta={self.delta!r} allows every event, which claims nothing"
            raise ClaimError(why, code="claim-says-nothing")

    def profile(self, epsilon: float) -> float:
        inside = ZeroConcentratedDP(self.rho).profile(epsilon)
        return min(1.0, (self.delta + (1 - self.delta) * inside) * (1 + 1e-15))

    def points(self) -> tuple[ProfilePoint, ...]:
        """Return the points to test. They have the same ε as those for ρ-zCDP. If δ > 0, there is
        one more, with an ε at which the profile is close to the δ of the claim."""
        epsilons = [point.epsilon for point in ZeroConcentratedDP(self.rho).points()]
        if self.delta:
            tail = math.log(10 / self.delta)
            epsilons.append(self.rho + 2 * math.sqrt(self.rho * tail))
        return points_at(self, epsilons)

    def describe(self) -> str:
        return f"{self.delta:.12g}-approximate {self.rho:.12g}-zCDP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return ("rho", value): the largest ρ for which the claim, with its δ, has a profile at
        `epsilon` of at most `delta_lower`. It is a lower bound for the ρ of the mechanism if the
        claimed δ is right."""
        inside = max(0.0, delta_lower - self.delta) / (1 - self.delta) * (1 - 1e-15)
        return ZeroConcentratedDP(self.rho).own_lower(epsilon, inside)

    def composed(self, claims: Sequence[Self]) -> ApproximateZCDP:
        """Return the claim with the sum of all ρ, and with δ = 1 - ∏ (1 - δᵢ): an upper bound for
        the probability that at least one release lies outside of its event. Source: Bun & Steinke
        2016, Section 8."""
        fails = -math.expm1(math.fsum(math.log1p(-claim.delta) for claim in claims)) * (1 + 1e-15)
        delta = below_one(min(fails, total(claims, "delta")), "composition")
        return ApproximateZCDP(total(claims, "rho"), delta)
