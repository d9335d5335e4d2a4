"""People's favourite food, in their own words: a histogram whose categories the answers decide.

Noise on the counts does not hide that a person wrote "Escargots": the category itself does. Only
categories whose noisy count exceeds a threshold are released (Korolova et al. 2009), which fails
with a small probability, δ.

Everybody has one vote. Adjacency: add-remove, one vote more or less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from mechanisms.truth import Statement, satisfies

Votes = Sequence[str]
Histogram = dict[str, float]
Threshold = Callable[..., float]


def _no_threshold(epsilon: float) -> float:
    return -math.inf


def _safe(epsilon: float, delta: float) -> float:
    """Return the threshold that 1 vote and its noise exceed with probability δ ≤ ½."""
    return 1 - math.log(2 * delta) / epsilon


def _forgetful(epsilon: float, delta: float) -> float:
    """Return the threshold that the noise alone exceeds with probability δ."""
    return -math.log(2 * delta) / epsilon


def _noisy(
    dataset: Votes, epsilon: float, threshold: float, size: int, rng: np.random.Generator
) -> list[Histogram]:
    """Return `size` releases: Laplace noise of scale 1/ε on what is there, then the threshold."""
    counts = Counter(dataset)
    foods = sorted(counts)
    noisy = rng.laplace([counts[food] for food in foods], 1 / epsilon, (size, len(foods)))
    return [
        {food: count for food, count in zip(foods, row, strict=True) if count > threshold}
        for row in noisy.tolist()
    ]


def _one_vote(d1: Votes, d2: Votes) -> int | None:
    """Return how many votes the food that differs has in the smaller dataset; None if none does.

    Raises ValueError for inputs that differ by more than one vote.
    """
    ours, theirs = Counter(d1), Counter(d2)
    more, less = (ours, theirs) if len(d1) > len(d2) else (theirs, ours)
    extra = more - less
    if less - more or extra.total() > 1:
        raise ValueError("the truth is known for inputs that differ by one vote")
    return None if not extra else less[next(iter(extra))]


def _above(x: float, votes: int, epsilon: float) -> float:
    """Return the probability that the noisy count of `votes` exceeds x."""
    half = math.exp(-abs(x - votes) * epsilon) / 2
    return half if x >= votes else 1 - half


def _epsilon(threshold: Threshold) -> Statement:
    """ε, of the votes for a food that others like too; for a new one, all is in δ."""

    def stated(d1: Votes, d2: Votes, epsilon: float, **rest: float) -> float:
        votes = _one_vote(d1, d2)
        if votes == 0 and threshold(epsilon, **rest) == -math.inf:
            return math.inf
        return epsilon if votes else 0.0

    return stated


def _delta(threshold: Threshold) -> Statement:
    """The probability that a food with a single vote is released."""

    def stated(d1: Votes, d2: Votes, epsilon: float, **rest: float) -> float:
        is_new = _one_vote(d1, d2) == 0
        return _above(threshold(epsilon, **rest), 1, epsilon) if is_new else 0.0

    return stated


def _profile(threshold: Threshold) -> Statement:
    def stated(d1: Votes, d2: Votes, at: float, epsilon: float, **rest: float) -> float:
        votes, limit = _one_vote(d1, d2), threshold(epsilon, **rest)
        if votes is None:
            return 0.0
        if votes == 0:
            # One direction gives τ, the other 1 - e^ε (1 - τ), which is never more.
            return _above(limit, 1, epsilon)
        return _censored(votes, limit, at, epsilon)

    return stated


def _censored(votes: int, limit: float, at: float, epsilon: float) -> float:
    """Return δ(at) between `votes` and one more, each with noise, all at most `limit` as one.

    The likelihood ratio rises with the count, so the best events are an upper and a lower end,
    from where the log-ratio is ±at; an end within what is censored moves to its edge.
    """
    if at >= epsilon:
        return 0.0
    factor = math.exp(at)
    high = max(limit, votes + (1 + at / epsilon) / 2)
    low = max(limit, votes + (1 - at / epsilon) / 2)
    upwards = _above(high, votes + 1, epsilon) - factor * _above(high, votes, epsilon)
    downwards = 1 - _above(low, votes, epsilon) - factor * (1 - _above(low, votes + 1, epsilon))
    return max(0.0, upwards, downwards)


@satisfies("none", epsilon=_epsilon(_no_threshold), profile=_profile(_no_threshold))
def noisy_histogram(
    dataset: Votes, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> list[Histogram]:
    """Broken: adds noise only to foods that were named, so a new food is certain to show.

    The true ε is ∞ (δ = 1) when a vote brings a new food, ε when it does not.
    """
    return _noisy(dataset, epsilon, _no_threshold(epsilon), size, rng)


@satisfies("approximate", epsilon=_epsilon(_safe), delta=_delta(_safe), profile=_profile(_safe))
def thresholded(
    dataset: Votes,
    epsilon: float = 1.0,
    delta: float = 0.01,
    *,
    size: int,
    rng: np.random.Generator,
) -> list[Histogram]:
    """Correct: releases only noisy counts above 1 + ln(1/2δ)/ε; (ε, δ)-DP for δ ≤ ½.

    Exactly (0, δ) when a vote brings a new food, exactly ε when it does not.
    """
    return _noisy(dataset, epsilon, _safe(epsilon, delta), size, rng)


@satisfies(
    "approximate",
    epsilon=_epsilon(_forgetful),
    delta=_delta(_forgetful),
    profile=_profile(_forgetful),
)
def low_threshold(
    dataset: Votes,
    epsilon: float = 1.0,
    delta: float = 0.01,
    *,
    size: int,
    rng: np.random.Generator,
) -> list[Histogram]:
    """Broken: the threshold ln(1/2δ)/ε covers the noise but not the vote itself.

    The true δ is e^ε times the one claimed: at the default, 0.0272 instead of 0.01.
    """
    return _noisy(dataset, epsilon, _forgetful(epsilon, delta), size, rng)
