"""Where Lalanne 2020 (seed 000) and Qiu & Liu 2023 (seed 001) slip, shown by arithmetic.

The others are shown beside the specimens: Φ for Φ⁻¹ in test_specimens_poll.py, and by the audits
in configs/seeds.
"""

from __future__ import annotations

import math

import pytest

from dpaudit.claims import ApproximateDP, group, posterior_bounds
from mechanisms.laplace import wrong_density
from mechanisms.poll import repeated_poll
from mechanisms.randomized_response import randomized_response
from mechanisms.survey import survey
from mechanisms.truth import delta_of, epsilon_of, truth_of


def test_equation_29_drops_a_delta() -> None:
    """It prints δ + e^ε + … + e^{(k-1)ε}, and goes on with δ(1 + e^ε + … + e^{(k-1)ε})."""
    epsilon, delta, size = 0.5, 0.01, 3
    printed = delta + math.exp(epsilon) + math.exp(2 * epsilon)
    implied = group(ApproximateDP(epsilon, delta), size).point().delta
    assert implied == pytest.approx(delta * (1 + math.exp(epsilon) + math.exp(2 * epsilon)))
    assert printed > 4 > 0.06 > implied


def test_product_sets_do_not_decide_once_there_is_a_delta() -> None:
    """Proposition 3 is proved for product sets. For δ = 0 these decide, since points are such sets;
    (0, ½)-DP holds here for all of them, and fails for the diagonal, which is none."""
    p, q = {(0, 0): 0.5, (1, 1): 0.5}, {(0, 1): 0.5, (1, 0): 0.5}
    sides: list[set[int]] = [set(), {0}, {1}, {0, 1}]
    gaps = [
        sum(p.get((a, b), 0) - q.get((a, b), 0) for a in left for b in right)
        for left in sides
        for right in sides
    ]
    assert max(gaps) == 0.5
    assert delta_of(p, q, 0.0) == 1


def test_equation_33_promises_too_much() -> None:
    """Its fifth line bounds an integral over the signed measure μ by μ(S₁) = 1 - e^ε₁ ≤ 0; what
    bounds it is the largest μ(C). For two answers of the poll and S = {(1, 1)}:"""
    law = truth_of(repeated_poll).pmf
    left = law(1, runs=2)[1, 1]
    factor = math.exp(truth_of(repeated_poll).epsilon(0, 1, runs=2))
    measure = 1 - math.exp(truth_of(randomized_response).epsilon(0, 1))
    assert left == pytest.approx(factor * law(0, runs=2)[1, 1])
    assert left > factor * law(0, runs=2)[1, 1] + measure + 1


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_two_p_is_less_than_the_poll_costs(p: float) -> None:
    """Called almost 2p-DP for small p; the error is 2p³/3 + …, and always to the unsafe side."""
    epsilon = truth_of(randomized_response).epsilon(0, 1, p=p)
    assert epsilon - 2 * p == pytest.approx(2 * p**3 / 3, rel=p)
    assert epsilon > 2 * p


def test_no_is_printed_as_an_answer_to_yes_twice() -> None:
    """P[A(Yes)=No] = 0.25 and, two lines on, 0.75; the second is P[A(No)=No]."""
    assert truth_of(survey).pmf("Yes")["No"] == 0.25
    assert truth_of(survey).pmf("No")["No"] == 0.75


def test_one_point_one_is_a_little_more_than_three_quarters() -> None:
    """ "At most 75 %" at ε = 1.1: exactly that is ε = ln 3 = 1.0986."""
    assert posterior_bounds(1.1, 0.5)[1] == pytest.approx(0.75026, abs=1e-5)
    assert posterior_bounds(math.log(3), 0.5)[1] == pytest.approx(0.75, rel=1e-15)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_printed_laplace_density_inverts_epsilon(epsilon: float) -> None:
    """With noise of scale ε, β = 1 - α e^{1/ε}; the text reads 1 - α e^ε from it."""
    threshold = 2.5
    alpha = math.exp(-threshold / epsilon) / 2
    beta = 1 - math.exp(-(threshold - 1) / epsilon) / 2
    assert beta == pytest.approx(1 - alpha * math.exp(1 / epsilon), rel=1e-14)
    assert (beta == pytest.approx(1 - alpha * math.exp(epsilon))) == (epsilon == 1)
    assert truth_of(wrong_density).epsilon(0, 1, epsilon=epsilon) == 1 / epsilon


def test_the_survey_attains_its_trade_off_function() -> None:
    """f_ε(α) = max(0, 1 - e^ε α, e^-ε (1 - α)) is right: rejecting at "No" errs 25 % both ways."""
    yes, no = truth_of(survey).pmf("Yes"), truth_of(survey).pmf("No")
    ratio, alpha, beta = math.exp(epsilon_of(yes, no)), yes["No"], no["Yes"]
    assert beta == pytest.approx(max(0.0, 1 - ratio * alpha, (1 - alpha) / ratio))
