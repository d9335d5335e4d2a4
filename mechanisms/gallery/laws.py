"""The exact laws of what `configs/gallery` finds, as they follow from the libraries' sources.

docs/gallery.md derives them, and says where they are compared with draws of the libraries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

Records = Sequence[tuple[float, float]]

# Beyond 40 times the scale, or 40 questions in a row, probabilities are below 10⁻¹⁷.
_FAR = 40


def _quotient(a: int, b: int, k: int) -> float:
    """Return a/b divided by k as dashu did: b loses what a and k share, and a remainder."""
    shared = math.gcd(a, k)
    return (a // shared) / (b // shared * k)


def _probability(a: int, b: int) -> float:
    """Return how often `_happens`: e^(-a/b), were the quotients right."""
    reached, total = 1.0, 0.0
    for k in range(1, _FAR if a else 2):  # what is impossible is asked once
        ends = reached * (1 - _quotient(a, b, k))
        total += ends if k % 2 else 0.0
        reached -= ends
    return total


def _happens(a: int, b: int, rng: np.random.Generator) -> bool:
    """Count the questions until one of probability (a/b)/k is answered no: is the count odd?"""
    k = 1
    while rng.random() < _quotient(a, b, k):
        k += 1
    return k % 2 == 1


def _reduced(a: int, b: int) -> tuple[int, int]:
    return a // math.gcd(a, b), b // math.gcd(a, b)


def _biased_law(dataset: int, scale: int, limit: int) -> dict[int, float]:
    accepted = [_probability(*_reduced(rest, scale)) for rest in range(scale)]
    law = dict.fromkeys(range(-limit, limit + 1), 0.0)
    farthest = abs(dataset) + limit + _FAR * scale
    for noise in range(-farthest, farthest + 1):
        whole, rest = divmod(abs(noise), scale)
        law[_clamped(dataset + noise, limit)] += accepted[rest] * math.exp(-whole)
    total = math.fsum(law.values())
    return {output: weight / total for output, weight in law.items()}


def _clamped(output: int, limit: int) -> int:
    return max(-limit, min(limit, output))


@satisfies("pure", pmf=_biased_law)
def opendp_0_14_1(
    dataset: int, scale: int = 3, limit: int = 30, *, rng: np.random.Generator
) -> int:
    """Broken: `make_laplace` of OpenDP 0.14.1 on an integer; it claims 1/scale-DP.

    Clamped to ±limit, so that outputs are few. Adjacency: integers at distance 1.
    """
    while True:
        rest = int(rng.integers(scale))
        while not _happens(*_reduced(rest, scale), rng):
            rest = int(rng.integers(scale))
        whole = 0
        while _happens(1, 1, rng):
            whole += 1
        noise, is_positive = whole * scale + rest, rng.random() < 0.5
        if noise or is_positive:  # there is only one zero
            return _clamped(dataset + (noise if is_positive else -noise), limit)


def _set_bits(dataset: int, epsilon: float, d: int) -> list[float]:
    """Return how often each bit is set; `dataset` counts from 1, as the library does."""
    noise = 1 / (1 + math.exp(epsilon / 2))
    own = (1 - noise) + noise * noise
    return [own if value == dataset else noise for value in range(1, d + 1)]


def _kept_bit_law(dataset: int, epsilon: float, d: int) -> dict[tuple[int, ...], float]:
    set_bits = _set_bits(dataset, epsilon, d)
    return {
        bits: math.prod(p if bit else 1 - p for bit, p in zip(bits, set_bits, strict=True))
        for bits in itertools.product((0, 1), repeat=d)
    }


@satisfies("pure", pmf=_kept_bit_law)
def pure_ldp_1_1_2(
    dataset: int, epsilon: float = 0.5, d: int = 4, *, size: int, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Broken: symmetric unary encoding of pure-LDP 1.1.2; it claims ε-DP.

    The bit of the value is set with probability p, else it stays as noise had set it: it should
    have been cleared. Adjacency: any two of the values 1 to d.
    """
    bits = rng.random((size, d)) < _set_bits(dataset, epsilon, d)
    return [tuple(one) for one in bits.astype(int).tolist()]


def _sums(dataset: Records) -> tuple[float, float]:
    return math.fsum(x * y for x, y in dataset), math.fsum(x * x for x, _ in dataset)


def _slope_epsilon(d1: Records, d2: Records, epsilon: float, bound: float) -> float:
    (products1, squares1), (products2, squares2) = _sums(d1), _sums(d2)
    return abs(products1 - products2) * epsilon / (3 * bound) if squares1 == squares2 else math.inf


def _slope_density(output: float, dataset: Records, epsilon: float, bound: float) -> float:
    products, squares = _sums(dataset)
    scale = 3 * bound / epsilon / squares
    return math.exp(-abs(output - products / squares) / scale) / (2 * scale)


@satisfies("none", epsilon=_slope_epsilon, density=_slope_density)
def diffprivlib_slope(
    dataset: Records,
    epsilon: float = 1.0,
    bound: float = 10.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Broken: diffprivlib 0.6.6's regression through 0 for x from 0 to `bound`, y from 0 to 1.

    A third of ε pays for noise on Σxy, but Σx² is used as it is, since its noise is made for the
    lower bound of x. Adjacency: one record replaced.
    """
    products, squares = _sums(dataset)
    return (products + rng.laplace(scale=3 * bound / epsilon, size=size)) / squares
