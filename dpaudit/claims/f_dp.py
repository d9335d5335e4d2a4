"""f-differential privacy, with a trade-off function of the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from dpaudit.claims.base import Parameter, PrivacyClaim, ProfilePoint, points_at
from dpaudit.errors import ClaimError

# From the probability α of a false alarm to the least probability of a miss, both in [0, 1].
TradeOff = Callable[[float], float]
Knot = tuple[float, float]
Knots = tuple[Knot, ...]

# Where a function is evaluated: evenly in log α up to ½, and in log(1 - α) from there.
_PER_DECADE, _DECADES = 40, 6
# The slopes of f near these α give the points to attack; the first one stands for the claim.
_ALPHAS = (0.2, 0.4, 0.3, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3, 1e-4, 1e-5)
# What is computed in floats is convex, or below 1 - α, only up to this.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class FunctionalDP(PrivacyClaim):
    """f-differential privacy: a test with false-alarm rate α misses with probability ≥ f(α).

    Parameters
    ----------
    tradeoff : callable or sequence of pairs of float
        f, as a function from [0, 1] to itself, or as pairs [α, f(α)] from α = 0 to [1, 0] with
        straight lines between them. Convex, non-increasing, f(α) ≤ 1 - α.
    name : str, optional
        How reports call f. Default: the name of the function.

    Raises
    ------
    ClaimError
        For any other value, and for an f that claims nothing.

    Notes
    -----
    The claim is about tests of d1 against d2, and of d2 against d1. A function is replaced by lines
    below it, so that a claim that holds is never refuted for it; the δ tested is larger by less
    than 1 %. Of an f that is not its own inverse, the larger δ of the two directions is tested
    (docs/method.md §6). Source: Dong, Roth & Su 2022, Def. 2.3.

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
            raise ClaimError(f"tradeoff={name} allows every event, which claims nothing")

    def profile(self, epsilon: float) -> float:
        factor = math.exp(min(epsilon, 700.0))
        both = ((1 - b - factor * a, 1 - a - factor * b) for a, b in self._knots())
        return min(1.0, max(0.0, *(max(one) for one in both)) + 1e-15)

    def points(self) -> tuple[ProfilePoint, ...]:
        slopes = [one for alpha in _ALPHAS for one in _log_slopes(self._knots(), alpha)]
        apart = {round(one, 6): one for one in (0.0, *reversed(slopes))}
        return points_at(self, reversed(apart.values()))

    def describe(self) -> str:
        return f"f-DP with f = {self.name}"

    def parameters(self) -> dict[str, Any]:
        return {"tradeoff": [list(knot) for knot in self._knots()], "name": self.name}

    def _knots(self) -> Knots:
        return self.tradeoff  # type: ignore[return-value]  # since __post_init__


def _lines_below(function: TradeOff, name: str) -> Knots:
    """Return corners of a convex polygon below f.

    Between two points of its graph, f lies above the lines through the two points before them and
    through the two after them; where these lines meet is a corner.
    """
    points = tuple((alpha, _evaluated(function, alpha, name)) for alpha in _grid())
    _check_shape(points, name)
    chords = tuple(pairwise(points))
    corners = (_meeting(before, after) for before, after in zip(chords, chords[2:], strict=False))
    return ((0.0, max(0.0, _line(*chords[1], 0.0))), *corners, (1.0, 0.0))


def _meeting(before: tuple[Knot, Knot], after: tuple[Knot, Knot]) -> Knot:
    """Return where the line through `before` meets the one through `after`, between them."""
    steep, flat = _slope(*before), _slope(*after)
    (left, high), (right, low) = before[1], after[0]
    if flat - steep <= 1e-12 * abs(steep):  # one straight line
        return left, min(high, _line(*after, left))
    alpha = (low - high + steep * left - flat * right) / (steep - flat)
    alpha = min(max(alpha, left), right)
    return alpha, max(0.0, min(_line(*before, alpha), _line(*after, alpha)))


def _slope(one: Knot, other: Knot) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])


def _line(one: Knot, other: Knot, alpha: float) -> float:
    return one[1] + _slope(one, other) * (alpha - one[0])


def _grid() -> list[float]:
    steps = range(-_PER_DECADE * _DECADES, 0)
    small = [0.5 * 10 ** (step / _PER_DECADE) for step in steps]
    return [0.0, *small, 0.5, *(1 - one for one in reversed(small)), 1.0]


def _evaluated(function: TradeOff, alpha: float, name: str) -> float:
    try:
        return float(function(alpha))
    except Exception as error:
        raise ClaimError(
            f"tradeoff={name} cannot be evaluated at {alpha:g}: {type(error).__name__}: {error}"
        ) from error


def _checked(table: Any) -> Knots:
    try:
        knots = tuple(sorted((float(alpha), float(beta)) for alpha, beta in table))
    except (TypeError, ValueError):
        raise ClaimError(
            f"tradeoff={table!r} must be a function, its import path, or a list of pairs "
            "[α, f(α)] such as [[0, 0.9], [0.1, 0.6], [1, 0]]"
        ) from None
    if not knots or knots[0][0] != 0 or knots[-1] != (1.0, 0.0):
        raise ClaimError("tradeoff must go from α = 0 to the pair [1, 0]")
    _check_shape(knots, "the given table")
    return knots


def _check_shape(points: Knots, name: str) -> None:
    for alpha, beta in points:
        if not -_ROUNDING <= beta <= 1 - alpha + _ROUNDING:
            raise ClaimError(
                f"tradeoff={name} must lie between 0 and 1 - α, but f({alpha:g}) = {beta:g}"
            )
    for (one, high), (other, low) in pairwise(points):
        if low > high + _ROUNDING or other == one:
            raise ClaimError(f"tradeoff={name} must not rise, but does from α = {one:g}")
    for (a, fa), (b, fb), (c, fc) in zip(points, points[1:], points[2:], strict=False):
        if fb * (c - a) > (fa * (c - b) + fc * (b - a)) + _ROUNDING * (c - a):
            raise ClaimError(f"tradeoff={name} must be convex, but is not near α = {b:g}")


def _log_slopes(knots: Knots, alpha: float) -> list[float]:
    """Return ε = log |slope| of f around an α, as far as f falls faster than 1 - α."""
    around = [pair for pair in pairwise(knots) if pair[0][0] <= alpha <= pair[1][0]]
    steep = [-_slope(*pair) for pair in around if pair[1][0] > pair[0][0]]
    return [math.log(one) for one in steep if one >= 1]
