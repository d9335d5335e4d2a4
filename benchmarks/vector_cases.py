"""Mechanisms that return vectors, dicts, rows of a table and lists, for `benchmarks.vectors`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpaudit
from benchmarks.known_laws import gaussian_vector, prefix_sums
from mechanisms.histogram import thresholded
from mechanisms.local import rappor, rappor_whole_epsilon

Rng = np.random.Generator
FloatArray = NDArray[np.float64]

PURE = dpaudit.PureDP(1.0)

_ABORTED = -1


def noisy(dataset: list[float], scale: float, size: int, rng: Rng) -> FloatArray:
    """Answers with Laplace noise of their own."""
    return np.asarray(dataset) + rng.laplace(0.0, scale, (size, len(dataset)))


def geometric(dataset: list[int], epsilon: float, size: int, rng: Rng) -> NDArray[np.int64]:
    """Counts with two-sided geometric noise: integers."""
    shape, p = (size, len(dataset)), -np.expm1(-epsilon)
    return np.asarray(dataset) + rng.geometric(p, shape) - rng.geometric(p, shape)


def correlated(dataset: list[float], size: int, rng: Rng) -> FloatArray:
    """Answers with normal noise, most of which they share."""
    shared = 3 * rng.normal(size=(size, 1))
    return shared + rng.normal(dataset, 1.0, (size, len(dataset)))


def sparse_vector(
    dataset: list[float], cut_off: int, scale: float, size: int, rng: Rng
) -> NDArray[np.int64]:
    """Whether each noisy answer is above a noisy 0, until `cut_off` of them are (Lyu et al. 2017,
    Alg. 1); -1 for those after that."""
    above, aborted = _above(dataset, cut_off, scale, size, rng)[1:]
    return np.where(aborted, _ABORTED, above)


def sparse_numbers(
    dataset: list[float], cut_off: int, scale: float, size: int, rng: Rng
) -> FloatArray:
    """The same, but the noisy answer itself where it is above (Alg. 3, broken)."""
    answers, above, aborted = _above(dataset, cut_off, scale, size, rng)
    return np.where(above & ~aborted, answers, np.where(aborted, -2_000.0, -1_000.0))


def sparse_both(dataset: list[float], scale: float, size: int, rng: Rng) -> FloatArray:
    """Numbers of one run, then flags of another one."""
    numbers = sparse_numbers(dataset, 1, scale, size, rng)
    return np.hstack([numbers, sparse_vector(dataset, 1, scale, size, rng)])


def sparse_lists(dataset: list[float], cut_off: int, size: int, rng: Rng) -> list[list[bool]]:
    """Flags as Python's lists, which end where it aborts."""
    _, above, aborted = _above(dataset, cut_off, 4.0, size, rng)
    lengths = (~aborted).sum(axis=1).tolist()
    rows = above.tolist()
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]


def _above(
    dataset: list[float], cut_off: int, scale: float, size: int, rng: Rng
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
    answers = noisy(dataset, scale, size, rng)
    above = answers >= rng.laplace(0.0, 2.0, (size, 1))
    aborted = np.cumsum(above, axis=1) - above >= cut_off
    return answers, above, np.asarray(aborted)


def largest_with_values(dataset: list[float], most: int, size: int, rng: Rng) -> FloatArray:
    """The places of the largest noisy answers, and these answers (broken)."""
    answers = noisy(dataset, 4.0, size, rng)
    places = np.argsort(-answers, axis=1)[:, :most]
    return np.hstack([places, np.take_along_axis(answers, places, axis=1)])


def bloom(dataset: list[int], bits: int, size: int, rng: Rng) -> NDArray[np.int64]:
    """RAPPOR's two randomisations of a Bloom filter."""
    filled = np.isin(np.arange(bits), dataset)
    kept = rng.random((size, bits))
    lasting = np.where(kept < 0.375, True, np.where(kept < 0.75, False, filled))
    return (rng.random((size, bits)) < np.where(lasting, 0.55, 0.45)).astype(np.int64)


_ROW = np.dtype([("food", "U6"), ("city", "U6"), ("age", "f8"), ("visits", "i8"), ("paid", "?")])
_FOODS = np.array(["kale", "rice", "soup", "fish", "bread", "cake"])
_CITIES = np.array(["Zurich", "Bern", "Basel", "Genf"])


def record(dataset: int, size: int, rng: Rng) -> NDArray[Any]:
    """A row of a table with categories: one of them by randomised response."""
    rows = np.empty(size, dtype=_ROW)
    is_truth = rng.random(size) < 1 / (1 + np.exp(-1.0))
    rows["food"] = _FOODS[np.where(is_truth, dataset, 1 - dataset)]
    rows["city"] = _CITIES[rng.integers(4, size=size)]
    rows["age"] = 40 + rng.laplace(0.0, 1.0, size)
    rows["visits"] = rng.poisson(3.0, size)
    rows["paid"] = rng.random(size) < 0.3
    return rows


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism on a pair of inputs, and how many columns it returns."""

    name: str
    columns: int
    mechanism: Callable[..., Any]
    d1: Any
    d2: Any
    claim: dpaudit.PrivacyClaim = PURE


def cases() -> Iterator[Case]:
    """Yield all of them; neighbours of one another are of different kinds."""
    pair = _answers
    yield Case("Laplace vector", 5, partial(noisy, scale=1.0), *pair(5, one=1.0))
    both = partial(sparse_both, scale=4.0)
    yield Case("sparse vector, numbers and flags", 34, both, *pair(17, each=1.0))
    yield Case("table with categories", 5, record, 0, 1)
    yield Case("prefix sums", 10, partial(prefix_sums, epsilon=1.0), *pair(10, one=1.0))
    yield Case("RAPPOR", 8, partial(rappor, domain_size=8), 0, 1)
    normal = dpaudit.GaussianDP(1.0)
    wide = partial(gaussian_vector, deviation=1.0)
    yield Case("normal noise", 10, wide, *pair(10, each=10**-0.5), normal)
    flags = partial(sparse_vector, cut_off=1, scale=4.0)
    yield Case("sparse vector", 10, flags, *pair(10, each=1.0))
    yield Case("histogram of integers", 16, partial(geometric, epsilon=1.0), [3] * 16, _moved(16))
    top = partial(largest_with_values, most=5)
    yield Case("largest five with values", 10, top, *pair(12, each=1.0))
    yield Case("Laplace vector, all differ", 20, partial(noisy, scale=1.0), *pair(20, each=0.05))
    numbers = partial(sparse_numbers, cut_off=1, scale=4.0)
    yield Case("sparse vector, numbers", 10, numbers, *pair(10, each=1.0))
    yield Case("Bloom filter", 20, partial(bloom, bits=20), [1, 2, 3, 4], [5, 6, 7, 8])
    yield Case("correlated normal noise", 10, correlated, *pair(10, one=1.0), normal)
    yield Case("histogram, half the noise", 5, partial(noisy, scale=0.5), *pair(5, one=1.0))
    yield Case("RAPPOR, broken", 32, partial(rappor_whole_epsilon, domain_size=32), 0, 1)
    several = partial(sparse_vector, cut_off=4, scale=4.0)
    yield Case("sparse vector, broken", 34, several, *pair(34, each=1.0))
    yield Case(
        "prefix sums, all differ", 20, partial(prefix_sums, epsilon=1.0), *pair(20, each=0.05)
    )
    yield Case("normal noise, wide", 34, wide, *pair(34, one=1.0), normal)
    votes = ["rice"] * 8 + ["soup"] * 4 + ["fish"] * 6 + ["cake"] * 5 + ["kale"] * 5
    yield Case("thresholded histogram", 5, thresholded, [*votes, "kale"], votes)
    lists = partial(sparse_lists, cut_off=1)
    yield Case("sparse vector, lists", 10, lists, *pair(10, each=1.0))


def _answers(count: int, one: float = 0.0, each: float = 0.0) -> tuple[list[float], list[float]]:
    """Return answers to queries on neighbours: one of them moves, or each."""
    return [0.0] * count, [one] + [each] * (count - 1) if one else [each] * count


def _moved(count: int) -> list[int]:
    return [4, *([3] * (count - 1))]
