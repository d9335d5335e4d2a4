"""Two sparse vectors side by side, and the log-ratio of what they answer.

The first one gives the noisy answers that are above its threshold, the second one only says which
are, with noise that does not grow with how many may be (Lyu, Su & Li 2017, Algorithms 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.oracle import FloatArray, RatioLaw

BELOW, STOPPED = -1_000.0, -2_000.0
THRESHOLD = 1.0
# Of the thresholds that are summed over: how far they reach, in scales of their noise.
_SCALES, _POINTS = 30.0, 6_001
# Draws of either input that the law is told from, and cells of their log-ratios; a few hundred of
# these in either tail.
_DRAWS, _SEED, _CELLS, _IN_TAILS = 2_000_000, 1, 4_000, 300


def two_sparse_vectors(
    dataset: Sequence[float],
    epsilon: float,
    stops_after: int,
    *,
    size: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the answers of both, one after the other."""
    answers = np.asarray(dataset)
    noisy, above = _above(answers, *_scales(epsilon, stops_after)[0], size, rng)
    first = np.where(above, noisy, BELOW)
    first[_stopped(above, stops_after)] = STOPPED
    _, above = _above(answers, *_scales(epsilon, stops_after)[1], size, rng)
    second = above.astype(np.float64)
    second[_stopped(above, stops_after)] = -1.0
    return np.concatenate([first, second], axis=1)


def two_sparse_vectors_ratio(
    d1: Sequence[float],
    d2: Sequence[float],
    epsilon: float,
    stops_after: int,
    outputs: FloatArray,
) -> FloatArray:
    """Return log dP/dQ of every output: of both, each from a sum over thresholds."""
    both, columns = np.array([d1, d2]), len(d1)
    first, second = outputs[:, :columns], outputs[:, columns:]
    of_first, of_second = _scales(epsilon, stops_after)
    # Of an answer that is given the density itself says something.
    told = (np.abs(first - both[1]) - np.abs(first - both[0])) / of_first[1]
    told[first <= BELOW] = 0.0
    least = np.where(first > BELOW, first, np.inf).min(axis=1)
    ratio = told.sum(axis=1) + _summed(both, of_first, first == BELOW, None, least)
    nothing = np.full(len(second), np.inf)
    return np.asarray(ratio + _summed(both, of_second, second == 0, second == 1, nothing))


def two_sparse_vectors_law(
    d1: Sequence[float], d2: Sequence[float], epsilon: float, stops_after: int
) -> RatioLaw:
    """Return the law, told from draws: numbers have no law of a few terms. Its bounds are known to
    half a percent."""
    rng = np.random.default_rng(_SEED)
    ratios = np.concatenate(
        [
            two_sparse_vectors_ratio(
                d1, d2, epsilon, stops_after,
                two_sparse_vectors(one, epsilon, stops_after, size=_DRAWS // 8, rng=rng),
            )
            for one in (d1, d2)
            for _ in range(8)
        ]
    )  # fmt: skip
    tail = np.geomspace(1e-6, 1e-3, _IN_TAILS)
    shares = np.concatenate([np.linspace(0, 1, _CELLS), tail, 1 - tail])
    cell = np.searchsorted(np.unique(np.quantile(ratios, shares)), ratios, side="right")
    share = 1 / (1 + np.exp(-ratios))
    arms = [np.bincount(cell, weights=one) for one in (share, 1 - share)]
    return RatioLaw.of(np.stack(arms, axis=1))


def _scales(epsilon: float, stops_after: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the scales of the noise of the threshold and of the answers, of both."""
    return (2 / epsilon, 2 * stops_after / epsilon), (4 / epsilon, 4 / (3 * epsilon))


def _above(
    answers: FloatArray, of_threshold: float, of_answer: float, size: int, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.bool_]]:
    threshold = THRESHOLD + rng.laplace(0.0, of_threshold, (size, 1))
    noisy = answers + rng.laplace(0.0, of_answer, (size, len(answers)))
    return noisy, noisy >= threshold


def _stopped(above: NDArray[np.bool_], stops_after: int) -> NDArray[np.bool_]:
    return np.asarray(np.cumsum(above, axis=1) - above >= stops_after)


def _summed(
    both: FloatArray,
    scales: tuple[float, float],
    below: NDArray[np.bool_],
    above: NDArray[np.bool_] | None,
    most: FloatArray,
) -> FloatArray:
    """Return the log-ratio of sums over thresholds, up to a largest one for each output. Outputs
    with as many answers below, and above, of each kind of answer have one sum.

    both: the answers on either input, (2, columns).
    """
    kinds, kind = np.unique(both, axis=1, return_inverse=True)
    is_kind = np.arange(kinds.shape[1]) == kind.ravel()[:, None]
    counts = below.astype(np.int64) @ is_kind
    ups = np.zeros_like(counts) if above is None else above.astype(np.int64) @ is_kind
    every = np.hstack([counts, ups])
    # Numbers are put in order faster than rows are.
    number = every @ (1 + both.shape[1]) ** np.arange(every.shape[1])
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    total = np.zeros((2, len(most)))
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(first) + 1))
    for begin, end, one in zip(starts, starts[1:], every[first].tolist(), strict=False):
        rows = order[begin:end]
        for arm in (0, 1):
            noise, upto = _sums(scales, tuple(kinds[arm].tolist()), tuple(one))
            total[arm, rows] = np.interp(most[rows] - THRESHOLD, noise, upto)
    return np.asarray(np.log(total[0]) - np.log(total[1]))


@lru_cache(maxsize=4_096)
def _sums(
    scales: tuple[float, float], answers: tuple[float, ...], counts: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return thresholds, and sums up to each of them.

    counts: how many of each answer are below, then how many are above.
    """
    noise = np.linspace(-_SCALES, _SCALES, _POINTS) * scales[0]
    x = (THRESHOLD + noise[:, None] - np.array(answers)) / scales[1]
    is_below = np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
    down, up = np.split(np.array(counts), 2)
    each = np.exp(-np.abs(noise) / scales[0]) * np.prod(
        is_below**down * (1 - is_below) ** up, axis=1
    )
    return noise, np.cumsum(each)
