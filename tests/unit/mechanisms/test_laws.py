"""What the specimens of seeds 002 to 004 state, against enumeration and their own draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mechanisms import exponential, indistinguishable, local, noisy_max
from mechanisms.truth import truth_of

Specimen = Callable[..., Any]
Pair = tuple[Any, Any]

COUNTS = ([0, 0, 1, 1, 2], [0, 0, 0, 1, 2])
BIDS = ([0.3, 0.6, 1.0], [0.3, 0.6, 0.0])
DISCRETE: list[tuple[Specimen, Pair, dict[str, Any]]] = [
    (noisy_max.noisy_max, COUNTS, {}),
    (noisy_max.noisy_max, ([3] * 9, [3] * 8 + [0]), {"epsilon": 0.7, "diseases": 5}),
    (noisy_max.noisy_max_half, COUNTS, {"epsilon": 0.5}),
    (noisy_max.noisy_max_half, (COUNTS[0], [*COUNTS[0], 1]), {}),
    (exponential.common_disease, COUNTS, {}),
    (exponential.common_disease, COUNTS, {"epsilon": 0.3, "diseases": 6}),
    (exponential.common_disease_printed, COUNTS, {}),
    (exponential.common_disease_without_two, COUNTS, {}),
    (exponential.auction, BIDS, {}),
    (exponential.auction_without_two, BIDS, {"epsilon": 2.0}),
    (exponential.auction_sensitivity_one, ([10.0, 1.0], [0.0, 1.0]), {}),
    (indistinguishable.given, ("p", "q"), {}),
    (local.kary_randomized_response, ("coffee", "tea"), {}),
    (local.kary_randomized_response, (1, 3), {"possible_outputs": [1, 2, 3, 4], "epsilon": 0.2}),
    (local.rappor, (0, 1), {"domain_size": 3}),
    (local.rappor_whole_epsilon, (2, 0), {"domain_size": 3, "epsilon": 0.5}),
    (indistinguishable.chain, ([0, 0], [0, 1]), {}),
    (indistinguishable.chain, ([0, 0], [1, 1]), {}),
]


def events(atoms: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    every = list(atoms)
    return (event for size in range(len(every) + 1) for event in combinations(every, size))


def excess(p: dict[Any, float], q: dict[Any, float], epsilon: float) -> float:
    """The largest P(E) - e^ε Q(E) of all events, both ways round, one event after the other."""
    factor = math.exp(epsilon)
    masses = [(sum(p[one] for one in event), sum(q[one] for one in event)) for event in events(p)]
    return max(max(one - factor * other, other - factor * one) for one, other in masses)


@pytest.mark.parametrize(("specimen", "pair", "params"), DISCRETE)
def test_no_event_exceeds_what_is_stated_and_less_is_exceeded(
    specimen: Specimen, pair: Pair, params: dict[str, Any]
) -> None:
    truth = truth_of(specimen)
    p, q = (truth.pmf(dataset, **params) for dataset in pair)
    epsilon, delta = truth.epsilon(*pair, **params), truth.delta(*pair, **params)
    assert math.fsum(p.values()) == pytest.approx(1, abs=1e-12)
    assert set(p) == set(q)
    assert excess(p, q, epsilon) == pytest.approx(delta, abs=1e-12)
    assert excess(p, q, epsilon * (1 - 1e-6)) > delta + 1e-9
    assert truth.profile(*pair, epsilon / 2, **params) == pytest.approx(excess(p, q, epsilon / 2))
    assert truth.epsilon(pair[0], pair[0], **params) == 0


@pytest.mark.parametrize(("specimen", "pair", "params"), DISCRETE)
def test_draws_follow_the_stated_law(
    specimen: Specimen, pair: Pair, params: dict[str, Any]
) -> None:
    size = 100_000
    for dataset in pair:
        drawn = specimen(dataset, size=size, rng=np.random.default_rng(3), **params).tolist()
        counts = Counter(tuple(one) if isinstance(one, list) else one for one in drawn)
        law = truth_of(specimen).pmf(dataset, **params)
        assert set(counts) <= set(law)
        for atom, probability in law.items():
            # Six standard errors: one false alarm in 10⁸.
            error = math.sqrt(probability * (1 - probability) / size)
            assert abs(counts[atom] / size - probability) <= 6 * error
