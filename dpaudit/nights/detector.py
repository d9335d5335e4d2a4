"""From the counts of several nights to an alarm (docs/method.md §15): an e-detector.

The factor of a night has expectation at most 1 if the version of that night satisfies the claim,
whatever happened before. With factors F_s of the nights s = 1, 2, ...,

    M_t = Σ_{s ≤ t} F_s · F_{s+1} ⋯ F_t,   so that M_t = (M_{t-1} + 1) · F_t,   M_0 = 0.     (15.1)

M_t - t is a supermartingale under the claim, so the mean number of nights until M_t reaches 1/α is
at least 1/α (Shin, Ramdas & Rinaldo 2023). All arrays hold logarithms.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.result import FreshCounts
from dpaudit.claims import ProfilePoint

FloatArray = NDArray[np.float64]

# The values of ε that the stakes are made for, as multiples of the claimed ε > 0, if δ = 0.
ALTERNATIVES = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
# The stakes of other claims, as fractions of the largest stake that cannot make wealth negative.
FRACTIONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9)
# The largest of these shares. A larger one could round to 1, and a single wrong guess would then
# end all evidence.
_LARGEST = 0.999
# An upper limit for the rounding errors of a log factor, relative to the number of draws and to the
# sizes of its terms.
_ROUNDING = 1e-15


def fractions(point: ProfilePoint) -> FloatArray:
    """Return the share of the wealth that a wrong guess loses, for each stake against a claim.

    Parameters
    ----------
    point : ProfilePoint
        The point (ε, δ) of the claim that is bet against.

    Returns
    -------
    array, (7,)
        Numbers in (0, 1), fixed before any draw.
    """
    if point.delta > 0 or point.epsilon == 0:
        return np.array(FRACTIONS)
    # A right guess has probability θ = e^ε / (1 + e^ε) under the claim, and θ' under the
    # alternative. By (4.2), a wrong guess has the factor (1 - θ') / (1 - θ).
    alternatives = np.logaddexp(0, point.epsilon * np.array(ALTERNATIVES))
    lost = -np.expm1(np.logaddexp(0, point.epsilon) - alternatives)
    return np.asarray(np.minimum(lost, _LARGEST), dtype=float)


def log_factors(counts: FreshCounts, point: ProfilePoint) -> FloatArray:
    """Return the log of the factor of one night, rounded down, for each stake.

    Parameters
    ----------
    counts : FreshCounts
        Right, wrong and no guesses of a rule that was fixed before the draws.
    point : ProfilePoint
        The point (ε, δ) of the claim that is bet against.

    Returns
    -------
    array, (7,)
        The factor is a product over draws of (4.3), 1 + λ(1[right] - e^ε 1[wrong] - hδ), where h is
        1 for a rule that guesses both inputs, else ½. It has expectation at most 1 under the claim.
    """
    lost = fractions(point)
    spared = (1.0 if counts.two_guesses else 0.5) * point.delta
    odds = math.exp(-point.epsilon)
    stakes = lost * odds / (1 + spared * odds)
    gains = np.log1p([stakes * (1 - spared), -lost, -stakes * spared])
    terms = np.array([counts.right, counts.wrong, counts.none]) @ gains
    sizes = np.array([counts.right, counts.wrong, counts.none]) @ (np.abs(gains) + 1)
    return np.asarray(terms - _ROUNDING * sizes, dtype=float)


def log_evidence(nights: FloatArray) -> float:
    """Return log M_t after the last of several nights: the mean over pairs of inputs and stakes.

    Parameters
    ----------
    nights : array, (nights, pairs, stakes)
        Log factors of the nights since the last alarm, in order.

    Returns
    -------
    float
        -inf without nights.
    """
    log_m = np.full(nights.shape[1:], -np.inf)
    for log_factor in nights:
        log_m = np.logaddexp(log_m, 0.0) + log_factor
    return _log_mean(log_m)


def likely_first(nights: FloatArray) -> int:
    """Return the index of the night on which a leak most likely began: the s that maximises the
    mean, over pairs and stakes, of F_s ⋯ F_t in (15.1).

    Parameters
    ----------
    nights : array, (nights, pairs, stakes)
        As for `log_evidence`, with at least one night.
    """
    products = np.cumsum(nights[::-1], axis=0)[::-1]
    return int(np.argmax([_log_mean(product) for product in products]))


def _log_mean(logs: FloatArray) -> float:
    return float(np.logaddexp.reduce(logs, axis=None) - math.log(logs.size))
