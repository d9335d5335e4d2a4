"""Partition selection: which words occur often enough to be named. Adjacency: add-remove."""

from __future__ import annotations

import math
from collections import Counter
from itertools import compress

import numpy as np

from mechanisms.neighbours.values import Records

Names = tuple[str, ...]


def _counts(dataset: Records) -> dict[str, int]:
    """Return how often each text occurs; what is no text is left out."""
    return dict(sorted(Counter(one for one in dataset if isinstance(one, str)).items()))


def _above(
    counts: dict[str, int], threshold: float, epsilon: float, size: int, rng: np.random.Generator
) -> list[Names]:
    noise = rng.laplace(0.0, 1 / epsilon, (size, len(counts)))
    kept = noise + list(counts.values()) > threshold
    names = list(counts)
    return [tuple(compress(names, row)) for row in kept.tolist()]


def _threshold(epsilon: float, delta: float) -> float:
    """Return what 1 and its noise exceed with probability δ ≤ ½."""
    return 1 - math.log(2 * delta) / epsilon


def at_least_the_largest(
    dataset: Records,
    epsilon: float = 1.0,
    delta: float = 0.01,
    *,
    size: int,
    rng: np.random.Generator,
) -> list[Names]:
    """Broken: where no count reaches the threshold, the largest one becomes it, so that not all of
    a small survey is lost.

    The singleton of a single record is then named with probability ½, and δ(ε) is ½ for empty
    beside one record, whatever ε. Harmless: some word occurs as often as the threshold asks (at
    ε = 1 and δ = 0.01, five times).
    """
    counts = _counts(dataset)
    threshold = min(_threshold(epsilon, delta), max(counts.values(), default=math.inf))
    return _above(counts, threshold, epsilon, size, rng)


def above_the_threshold(
    dataset: Records,
    epsilon: float = 1.0,
    delta: float = 0.01,
    *,
    size: int,
    rng: np.random.Generator,
) -> list[Names]:
    """Correct: words whose noisy count exceeds 1 + ln(1/2δ)/ε (Korolova et al. 2009)."""
    return _above(_counts(dataset), _threshold(epsilon, delta), epsilon, size, rng)
