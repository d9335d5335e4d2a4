"""Compute the privacy cost of noise, and compare it with a claim. The cost says how far the
distributions of operand plus noise on d1 and on d2 are apart: as ε, as μ, as the privacy profile
δ(ε), or as a Rényi divergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from dpaudit.claims import PrivacyClaim
from dpaudit.claims.tradeoff import gaussian_delta

# A cost that a formula gives exceeds a claim only if it is larger by more than this relative
# difference. A smaller difference may be a rounding error.
_ROUNDING_SHARE = 1e-9
# A cost that was measured on outputs (`Piece.cost`) is accurate to a few digits only. It exceeds a
# claim only if it is larger by more than this relative difference.
_MEASURED_SHARE = 1e-4
# Largest number of integers over which the privacy profile of a discrete distribution is summed.
_MAX_INTEGERS = 200_001
# A continuous distribution whose privacy profile has no closed formula is divided into cells, over
# which the profile is summed. Number of cells on either side of its center.
_CELLS_PER_SIDE = 4_000
# Distributions of noise that cost ε = shift / scale, the largest log-ratio of the densities. The
# shift is the distance of the values on both inputs.
_BY_SCALE = ("laplace", "discrete", "logistic")
# Distributions of noise that cost ε = shift / scale if the noisy values are only compared, as in
# report noisy max, and ε = ∞ if they are released. (In the proofs for report noisy max, only the
# noise of the winning value is changed.)
_COMPARED = ("exponential", "geometric", "gumbel")
# A privacy profile is summed up to this distance on either side of the center of a distribution, in
# units of its scale. The probability further out is negligible for distributions with exponential
# tails.
_MAX_SCALES = 60.0
# The largest ε for which e^ε is a finite float.
_MAX_EPSILON = 700.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Pieces of noise with the same law, scales, shift and cost.

    scales: The scale of the noise for d1 and for d2; NaN if it is unknown.
    released: Whether the output contains the noisy value. Otherwise it is only compared.
    cost: The largest log-ratio of the densities on d1 and d2, in nats, if it was measured on
        outputs; it then replaces the formula for the law. None if it was not measured.
    count: The number of pieces for which this object stands.
    joint: If the noise is also in other values, the μ to add in a sum of costs; infinity if it is
        unknown. None: the sum of costs uses `value`.
    """

    law: str
    scales: tuple[float, float]
    shift: float
    released: bool
    cost: float | None = None
    count: int = 1
    joint: float | None = None

    @property
    def unit(self) -> Literal["ε", "μ"]:
        return "μ" if self.law == "normal" and not self.has_two_scales else "ε"

    @property
    def has_two_scales(self) -> bool:
        """Whether both scales are known and differ between d1 and d2."""
        first, second = self.scales
        are_finite = math.isfinite(first) and math.isfinite(second)
        return are_finite and not math.isclose(first, second, rel_tol=_ROUNDING_SHARE)

    @property
    def value(self) -> float | None:
        """The cost of one piece; None if it is unknown. For normal noise, it is μ. For other noise,
        it is the largest log-ratio of the densities on d1 and d2, in nats."""
        scale = max(self.scales)
        if self.cost is not None:
            return self.cost
        if self.law == "unknown" or not math.isfinite(scale):
            return 0.0 if self.shift == 0 and not self.has_two_scales else None
        if self.law == "uniform" and not self.released:
            return None  # a uniform number that is only compared picks one of several outcomes
        if self.has_two_scales:
            return None if self.law == "cauchy" else math.inf
        if self.shift == 0:
            return 0.0
        if scale == 0:
            return math.inf
        if self.law in ("discrete", "geometric") and not _is_whole(self.shift):
            return math.inf
        if self.law in (*_BY_SCALE, "normal"):
            return self.shift / scale
        if self.law in _COMPARED:
            return math.inf if self.released else self.shift / scale
        return math.inf if self.law == "uniform" else None

    def delta(self, epsilon: float) -> float | None:
        """Return the privacy profile δ(ε) of one piece, for ε in nats; None if it is unknown."""
        value = self.value
        if value is None:
            return None
        if self.unit == "μ":
            return gaussian_delta(value, epsilon) if value else 0.0
        if value <= epsilon * (1 + _ROUNDING_SHARE):
            return 0.0
        if self.law in _COMPARED and not self.released:
            return None
        if self.cost is not None:
            return None
        if max(self.scales) <= 0:
            return 1.0
        if self.law == "uniform":
            return min(1.0, self.shift / max(self.scales))
        if self.law == "exponential" and not self.has_two_scales:
            # The noise is added to one value on d1 and to another value on d2, and is never
            # negative. So only the input with the smaller value gives outcomes between the two
            # values. Above both values, this input has the smaller density. So δ is the probability
            # of an outcome between the values on this input.
            return -math.expm1(-self.shift / max(self.scales))
        if self.law == "laplace" and not self.has_two_scales:
            return -math.expm1((epsilon - value) / 2)
        return _profile(self.law, self.scales, self.shift, epsilon)

    def divergence(self, order: float) -> float | None:
        """Return the Rényi divergence of one piece, in nats, for an order above 1. None if
        unknown."""
        value = self.value
        if value is None or value == 0:
            return value
        if self.unit == "μ":
            return order * value**2 / 2
        if self.law != "laplace" or self.cost is not None or not math.isfinite(value):
            return None
        first_term = math.log(order / (2 * order - 1)) + (order - 1) * value
        second_term = math.log((order - 1) / (2 * order - 1)) - order * value
        return float(np.logaddexp(first_term, second_term)) / (order - 1)


def together(pieces: Sequence[Piece]) -> float | None:
    """Return the composed cost of pieces; None if some cost is unknown. It is the sum of their ε in
    nats or, for normal noise, the root of the sum of their μ². All pieces must have the same
    unit."""
    values = [
        piece.value
        if piece.joint is None or piece.cost is not None or piece.value == math.inf
        else piece.joint
        for piece in pieces
    ]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or any(piece.joint == math.inf for piece in pieces):
        return None
    counts = [piece.count for piece in pieces]
    if pieces and pieces[0].unit == "μ":
        return math.hypot(*(value * math.sqrt(n) for value, n in zip(known, counts, strict=True)))
    return math.fsum(value * n for value, n in zip(known, counts, strict=True) if value)


def exceeds(piece: Piece, claim: PrivacyClaim | None) -> bool:
    """Return whether one piece leaks more than a claim allows, by its δ at a point (ε, δ) of the
    claim, or by its Rényi divergence. If there is no claim, return whether its cost is infinite."""
    if claim is None:
        return piece.value == math.inf
    for point in claim.points():
        # A cost that was measured on outputs (`piece.cost`) is accurate to a few digits only, so it
        # must exceed the claimed ε by a margin.
        epsilon = point.epsilon * (1 + _MEASURED_SHARE) if piece.cost is not None else point.epsilon
        delta = piece.delta(epsilon)
        if point.delta == 0 and piece.unit == "μ" and piece.value:
            return True  # normal noise satisfies no pure ε
        if delta is not None and delta > point.delta * (1 + 1e-6) + 1e-12:
            return True
    for order, bound in claim.divergences():
        divergence = piece.divergence(order)
        if divergence is not None and divergence > bound * (1 + _ROUNDING_SHARE):
            return True
    return False


def sum_exceeds(pieces: Sequence[Piece], claim: PrivacyClaim | None) -> bool:
    """Return whether the composed cost of pieces is more than a claim allows. If there is no claim,
    return False. A sum of ε is compared only with the points of the claim that have δ = 0."""
    if claim is None:
        return False
    value = together(pieces)
    if value is None or not pieces:
        return False
    if pieces[0].unit == "μ":
        return exceeds(Piece("normal", (1.0, 1.0), value, released=True), claim)
    pure = [point for point in claim.points() if point.delta == 0]
    rounding = (
        _MEASURED_SHARE if any(piece.cost is not None for piece in pieces) else _ROUNDING_SHARE
    )
    return any(value > point.epsilon * (1 + rounding) for point in pure)


# Distributions whose cost falls as their scale grows, and the largest factor that is tried.
_WITH_LARGER_SCALES, _MAX_FACTOR = ("laplace", "normal", "discrete", "logistic"), 1e9


def enlargement(
    pieces: Sequence[Piece], claim: PrivacyClaim, others: Sequence[Piece] = ()
) -> float | None:
    """Return the smallest factor by which the scale of `pieces` must grow to satisfy the claim. The
    scale of `others` stays. Return None if no factor is enough, or if it is unknown."""
    if others and (
        len({piece.unit for piece in (*pieces, *others)}) > 1
        or any(piece.value is None for piece in others)
        or sum_exceeds(others, claim)
    ):
        return None
    if pieces[0].law not in _WITH_LARGER_SCALES or not max(pieces[0].scales) > 0:
        return None

    def would_do(factor: float) -> bool:
        larger = [
            replace(
                piece,
                scales=(factor * piece.scales[0], factor * piece.scales[1]),
                joint=None if piece.joint is None else piece.joint / factor,
            )
            for piece in pieces
        ]
        return not sum_exceeds([*larger, *others], claim) and not any(
            exceeds(piece, claim) for piece in larger
        )

    low, high = 1.0, 2.0
    while not would_do(high):
        low, high = high, 2 * high
        if high > _MAX_FACTOR:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if would_do(middle) else (middle, high)
    return high


def discrete_delta(first: Floats, second: Floats, epsilon: float) -> float:
    """Return δ(ε) of two discrete distributions: the larger of δ(first, second) and δ(second,
    first). The arguments are the probabilities of the same outcomes."""
    times = math.exp(min(epsilon, _MAX_EPSILON))
    orders = (first, second), (second, first)
    return max(float(np.sum(np.maximum(0.0, p - times * q))) for p, q in orders)


def _is_whole(value: float) -> bool:
    return math.isclose(value, round(value), abs_tol=1e-9)


def _profile(law: str, scales: tuple[float, float], shift: float, epsilon: float) -> float | None:
    """Return the privacy profile δ(ε) of two noise laws `shift` apart; None if it is unknown."""
    # For a continuous family, the probabilities of cells give a close lower bound of the profile.
    if math.isinf(shift):
        return 1.0
    if min(scales) <= 0:
        return None if law in ("discrete", "geometric") else 1.0
    if law in ("discrete", "geometric"):
        count = _MAX_SCALES * max(scales) + shift + 1
        if count > _MAX_INTEGERS or not _is_whole(shift):
            return 1.0 if not _is_whole(shift) else None
        x = np.arange(-int(count), int(count) + 1, dtype=float)
        first_masses, second_masses = (
            _masses(law, x, 0.0, scales[0]),
            _masses(law, x, round(shift), scales[1]),
        )
    elif law in _TAILS:
        wide = np.linspace(0, _MAX_SCALES, _CELLS_PER_SIDE)
        pairs = ((0.0, scales[0]), (shift, scales[1]))
        ends = [center + sign * scale * wide for center, scale in pairs for sign in (-1, 1)]
        edges = np.unique(np.concatenate([*ends, [-math.inf, math.inf]]))
        first_masses, second_masses = (
            _cells(law, edges, 0.0, scales[0]),
            _cells(law, edges, shift, scales[1]),
        )
    else:
        return None
    return min(1.0, discrete_delta(first_masses, second_masses, epsilon))


def _masses(law: str, x: Floats, center: float, scale: float) -> Floats:
    away = x - center
    if law == "discrete":
        return np.asarray(math.tanh(1 / (2 * scale)) * np.exp(-np.abs(away) / scale))
    inside = np.exp(-np.maximum(away, 0.0) / scale)
    return np.asarray(np.where(away >= 0, -math.expm1(-1 / scale) * inside, 0.0))


def _cells(law: str, edges: Floats, center: float, scale: float) -> Floats:
    """Return the probabilities of the cells between `edges` under a symmetric distribution."""
    # The nearer tail avoids cancellation.
    z = (edges - center) / scale
    upper = _TAILS[law](np.abs(z))
    below, above = np.where(z < 0, upper, 1 - upper), np.where(z < 0, 1 - upper, upper)
    return np.asarray(np.where(z[:-1] >= 0, above[:-1] - above[1:], below[1:] - below[:-1]))


# Maps a distribution to the function z ↦ P(Z > z) for z ≥ 0, where Z has center 0 and scale 1.
_TAILS: dict[str, Callable[[Floats], Floats]] = {
    "laplace": lambda z: np.exp(-z) / 2,
    "normal": lambda z: np.asarray(ndtr(-z)),
    "logistic": lambda z: np.asarray(expit(-z)),
}


def tail(law: str, scale: float, margin: float) -> float | None:
    """Return the probability that noise around 0 exceeds a margin; None if there is no formula."""
    if law == "discrete":
        least = math.floor(margin) + 1
        upper = math.exp(-max(least, 1 - least) / scale) / (1 + math.exp(-1 / scale))
        return upper if least > 0 else 1 - upper
    if law not in _TAILS:
        return None
    upper = float(_TAILS[law](np.asarray(abs(margin) / scale)))
    return upper if margin >= 0 else 1 - upper
