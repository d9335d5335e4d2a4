"""Tests of whether a sequence of draws is independent, and whether groups of draws have one law."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, gammaln, logsumexp

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


def looks_like_fair_coins(first: int, second: int, changes: int, level: float) -> bool:
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


def collision_bound(keys: Keys) -> float:
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


def repetition_p_value(keys: Keys) -> tuple[float, int]:
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
    tails = upper_tail(counts[lags, parity], trials, collision_bound(keys))
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


# How alike the draws of a group may be: a group's own share of the event is Beta distributed around
# the share of all groups, with so many draws' worth of weight.
_WEIGHTS = 8.0 ** np.arange(8)
# Of so many groups, to look for equal counts takes longer than to go without.
_FEW = 32


def log_e_value(inside: IntArray, sizes: IntArray) -> float:
    """Return the log of an e-value against "all groups have one probability of an event".

    inside: (groups,), draws of each group in the event; sizes: (groups,), its draws.

    Under independent draws of one law every assignment of the draws to the groups is equally
    likely, given how many are in the event. So the counts are multivariate hypergeometric, and

        E = mean over w of Π_g BetaBinomial(x_g; n_g, w p, w (1 - p)) / Pr[x_1, ..., x_G],

    p the share of all groups together, has an expectation of at most 1, exactly and for any numbers
    of draws: the numerators of all counts with this total add up to at most 1, and the last group,
    which the others determine, is left out of them. So Pr[E ≥ 1/α] ≤ α (Markov).
    """
    groups = sizes > 0
    inside, sizes = inside[groups], sizes[groups]
    total, draws = int(inside.sum()), int(sizes.sum())
    if len(sizes) < 2 or total in (0, draws):
        return 0.0
    share = total / draws
    a, b = _WEIGHTS[:, None] * share, _WEIGHTS[:, None] * (1 - share)
    if len(sizes) <= _FEW:
        x, n = inside[:-1].astype(np.float64), sizes[:-1].astype(np.float64)
        alike = betaln(x + a, n - x + b) - betaln(a, b)
    else:
        # Many small groups have few counts between them, and most of the time goes into these.
        codes, place = np.unique(inside[:-1] * (sizes.max() + 1) + sizes[:-1], return_inverse=True)
        x, n = (one.astype(np.float64) for one in np.divmod(codes, sizes.max() + 1))
        alike = (betaln(x + a, n - x + b) - betaln(a, b)).take(place, axis=1)
    # The binomial coefficients of these groups stand above and below, and leave the last group's.
    log_null = _log_choose(sizes[-1], inside[-1]) - _log_choose(draws, total)
    return _log_sum(alike.sum(axis=1)) - math.log(len(_WEIGHTS)) - log_null


def log_mean_e_value(evidence: Iterable[float]) -> float:
    """Return the log of the mean of e-values, which is one itself, however they hang together."""
    logs = np.fromiter(evidence, dtype=np.float64)
    return _log_sum(logs) - math.log(len(logs)) if len(logs) else 0.0


def _log_sum(logs: FloatArray) -> float:
    """Return the log of the sum of numbers from their logs: scipy's, to the last digit, without
    what that does for arrays of all kinds. Checks of many events spend most of their time here."""
    largest = logs.max()
    if not math.isfinite(largest):
        return float(logsumexp(logs))
    is_largest = logs == largest
    many = float(np.count_nonzero(is_largest))
    # The largest are kept out of the sum, which thereby loses no digits.
    rest = np.exp(np.where(is_largest, -np.inf, logs) - largest).sum() / many
    return float(np.log1p(rest) + np.log(many) + largest)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
