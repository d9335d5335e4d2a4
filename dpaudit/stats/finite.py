"""An interval for ε from the counts of every possible output (docs/method.md §10)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.stats.binomial import clopper_pearson_lower


def epsilon_interval(counts: Sequence[tuple[int, int]], alpha: float) -> tuple[float, float]:
    """Return an interval for the pair's smallest ε at δ = 0.

    Parameters
    ----------
    counts : sequence of pairs of int, length K
        For each of the K outputs that there are, its draws of d1 and of d2, where a fair coin
        picked the input of every draw.
    alpha : float
        The error probability, in (0, 1).

    Returns
    -------
    tuple of float
        The ends, rounded outward; the upper one is inf when an output never came up for one input.

    Notes
    -----
    Holds ε with probability at least 1 - alpha. Of m draws of one output, those of d1 are
    Binomial(m, θ) with logit θ = log P(s)/Q(s): Clopper-Pearson bounds at alpha / 2K on both sides
    hold all of these log-ratios at once, and ε is the largest of them in size.

    Examples
    --------
    >>> low, high = epsilon_interval([(7_500, 2_500), (2_500, 7_500)], 0.01)
    >>> low < math.log(3) < high, round(high - low, 2)
    (True, 0.13)
    >>> epsilon_interval([(7_500, 2_500), (10, 0)], 0.01)[1]
    inf
    """
    share = alpha / (2 * len(counts))
    # The bounds below log P/Q, and below log Q/P, which is the mirror of the bound above it.
    below = [_log_odds_lower(count, d1 + d2, share) for d1, d2 in counts for count in (d1, d2)]
    return max(0.0, *below), -min(below)


def _log_odds_lower(successes: int, trials: int, alpha: float) -> float:
    share = clopper_pearson_lower(successes, trials, alpha)
    return math.log(share) - math.log1p(-share) if share > 0 else -math.inf
