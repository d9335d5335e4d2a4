"""Whether a sequence can be one of independent draws from one law, whatever that law is."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from dpaudit.stats.binomial import FloatArray, IntArray, upper_tail

Keys = NDArray[np.generic]

# Series that vary by less, as a share of their largest entry, are constant.
_ROUNDING = 1e-12
# A sequence is cut until it has no more pairs of equal entries than this.
_MOST_PAIRS = 100_000
_COARSE = 2_000
# Standard errors, and pairs, by which the probability of a coincidence is taken larger than seen.
_ERRORS = 6.0
_PAIRS = 10.0
# Fewer repeats at one lag are never looked at.
_FEWEST = 4


def ljung_box(series: FloatArray, lags: int) -> float:
    """Return the p-value of no autocorrelation up to `lags`; 1 for a constant series.

    Q = n (n + 2) Σ_k r_k² / (n - k), which is about chi-squared with `lags` degrees of freedom.
    Source: Ljung & Box 1978.
    """
    n = len(series)
    if n <= lags or np.ptp(series) <= _ROUNDING * np.abs(series).max():
        return 1.0  # what rounding leaves of a mean is no variation
    centred = series - series.mean()
    power = _product(centred, centred)
    if power <= 0:
        return 1.0
    shares = (_product(centred[k:], centred[:-k]) / power for k in range(1, lags + 1))
    q = n * (n + 2) * math.fsum(r * r / (n - k) for k, r in enumerate(shares, start=1))
    return float(chdtrc(lags, q))


def looks_tossed(first: int, second: int, changes: int, level: float) -> bool:
    """Return whether the arms of rows look like fair coins, which look otherwise with probability
    at most `level`.

    first, second: rows of d1 and of d2.  changes: rows of another arm than the row before.
    """
    rows = first + second
    more = max(first, second), max(changes, rows - 1 - changes)
    tails = upper_tail(more, (rows, rows - 1), 0.5)
    return bool((tails > level / 4).all())


def _product(one: FloatArray, other: FloatArray) -> float:
    # Not a matrix product, which would wake every core for a microsecond's work.
    return float(np.einsum("i,i", one, other))


def coincidence(keys: Keys) -> float:
    """Return an upper bound for Pr[two draws are equal], Σ p², from independent draws.

    The unbiased estimate and several standard errors, so that chance plays no part in practice.
    """
    n = len(keys)
    if n < 2:
        return 1.0
    sizes = np.unique(keys, return_counts=True)[1].astype(np.float64)
    pairs = n * (n - 1) / 2
    equal = float((sizes * (sizes - 1)).sum()) / 2
    share = equal / pairs
    triples = float((sizes * (sizes - 1) * (sizes - 2)).sum()) / max(1.0, n * (n - 1) * (n - 2))
    error = 2 * math.sqrt(max(0.0, triples - share**2) / n)
    margin = (_PAIRS + _ERRORS * math.sqrt(equal)) / pairs
    return min(1.0, share + _ERRORS * error + margin)


def repeats(keys: Keys) -> tuple[float, int]:
    """Return how likely it is that independent draws repeat each other as often at any one lag, at
    most, and that lag (1, 0 without repeats).

    Pairs (i, i + lag) are taken in two groups, by the parity of i // lag, in each of which no draw
    occurs twice: there the number of equal pairs is exactly binomial.
    """
    keys = _shortened(keys)
    n = len(keys)
    first, lag = _equal_pairs(keys)
    counts = np.bincount(lag * 2 + (first // lag & 1), minlength=2 * n).reshape(n, 2)
    lags, parity = np.nonzero(counts >= _FEWEST)
    if len(lags) == 0:
        return 1.0, 0
    even = (n - lags) // (2 * lags) * lags + np.minimum((n - lags) % (2 * lags), lags)
    trials = np.where(parity == 0, even, n - lags - even)
    tails = upper_tail(counts[lags, parity], trials, coincidence(keys))
    least = int(np.argmin(tails))
    return min(1.0, 2 * n * float(tails[least])), int(lags[least])


def _shortened(keys: Keys) -> Keys:
    """Return the beginning that has few enough pairs of equal entries."""
    pairs = _pairs(keys[:_COARSE])
    if pairs > _MOST_PAIRS:  # as for outputs that are few
        return keys[: int(_COARSE * math.sqrt(_MOST_PAIRS / pairs))]
    while _pairs(keys) > _MOST_PAIRS:
        keys = keys[: len(keys) // 2]
    return keys


def _pairs(keys: Keys) -> float:
    sizes = np.unique(keys, return_counts=True)[1].astype(np.float64)
    return float((sizes * (sizes - 1)).sum()) / 2


def _equal_pairs(keys: Keys) -> tuple[IntArray, IntArray]:
    """Return the first places of all pairs of equal keys, and how far the second ones are."""
    # Not stable, which would take five times as long, and of places where hardly any are equal.
    order = np.argsort(keys)
    is_new = np.ones(len(keys) + 1, dtype=bool)
    is_new[1:-1] = keys[order[1:]] != keys[order[:-1]]
    is_paired = ~(is_new[:-1] & is_new[1:])
    places, group = order[is_paired], np.cumsum(is_new[:-1])[is_paired]
    places = places[np.lexsort((places, group))]
    sizes = np.bincount(group)
    # How many equal keys come after each one, in sorted order.
    later = np.repeat(np.cumsum(sizes), sizes) - np.arange(1, len(places) + 1)
    # After a key they follow each other: its own place and 1, 2, ...
    first = np.repeat(np.arange(len(places)), later)
    second = np.arange(1, len(first) + 1) + np.repeat(
        np.arange(len(places)) - np.cumsum(later) + later, later
    )
    return places[first], places[second] - places[first]
