"""Indistinguishable distributions: any two given ones, and a chain of three.

P and Q are (ε, δ)-indistinguishable when P(E) ≤ e^ε Q(E) + δ and Q(E) ≤ e^ε P(E) + δ for every E.
A mechanism that draws from the law which its input names makes an audit of any such statement.
Adjacency: replace, Hamming distance 1 between inputs of equal length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

Laws = Mapping[str, Sequence[float]]

# Exactly (ln 2, 0.1)-indistinguishable: ½ = 2 · 0.2 + 0.1. Total variation 0.3.
PAIR: Laws = MappingProxyType({"p": (0.5, 0.3, 0.2), "q": (0.2, 0.3, 0.5)})


def _given_pmf(dataset: str, laws: Laws) -> dict[int, float]:
    return dict(enumerate(laws[dataset]))


@satisfies("pure", pmf=_given_pmf)
def given(
    dataset: str, laws: Laws = PAIR, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Correct: draws 0, 1, … from the distribution that the dataset names, which sets ε.

    laws: name -> probabilities of 0, 1, …, which sum to 1. Of the laws by default `p` and `q` are
    exactly (ln 2, 0.1)-indistinguishable, and their total variation is 0.3.
    """
    return rng.choice(len(laws[dataset]), size=size, p=laws[dataset])


def _rate(ones: int, epsilon: float, delta: float, rare: float) -> float:
    """`rare`, moved `ones` times as far as (ε, δ) allows: r -> e^ε r + δ."""
    return math.exp(ones * epsilon) * rare + _step_delta(ones, epsilon, delta)


def _step_delta(steps: int, epsilon: float, delta: float) -> float:
    return delta * math.fsum(math.exp(step * epsilon) for step in range(steps))


def _chain_pmf(
    dataset: Sequence[int], epsilon: float, delta: float, rare: float
) -> dict[int, float]:
    rate = _rate(sum(dataset), epsilon, delta, rare)
    return {0: 1 - rate, 1: rate}


def _chain_epsilon(
    d1: Sequence[int], d2: Sequence[int], epsilon: float, delta: float, rare: float
) -> float:
    return abs(sum(d1) - sum(d2)) * epsilon


def _chain_delta(
    d1: Sequence[int], d2: Sequence[int], epsilon: float, delta: float, rare: float
) -> float:
    return _step_delta(abs(sum(d1) - sum(d2)), epsilon, delta)


@satisfies("approximate", epsilon=_chain_epsilon, delta=_chain_delta, pmf=_chain_pmf)
def chain(
    dataset: Sequence[int],
    epsilon: float = math.log(2),
    delta: float = 0.1,
    rare: float = 0.1,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Correct: outputs 1 with a probability that grows with the ones; (ε, δ)-DP, tight.

    dataset: bits. Every further one moves the probability from r to e^ε r + δ, so that datasets at
    distance 1 are exactly (ε, δ)- and those at distance 2 exactly (2ε, δ(1 + e^ε))-
    indistinguishable: transitivity cannot promise less. At the defaults, 0.1, 0.3 and 0.7.
    rare: the probability for no ones, so small that zeros stay within (ε, δ), too.
    """
    rate = _rate(sum(dataset), epsilon, delta, rare)
    return (rng.random(size) < rate).astype(np.int64)
