"""The twenty mechanisms of DP-Sniper's suite with their exact laws of the log-ratio.

python -m benchmarks.peer_suite [--only NAME]... [--draws 4000000] [--seeds 5] [--processes 2]

The suite is that of Bichsel et al. 2021 (IEEE S&P), on the inputs that it reports as its best ones.
`benchmarks.dp_sniper` runs its own code; here every mechanism is written again, vectorised and with
a generator as an argument, so that an oracle (`benchmarks.oracle`) tells what its audits can show.
Two sparse vectors side by side, its nineteenth mechanism, are in `benchmarks.mixtures`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import known_laws as laws
from benchmarks import log_ratios as ratios
from benchmarks.efficiency import chosen, shares
from benchmarks.oracle import FloatArray, RatioLaw, masses_between
from benchmarks.specimens import Specimen
from mechanisms.noisy_max import noisy_max_value, winning_law

Rng = np.random.Generator

DRAWS = 4_000_000
EPSILON = 0.1
ONES, TWOS, ZEROS = (1.0,) * 10, (2.0,) * 10, (0.0,) * 10
FIRST, LAST = (1.0,) * 5 + (0.0,) * 5, (0.0,) * 5 + (1.0,) * 5
MIXED = (2.0,) * 5 + (0.0,) * 5
COUNTS = (0.0, 1.0, 1.0, 1.0, 1.0), (1.0,) * 5
MANY = (1.0,) * 5, (0.0, 2.0, 2.0, 2.0, 2.0)
BELOW, STOPPED = -1_000.0, -2_000.0
# Integrals over a noisy threshold: points, and how far they reach in scales of its noise.
_POINTS, _SCALES = 40_001, 40.0
# Cells of the answers that a sparse vector releases.
_CELLS = 4_000
# Bloom filter of 20 bits: the bits that four hashes (MurmurHash3) set for the values 0 and 1.
BITS = 20
FILTERS = ((0, 11, 18), (3, 10, 13))


def specimens() -> tuple[Specimen, ...]:
    """Return all mechanisms of the suite, each claimed at the ε that the suite looks for."""
    return (*_numbers(), *_maxima(), *_sparse_vectors(), *_bits())


def _numbers() -> Iterator[Specimen]:
    scale = 1 / EPSILON
    yield _of("Laplace", noisy, (1.0,), (2.0,), laws.laplace_law(EPSILON), _laplace(scale), scale)
    p, q = (geometric_pmf(count) for count in (2, 1))
    yield Specimen(
        "peer: truncated geometric",
        geometric,
        2,
        1,
        partial(RatioLaw.of_pmfs, p, q),
        partial(ratios.table_ratio, p, q),
        claimed=EPSILON,
    )
    for number, width in ((1, scale), (2, EPSILON)):
        law = laws.laplace_law(1 / width)
        yield _of(f"noisy histogram {number}", noisy, *COUNTS, law, _laplace(width), width)
    law = laws.laplace_vector_law(EPSILON, BITS)
    parallel = ZEROS * 2, ONES * 2
    yield _of("Laplace parallel", noisy, *parallel[::-1], law, _laplace(200.0), 200.0)
    law, name = laws.laplace_vector_law(1.0, 10), "peer: prefix sums"
    ratio = partial(ratios.prefix_sums_ratio, ONES, ZEROS, scale)
    sums = partial(laws.prefix_sums, epsilon=EPSILON)
    yield Specimen(name, sums, ONES, ZEROS, lambda: law, ratio, claimed=EPSILON)


def _maxima() -> Iterator[Specimen]:
    scale = 2 / EPSILON
    for number, exponential in ((1, False), (2, True)):
        index = partial(largest_index, scale=scale, exponential=exponential)
        pmf = _exponential_winner if exponential else winning_law
        p, q = (pmf(one, scale) for one in MANY)
        yield Specimen(
            f"peer: noisy max {number}",
            index,
            *MANY,
            partial(RatioLaw.of_pmfs, p, q),
            partial(ratios.table_ratio, p, q),
            claimed=EPSILON,
        )
    yield Specimen(
        "peer: noisy max 3",
        partial(noisy_max_value, epsilon=EPSILON),
        [0.0] * 5,
        [1.0] * 5,
        partial(laws.maximum_law, 5, 1 / scale),
        partial(ratios.maximum_ratio, 5, 1.0, scale),
        claimed=EPSILON,
    )
    yield Specimen(
        "peer: noisy max 4",
        partial(largest, scale=scale),
        [1.0] * 5,
        [2.0] * 5,
        partial(_largest_law, 5, scale),
        partial(_largest_ratio, 5, scale),
        claimed=EPSILON,
    )


def _sparse_vectors() -> Iterator[Specimen]:
    for number, pair, threshold, scales in (
        (1, (LAST, FIRST), 0.5, (20.0, 40.0)),
        (2, (LAST, FIRST), 1.0, (20.0, 40.0)),
        (4, (ONES, MIXED), 1.0, (40.0, 1 / 0.075)),
    ):
        p, q = (first_above_pmf(one, threshold, *scales) for one in pair)
        yield Specimen(
            f"peer: sparse vector {number}",
            partial(until_above, threshold=threshold, scales=scales),
            *pair,
            partial(RatioLaw.of_pmfs, p, q),
            partial(_by_zeros, p, q),
            claimed=EPSILON,
        )
    yield Specimen(
        "peer: sparse vector 3",
        partial(answer_above, scales=(20.0, 20.0)),
        ONES,
        MIXED,
        partial(_answer_law, ONES, MIXED, (20.0, 20.0)),
        partial(_answer_ratio, ONES, MIXED, (20.0, 20.0)),
        claimed=EPSILON,
    )
    # Without noise on the answers, an output says between which answers the threshold lies.
    below_1, below_0, below_minus = (_laplace_below(limit, 20.0) for limit in (1.0, 0.0, -1.0))
    p = {0: 1 - below_1, 5: below_1 - below_minus, 10: below_minus}
    q = {0: 1 - below_0, 10: below_0}
    yield _counted("sparse vector 5", (20.0, 0.0), (MIXED, ONES), p, q)
    pmfs = [_above_pmf(one, 1.0, 20.0, 20.0) for one in (FIRST, LAST)]
    yield _counted("sparse vector 6", (20.0, 20.0), (FIRST, LAST), *pmfs)
    yield Specimen(
        "peer: numerical sparse vector",
        partial(answer_separately, scales=(30.0, 60.0, 30.0)),
        TWOS,
        ONES,
        partial(_separate_law, TWOS, ONES, (30.0, 60.0, 30.0)),
        partial(_separate_ratio, TWOS, ONES, (30.0, 60.0, 30.0)),
        claimed=EPSILON,
    )


def _bits() -> Iterator[Specimen]:
    for name, chance, claimed in (("RAPPOR", 0.5125, 0.3), ("one-time RAPPOR", 0.525, 0.8)):
        step = math.log(chance / (1 - chance))
        single = RatioLaw.of(np.array([[chance, 1 - chance], [1 - chance, chance]]))
        differing = sum(map(len, FILTERS))
        yield Specimen(
            f"peer: {name}",
            partial(bloom, chance=chance),
            1,
            0,
            partial(_sum_law, single, differing, 2 * step),
            partial(_bloom_ratio, 2 * step),
            claimed=claimed,
        )


def _of(
    name: str,
    mechanism: Callable[..., Any],
    d1: Sequence[float],
    d2: Sequence[float],
    law: RatioLaw,
    ratio: Callable[..., Any],
    scale: float,
) -> Specimen:
    """Return the specimen of Laplace noise of a scale."""
    ratio_of = partial(ratio, np.asarray(d1), np.asarray(d2))
    sampled = partial(mechanism, scale=scale)
    return Specimen(f"peer: {name}", sampled, d1, d2, lambda: law, ratio_of, claimed=EPSILON)


def _laplace(scale: float) -> Callable[[FloatArray, FloatArray, Any], FloatArray]:
    def ratio(d1: FloatArray, d2: FloatArray, outputs: Any) -> FloatArray:
        table = np.asarray(outputs).reshape(len(outputs), -1)
        return ratios.laplace_ratio(d1, d2, scale, table)

    return ratio


def _counted(
    name: str,
    scales: tuple[float, float],
    pair: tuple[Sequence[float], Sequence[float]],
    p: dict[int, float],
    q: dict[int, float],
) -> Specimen:
    """Return the specimen of a sparse vector that never stops. p, q: the laws of the answers above,
    numbered as in `_by_halves`."""
    return Specimen(
        f"peer: {name}",
        partial(all_above, scales=scales),
        *pair,
        partial(RatioLaw.of_pmfs, p, q),
        partial(_by_halves, p, q, len(p) > 3),
        claimed=EPSILON,
    )


def noisy(dataset: Sequence[float], scale: float, *, size: int, rng: Rng) -> FloatArray:
    """Return answers plus Laplace noise of a scale; a single answer as a number."""
    outputs = np.asarray(dataset) + rng.laplace(0.0, scale, (size, len(dataset)))
    return outputs[:, 0] if len(dataset) == 1 else outputs


def geometric_pmf(count: int, people: int = 5, k: int = 3) -> dict[int, float]:
    """Return the law of GeoSample (Balcer & Vadhan 2018, Alg. 4.8)."""
    base = 2**k
    total = (2 * base + 1) * (base + 1) ** (people - 1)
    upto = [base ** (count - z) * (base + 1) ** (people - count + z) for z in range(count)]
    upto += [
        total - base ** (z - count + 1) * (base + 1) ** (people - 1 - z + count)
        for z in range(count, people)
    ]
    return dict(enumerate(np.diff([0, *upto, total]) / total))


def geometric(dataset: int, *, size: int, rng: Rng) -> NDArray[np.int64]:
    """Return a count with truncated geometric noise."""
    upto = np.cumsum(list(geometric_pmf(dataset).values()))
    return np.searchsorted(upto[:-1], rng.random(size), side="right").astype(np.int64)


def largest_index(
    dataset: Sequence[float], scale: float, *, exponential: bool, size: int, rng: Rng
) -> NDArray[np.int64]:
    """Return the index of the largest answer, each with noise."""
    draw = rng.exponential if exponential else partial(rng.laplace, 0.0)
    noisy_answers = np.asarray(dataset) + draw(scale, (size, len(dataset)))
    return np.asarray(noisy_answers.argmax(axis=1))


def largest(dataset: Sequence[float], scale: float, *, size: int, rng: Rng) -> FloatArray:
    """Return the largest answer, each with exponential noise."""
    noise = rng.exponential(scale, (size, len(dataset)))
    return np.asarray((np.asarray(dataset) + noise).max(axis=1))


def _compared(
    dataset: Sequence[float], threshold: float, scales: Sequence[float], size: int, rng: Rng
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return noisy answers, which answers are above a noisy threshold, and which answers come after
    the first answer above it. scales: of the noise of the threshold, and of the answers."""
    limit = threshold + rng.laplace(0.0, scales[0], (size, 1))
    answers = np.tile(np.asarray(dataset), (size, 1))
    if scales[1] > 0:
        answers += rng.laplace(0.0, scales[1], answers.shape)
    above = answers >= limit
    return answers, above, np.asarray(np.cumsum(above, axis=1) > above)


def until_above(
    dataset: Sequence[float],
    threshold: float,
    scales: tuple[float, float],
    *,
    size: int,
    rng: Rng,
) -> NDArray[np.int64]:
    """Return 0 for answers below the threshold, 1 for the first answer above it, -1 afterwards."""
    _, above, is_after = _compared(dataset, threshold, scales, size, rng)
    return np.where(is_after, -1, above.astype(np.int64))


def all_above(
    dataset: Sequence[float], scales: tuple[float, float], *, size: int, rng: Rng
) -> NDArray[np.int64]:
    """Return 1 for all answers above the threshold 1, 0 for the others."""
    return _compared(dataset, 1.0, scales, size, rng)[1].astype(np.int64)


def answer_above(
    dataset: Sequence[float], scales: tuple[float, float], *, size: int, rng: Rng
) -> FloatArray:
    """Return the first noisy answer above the threshold 1, after marks for answers below it."""
    answers, above, is_after = _compared(dataset, 1.0, scales, size, rng)
    return np.where(is_after, STOPPED, np.where(above, answers, BELOW))


def answer_separately(
    dataset: Sequence[float], scales: tuple[float, float, float], *, size: int, rng: Rng
) -> FloatArray:
    """Return the first answer above the threshold 1 with separate noise, of the third scale; 0 for
    answers below it, -1000 afterwards."""
    _, above, is_after = _compared(dataset, 1.0, scales[:2], size, rng)
    released = np.asarray(dataset) + rng.laplace(0.0, scales[2], above.shape)
    return np.where(is_after, BELOW, np.where(above, released, 0.0))


def bloom(dataset: int, chance: float, *, size: int, rng: Rng) -> NDArray[np.int64]:
    """Return the bits of a Bloom filter, each 1 with probability `chance` where it is set, and with
    1 - `chance` elsewhere."""
    chances = np.full(BITS, 1 - chance)
    chances[list(FILTERS[dataset])] = chance
    return (rng.random((size, BITS)) < chances).astype(np.int64)


def _thresholds(threshold: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return points for a noisy threshold, and the weights of a trapezoid rule."""
    noise = np.linspace(-_SCALES, _SCALES, _POINTS) * scale
    weights = np.exp(-np.abs(noise) / scale)
    return threshold + noise, weights / weights.sum()


def _laplace_below(x: Any, scale: float) -> Any:
    """Return the distribution function of Laplace noise."""
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(np.asarray(x) < 0, tail, 1 - tail)[()]


@cache
def first_above_pmf(
    answers: tuple[float, ...], threshold: float, of_threshold: float, of_answer: float
) -> dict[int, float]:
    """Return the law of the number of answers before the first answer above; 10 where none is."""
    limits, weights = _thresholds(threshold, of_threshold)
    below = np.stack([_laplace_below(limits - one, of_answer) for one in answers])
    so_far = np.concatenate([np.ones((1, len(limits))), np.cumprod(below, axis=0)])
    first = np.concatenate([so_far[:-1] * (1 - below), so_far[-1:]])
    return dict(enumerate((first @ weights).tolist()))


def _above_pmf(
    answers: Sequence[float], threshold: float, of_threshold: float, of_answer: float
) -> dict[int, float]:
    """Return the law of the numbers of answers above in each half, as 6 × first + second."""
    limits, weights = _thresholds(threshold, of_threshold)
    pmf = {}
    for first in range(6):
        for second in range(6):
            chance = weights.copy()
            for answer, above in ((answers[0], first), (answers[-1], second)):
                below = _laplace_below(limits - answer, of_answer)
                chance *= math.comb(5, above) * (1 - below) ** above * below ** (5 - above)
            pmf[6 * first + second] = float(chance.sum())
    return pmf


def _by_zeros(p: dict[int, float], q: dict[int, float], outputs: NDArray[np.int64]) -> FloatArray:
    return ratios.table_ratio(p, q, (np.asarray(outputs) == 0).sum(axis=1))


def _by_halves(
    p: dict[int, float], q: dict[int, float], halves: bool, outputs: NDArray[np.int64]
) -> FloatArray:
    """Return log-ratios by the number of answers above.

    halves: in each half, as 6 × first + second; otherwise in all.
    """
    first, second = outputs[:, :5].sum(axis=1), outputs[:, 5:].sum(axis=1)
    return ratios.table_ratio(p, q, 6 * first + second if halves else first + second)


def _exponential_winner(answers: Sequence[float], scale: float) -> dict[int, float]:
    """Return the law of the index of the largest answer, each with exponential noise."""
    x = np.linspace(min(answers), max(answers) + _SCALES * scale, 2_000_001)
    beyond = np.maximum(x - np.asarray(answers)[:, None], 0.0)
    below = -np.expm1(-beyond / scale)
    density = np.where(x >= np.asarray(answers)[:, None], np.exp(-beyond / scale) / scale, 0.0)
    chances = [
        float(np.trapezoid(density[i] * np.prod(np.delete(below, i, axis=0), axis=0), x))
        for i in range(len(answers))
    ]
    return dict(enumerate(np.array(chances) / sum(chances)))


def _largest_density(x: FloatArray, centre: float, answers: int, scale: float) -> FloatArray:
    beyond = np.maximum(x - centre, 0.0) / scale
    return np.where(x > centre, answers * (-np.expm1(-beyond)) ** (answers - 1), 0.0) * np.exp(
        -beyond
    )


def _largest_law(answers: int, scale: float) -> RatioLaw:
    p, q = (
        partial(_largest_density, centre=centre, answers=answers, scale=scale)
        for centre in (1.0, 2.0)
    )
    return RatioLaw.of(masses_between((1.0, 2.0, 4.0, 20.0, _SCALES * scale), p, q))


def _largest_ratio(answers: int, scale: float, outputs: FloatArray) -> FloatArray:
    p, q = (_largest_density(outputs, centre, answers, scale) for centre in (1.0, 2.0))
    with np.errstate(divide="ignore"):
        return np.where(q > 0, np.log(p) - np.log(q), 1e3)


@cache
def _sums_of_thresholds(
    answers: tuple[float, ...], scales: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return thresholds, and for 0 to 10 answers below the sums up to each of these."""
    limits, weights = _thresholds(1.0, scales[0])
    below = np.stack([_laplace_below(limits - one, scales[1]) for one in answers])
    so_far = np.concatenate([np.ones((1, len(limits))), np.cumprod(below, axis=0)])
    return limits, np.cumsum(so_far * weights, axis=1)


def _answer_law(
    d1: tuple[float, ...], d2: tuple[float, ...], scales: tuple[float, float]
) -> RatioLaw:
    reach = _SCALES * scales[1]
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, _CELLS), [0.0, 1.0, 2.0]]))
    values, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    masses = []
    for answers in (d1, d2):
        limits, sums = _sums_of_thresholds(answers, scales)
        density = np.exp(-np.abs(values - np.asarray(answers)[:, None]) / scales[1])
        reached = np.stack([np.interp(values, limits, own) for own in sums[:-1]])
        masses.append(
            np.append((reached * density * widths / (2 * scales[1])).ravel(), sums[-1, -1])
        )
    return RatioLaw.of(np.stack(masses, axis=1))


def _answer_ratio(
    d1: tuple[float, ...], d2: tuple[float, ...], scales: tuple[float, float], outputs: FloatArray
) -> FloatArray:
    before = (outputs == BELOW).sum(axis=1)
    is_none = before == outputs.shape[1]
    place = np.minimum(before, outputs.shape[1] - 1)
    value = outputs[np.arange(len(outputs)), place]
    logs = []
    for answers in (d1, d2):
        limits, sums = _sums_of_thresholds(answers, scales)
        found = np.empty(len(outputs))
        for count in range(outputs.shape[1]):
            own = (before == count) & ~is_none
            found[own] = np.log(np.interp(value[own], limits, sums[count]))
        found[~is_none] -= (np.abs(value - np.asarray(answers)[place]) / scales[1])[~is_none]
        found[is_none] = math.log(sums[-1, -1])
        logs.append(found)
    return logs[0] - logs[1]


def _separate_law(
    d1: tuple[float, ...], d2: tuple[float, ...], scales: tuple[float, float, float]
) -> RatioLaw:
    pmfs = [first_above_pmf(one, 1.0, *scales[:2]) for one in (d1, d2)]
    released = laws.laplace_law(abs(d1[0] - d2[0]) / scales[2]).masses
    some = [np.array([[pmf[k] for pmf in pmfs]]) * released for k in range(len(d1))]
    none = np.array([[pmf[len(d1)] for pmf in pmfs]])
    return RatioLaw.of(np.concatenate([*some, none]))


def _separate_ratio(
    d1: tuple[float, ...],
    d2: tuple[float, ...],
    scales: tuple[float, float, float],
    outputs: FloatArray,
) -> FloatArray:
    pmfs = [first_above_pmf(one, 1.0, *scales[:2]) for one in (d1, d2)]
    before = (outputs == 0).sum(axis=1)
    is_none = before == outputs.shape[1]
    value = outputs[np.arange(len(outputs)), np.minimum(before, outputs.shape[1] - 1)]
    released = (np.abs(value - d2[0]) - np.abs(value - d1[0])) / scales[2]
    of_place = ratios.table_ratio(pmfs[0], pmfs[1], before)
    return of_place + np.where(is_none, 0.0, released)


def _sum_law(single: RatioLaw, times: int, step: float) -> RatioLaw:
    """Return the law of independent equal bits, whose log-ratios are -step/2 and step/2."""
    chances = single.masses[1]
    number = np.arange(times + 1)
    counts = np.array([math.comb(times, int(one)) for one in number], dtype=float)
    masses = [counts * one**number * (1 - one) ** (times - number) for one in chances]
    return RatioLaw((2 * number - times) * step / 2, np.stack(masses, axis=1))


def _bloom_ratio(step: float, outputs: NDArray[np.int64]) -> FloatArray:
    ahead = outputs[:, list(FILTERS[1])].sum(axis=1)
    behind = outputs[:, list(FILTERS[0])].sum(axis=1)
    # A bit that is set instead of not set adds a whole step, from -step/2 to step/2.
    return np.asarray(step * (ahead - behind), dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    some = chosen(given.only, specimens())
    for text in shares(some, given.draws, given.seeds, math.inf, given.processes):
        print(text, flush=True)


if __name__ == "__main__":
    main()
