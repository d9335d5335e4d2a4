"""Draws that refute a violating variant of a test case, from the exact distribution of its outputs.

The best rule is right and wrong with known probabilities (docs/method.md §2). In an eighth of a
budget its counts exceed the claim by seven standard deviations: a refutation at 10⁻⁷ needs five,
and two more give it a probability of about 95 %. The rest is for learning, and for rules that are
not the best.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from dpaudit.stats.power import draws_to_refute

_DEVIATIONS = 7.0
# False-alarm probability of one of at most 1,000 audits that share 10⁻⁴.
_ALPHA = 1e-7
# Largest excess over the claim that rounding may cause.
_ROUNDING = 1e-12
# Number of thresholds of which the best is taken.
_THRESHOLDS = 2_000
# Budget, in multiples of the draws that refute by the best rule.
_MARGIN = 8


def draws_for_distance(noise: str, claim: tuple[float, float], scale: float, distance: int) -> int:
    """Return the number of draws that refute the claim of a noisy count at a distance.

    The rule guesses the larger count above a threshold, the smaller count below its mirror image,
    and abstains between them.

    Parameters
    ----------
    noise : str
        "LAPLACE" or "GAUSSIAN".
    claim : (float, float)
        ε and δ.
    scale : float
        Sensitivity to which the noise is calibrated: in the 1-norm for Laplace noise, in the 2-norm
        for Gaussian noise.
    distance : int
        Difference of the two counts.

    Raises
    ------
    ValueError
        If no threshold breaks the claim.
    """
    epsilon, delta = claim
    is_laplace = noise == "LAPLACE"
    deviation = scale / epsilon if is_laplace else scale * _gaussian_deviation(epsilon, delta)
    tail = _laplace_tail if is_laplace else _gaussian_tail
    thresholds = distance / 2 + np.linspace(0, 8 * deviation, _THRESHOLDS)
    right, wrong = tail((thresholds - distance) / deviation), tail(thresholds / deviation)
    excess = right - math.exp(epsilon) * wrong - delta
    if excess.max() <= _ROUNDING:
        raise ValueError(f"counts that are {distance} apart do not break the claim ({epsilon:g})")
    variance = right + math.exp(2 * epsilon) * wrong
    deviations_of_one_draw = np.maximum(excess, 0.0) / np.sqrt(variance)
    return _budget((_DEVIATIONS / float(deviations_of_one_draw.max())) ** 2)


def draws_for_revealing(claim: tuple[float, float], probability: float) -> int:
    """Return the number of draws that refute the claim if one of the inputs has, with a
    probability, an output that the other input never has. Raise ValueError if δ allows that.

    claim: ε and δ.
    """
    epsilon, delta = claim
    if probability <= delta:
        raise ValueError(f"a failure of probability {probability:g} does not break δ = {delta:g}")
    # Half of the draws are of the other input, and a rule cannot tell it from the rest.
    excess = (probability - delta) / 2
    # With few such outputs the normal approximation is poor, and a claim with δ = 0 needs `right`
    # right guesses.
    right = draws_to_refute(epsilon, 0.0, _ALPHA)
    for_epsilon = (right + 2 * math.sqrt(right)) / excess
    return _budget(max(for_epsilon, _DEVIATIONS**2 * probability / 2 / excess**2))


def _budget(draws: float) -> int:
    return math.ceil(_MARGIN * draws)


def _gaussian_deviation(epsilon: float, delta: float) -> float:
    """Return σ of the analytic Gaussian mechanism for sensitivity 1 (Balle & Wang 2018, (6))."""

    def excess(sigma: float) -> float:
        first, second = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        return float(ndtr(first) - math.exp(epsilon) * ndtr(second)) - delta

    return float(brentq(excess, 1e-3, 1e6, xtol=1e-9))


def _gaussian_tail(at: NDArray[np.float64]) -> NDArray[np.float64]:
    return ndtr(-at)


def _laplace_tail(at: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(at > 0, np.exp(-np.abs(at)) / 2, 1 - np.exp(-np.abs(at)) / 2)
