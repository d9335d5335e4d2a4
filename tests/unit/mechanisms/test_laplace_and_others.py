from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from mechanisms import laplace, pdp, randomized_response
from mechanisms.truth import Truth, delta_of, epsilon_of, image, pdp_delta_of, truth_of

# Specimens with discrete outputs, and parameters to try them with.
DISCRETE: list[tuple[Callable[..., Any], dict[str, float]]] = [
    (randomized_response.randomized_response, {}),
    (randomized_response.randomized_response, {"p": 0.1}),
    (randomized_response.randomized_response, {"p": 0.9}),
    (pdp.counterexample, {}),
    (pdp.counterexample, {"epsilon": 0.3, "delta": 0.01}),
]
CONTINUOUS: list[tuple[Callable[..., Any], dict[str, float]]] = [
    (laplace.laplace, {}),
    (laplace.laplace, {"epsilon": 0.3}),
    (laplace.laplace_scalar, {"epsilon": 2.0}),
    (laplace.wrong_density, {}),
    (laplace.wrong_density, {"epsilon": 2.0}),
]


def laws(truth: Truth, params: dict[str, float]) -> tuple[dict[Any, float], dict[Any, float]]:
    return truth.pmf(0, **params), truth.pmf(1, **params)


@pytest.mark.parametrize(("specimen", "params"), DISCRETE)
def test_stated_truth_follows_from_the_law(specimen: Any, params: dict[str, float]) -> None:
    truth = truth_of(specimen)
    p, q = laws(truth, params)
    epsilon, delta = truth.epsilon(0, 1, **params), truth.delta(0, 1, **params)
    if truth.definition == "pure":
        assert epsilon_of(p, q) == pytest.approx(epsilon, rel=1e-14)
        assert delta == 0
    else:
        assert pdp_delta_of(p, q, epsilon) == pytest.approx(delta, rel=1e-14)
        assert pdp_delta_of(p, q, epsilon * (1 - 1e-9)) > 2 * delta
    assert truth.profile(0, 1, epsilon, **params) == pytest.approx(delta, abs=1e-15)
    assert truth.epsilon(1, 1, **params) == 0


@pytest.mark.parametrize(("specimen", "params"), DISCRETE)
@pytest.mark.parametrize("dataset", [0, 1])
def test_draws_follow_the_stated_law(specimen: Any, params: dict[str, float], dataset: int) -> None:
    size = 200_000
    drawn = specimen(dataset, size=size, rng=np.random.default_rng(1), **params)
    counts = Counter(drawn.tolist())
    law = truth_of(specimen).pmf(dataset, **params)
    assert set(counts) <= {atom for atom, probability in law.items() if probability}
    for atom, probability in law.items():
        # Six standard errors: one false alarm in 10⁸.
        error = math.sqrt(probability * (1 - probability) / size)
        assert abs(counts[atom] / size - probability) <= 6 * error


@pytest.mark.parametrize(("specimen", "params"), CONTINUOUS)
def test_stated_density_epsilon_and_profile(specimen: Any, params: dict[str, float]) -> None:
    truth = truth_of(specimen)
    epsilon = truth.epsilon(0, 1, **params)
    ratios = [
        abs(math.log(truth.density(y, 0, **params) / truth.density(y, 1, **params)))
        for y in (-3, -1, 0, 0.5, 1, 2)
    ]
    assert max(ratios) == pytest.approx(epsilon, rel=1e-12)

    def excess(y: float, at: float) -> float:
        p, q = truth.density(y, 0, **params), truth.density(y, 1, **params)
        return max(0.0, p - math.exp(at) * q)

    for at in (0.0, epsilon / 2, epsilon, 2 * epsilon):
        area, _ = integrate.quad(excess, -60, 60, args=(at,), points=(0, 0.5, 1), limit=500)
        assert truth.profile(0, 1, at, **params) == pytest.approx(area, abs=1e-6)


@pytest.mark.parametrize(("specimen", "params"), CONTINUOUS)
def test_continuous_draws_follow_the_stated_density(
    specimen: Any, params: dict[str, float]
) -> None:
    rng = np.random.default_rng(2)
    if specimen is laplace.laplace_scalar:
        drawn = np.array([specimen(1.0, rng=rng, **params) for _ in range(20_000)])
    else:
        drawn = specimen(1.0, size=200_000, rng=rng, **params)
    for edge in (0.5, 1.0, 1.3):
        below, _ = integrate.quad(
            lambda y: truth_of(specimen).density(y, 1.0, **params), -60, edge, points=(1.0,)
        )
        error = math.sqrt(below * (1 - below) / len(drawn))
        assert abs(np.mean(drawn <= edge) - below) <= 6 * error


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.5, 0.01), (2.0, 0.2)])
def test_post_processing_breaks_probabilistic_dp_alone(epsilon: float, delta: float) -> None:
    """Proposition 4 of Meiser 2018 and docs/method.md §7."""
    truth = truth_of(pdp.counterexample)
    p, q = laws(truth, {"epsilon": epsilon, "delta": delta})
    after_p, after_q = image(p, pdp.merge), image(q, pdp.merge)
    assert pdp_delta_of(p, q, epsilon) == pytest.approx(delta)
    assert pdp_delta_of(after_p, after_q, epsilon) == pytest.approx(after_p[4])
    assert after_p[4] > 3 * delta
    ratio = math.exp(epsilon) + delta * (1 + math.exp(epsilon)) / (1 - delta)
    assert after_p[4] / after_q[4] == pytest.approx(ratio)
    # Still approximate DP, exactly tight.
    assert delta_of(after_p, after_q, epsilon) == pytest.approx(delta)


def test_exact_functions_on_a_pair_done_by_hand() -> None:
    p, q = {"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.5, "c": 0.25}
    assert epsilon_of(p, p) == 0
    assert epsilon_of(p, q) == math.inf
    assert delta_of(p, q, 0.0) == 0.25
    assert pdp_delta_of(p, q, 0.0) == 0.5
    assert pdp_delta_of(p, q, math.log(2)) == 0.25
    assert epsilon_of({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}) == pytest.approx(math.log(2))
    assert epsilon_of({"a": 1.0, "z": 0.0}, {"a": 1.0}) == 0


def test_truth_is_asked_for_only_where_it_is_stated() -> None:
    with pytest.raises(TypeError, match="states no truth"):
        truth_of(print)
    with pytest.raises(TypeError, match="no probability mass"):
        truth_of(laplace.laplace).pmf(0)
    with pytest.raises(TypeError, match="no density"):
        truth_of(pdp.counterexample).density(0, 0)
