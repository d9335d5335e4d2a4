"""Exact parameters against all events, one by one, and against ties as floats make them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest

from dpaudit.stats import exact
from mechanisms.truth import delta_of, epsilon_of, pdp_delta_of

Law = dict[Any, float]

P: Law = {0: 0.75, 1: 0.25}
EPSILONS = [0.1, 0.5, 1.0, math.log(3), 2.0, 5.0]
DELTAS = [1e-12, 1e-9, 1e-5, 0.1]


def random_laws(seed: int) -> tuple[Law, Law]:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(5, 0.7), size=2) * (rng.random((2, 5)) < 0.8)
    laws = weights / weights.sum(axis=1, keepdims=True)
    p, q = ({place: float(one) for place, one in enumerate(law) if one} for law in laws)
    return p, q


def events(p: Law, q: Law) -> Iterator[tuple[float, float]]:
    """Yield the probabilities of every event, in both directions."""
    keys = sorted({*p, *q})
    for event in chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1)):
        first, other = (math.fsum(law.get(key, 0.0) for key in event) for law in (p, q))
        yield from ((first, other), (other, first))


def test_delta_is_the_largest_excess_of_any_event() -> None:
    for seed in range(30):
        p, q = random_laws(seed)
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            excess = max(one - math.exp(epsilon) * other for one, other in events(p, q))
            assert exact.delta(p, q, epsilon) == pytest.approx(excess, abs=1e-12)


def test_the_oracle_of_the_specimens_agrees() -> None:
    for seed in range(30):
        p, q = random_laws(seed)
        assert exact.epsilon(p, q).epsilon == pytest.approx(epsilon_of(p, q))
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            assert exact.delta(p, q, epsilon) == pytest.approx(delta_of(p, q, epsilon), abs=1e-12)
            assert exact.violating(p, q, epsilon).mass == pytest.approx(pdp_delta_of(p, q, epsilon))


def test_epsilon_is_the_largest_log_ratio_of_any_event() -> None:
    for delta, seed in product([0.0, 0.01, 0.2], range(30)):
        p, q = random_laws(seed)
        ratios = [
            (math.log((one - delta) / other) if other else math.inf)
            for one, other in events(p, q)
            if one > delta + 1e-12
        ]
        actual = exact.epsilon(p, q, delta)
        assert actual.epsilon == pytest.approx(max(0.0, *ratios))
        if 0 < actual.epsilon < math.inf:
            attained = math.log((actual.event.mass - delta) / actual.event.other_mass)
            assert attained == pytest.approx(actual.epsilon)
            assert exact.delta(p, q, actual.epsilon) == pytest.approx(delta, abs=1e-8)


def test_the_probabilistic_delta_is_the_mass_of_violating_outcomes() -> None:
    for seed in range(30):
        p, q = random_laws(seed)
        for epsilon in (0.0, 0.5, 2.0):
            mass = max(
                sum(
                    one for key, one in law.items() if one > math.exp(epsilon) * other.get(key, 0.0)
                )
                for law, other in ((p, q), (q, p))
            )
            assert exact.violating(p, q, epsilon).mass == pytest.approx(mass)


def test_equal_laws() -> None:
    assert exact.epsilon(P, dict(P)).epsilon == 0
    assert exact.delta(P, P, 0.0) == 0
    assert exact.violating(P, P, 0.0).outcomes == ()


def test_disjoint_laws() -> None:
    p, q = {0: 1.0}, {1: 1.0}
    assert exact.epsilon(p, q).epsilon == math.inf
    assert exact.epsilon(p, q, 0.999).epsilon == math.inf
    assert exact.epsilon(p, q, 1.0).epsilon == 0
    assert exact.delta(p, q, 800.0) == 1
    assert exact.exceeds_point(p, q, 800.0, 0.5)


def test_an_outcome_of_the_smallest_probability_counts() -> None:
    p, q = {0: 1.0, 1: 1e-300}, {0: 1.0}
    assert exact.epsilon(p, q).epsilon == math.inf
    assert exact.exceeds_point(p, q, 50.0, 0.0)
    assert not exact.exceeds_point(p, q, 0.0, 1e-300)


def attained(epsilon: float, delta: float, *, merged: bool) -> tuple[Law, Law]:
    """Return the tight pair: reveal with probability δ, else randomized response.

    merged: with a revealing output that cannot be told from the likelier answer.
    """
    likely = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    unlikely = (1 - delta) / (1 + math.exp(epsilon))
    if merged:
        return {0: likely + delta, 1: unlikely}, {0: unlikely, 1: likely, 2: delta}
    return {0: likely, 1: unlikely, 2: delta}, {0: unlikely, 1: likely, 3: delta}


def test_a_claim_that_is_attained_is_not_exceeded() -> None:
    for epsilon, delta, merged in product(EPSILONS, DELTAS, [False, True]):
        p, q = attained(epsilon, delta, merged=merged)
        assert not exact.exceeds_point(p, q, epsilon, delta)
        assert exact.exceeds_point(p, q, epsilon - 1e-6, delta)
        if delta > 1e-8:
            assert exact.exceeds_point(p, q, epsilon, delta - 1e-8)
        # Below the tolerance, a δ that is merged with another outcome is lost.
        if delta > 1e-8 or not merged:
            assert exact.epsilon(p, q, delta).epsilon == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_ratio_of_e_to_the_epsilon_is_no_violating_outcome(epsilon: float) -> None:
    p, q = attained(epsilon, 0.1, merged=False)
    mass = exact.violating(p, q, epsilon).mass
    assert mass == 0.1
    assert not exact.exceeds(mass, 0.1)
    assert exact.violating(p, q, epsilon - 1e-6).mass > 0.5


def test_outcomes_with_equal_ratios_are_in_the_event_together() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(200)) / 2
    p = {place: float(one) for place, one in enumerate(np.concatenate([weights, weights / 3]))}
    p[400] = 1 - math.fsum(p.values())
    q = {place: float(one) for place, one in enumerate(np.concatenate([weights / 3, weights]))}
    q[400] = 1 - math.fsum(q.values())
    actual = exact.epsilon(p, q)
    assert actual.epsilon == pytest.approx(math.log(3))
    assert len(actual.event.outcomes) == 200
    assert not exact.exceeds_point(p, q, math.log(3), 0.0)
