"""Indistinguishability, its transitivity and total variation, on exact laws."""

from __future__ import annotations

import math

import pytest

from mechanisms.indistinguishable import PAIR, chain, given
from mechanisms.truth import delta_of, truth_of

X, X1, X2 = [0, 0], [0, 1], [1, 1]


def test_given_pair_is_exactly_indistinguishable_and_the_other_just_not() -> None:
    truth = truth_of(given)
    assert truth.profile("p", "q", math.log(2)) == pytest.approx(0.1)
    assert truth.profile("q", "p", math.log(2)) == pytest.approx(0.1)
    outside = {"p": (0.53, 0.27, 0.2), "q": (0.2, 0.27, 0.53)}
    assert truth.profile("p", "q", math.log(2), laws=outside) == pytest.approx(0.13)
    assert truth.epsilon("p", "q") == pytest.approx(math.log(2.5))


def test_exercise_1_zero_delta_is_total_variation() -> None:
    distance = sum(abs(one - other) for one, other in zip(PAIR["p"], PAIR["q"], strict=True)) / 2
    assert truth_of(given).profile("p", "q", 0.0) == pytest.approx(distance)
    assert distance == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rare"), [(math.log(2), 0.1, 0.1), (0.5, 0.01, 0.05), (0.0, 0.2, 0.1)]
)
def test_exercise_2_transitivity_is_attained(epsilon: float, delta: float, rare: float) -> None:
    truth = truth_of(chain)
    p, q, r = (truth.pmf(x, epsilon=epsilon, delta=delta, rare=rare) for x in (X, X1, X2))
    assert delta_of(p, q, epsilon) == pytest.approx(delta)
    assert delta_of(q, r, epsilon) == pytest.approx(delta)
    assert delta_of(p, r, 2 * epsilon) == pytest.approx(delta * (1 + math.exp(epsilon)))
