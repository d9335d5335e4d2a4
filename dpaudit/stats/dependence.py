"""Tests of whether a sequence of draws is independent, and whether groups of draws have one law."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, gammaln, logsumexp

from dpaudit.stats.binomial import FloatArray, IntArray, upper_tail

Keys = NDArray[np.generic]

# A series counts as constant if its range is at most this share of its largest entry.
_ROUNDING = 1e-12
# Sequences are shortened until they have at most this many pairs of equal entries.
_MOST_PAIRS = 100_000
# The share of equal pairs is first estimated from this many entries.
_FIRST_ENTRIES = 2_000
# `collision_bound` adds this many standard errors, and this many pairs, to its estimate.
_ERRORS = 6.0
_PAIRS = 10.0
# Lags with fewer repeats are not tested.
_FEWEST_REPEATS = 4


def ljung_box(series: FloatArray, lags: int) -> float:
    """Return the p-value of "no autocorrelation up to `lags`"; 1 for a constant series.

    Q = n (n + 2) Σ_k r_k² / (n - k), which is about chi-squared with `lags` degrees of freedom.
    Source: Ljung & Box 1978.
    """
    n = len(series)
    if n <= lags or np.ptp(series) <= _ROUNDING * np.abs(series).max():
        return 1.0  # such a range may come from rounding alone
    centred = series - series.mean()
    power = _product(centred, centred)
    if power <= 0:
        return 1.0
    shares = (_product(centred[k:], centred[:-k]) / power for k in range(1, lags + 1))
    q = n * (n + 2) * math.fsum(r * r / (n - k) for k, r in enumerate(shares, start=1))
    return float(chdtrc(lags, q))


def looks_like_fair_coins(first: int, second: int, changes: int, level: float) -> bool:
    """Return whether the order of rows of two inputs can come from fair coins, tested at `level`.

    first, second: number of rows of d1 and of d2. changes: number of rows whose input differs from
    that of the row before.
    """
    rows = first + second
    larger = max(first, second), max(changes, rows - 1 - changes)
    tails = upper_tail(larger, (rows, rows - 1), 0.5)
    return bool((tails > level / 4).all())


def _product(left: FloatArray, right: FloatArray) -> float:
    # A matrix product would start threads on every core for a microsecond of work.
    return float(np.einsum("i,i", left, right))


def collision_bound(keys: Keys) -> float:
    """Return an upper bound for Pr[two draws are equal], Σ p², from independent draws.

    The bound is the unbiased estimate plus six standard errors and a margin of ten pairs.
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
    """Return the p-value of "draws are independent" from repeats at one lag, and that lag.

    (1, 0) without repeats; the p-value is corrected for the number of lags. Pairs (i, i + lag) are
    split in two groups by the parity of i // lag. No draw occurs twice in a group, so that the
    number of equal pairs in a group is exactly binomial.
    """
    keys = _shortened(keys)
    n = len(keys)
    first, lag = _equal_pairs(keys)
    counts = np.bincount(lag * 2 + (first // lag & 1), minlength=2 * n).reshape(n, 2)
    lags, parity = np.nonzero(counts >= _FEWEST_REPEATS)
    if len(lags) == 0:
        return 1.0, 0
    even = (n - lags) // (2 * lags) * lags + np.minimum((n - lags) % (2 * lags), lags)
    trials = np.where(parity == 0, even, n - lags - even)
    tails = upper_tail(counts[lags, parity], trials, collision_bound(keys))
    least = int(np.argmin(tails))
    return min(1.0, 2 * n * float(tails[least])), int(lags[least])


def _shortened(keys: Keys) -> Keys:
    """Return the longest tested prefix with at most `_MOST_PAIRS` pairs of equal entries."""
    pairs = _pairs(keys[:_FIRST_ENTRIES])
    if pairs > _MOST_PAIRS:  # the case of a few distinct outputs
        return keys[: int(_FIRST_ENTRIES * math.sqrt(_MOST_PAIRS / pairs))]
    while _pairs(keys) > _MOST_PAIRS:
        keys = keys[: len(keys) // 2]
    return keys


def _pairs(keys: Keys) -> float:
    sizes = np.unique(keys, return_counts=True)[1].astype(np.float64)
    return float((sizes * (sizes - 1)).sum()) / 2


def _equal_pairs(keys: Keys) -> tuple[IntArray, IntArray]:
    """Return the pairs of equal keys: the index of the first, and the distance to the second."""
    # A stable sort would take five times as long; only equal keys are put in order, below.
    order = np.argsort(keys)
    is_new = np.ones(len(keys) + 1, dtype=bool)
    is_new[1:-1] = keys[order[1:]] != keys[order[:-1]]
    is_paired = ~(is_new[:-1] & is_new[1:])
    places, group = order[is_paired], np.cumsum(is_new[:-1])[is_paired]
    places = places[np.lexsort((places, group))]
    sizes = np.bincount(group)
    # Number of equal keys that follow each key in sorted order.
    later = np.repeat(np.cumsum(sizes), sizes) - np.arange(1, len(places) + 1)
    # The partners of a key are the next keys in sorted order: its own position plus 1, 2, ...
    first = np.repeat(np.arange(len(places)), later)
    second = np.arange(1, len(first) + 1) + np.repeat(
        np.arange(len(places)) - np.cumsum(later) + later, later
    )
    return places[first], places[second] - places[first]


# Alternatives of the test of groups: the event's probability in a group is Beta distributed around
# the share of all groups, with a prior weight of this many draws.
_WEIGHTS = 8.0 ** np.arange(8)
# Up to this many groups, evaluating each is faster than finding groups with equal counts.
_FEW_GROUPS = 32


def log_e_value(inside: IntArray, sizes: IntArray) -> float:
    """Return the log of an e-value against "the event has the same probability in all groups".

    inside: (groups,), draws in the event by group; sizes: (groups,), draws by group.

    Under independent draws of one law every assignment of the draws to the groups is equally
    likely, given how many are in the event. So the counts are multivariate hypergeometric, and

        E = mean over w of Π_g BetaBinomial(x_g; n_g, w p, w (1 - p)) / Pr[x_1, ..., x_G],

    with p the share of all groups together, has expectation at most 1 for any number of draws: the
    numerators of all counts with this total add up to at most 1, since they leave out the last
    group, whose count the others determine. So Pr[E ≥ 1/α] ≤ α (Markov).
    """
    groups = sizes > 0
    inside, sizes = inside[groups], sizes[groups]
    total, draws = int(inside.sum()), int(sizes.sum())
    if len(sizes) < 2 or total in (0, draws):
        return 0.0
    share = total / draws
    a, b = _WEIGHTS[:, None] * share, _WEIGHTS[:, None] * (1 - share)
    if len(sizes) <= _FEW_GROUPS:
        x, n = inside[:-1].astype(np.float64), sizes[:-1].astype(np.float64)
        alike = betaln(x + a, n - x + b) - betaln(a, b)
    else:
        # Many groups share few distinct counts, and `betaln` takes most of the time.
        codes, place = np.unique(inside[:-1] * (sizes.max() + 1) + sizes[:-1], return_inverse=True)
        x, n = (part.astype(np.float64) for part in np.divmod(codes, sizes.max() + 1))
        alike = (betaln(x + a, n - x + b) - betaln(a, b)).take(place, axis=1)
    # The binomial coefficients of the other groups cancel.
    log_null = _log_choose(sizes[-1], inside[-1]) - _log_choose(draws, total)
    return _log_sum(alike.sum(axis=1)) - math.log(len(_WEIGHTS)) - log_null


def log_mean_e_value(evidence: Iterable[float]) -> float:
    """Return the log of the mean of e-values, an e-value under any dependence between them."""
    logs = np.fromiter(evidence, dtype=np.float64)
    return _log_sum(logs) - math.log(len(logs)) if len(logs) else 0.0


def _log_sum(logs: FloatArray) -> float:
    """Return log Σ exp(logs): the result of SciPy's `logsumexp`, to the last digit, but faster."""
    largest = logs.max()
    if not math.isfinite(largest):
        return float(logsumexp(logs))
    is_largest = logs == largest
    many = float(np.count_nonzero(is_largest))
    # The largest terms are kept out of the sum, so that no digits are lost.
    rest = np.exp(np.where(is_largest, -np.inf, logs) - largest).sum() / many
    return float(np.log1p(rest) + np.log(many) + largest)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
