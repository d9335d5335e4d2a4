"""Tests of whether the draws of an audit are independent and have the same law throughout.

`dpaudit.sampling` calls these tests, since a certificate assumes independent draws. Keys are
integers, one for each draw in order; equal outputs have equal keys. A group is a set of draws, such
as all draws of one worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, gammaln, logsumexp

from dpaudit.stats.binomial import FloatArray, IntArray, upper_tail

Keys = NDArray[np.generic]

# A series counts as constant if the difference of its largest and smallest entry is at most this
# share of its largest absolute entry: rounding alone may cause such a difference.
_ROUNDING_SHARE = 1e-12
# Largest number of pairs of equal entries in a sequence of draws, roughly. A sequence with more
# pairs is cut to its beginning, to limit the time and memory of `repetition_p_value`.
_MAX_PAIRS = 100_000
# Number of entries at the beginning of a sequence among which pairs of equal entries are counted
# first. If there are more than `_MAX_PAIRS` pairs, the sequence is cut to a part of this
# beginning. The pairs of the whole sequence are then never counted, to save time.
_FIRST_ENTRIES = 2_000
# `collision_bound` adds this many standard errors to its estimate, to give a safe upper bound.
_STANDARD_ERRORS = 6.0
# `collision_bound` adds this number of pairs to the observed number of equal pairs, so that the
# bound is valid even if few pairs were observed.
_ADDED_PAIRS = 10.0
# `repetition_p_value` tests a lag (distance of two draws) only if at least this number of pairs at
# this lag have equal keys.
_MIN_REPEATS = 4


def ljung_box(series: FloatArray, lags: int) -> float:
    """Return the p-value of the hypothesis that a series has no autocorrelation at lags 1 to
    `lags`. It is 1 for a constant series, and for a series of at most `lags` entries.

    With n entries and r_k their autocorrelation at lag k, Q = n (n + 2) Σ_k r_k² / (n - k) is about
    chi-squared with `lags` degrees of freedom. Source: Ljung & Box 1978.
    """
    n = len(series)
    if n <= lags or np.ptp(series) <= _ROUNDING_SHARE * np.abs(series).max():
        return 1.0
    centred = series - series.mean()
    power = _product(centred, centred)
    if power <= 0:
        return 1.0
    shares = (_product(centred[k:], centred[:-k]) / power for k in range(1, lags + 1))
    q = n * (n + 2) * math.fsum(r * r / (n - k) for k, r in enumerate(shares, start=1))
    return float(chdtrc(lags, q))


def looks_like_fair_coins(first: int, second: int, changes: int, level: float) -> bool:
    """Return whether fair coins may have picked the input of each row of a recording. One test
    looks at the share of rows of d1, the other at how often the input changes from row to row.

    first, second: number of rows of d1, and number of rows of d2.
    changes: number of rows whose input differs from that of the previous row.
    level: the largest probability with which the result is False for fair coins.
    """
    rows = first + second
    larger = max(first, second), max(changes, rows - 1 - changes)
    tails = upper_tail(larger, (rows, rows - 1), 0.5)
    return bool((tails > level / 4).all())


def _product(left: FloatArray, right: FloatArray) -> float:
    # `einsum` is used, since a matrix product would start threads on every core for a microsecond
    # of work.
    return float(np.einsum("i,i", left, right))


def collision_bound(keys: Keys) -> float:
    """Return an upper bound for the probability that two independent draws are equal; 1 for fewer
    than two draws. It is the share of equal pairs among all pairs of draws, plus six standard
    errors and ten pairs."""
    n = len(keys)
    if n < 2:
        return 1.0
    sizes = np.unique(keys, return_counts=True)[1].astype(np.float64)
    pairs = n * (n - 1) / 2
    equal = float((sizes * (sizes - 1)).sum()) / 2
    share = equal / pairs
    triples = float((sizes * (sizes - 1) * (sizes - 2)).sum()) / max(1.0, n * (n - 1) * (n - 2))
    error = 2 * math.sqrt(max(0.0, triples - share**2) / n)
    margin = (_ADDED_PAIRS + _STANDARD_ERRORS * math.sqrt(equal)) / pairs
    return min(1.0, share + _STANDARD_ERRORS * error + margin)


def repetition_p_value(keys: Keys) -> tuple[float, int]:
    """Test whether draws repeat the draw a fixed number of draws before, the lag. Return (p, lag):
    the p-value of independence, corrected for the number of lags tested, and the lag with the
    strongest evidence. Return (1, 0) if no lag has `_MIN_REPEATS` equal pairs.

    The pairs (k, k + lag) are split into two groups by the parity of k // lag. No draw is in two
    pairs of a group, so the number of equal pairs in a group is binomial.
    """
    keys = _shortened(keys)
    n = len(keys)
    first, lag = _equal_pairs(keys)
    counts = np.bincount(lag * 2 + (first // lag & 1), minlength=2 * n).reshape(n, 2)
    lags, parity = np.nonzero(counts >= _MIN_REPEATS)
    if len(lags) == 0:
        return 1.0, 0
    even = (n - lags) // (2 * lags) * lags + np.minimum((n - lags) % (2 * lags), lags)
    trials = np.where(parity == 0, even, n - lags - even)
    tails = upper_tail(counts[lags, parity], trials, collision_bound(keys))
    least = int(np.argmin(tails))
    return min(1.0, 2 * n * float(tails[least])), int(lags[least])


def _shortened(keys: Keys) -> Keys:
    """Return the first keys, as many as have at most about `_MAX_PAIRS` pairs of equal keys."""
    pairs = _pairs(keys[:_FIRST_ENTRIES])
    if pairs > _MAX_PAIRS:  # sequences of few distinct keys have too many equal pairs
        return keys[: int(_FIRST_ENTRIES * math.sqrt(_MAX_PAIRS / pairs))]
    while _pairs(keys) > _MAX_PAIRS:
        keys = keys[: len(keys) // 2]
    return keys


def _pairs(keys: Keys) -> float:
    sizes = np.unique(keys, return_counts=True)[1].astype(np.float64)
    return float((sizes * (sizes - 1)).sum()) / 2


def _equal_pairs(keys: Keys) -> tuple[IntArray, IntArray]:
    """Return (index of the first key, distance to the second) for each pair of equal keys."""
    # An unstable sort is five times as fast as a stable one. `lexsort` below restores the order
    # among repeated keys only.
    order = np.argsort(keys)
    is_new = np.ones(len(keys) + 1, dtype=bool)
    is_new[1:-1] = keys[order[1:]] != keys[order[:-1]]
    is_paired = ~(is_new[:-1] & is_new[1:])
    positions, group = order[is_paired], np.cumsum(is_new[:-1])[is_paired]
    positions = positions[np.lexsort((positions, group))]
    sizes = np.bincount(group)
    # For each repeated key in sorted order: the number of equal keys at later positions.
    later = np.repeat(np.cumsum(sizes), sizes) - np.arange(1, len(positions) + 1)
    # In `positions`, equal keys are neighbours. The key at index i is the first key of `later[i]`
    # pairs; the second keys are at the indices i + 1, …, i + `later[i]`.
    first = np.repeat(np.arange(len(positions)), later)
    second = np.arange(1, len(first) + 1) + np.repeat(
        np.arange(len(positions)) - np.cumsum(later) + later, later
    )
    return positions[first], positions[second] - positions[first]


# `log_e_value` tests whether an event has the same probability in all groups of draws. Each of
# these weights w, in draws, gives one alternative hypothesis: every group has a probability of its
# own, drawn from Beta(w p, w (1 - p)), where p is the event's share in all groups together. The
# larger w, the closer these probabilities are to p.
_WEIGHTS = 8.0 ** np.arange(8)
# If there are more groups of draws than this, equal pairs of counts are evaluated only once, which
# is then faster.
_FEW_GROUPS = 32


def log_e_value(inside: IntArray, sizes: IntArray) -> float:
    """Return log E, where E is an e-value of the hypothesis that an event has the same probability
    in all groups.

    inside: number x_g of the draws of group g that are in the event, (groups,).
    sizes: number n_g of all draws of group g, (groups,).

    Under the hypothesis, and given the number of all draws in the event, the counts x_g are
    multivariate hypergeometric. With p the share of the event in all groups together
    (docs/method.md (11.1)),

        E = mean over w of Π_{g < G} BetaBinomial(x_g; n_g, w p, w (1 - p)) / Pr[x_1, ..., x_G].

    The product leaves out the last group G, whose count follows from the total. So its sum over all
    possible counts is at most 1, and E has expectation at most 1 for any number of draws.
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
        # With many groups, the pairs (draws of the group in the event, all draws of the group) take
        # few distinct values. The slow function `betaln` is called once for each distinct pair.
        codes, indices = np.unique(
            inside[:-1] * (sizes.max() + 1) + sizes[:-1], return_inverse=True
        )
        x, n = (part.astype(np.float64) for part in np.divmod(codes, sizes.max() + 1))
        alike = (betaln(x + a, n - x + b) - betaln(a, b)).take(indices, axis=1)
    # The binomial coefficients of all groups but the last are left out: they are factors of both
    # the numerator and the denominator of E.
    log_null = _log_choose(sizes[-1], inside[-1]) - _log_choose(draws, total)
    return _log_sum(alike.sum(axis=1)) - math.log(len(_WEIGHTS)) - log_null


def log_table_e_value(counts: IntArray) -> float:
    """Return log E, where E is an e-value of the hypothesis that the draws of all groups have the
    same distribution over cells.

    counts: number x_gc of draws of group g in cell c, (groups, cells).

    With p_c the share of cell c (docs/method.md (11.1)),

        E = mean over w of Π_{g < G} DirichletMultinomial(x_g; n_g, w p) / Pr[x_1, ..., x_G].

    As in `log_e_value`, the last group follows from the totals, and E has expectation at most 1.
    """
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    groups, cells = counts.shape
    if groups < 2 or cells < 2:
        return 0.0
    sizes, totals = counts.sum(axis=1), counts.sum(axis=0)
    weights = _WEIGHTS[:, None, None] * (totals / totals.sum())
    alike = (gammaln(counts[:-1] + weights) - gammaln(weights)).sum(axis=(1, 2))
    alike += (gammaln(_WEIGHTS[:, None]) - gammaln(sizes[:-1] + _WEIGHTS[:, None])).sum(axis=1)
    log_null = gammaln(totals + 1.0).sum() - gammaln(counts[-1] + 1.0).sum()
    log_null += gammaln(sizes[-1] + 1.0) - gammaln(totals.sum() + 1.0)
    return _log_sum(alike) - math.log(len(_WEIGHTS)) - float(log_null)


def log_mean_e_value(evidence: Iterable[float]) -> float:
    """Return the log of the mean of e-values; 0 if there are none. `evidence` has the log of each.
    The mean is an e-value too, however they depend on each other."""
    logs = np.fromiter(evidence, dtype=np.float64)
    return _log_sum(logs) - math.log(len(logs)) if len(logs) else 0.0


def _log_sum(logs: FloatArray) -> float:
    """Return log Σ exp(logs), exactly as SciPy's `logsumexp` does, but faster."""
    largest = logs.max()
    if not math.isfinite(largest):
        return float(logsumexp(logs))
    is_largest = logs == largest
    ties = float(np.count_nonzero(is_largest))
    # `remainder` is the sum of the smaller terms, divided by the sum of the `ties` largest terms,
    # which are equal. Like `logsumexp`, the return value uses `log1p`, since `log(1 + remainder)`
    # would lose the digits of a small `remainder`.
    remainder = np.exp(np.where(is_largest, -np.inf, logs) - largest).sum() / ties
    return float(np.log1p(remainder) + np.log(ties) + largest)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
