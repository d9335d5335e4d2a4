"""Rényi DP, of one order, and zero-concentrated DP (zCDP), of all orders.

Both bound a Rényi divergence, in both directions. By data processing the bound also holds for the
indicator of an event. So δ(ε) is at most the largest p - e^ε q over the pairs p = P(E), q = Q(E)
whose binary divergences satisfy the bound (docs/method.md §6). For one order no conversion is
tighter, since a single event attains the largest P(E) - e^ε Q(E).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, ClassVar, Self

from dpaudit.claims.base import (
    Delta,
    Epsilon,
    Parameter,
    PrivacyClaim,
    ProfilePoint,
    below_one,
    checked_delta,
    checked_epsilon,
    checked_number,
    checked_positive,
    points_at,
    total,
)
from dpaudit.claims.solving import crossing, largest_parameter, peak
from dpaudit.errors import ClaimError

_LARGEST_ORDER = 1e4
_LARGEST = 100.0
# Points to test: the ε at which the usual conversions to (ε, δ) give these δ.
_DELTAS = (0.3, 0.1, 1e-2, 1e-3, 1e-5)
# Orders at which a zCDP claim is tested by a bound on the divergence.
_ORDERS = (1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
Rho = Annotated[float, Parameter("The ρ of a zCDP claim.", is_telling=True, has_curve=True)]
# Error of log q at the maximum of p - e^ε q.
_LOG_Q_ERROR = 1e-7
# Largest ε at which a profile is computed: beyond it, the probabilities underflow.
_LARGEST_EPSILON = 650.0


@dataclass(frozen=True, slots=True)
class RenyiDP(PrivacyClaim):
    """(a, ε)-Rényi differential privacy: D_a(P ‖ Q) ≤ ε and D_a(Q ‖ P) ≤ ε.

    Parameters
    ----------
    order, epsilon : float
        a, the order, in (1, 10,000]; the largest divergence, in nats, in [0, 100].

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    P and Q are the laws of the output on d1 and d2. An audit tests one point of the profile that
    the claim implies, and D_a itself (docs/method.md §6). Source: Mironov 2017, Def. 4.

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

    order: Annotated[float, Parameter("The order of a Rényi claim.", is_telling=True)]
    epsilon: Epsilon

    def __post_init__(self) -> None:
        order = checked_number("order", self.order)
        if not 1 < order <= _LARGEST_ORDER:
            raise ClaimError(
                f"order={order!r} must lie in (1, {_LARGEST_ORDER:g}]; the definition of infinite "
                "order is pure",
                code="option-invalid",
            )
        object.__setattr__(self, "order", order)
        epsilon = checked_epsilon(self.epsilon)
        if epsilon > _LARGEST:
            why = f"epsilon={epsilon!r} must be at most {_LARGEST:g}"
            raise ClaimError(why, code="option-invalid")
        object.__setattr__(self, "epsilon", epsilon)

    def profile(self, epsilon: float) -> float:
        return _renyi_delta(self.order, self.epsilon, epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        tails = (self.epsilon + math.log(1 / delta) / (self.order - 1) for delta in _DELTAS)
        every = (self.epsilon, self.epsilon / 2, 0.0, *tails)
        return points_at(self, dict.fromkeys(every))

    def describe(self) -> str:
        return f"({self.order:.12g}, {self.epsilon:.12g})-Rényi DP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return the largest divergence whose δ at ε is at most the bound, rounded down."""
        delta_of = partial(_renyi_delta, self.order, epsilon=epsilon)
        near = _least_divergence(self.order, epsilon, delta_lower)
        return f"D_{self.order:g}", largest_parameter(delta_of, delta_lower, _LARGEST, near)

    def divergences(self) -> tuple[tuple[float, float], ...]:
        return ((self.order, self.epsilon),)

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float]:
        return f"D_{order:g}", lower

    def composed(self, claims: Sequence[Self]) -> RenyiDP | None:
        """Return the sum of all ε if all orders are equal (Mironov 2017, Prop. 1), else None."""
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

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    P and Q are the laws of the output on d1 and d2; the claim holds in both directions. An audit
    tests one point of the profile that the claim implies, the least over some orders, and D_a of
    one order (docs/method.md §6). Source: Bun & Steinke 2016, Def. 1.1.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checked_positive("rho", self.rho, _LARGEST))

    def profile(self, epsilon: float) -> float:
        return _concentrated_delta(self.rho, epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        tails = (self.rho + 2 * math.sqrt(self.rho * math.log(1 / delta)) for delta in _DELTAS)
        every = (math.sqrt(2 * self.rho), self.rho, 0.0, *tails)
        return points_at(self, dict.fromkeys(every))

    def describe(self) -> str:
        return f"{self.rho:.12g}-zCDP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return the largest ρ whose δ at ε is at most the bound, rounded down."""
        delta_of = partial(_concentrated_delta, epsilon=epsilon)
        near = _least_concentration(epsilon, delta_lower)
        return "ρ", largest_parameter(delta_of, delta_lower, _LARGEST, near)

    def divergences(self) -> tuple[tuple[float, float], ...]:
        return tuple((order, self.rho * order) for order in _ORDERS)

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float]:
        return "ρ", lower / order * (1 - 1e-15)

    def for_group(self, size: int) -> ZeroConcentratedDP:
        """Return k²ρ-zCDP (Bun & Steinke 2016, Prop. 1.9)."""
        return ZeroConcentratedDP(size**2 * self.rho)

    def composed(self, claims: Sequence[Self]) -> ZeroConcentratedDP:
        """Return the sum of all ρ (Bun & Steinke 2016, Lemma 1.7)."""
        return ZeroConcentratedDP(total(claims, "rho"))


@lru_cache(maxsize=4096)
def _renyi_delta(
    order: float, divergence: float, epsilon: float, enough: float = math.inf
) -> float:
    """Return the largest p - e^ε q with both divergences at most `divergence`, rounded up.

    If it is at least `enough`, some number of at least `enough` is returned.
    """
    epsilon = min(epsilon, _LARGEST_EPSILON)  # rounds up, since the profile falls with ε
    factor = math.exp(epsilon)

    def gain(log_q: float) -> float:
        q = math.exp(log_q)
        return _largest_p(q, order, divergence) - factor * q

    # p - e^ε q is positive only for q < e^-ε. The allowed pairs form a convex set, so that it has
    # one peak in log q. The peak may be a corner: the loss next to it is of the order of p times
    # the distance.
    log_q = peak(gain, -epsilon - 40.0, -epsilon, _LOG_Q_ERROR, enough)
    p = _largest_p(math.exp(log_q), order, divergence)
    return min(1.0, max(0.0, gain(log_q)) + 2 * _LOG_Q_ERROR * p)


def _least_divergence(order: float, epsilon: float, delta: float) -> float:
    """Return approximately the least divergence of two coins with p - e^ε q = δ; inf if there is
    none.

    The inverse of `_renyi_delta` in its second argument.
    """
    factor, room = math.exp(min(epsilon, _LARGEST_EPSILON)), 1 - delta
    if not 0 < delta < 1:
        return math.inf

    def closeness(log_q: float) -> float:
        q = math.exp(log_q)
        return -_larger_divergence(q, order)(min(1.0, delta + factor * q))

    # The divergence is jointly quasi-convex in (p, q), so that it has one minimum on a line.
    most = math.log(room / factor)
    return -closeness(peak(closeness, most - 40.0, most, 1e-9))


@lru_cache(maxsize=4096)
def _concentrated_delta(rho: float, epsilon: float) -> float:
    """Return the least `_renyi_delta` over `_orders`, rounded up. The value of each order is
    valid."""
    orders, log_delta = _orders(rho, epsilon)
    least = math.exp(min(0.0, log_delta)) * (1 + 1e-12)
    for a in orders:
        least = min(least, _renyi_delta(a, rho * a, epsilon, least))
    return least


def _orders(rho: float, epsilon: float) -> tuple[tuple[float, ...], float]:
    """Return orders to try, and log δ of the closed form at the last of them.

    The orders are two near 1, which are best at small ε, two below the best order of the closed
    form of Canonne, Kamath & Steinke 2020 (Prop. 12), and that order itself."""

    def log_delta(log_excess: float) -> float:
        a = 1 + math.exp(log_excess)
        return (a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a)

    best = peak(lambda log_excess: -log_delta(log_excess), -8.0, math.log(_LARGEST_ORDER), 1e-3)
    below = (1 + math.exp(best + step) for step in (-0.5, -0.25, 0.0))
    return (1.001, 1.05, *below), log_delta(best)


def _least_concentration(epsilon: float, delta: float) -> float:
    """Return approximately the least ρ of two coins with p - e^ε q = δ; inf if there is none.

    Approximately the inverse of `_concentrated_delta` in its first argument.
    """
    if not 0 < delta < 1:
        return math.inf
    orders: tuple[float, ...] = (1.001, 1.05, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0)
    # The orders depend a little on ρ, hence the iteration.
    for _ in range(3):
        rho = max(_least_divergence(a, epsilon, delta) / a for a in orders)
        orders, _ = _orders(min(rho, _LARGEST), epsilon)
    return max(_least_divergence(a, epsilon, delta) / a for a in orders)


def _binary_divergence(p: float, q: float, order: float) -> float:
    """Return D_a(p ‖ q) of two coins; inf if q is 0 or 1 and p differs (Mironov 2017, Def. 3).

    >>> round(_binary_divergence(0.75, 0.25, 2.0), 4)
    0.8473
    """
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
    """Return the largest p ≥ q with both divergences at most `divergence`, rounded up."""
    most = _larger_divergence(q, order)

    def excess(log_p: float) -> float:
        # Capped, since large values near p = 1 slow the search down.
        return min(most(math.exp(log_p)) - divergence, divergence + 1e-3)

    if excess(0.0) <= 0:
        return 1.0
    return math.exp(crossing(excess, math.log(q), 0.0, 1e-10)[1])


def _larger_divergence(q: float, order: float) -> Callable[[float], float]:
    """Return p -> max(D_a(p ‖ q), D_a(q ‖ p)) of two coins, with the logarithms of q taken once.

    A profile evaluates it thousands of times.
    """
    if not 0 < q < 1:
        return lambda p: max(_binary_divergence(p, q, order), _binary_divergence(q, p, order))
    less, log_q, log_not_q = 1 - order, math.log(q), math.log1p(-q)

    def most(p: float) -> float:
        if p == q:
            return 0.0
        if not 0 < p < 1:
            return max(_binary_divergence(p, q, order), _binary_divergence(q, p, order))
        log_p, log_not_p = math.log(p), math.log1p(-p)
        first, second = order * log_p + less * log_q, order * log_not_p + less * log_not_q
        forwards = _log_add(first, second)
        first, second = order * log_q + less * log_p, order * log_not_q + less * log_not_p
        return max(0.0, forwards, _log_add(first, second)) / (order - 1)

    return most


def _log_add(first: float, second: float) -> float:
    if first > second:
        return first + math.log1p(math.exp(second - first))
    return second + math.log1p(math.exp(first - second))


@dataclass(frozen=True, slots=True)
class ApproximateZCDP(PrivacyClaim):
    """δ-approximate ρ-zCDP: ρ-zCDP conditional on events of probability at least 1 - δ.

    Parameters
    ----------
    rho, delta : float
        ρ, in nats per unit of the order, in (0, 100]; δ, in [0, 1).

    Raises
    ------
    ClaimError
        For any other value, and for δ so close to 1 that the claim allows everything.

    Notes
    -----
    P and Q are the laws of a run on d1 and d2. Some events E and F of probability P(E) ≥ 1 - δ and
    Q(F) ≥ 1 - δ satisfy D_a(P|E ‖ Q|F) ≤ ρ a, and the other way round, for every a > 1. This
    implies (ε, δ + (1 - δ) δ₀(ε))-DP, with δ₀ the profile of ρ-zCDP (proof: docs/method.md §6). If
    δ₀ is attained, so is this profile: P and Q may publish the input outside of their events.
    Source: Bun & Steinke 2016, Def. 8.1, with ξ = 0.

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
        object.__setattr__(self, "rho", ZeroConcentratedDP(self.rho).rho)
        object.__setattr__(self, "delta", checked_delta(self.delta))
        if not self.points():
            why = f"delta={self.delta!r} allows every event, which claims nothing"
            raise ClaimError(why, code="claim-says-nothing")

    def profile(self, epsilon: float) -> float:
        inside = ZeroConcentratedDP(self.rho).profile(epsilon)
        return min(1.0, (self.delta + (1 - self.delta) * inside) * (1 + 1e-15))

    def points(self) -> tuple[ProfilePoint, ...]:
        """Return points at the ε of ρ-zCDP, and at one ε where the profile is close to δ."""
        epsilons = [point.epsilon for point in ZeroConcentratedDP(self.rho).points()]
        if self.delta:
            tail = math.log(10 / self.delta)
            epsilons.append(self.rho + 2 * math.sqrt(self.rho * tail))
        return points_at(self, epsilons)

    def describe(self) -> str:
        return f"{self.delta:.12g}-approximate {self.rho:.12g}-zCDP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return the largest ρ whose profile at the claimed δ is at most the bound, rounded
        down."""
        inside = max(0.0, delta_lower - self.delta) / (1 - self.delta) * (1 - 1e-15)
        return ZeroConcentratedDP(self.rho).own_lower(epsilon, inside)

    def composed(self, claims: Sequence[Self]) -> ApproximateZCDP:
        """Return the sum of all ρ, with δ = 1 - ∏ (1 - δᵢ) (Bun & Steinke 2016, Section 8).

        That is the probability that a release lies outside of its event, at most the sum of all δᵢ.
        """
        fails = -math.expm1(math.fsum(math.log1p(-claim.delta) for claim in claims)) * (1 + 1e-15)
        delta = below_one(min(fails, total(claims, "delta")), "composition")
        return ApproximateZCDP(total(claims, "rho"), delta)
