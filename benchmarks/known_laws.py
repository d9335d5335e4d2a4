"""Exact laws of the log-ratio, and mechanisms of the literature that have no specimen elsewhere.

Noise is of scale 1 unless said otherwise; P is the law on the first input, Q on the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.oracle import RatioLaw, masses_between, of_sum

FloatArray = NDArray[np.float64]

# Densities are cut off this many scales from their centres, where e^-x is below 10⁻¹⁷.
_SCALES = 40.0
_DEVIATIONS = 9.0
_LATTICE = 512
_THRESHOLDS = 8_000


def laplace_law(distance: float) -> RatioLaw:
    """Return the law for one number with Laplace noise, the inputs at a distance."""
    return maximum_law(1, distance)


def maximum_law(answers: int, distance: float) -> RatioLaw:
    """Return the law for the largest of some equal answers with Laplace noise, all of which move
    by `distance`."""
    p, q = (partial(_density_of_maximum, centre=one, answers=answers) for one in (0.0, distance))
    edges = (-_SCALES, 0.0, distance, distance + _SCALES)
    return RatioLaw.of(masses_between(edges, p, q))


def laplace_vector_law(distance: float, dimensions: int) -> RatioLaw:
    """Return the law for a vector with Laplace noise whose coordinates share the L1 distance.

    One coordinate's log-ratio is s - 2x for noise x between 0 and s = distance/dimensions, and ±s
    beyond; a trapezoid rule puts it on a lattice, on which log-ratios add up.
    """
    s = distance / dimensions
    x = np.linspace(s, 0, _LATTICE + 1)
    masses = np.exp(-np.stack([x, s - x], axis=1)) * s / _LATTICE / 2
    masses[[0, -1]] /= 2
    tails = np.array([math.exp(-s) / 2, 0.5])
    masses[0] += tails
    masses[-1] += tails[::-1]
    return of_sum(RatioLaw(s - 2 * x, masses), dimensions, 2 * s / _LATTICE)


def discrete_laplace_law(rate: float) -> RatioLaw:
    """Return the law for one integer plus discrete Laplace noise, the inputs at distance 1."""
    reach = math.ceil(_SCALES / rate)
    distances = np.abs(np.arange(-reach, reach + 2)[:, None] - np.array([0, 1]))
    return RatioLaw.of(np.exp(-rate * distances))


def gaussian_law(mu: float) -> RatioLaw:
    """Return the law for normal noise, in any dimension; mu: the distance over the deviation."""
    p, q = (partial(_normal_density, centre=centre) for centre in (0.0, mu))
    return RatioLaw.of(masses_between((-_DEVIATIONS, mu + _DEVIATIONS), p, q))


def censored_law(votes: int, limit: float) -> RatioLaw:
    """Return the law for votes + 1 against `votes` with Laplace noise, told only above `limit`.

    limit ≤ votes.
    """
    p, q = (partial(_laplace_density, centre=float(one)) for one in (votes + 1, votes))
    above = masses_between((limit, votes, votes + 1, votes + 1 + _SCALES), p, q)
    below = [math.exp(limit - votes - 1) / 2, math.exp(limit - votes) / 2]
    return RatioLaw.of(np.concatenate([[below], above]))


def new_food_law(epsilon: float, delta: float) -> RatioLaw:
    """Return the law for one vote against none, released where the noise alone exceeds its
    (1 - δ)-quantile: seeing the food gives d1 away."""
    seen = min(1.0, math.exp(epsilon) * delta)
    return RatioLaw.of(np.array([[seen, 0.0], [1 - seen, 1.0]]))


def two_bits_law(epsilon: float) -> RatioLaw:
    """Return the law for RAPPOR, two bits of which tell as much as ε each; the others nothing."""
    kept = 1 / (1 + math.exp(-epsilon))
    flipped = 1 - kept
    both = [[kept**2, flipped**2], [2 * kept * flipped] * 2, [flipped**2, kept**2]]
    return RatioLaw.of(np.array(both))


def above_threshold_pmf(dataset: Sequence[float], epsilon: float) -> dict[int, float]:
    """Return the law of `above_threshold`: a trapezoid rule over the noisy threshold.

    The densities have kinks at whole numbers, which are on the lattice; absolute error < 10⁻⁶.
    """
    scale, step = 2 / epsilon, 1 / 512
    reach = math.ceil(_SCALES * scale)
    noise = np.linspace(-reach, reach, round(2 * reach / step) + 1)
    weights = np.exp(-np.abs(noise) / scale)
    below = np.stack([_laplace_below((noise - one) / (2 * scale)) for one in dataset])
    so_far = np.concatenate([np.ones((1, len(noise))), np.cumprod(below, axis=0)])
    first = np.concatenate([so_far[:-1] * (1 - below), so_far[-1:]])
    return dict(enumerate((first @ weights / weights.sum()).tolist()))


def above_threshold(
    dataset: Sequence[float], epsilon: float, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the index of the first noisy answer above a noisy 0, or how many answers there are.

    The sparse vector technique for one answer, ε-DP where every answer moves by at most 1 (Dwork &
    Roth 2014, Alg. 1).
    """
    threshold = rng.laplace(0.0, 2 / epsilon, (size, 1))
    noisy = np.asarray(dataset) + rng.laplace(0.0, 4 / epsilon, (size, len(dataset)))
    above = np.append(noisy >= threshold, np.ones((size, 1), dtype=bool), axis=1)
    return np.asarray(above.argmax(axis=1))


def sparse_vector(
    dataset: Sequence[float],
    epsilon: float,
    stops_after: int,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return for every answer 1 where it is above a noisy 0, 0 where it is below, and -1 after so
    many that were above.

    The sparse vector technique, ε-DP where every answer moves by at most 1 (Dwork & Roth 2014,
    Alg. 2, with the threshold of the first answer kept for all: Lyu, Su & Li 2017, Alg. 1).
    """
    threshold = rng.laplace(0.0, 2 / epsilon, (size, 1))
    noise = rng.laplace(0.0, 4 * stops_after / epsilon, (size, len(dataset)))
    above = (np.asarray(dataset) + noise >= threshold).astype(np.int64)
    before = np.cumsum(above, axis=1) - above
    return np.where(before < stops_after, above, -1)


def sparse_vector_law(
    d1: Sequence[float], d2: Sequence[float], epsilon: float, stops_after: int
) -> RatioLaw:
    """Return the law of `sparse_vector` where an output depends on how many answers of the first
    half and of the second were given, and were above: those of a half are equal."""
    both = _kinds_of_sparse_vector(len(d1) // 2, stops_after)
    kinds = np.array([kind for kind, _ in both])
    ways = np.array([[count] for _, count in both], dtype=np.float64)
    return RatioLaw.of(ways * sparse_vector_masses(d1, d2, epsilon, stops_after, kinds))


def prefix_sums(
    dataset: Sequence[float], epsilon: float, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return all prefix sums, each number with noise of scale 1/ε."""
    noise = rng.laplace(0.0, 1 / epsilon, (size, len(dataset)))
    return np.cumsum(np.asarray(dataset) + noise, axis=1)


def gaussian_vector(
    dataset: Sequence[float], deviation: float, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return a vector plus independent normal noise."""
    return rng.normal(dataset, deviation, (size, len(dataset)))


def reveal_or_randomize(
    dataset: int, epsilon: float, delta: float, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the input as 10 or 11 with probability δ, else 0 or 1 with the odds e^ε for it.

    Exactly (ε, δ)-DP: every other mechanism that is can be made from this one (Kairouz, Oh &
    Viswanath 2015).
    """
    is_truth = rng.random(size) < 1 / (1 + math.exp(-epsilon))
    return np.where(
        rng.random(size) < delta, 10 + dataset, np.where(is_truth, dataset, 1 - dataset)
    )


def revealing_pmf(dataset: int, epsilon: float, delta: float) -> dict[int, float]:
    """Return the law of `reveal_or_randomize`."""
    honest = 1 / (1 + math.exp(-epsilon))
    answers = {dataset: honest, 1 - dataset: 1 - honest}
    return {10 + dataset: delta, **{one: (1 - delta) * p for one, p in answers.items()}}


def sparse_vector_kinds(outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return of every output how many answers of the first half were given, and were above, and
    the same of the second half: (outputs, 4)."""
    half = outputs.shape[1] // 2
    halves = outputs[:, :half], outputs[:, half:]
    counts = [count.sum(axis=1) for one in halves for count in (one >= 0, one > 0)]
    return np.stack(counts, axis=1)


def sparse_vector_masses(
    d1: Sequence[float],
    d2: Sequence[float],
    epsilon: float,
    stops_after: int,
    kinds: NDArray[np.int64],
) -> FloatArray:
    """Return the probabilities of single outputs of some kinds on either input: (kinds, 2); a
    trapezoid rule over the noisy threshold."""
    scale = 2 / epsilon
    noise = np.linspace(-_SCALES * scale, _SCALES * scale, _THRESHOLDS + 1)
    weights = np.exp(-np.abs(noise) / scale)
    masses = []
    for dataset in (d1, d2):
        centres = dataset[0], dataset[-1]
        logs = np.zeros((len(kinds), len(noise)))
        for place, centre in enumerate(centres):
            given, above = kinds[:, 2 * place, None], kinds[:, 2 * place + 1, None]
            below = _laplace_below((noise - centre) / (2 * stops_after * scale))
            logs += above * np.log1p(-below) + (given - above) * np.log(below)
        masses.append(np.exp(logs) @ weights / weights.sum())
    return np.stack(masses, axis=1)


def _kinds_of_sparse_vector(half: int, stops_after: int) -> list[tuple[tuple[int, ...], int]]:
    """Return every kind of output, with how many outputs there are of it."""
    found: list[tuple[tuple[int, ...], int]] = []
    for given in range(stops_after, half + 1):
        found.append(((given, stops_after, 0, 0), math.comb(given - 1, stops_after - 1)))
    for first in range(stops_after):
        ways = math.comb(half, first)
        rest = stops_after - first
        for given in range(rest, half + 1):
            found.append(((half, first, given, rest), ways * math.comb(given - 1, rest - 1)))
        for second in range(rest):
            found.append(((half, first, half, second), ways * math.comb(half, second)))
    return found


def _laplace_below(x: FloatArray) -> FloatArray:
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _laplace_density(x: FloatArray, centre: float) -> FloatArray:
    return np.asarray(np.exp(-np.abs(x - centre)) / 2)


def _density_of_maximum(x: FloatArray, centre: float, answers: int) -> FloatArray:
    others = _laplace_below(x - centre) ** (answers - 1)
    return np.asarray(answers * _laplace_density(x, centre) * others)


def _normal_density(x: FloatArray, centre: float) -> FloatArray:
    return np.asarray(np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi))
