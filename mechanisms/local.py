"""Local differential privacy: k-ary randomized response and basic RAPPOR.

Adjacency: the dataset is one record, and any other value is its neighbour.
Sources: Kairouz, Oh & Viswanath 2014; Erlingsson, Pihur & Korolova 2014.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import Statement, satisfies

DRINKS = ("coffee", "tea", "water")


def _lie(options: int, epsilon: float) -> float:
    """The probability of drawing the answer at random."""
    return options / (options - 1 + math.exp(epsilon))


def _kary_pmf(dataset: Any, possible_outputs: Sequence[Any], epsilon: float) -> dict[Any, float]:
    each = _lie(len(possible_outputs), epsilon) / len(possible_outputs)
    law = dict.fromkeys(possible_outputs, each)
    return {**law, dataset: math.exp(epsilon) * each}


def _kary_epsilon(d1: Any, d2: Any, possible_outputs: Sequence[Any], epsilon: float) -> float:
    return epsilon if d1 != d2 else 0.0


@satisfies("pure", epsilon=_kary_epsilon, pmf=_kary_pmf)
def kary_randomized_response(
    dataset: Any,
    possible_outputs: Sequence[Any] = DRINKS,
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Correct: with probability k/(k - 1 + e^ε) any of k values, else the true one; exactly ε-DP.

    dataset: one of `possible_outputs`, which are all of one type.
    """
    options = np.asarray(possible_outputs)
    is_lie = rng.random(size) <= _lie(len(options), epsilon)
    return np.where(is_lie, options[rng.integers(0, len(options), size)], dataset)


def _printed_pmf(dataset: Any, possible_outputs: Iterable[Any], epsilon: float) -> dict[Any, float]:
    lie = _lie(len(set(possible_outputs)), epsilon)
    return {dataset: 1 - lie, "TypeError": lie}


def _printed_epsilon(d1: Any, d2: Any, possible_outputs: Iterable[Any], epsilon: float) -> float:
    return math.inf if d1 != d2 else 0.0


@satisfies("pure", epsilon=_printed_epsilon, pmf=_printed_pmf)
def kary_randomized_response_printed(
    dataset: Any, possible_outputs: Iterable[Any] = DRINKS, epsilon: float = 1.0
) -> Any:
    """Broken: k-ary randomized response with a misprint: it never lies; ε = ∞.

    `random.choice` takes no set, so that instead of a lie it raises TypeError, with probability
    k/(k - 1 + e^ε); any answer that does come is the true one.
    """
    return _kary_rr(dataset, set(possible_outputs), epsilon)


# As printed in "Introduction to differential privacy proofs", but for the docstring.
def _kary_rr(value: Any, possible_outputs: set[Any], epsilon: float) -> Any:
    k = len(possible_outputs)
    p = k / (k - 1 + math.exp(epsilon))
    assert value in possible_outputs
    if random.random() <= p:
        return random.choice(possible_outputs)  # type: ignore[arg-type]  # the printed slip
    return value


# Of ε: the probability of flipping a bit.
Flip = Callable[[float], float]


def _of_half(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon / 2))


def _of_whole(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon))


def _rappor_pmf(flip: Flip) -> Statement:
    """The law over all 2^domain_size vectors of bits."""

    def stated(dataset: int, domain_size: int, epsilon: float) -> dict[tuple[int, ...], float]:
        q, truth = flip(epsilon), _one_hot(dataset, domain_size).tolist()
        flips = ((bits, _hamming(bits, truth)) for bits in product((0, 1), repeat=domain_size))
        return {bits: q**count * (1 - q) ** (domain_size - count) for bits, count in flips}

    return stated


def _hamming(bits: Sequence[int], others: Sequence[int]) -> int:
    return sum(one != other for one, other in zip(bits, others, strict=True))


def _rappor_epsilon(flip: Flip) -> Statement:
    """Two values differ in two bits, and each of them may tell as much as ln((1 - q)/q)."""

    def stated(d1: int, d2: int, domain_size: int, epsilon: float) -> float:
        q = flip(epsilon)
        return 2 * math.log((1 - q) / q) if d1 != d2 else 0.0

    return stated


@satisfies("pure", epsilon=_rappor_epsilon(_of_half), pmf=_rappor_pmf(_of_half))
def rappor(
    dataset: int,
    domain_size: int = 4,
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Correct: a one-hot vector, each bit flipped with probability 1/(1 + e^{ε/2}); exactly ε-DP.

    dataset: in 0 … domain_size - 1. Returns an array of shape (size, domain_size).
    """
    return _flipped(_one_hot(dataset, domain_size), _of_half(epsilon), size, rng)


@satisfies("pure", epsilon=_rappor_epsilon(_of_whole), pmf=_rappor_pmf(_of_whole))
def rappor_whole_epsilon(
    dataset: int,
    domain_size: int = 4,
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Broken: flips bits with probability 1/(1 + e^ε), as if a value were one bit; 2ε-DP."""
    return _flipped(_one_hot(dataset, domain_size), _of_whole(epsilon), size, rng)


def _one_hot(value: int, domain_size: int) -> NDArray[np.int64]:
    bits = np.zeros(domain_size, dtype=np.int64)
    bits[value] = 1
    return bits


def _flipped(
    bits: NDArray[np.int64], flip: float, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    return bits ^ (rng.random((size, len(bits))) < flip)
