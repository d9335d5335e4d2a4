"""The curves of a claim: what it allows an attacker, at every false-alarm rate and every ε."""

from __future__ import annotations

import math
from functools import lru_cache

from dpaudit.claims.base import PrivacyClaim

# The values of ε whose straight lines bound a trade-off function from below.
_STEPS, _LARGEST = 200, 12.0


def tradeoff(claim: PrivacyClaim, alpha: float) -> float:
    """Return the trade-off function of a claim: the least probability of a miss.

    Parameters
    ----------
    claim : PrivacyClaim
        The claim.
    alpha : float
        The probability of a false alarm, in [0, 1].

    Returns
    -------
    float
        f(α) in [0, 1]: a test of d1 against d2 misses at least so often, as far as the claim says.

    Notes
    -----
    The definition's own curve where it has one. Otherwise the largest of the f_{ε,δ(ε)}(α) =
    max{0, 1 - δ - e^ε α, e^-ε (1 - δ - α)} on a grid of ε, a lower bound within 2 % of α. Source:
    Dong, Roth & Su 2022, Prop. 2.5 and 2.13.

    Examples
    --------
    >>> from dpaudit.claims.pure import PureDP
    >>> round(tradeoff(PureDP(math.log(3)), 0.25), 6)
    0.25
    """
    own = claim.own_tradeoff(alpha)
    if own is not None:
        return own
    return max(_lines(epsilon, delta, alpha) for epsilon, delta in _points(claim))


def _lines(epsilon: float, delta: float, alpha: float) -> float:
    factor = math.exp(epsilon)
    return max(0.0, 1 - delta - factor * alpha, (1 - delta - alpha) / factor)


@lru_cache(maxsize=32)
def _points(claim: PrivacyClaim) -> tuple[tuple[float, float], ...]:
    own = [min(one.epsilon, 700.0) for one in claim.points()]
    grid = [_LARGEST * (step / _STEPS) ** 2 for step in range(_STEPS + 1)]
    return tuple((epsilon, claim.profile(epsilon)) for epsilon in {*own, *grid})
