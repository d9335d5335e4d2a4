"""Open categories: what noise on the counts cannot hide, and with what probability a threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from mechanisms.histogram import low_threshold, noisy_histogram, thresholded
from mechanisms.truth import delta_of, truth_of

VOTES = ["Pizza"] * 3 + ["Couscous"] * 2
NEW = [*VOTES, "Escargots"]
MORE = [*VOTES, "Pizza"]


@pytest.mark.parametrize(
    ("specimen", "probability"),
    [(thresholded, 0.01), (low_threshold, 0.01 * math.e), (noisy_histogram, 1.0)],
)
def test_a_new_food_shows_with_the_stated_probability(specimen: Any, probability: float) -> None:
    outputs = specimen(NEW, size=200_000, rng=np.random.default_rng(1))
    shown = sum("Escargots" in output for output in outputs) / len(outputs)
    # Six standard errors: one false alarm in 10⁸.
    error = math.sqrt(probability * (1 - probability) / len(outputs))
    assert shown == pytest.approx(probability, abs=6 * error + 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.3])
def test_the_truth_of_a_new_food_is_delta_alone(epsilon: float, delta: float) -> None:
    """What differs is whether the food is there; the other foods are as they were."""
    for specimen in (thresholded, low_threshold):
        truth = truth_of(specimen)
        tau = truth.delta(NEW, VOTES, epsilon=epsilon, delta=delta)
        assert truth.epsilon(NEW, VOTES, epsilon=epsilon, delta=delta) == 0
        law = {"there": tau, "not there": 1 - tau}
        for at in (0.0, 0.3, epsilon):
            exact = delta_of(law, {"not there": 1.0}, at)
            for pair in ((NEW, VOTES), (VOTES, NEW)):
                stated = truth.profile(*pair, at, epsilon=epsilon, delta=delta)
                assert stated == pytest.approx(exact, abs=1e-15)
    assert truth_of(thresholded).delta(NEW, VOTES, epsilon=epsilon, delta=delta) == pytest.approx(
        delta, rel=1e-12
    )


def excess(votes: int, limit: float, at: float, epsilon: float) -> tuple[float, float]:
    """Integrate the excess of one count's density over the other's, both ways, above the limit."""

    def density(x: float, centre: int) -> float:
        return epsilon / 2 * math.exp(-epsilon * abs(x - centre))

    def part(one: int, other: int) -> float:
        def positive(x: float) -> float:
            return max(0.0, density(x, one) - math.exp(at) * density(x, other))

        start = max(limit, -60.0)
        points = [x for x in (votes, votes + 0.5, votes + 1) if start < x < 60]
        above, _ = integrate.quad(positive, start, 60, points=points or None, limit=500)
        masses = [integrate.quad(density, -60, start, (c,), limit=500)[0] for c in (one, other)]
        return float(above + max(0.0, masses[0] - math.exp(at) * masses[1]))

    return part(votes + 1, votes), part(votes, votes + 1)


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.2])
@pytest.mark.parametrize("at", [0.0, 0.4, 0.9])
def test_the_profile_of_one_vote_more_is_an_integral(delta: float, at: float) -> None:
    limit = 1 - math.log(2 * delta)
    exact = max(excess(3, limit, at, 1.0))
    assert truth_of(thresholded).profile(MORE, VOTES, at, delta=delta) == pytest.approx(
        exact, abs=1e-7
    )
    assert truth_of(thresholded).profile(MORE, VOTES, 1.0, delta=delta) == 0
    assert truth_of(thresholded).epsilon(MORE, VOTES, delta=delta) == 1


def test_without_a_threshold_everything_shows() -> None:
    truth = truth_of(noisy_histogram)
    assert truth.epsilon(NEW, VOTES) == math.inf
    assert truth.profile(NEW, VOTES, 30.0) == 1
    assert truth.epsilon(MORE, VOTES) == 1
    # The plain Laplace mechanism of a count.
    assert truth.profile(MORE, VOTES, 0.4) == pytest.approx(-math.expm1((0.4 - 1) / 2))
