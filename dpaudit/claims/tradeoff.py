"""Definitions by trade-off functions, f-DP and Gaussian DP; trade-off functions of all claims.

`tradeoff` computes f for any claim; `dpaudit explain` and reports draw it. `smallest_probability`
returns g, which the tests of `stats.one_run_tradeoff` need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from dpaudit.claims.base import (
    Instead,
    Parameter,
    PrivacyClaim,
    ProfilePoint,
    checked_positive,
    invalid,
    points_at,
    positive_up_to,
)
from dpaudit.claims.point_claims import ApproximateDP
from dpaudit.claims.solving import crossing, largest_parameter
from dpaudit.errors import ClaimError, Name

# A trade-off function f, from [0, 1] to [0, 1]: it maps the probability of a false alarm to the
# least probability of a miss.
TradeOff = Callable[[float], float]
# A point (α, f(α)) of the graph of a trade-off function f.
Knot = tuple[float, float]
# The corners of a polygon below a trade-off function, in rising order of α.
Knots = tuple[Knot, ...]

# A trade-off function f is evaluated at α from ½ down to ½ · 10⁻⁶, and at the same values of 1 - α.
# _PER_DECADE: number of points for each factor of 10 in α.
# _DECADES: number of factors of 10.
_PER_DECADE, _DECADES = 40, 6
# Values of α that choose the points (ε, δ) to test: at each α, the slope -e^ε of the trade-off
# function f gives an ε, and the privacy profile gives the δ of this ε. The first α gives the point
# that represents the claim.
_ALPHAS = (0.2, 0.4, 0.3, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3, 1e-4, 1e-5)
# Tolerance for rounding: a trade-off function f may rise, may fail to be convex, and may exceed 1 -
# α by at most this number.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class FunctionalDP(PrivacyClaim):
    """f-differential privacy: a test with false-alarm rate α misses with probability ≥ f(α).

    Parameters
    ----------
    tradeoff : callable or sequence of pairs of float
        f: either a function from [0, 1] to [0, 1], or pairs [α, f(α)], the first with α = 0 and the
        last [1, 0], between which f is linear. f must be convex and non-increasing, with
        f(α) ≤ 1 - α.
    name : str, optional
        Name of f in reports. Default: the name of the function.

    Raises
    ------
    ClaimError
        For any other value, and for an f that allows every event.

    Notes
    -----
    The claim is about tests of d1 against d2, and of d2 against d1. A function f is replaced by a
    polygon below f: every mechanism that satisfies the claim also satisfies the polygon, and the
    tested δ becomes larger by less than 1 %. If f is not its own inverse, the larger δ of the two
    directions is tested (docs/method.md (6.4)). Source: Dong, Roth & Su 2022, Def. 2.3.

    Examples
    --------
    >>> from dpaudit import FunctionalDP
    >>> claim = FunctionalDP([[0, 0.9], [0.1, 0.6], [1, 0]], name="mine")
    >>> claim.describe()
    'f-DP with f = mine'
    >>> round(claim.profile(0.0), 3)
    0.3
    """

    key: ClassVar[str] = "f-dp"
    title: ClassVar[str] = "f-differential privacy"
    formula: ClassVar[str] = "Q(E) ≥ f(1 - P(E)) for every E"

    tradeoff: Annotated[
        Knots | Sequence[Sequence[float]] | TradeOff,
        Parameter(
            "The f of an f-DP claim: the import path of a function.",
            forms=("function", "table"),
            is_telling=True,
        ),
    ]
    name: Annotated[
        str, Parameter("The name of f in reports.", forms=("text",), has_flag=False)
    ] = ""

    def __post_init__(self) -> None:
        name = self.name or getattr(self.tradeoff, "__qualname__", "the given table")
        function = self.tradeoff
        knots = _lines_below(function, name) if callable(function) else _checked(function)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "tradeoff", knots)
        if not self.points():
            why = f"={name} allows every event, which claims nothing"
            raise ClaimError(Name("tradeoff"), why, code="claim-says-nothing")

    def profile(self, epsilon: float) -> float:
        factor = math.exp(min(epsilon, 700.0))
        deltas = ((1 - b - factor * a, 1 - a - factor * b) for a, b in self._knots())
        return min(1.0, max(0.0, *map(max, deltas)) + 1e-15)

    def points(self) -> tuple[ProfilePoint, ...]:
        slopes = [slope for alpha in _ALPHAS for slope in _log_slopes(self._knots(), alpha)]
        distinct = {round(slope, 6): slope for slope in (0.0, *reversed(slopes))}
        return points_at(self, reversed(distinct.values()))

    def describe(self) -> str:
        return f"f-DP with f = {self.name}"

    def parameters(self) -> dict[str, Any]:
        return {"tradeoff": [list(knot) for knot in self._knots()], "name": self.name}

    def _knots(self) -> Knots:
        return self.tradeoff  # type: ignore[return-value]  # a tuple since __post_init__


def _lines_below(function: TradeOff, name: str) -> Knots:
    """Return the corners of a convex polygon below the trade-off function."""
    # For four neighbouring points of the graph of f, a convex f lies, between the second and the
    # third point, above the line through the first two points and above the line through the last
    # two points. The intersection of both lines is a corner.
    points = tuple((alpha, _evaluated(function, alpha, name)) for alpha in _grid())
    _check_shape(points, name)
    chords = tuple(pairwise(points))
    corners = (_meeting(left, right) for left, right in zip(chords, chords[2:], strict=False))
    return ((0.0, max(0.0, _line(*chords[1], 0.0))), *corners, (1.0, 0.0))


def _meeting(left_chord: tuple[Knot, Knot], right_chord: tuple[Knot, Knot]) -> Knot:
    """Return the point where two chords of a trade-off function meet if they are prolonged."""
    steep, flat = _slope(*left_chord), _slope(*right_chord)
    (left, high), (right, low) = left_chord[1], right_chord[0]
    if flat - steep <= 1e-12 * abs(steep):  # both chords are on a straight line
        return left, min(high, _line(*right_chord, left))
    alpha = (low - high + steep * left - flat * right) / (steep - flat)
    alpha = min(max(alpha, left), right)
    return alpha, max(0.0, min(_line(*left_chord, alpha), _line(*right_chord, alpha)))


def _slope(left: Knot, right: Knot) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])


def _line(left: Knot, right: Knot, alpha: float) -> float:
    return left[1] + _slope(left, right) * (alpha - left[0])


def _grid() -> list[float]:
    steps = range(-_PER_DECADE * _DECADES, 0)
    small = [0.5 * 10 ** (step / _PER_DECADE) for step in steps]
    return [0.0, *small, 0.5, *(1 - alpha for alpha in reversed(small)), 1.0]


def _evaluated(function: TradeOff, alpha: float, name: str) -> float:
    try:
        return float(function(alpha))
    except Exception as error:
        why = f"cannot be evaluated at {alpha:g}: {type(error).__name__}: {error}"
        raise invalid(Name("tradeoff"), f"={name} {why}") from error


def _checked(table: Any) -> Knots:
    try:
        knots = tuple(sorted((float(alpha), float(beta)) for alpha, beta in table))
    except (TypeError, ValueError):
        raise invalid(
            Name("tradeoff"),
            f"={table!r} must be a function, its import path, or a list of pairs "
            "[α, f(α)] such as [[0, 0.9], [0.1, 0.6], [1, 0]]",
        ) from None
    if not knots or knots[0][0] != 0 or knots[-1] != (1.0, 0.0):
        raise invalid(Name("tradeoff"), " must go from α = 0 to the pair [1, 0]")
    _check_shape(knots, "the given table")
    return knots


def _check_shape(points: Knots, name: str) -> None:
    for alpha, beta in points:
        if not -_ROUNDING <= beta <= 1 - alpha + _ROUNDING:
            why = f"must lie between 0 and 1 - α, but f({alpha:g}) = {beta:g}"
            raise invalid(Name("tradeoff"), f"={name} {why}")
    for (left, high), (right, low) in pairwise(points):
        if low > high + _ROUNDING or right == left:
            raise invalid(Name("tradeoff"), f"={name} must not rise, but does from α = {left:g}")
    for (a, fa), (b, fb), (c, fc) in zip(points, points[1:], points[2:], strict=False):
        if fb * (c - a) > (fa * (c - b) + fc * (b - a)) + _ROUNDING * (c - a):
            raise invalid(Name("tradeoff"), f"={name} must be convex, but is not near α = {b:g}")


def _log_slopes(knots: Knots, alpha: float) -> list[float]:
    """Return log |slope| ≥ 0 of the one or two edges of a piecewise linear f that contain α."""
    around = [pair for pair in pairwise(knots) if pair[0][0] <= alpha <= pair[1][0]]
    steep = [-_slope(*pair) for pair in around if pair[1][0] > pair[0][0]]
    return [math.log(slope) for slope in steep if slope >= 1]


# Largest μ that a claim of Gaussian DP may have.
_MAX_MU = 10.0
_SIGMA = Instead(
    "sigma",
    "In place of μ = 1/σ: Gaussian noise with this σ (noise multiplier), at sensitivity 1.",
    "mu = 1/sigma",
    lambda sigma: 1 / checked_positive("sigma", sigma),
)


@dataclass(frozen=True, slots=True)
class GaussianDP(PrivacyClaim):
    """μ-Gaussian differential privacy: d1 and d2 are as hard to distinguish as N(0, 1) and N(μ, 1).

    Parameters
    ----------
    mu : float
        μ, in (0, 10]. The Gaussian mechanism has μ = sensitivity / standard deviation of the noise.

    Notes
    -----
    At every false-alarm rate, a test of d1 against d2, given an output, misses at least as often as
    the best test of N(0, 1) against N(μ, 1). With Φ the standard normal distribution function, this
    means δ(ε) ≤ Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) for every ε. An audit tests one point of this
    curve, which is fixed before the draws that certify (docs/method.md §6). Source: Dong, Roth & Su
    2022.

    Examples
    --------
    >>> from dpaudit import GaussianDP
    >>> round(GaussianDP(1.0).profile(1.0), 4)
    0.1269
    """

    key: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian differential privacy"
    formula: ClassVar[str] = "δ(ε) ≤ Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)"

    mu: Annotated[
        float,
        Parameter(
            "The μ of a Gaussian claim.",
            positive_up_to(_MAX_MU),
            is_telling=True,
            has_curve=True,
            instead=_SIGMA,
            symbol="μ",
        ),
    ]

    def profile(self, epsilon: float) -> float:
        return gaussian_delta(self.mu, epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        """Return the points to test. The first is the best one for the detection of a slightly
        larger μ."""
        return _gaussian_points(self.mu)

    def describe(self) -> str:
        return f"{self.mu:.12g}-Gaussian DP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return ("mu", value): the largest μ whose privacy profile at ε is at most
        `delta_lower`."""
        largest = 4 * _MAX_MU
        return "mu", largest_parameter(lambda mu: gaussian_delta(mu, epsilon), delta_lower, largest)

    def for_group(self, size: int) -> GaussianDP:
        """Return kμ-Gaussian DP for k = `size` records (Dong, Roth & Su 2022, Thm. 2.9)."""
        return GaussianDP(size * self.mu)

    def composed(self, claims: Sequence[Self]) -> GaussianDP:
        """Return √(Σ μ²)-Gaussian DP, summed over all claims (Dong, Roth & Su 2022, Cor. 3.3)."""
        return GaussianDP(math.hypot(*(claim.mu for claim in claims)))

    def note_for_integers(self) -> str:
        """Return a note that discrete Gaussian noise satisfies zCDP but not Gaussian DP (Canonne,
        Kamath & Steinke 2020, Thm. 4)."""
        rho = f"{self.mu**2 / 2:.6g}"
        return (
            "all outputs are integers; a discrete Gaussian with σ = 1/μ is not exactly μ-GDP. It "
            f"satisfies ρ-zCDP with ρ = μ²/2: claim --rho {rho} (claim: {{rho: {rho}}})"
        )

    def own_tradeoff(self, alpha: float) -> float:
        """Return G_μ(α) = Φ(Φ⁻¹(1 - α) - μ), Φ the standard normal distribution function."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(1 - alpha) - self.mu))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the privacy profile δ(ε) of N(0, 1) against N(μ, 1) for μ > 0, rounded up. Source:
    Balle & Wang 2018; docs/method.md (6.1).

    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    p_tail, q_tail = _normal_tail(epsilon / mu - mu / 2), _normal_tail(epsilon / mu + mu / 2)
    scaled = math.exp(epsilon) * q_tail if q_tail else 0.0
    # The result is rounded up by 1e-13 · p_tail, so that it is never below δ(ε). This exceeds the
    # rounding errors even if `p_tail` and `scaled` nearly cancel.
    return min(1.0, max(0.0, p_tail - scaled) + 1e-13 * p_tail)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest ε ≥ 0 at which the privacy profile of N(0, 1) against N(μ, 1) is at most
    δ, for μ > 0 and δ > 0, rounded down (docs/method.md (6.1)).

    >>> round(gaussian_epsilon(1.0, 1e-5), 3)
    4.377
    """
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    # The search ends at ε = μ (μ/2 + 38). There, δ(ε) ≤ Φ(-ε/μ + μ/2) = Φ(-38) < 1e-300, so the
    # solution is smaller for any `delta` of at least 1e-300.
    return crossing(lambda eps: delta - gaussian_delta(mu, eps), 0.0, mu * (mu / 2 + 38), 1e-9)[0]


def _normal_tail(x: float) -> float:
    """Return Pr[N(0, 1) > x]."""
    return 0.5 * math.erfc(x / math.sqrt(2))


@lru_cache(maxsize=256)
def _gaussian_points(mu: float) -> tuple[ProfilePoint, ...]:
    """Return the points of the privacy profile of μ-Gaussian DP that an audit may test."""
    # The first point is best to detect a mechanism with 1.1 μ: its ε has the largest quotient of
    # the difference between the δ of this mechanism and the claimed δ, and the standard deviation
    # with which one draw estimates it. The other points have ε = 0 or ε = m + t · μ ≥ 0 for t from
    # 0 to 3, where m = μ²/2 is the mean and μ the standard deviation of log P/Q under P.
    larger = 1.1 * mu

    def evidence(epsilon: float) -> float:
        p_tail = _normal_tail(epsilon / larger - larger / 2)
        q_tail = _normal_tail(epsilon / larger + larger / 2)
        ratio = math.exp(epsilon)
        excess = p_tail - ratio * q_tail - gaussian_delta(mu, epsilon)
        return excess / math.sqrt(p_tail + ratio**2 * q_tail)

    last = mu * (4 + mu)
    best = max((last * step / 400 for step in range(401)), key=evidence)
    candidates = [mu * (t + mu / 2) for t in (-mu / 2, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)]
    epsilons = [best, *(epsilon for epsilon in candidates if epsilon >= 0)]
    return tuple(ProfilePoint(epsilon, gaussian_delta(mu, epsilon)) for epsilon in epsilons)


# The grid of ε at which `tradeoff` evaluates the privacy profile; each ε gives two straight lines
# below the trade-off function.
# _STEPS: number of steps of the grid.
# _MAX_EPSILON: largest ε of the grid, in nats.
_STEPS, _MAX_EPSILON = 200, 12.0


def smallest_probability(claim: PrivacyClaim) -> Callable[[float], float]:
    """Return the function g of a claim, from [0, 1] to [0, 1]. It is convex and rising; its values
    are rounded down.

    For Gaussian DP, g(p) = Φ(Φ⁻¹(p) - μ). Otherwise g(p) is computed from lines below f, as in
    `tradeoff`.

    >>> from dpaudit.claims.point_claims import PureDP
    >>> round(smallest_probability(PureDP(math.log(3)))(0.75), 6)
    0.25
    """
    if isinstance(claim, GaussianDP):
        return gaussian_smallest_probability(claim.mu)
    import numpy as np

    factors, deltas = np.array(sorted(_points(claim))).T

    def smallest(p: float) -> float:
        small = float(((p - deltas) / factors).max())
        large = float((1 - deltas - factors * (1 - p + 1e-15)).max())
        return max(0.0, small, large) * (1 - _ROUNDED_DOWN)

    return smallest


def gaussian_smallest_probability(mu: float) -> Callable[[float], float]:
    """Return the function g of μ-Gaussian DP, g(p) = Φ(Φ⁻¹(p) - μ), with values rounded down. μ may
    be 0. Source: Dong, Roth & Su 2022, Def. 2.6.

    >>> round(gaussian_smallest_probability(1.0)(0.5), 6)
    0.158655
    """
    from scipy.special import ndtr, ndtri

    return lambda p: float(ndtr(ndtri(p) - mu)) * (1 - _ROUNDED_DOWN)


def at_bound(epsilon: float, delta: float, mu: float | None) -> PrivacyClaim | None:
    """Return the strongest claim that lower bounds from an audit do not refute. If `mu`, the bound
    for μ, is given, it is μ-Gaussian DP, with μ at most 10; otherwise (ε, δ)-DP. Return None if the
    bound is 0.

    >>> at_bound(1.5, 1e-5, None)
    ApproximateDP(epsilon=1.5, delta=1e-05)
    """
    if mu is not None:
        return GaussianDP(min(mu, _MAX_MU)) if mu > 0 else None
    return ApproximateDP(epsilon, delta) if epsilon > 0 else None


def tradeoff(claim: PrivacyClaim, alpha: float) -> float:
    """Return the trade-off function f of a claim at α in [0, 1]: under the claim, a test of d1
    against d2 with false-alarm probability α misses with probability at least f(α).

    Without a closed form, the result is the maximum over a grid of ε of
    max{0, 1 - δ(ε) - e^ε α, e^-ε (1 - δ(ε) - α)}, a lower bound of f(α). Source: Dong, Roth & Su
    2022, Prop. 2.5 and 2.13.

    >>> from dpaudit.claims.point_claims import PureDP
    >>> round(tradeoff(PureDP(math.log(3)), 0.25), 6)
    0.25
    """
    value = claim.own_tradeoff(alpha)
    if value is not None:
        return value
    lines = ((1 - d - e * alpha, (1 - d - alpha) / e) for e, d in _points(claim))
    return max(0.0, *map(max, lines))


# Relative amount by which `smallest_probability` is rounded down; it exceeds the rounding error.
_ROUNDED_DOWN = 1e-13


@lru_cache(maxsize=32)
def _points(claim: PrivacyClaim) -> tuple[tuple[float, float], ...]:
    """Return pairs (e^ε, δ(ε)) of a claim's profile, on a grid and at `claim.points()`."""
    epsilons = [min(point.epsilon, 700.0) for point in claim.points()]
    grid = [_MAX_EPSILON * (step / _STEPS) ** 2 for step in range(_STEPS + 1)]
    return tuple((math.exp(epsilon), claim.profile(epsilon)) for epsilon in {*epsilons, *grid})
