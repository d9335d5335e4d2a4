"""Whether groups of draws can come from one law, at any number of draws."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from dpaudit.stats.binomial import FloatArray, IntArray

# How alike the draws of a group may be: a group's own share of the event is Beta distributed around
# the share of all groups, with so many draws' worth of weight.
_WEIGHTS = 8.0 ** np.arange(8)
# Of so many groups, to look for equal counts takes longer than to go without.
_FEW = 32


def log_evidence(inside: IntArray, sizes: IntArray) -> float:
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


def log_mean(evidence: Iterable[float]) -> float:
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
