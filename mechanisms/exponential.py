"""The exponential mechanism: the most common disease, and the price of an auction.

Adjacency: replace one record. It moves two counts, by 1 each in opposite directions; in the auction
it moves the revenue of every price in the same direction, by at most that price.
Sources: McSherry & Talwar 2007; Dwork & Roth 2014, §3.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.noisy_max import prevalence
from mechanisms.truth import Statement, satisfies

PRICES = (0.25, 0.5, 0.75, 1.0)
HIGH_PRICES = (1.0, 2.0, 5.0, 10.0)


def exponential_law(scores: Sequence[float]) -> list[float]:
    """Return the probabilities proportional to e^score."""
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def utility_floor(
    best: float, options: int, epsilon: float, slack: float, sensitivity: float = 1.0
) -> float:
    """Return best - (2Δ/ε)(ln options + slack): a utility this low has probability ≤ e^-slack.

    It holds for the law proportional to e^{εu/(2Δ)}, whatever the utilities u, the largest of which
    is `best`. Source: Dwork & Roth 2014, Thm. 3.11. epsilon > 0, slack ≥ 0.
    """
    return best - 2 * sensitivity / epsilon * (math.log(options) + slack)


def printed_utility_floor(best: float, options: int, epsilon: float, slack: float) -> float:
    """Return best - (ln options + slack)/ε, where lecture notes leave out the factor 2.

    Lower utilities are not unlikely: of 100 options, 99 that lie this much below the best are drawn
    with probability 0.908 if slack is 0, and 0.78 if it is 2, where 0.14 is promised. The bound is
    that of e^{εu/Δ}, which is 2ε-DP.
    """
    return best - (math.log(options) + slack) / epsilon


def revenues(bids: Sequence[float], prices: Sequence[float]) -> list[float]:
    """Return the revenue of each price: p times the number of bids of at least p."""
    return [price * sum(bid >= price for bid in bids) for price in prices]


# Of ε and the largest price, or the sensitivity of a count: what utilities are multiplied by.
Factor = Callable[[float, float], float]


def _right(epsilon: float, sensitivity: float) -> float:
    return epsilon / (2 * sensitivity)


def _without_two(epsilon: float, sensitivity: float) -> float:
    return epsilon / sensitivity


def _sensitivity_one(epsilon: float, sensitivity: float) -> float:
    return epsilon / 2


def _disease_pmf(factor: Factor) -> Statement:
    def stated(dataset: Sequence[int], epsilon: float, diseases: int) -> dict[int, float]:
        counts = prevalence(dataset, diseases).tolist()
        law = exponential_law([factor(epsilon, 1.0) * count for count in counts])
        return dict(enumerate(law))

    return stated


def _printed_pmf(dataset: Sequence[int], diseases: int) -> dict[int, float]:
    return dict(enumerate(exponential_law((prevalence(dataset, diseases) / 2).tolist())))


def _auction_pmf(factor: Factor) -> Statement:
    def stated(
        dataset: Sequence[float], epsilon: float, prices: Sequence[float]
    ) -> dict[float, float]:
        times = factor(epsilon, max(prices))
        law = exponential_law([times * one for one in revenues(dataset, prices)])
        return dict(zip(map(float, prices), law, strict=True))

    return stated


@satisfies("pure", pmf=_disease_pmf(_right))
def common_disease(
    dataset: Sequence[int],
    epsilon: float = 1.0,
    diseases: int = 3,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Correct: a disease with probability proportional to e^{ε·count/2}; at most ε-DP.

    dataset: diagnoses, each in 0 … diseases - 1. A pair of datasets reaches ε in the limit only.
    """
    return _drawn(_disease_pmf(_right)(dataset, epsilon, diseases), size, rng)


@satisfies("pure", pmf=_printed_pmf)
def common_disease_printed(
    dataset: Sequence[int], diseases: int = 3, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Broken: e^{count/2}, a misprint in lecture notes for e^{ε·count/2}; at most 1-DP.

    A violation of what is claimed wherever that is less than the ε of the pair.
    """
    return _drawn(_printed_pmf(dataset, diseases), size, rng)


@satisfies("pure", pmf=_disease_pmf(_without_two))
def common_disease_without_two(
    dataset: Sequence[int],
    epsilon: float = 1.0,
    diseases: int = 3,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Broken: e^{ε·count}, without the factor 2; up to 2ε-DP."""
    return _drawn(_disease_pmf(_without_two)(dataset, epsilon, diseases), size, rng)


@satisfies("pure", pmf=_auction_pmf(_right))
def auction(
    dataset: Sequence[float],
    epsilon: float = 1.0,
    prices: Sequence[float] = PRICES,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Correct: a price with probability proportional to e^{ε·revenue/(2Δ)}; at most ε/2-DP.

    dataset: bids. Δ is the largest price. Half of ε is enough since one bid moves all revenues in
    the same direction (see `auction_without_two`).
    """
    return _drawn(_auction_pmf(_right)(dataset, epsilon, prices), size, rng)


@satisfies("pure", pmf=_auction_pmf(_without_two))
def auction_without_two(
    dataset: Sequence[float],
    epsilon: float = 1.0,
    prices: Sequence[float] = PRICES,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Correct: e^{ε·revenue/Δ}, without the factor 2, is still at most ε-DP here.

    A higher bid raises revenues or leaves them: each weight grows by a factor in [1, e^ε], and so
    does their sum, so that each probability changes by a factor in [e^-ε, e^ε].
    """
    return _drawn(_auction_pmf(_without_two)(dataset, epsilon, prices), size, rng)


@satisfies("pure", pmf=_auction_pmf(_sensitivity_one))
def auction_sensitivity_one(
    dataset: Sequence[float],
    epsilon: float = 1.0,
    prices: Sequence[float] = HIGH_PRICES,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Broken: e^{ε·revenue/2} assumes Δ = 1, but prices exceed 1; up to Δε/2-DP.

    Since revenues move in one direction, it takes a price above 2 to exceed ε.
    """
    return _drawn(_auction_pmf(_sensitivity_one)(dataset, epsilon, prices), size, rng)


def _drawn(law: dict[Any, float], size: int, rng: np.random.Generator) -> NDArray[Any]:
    return rng.choice(list(law), size=size, p=list(law.values()))
