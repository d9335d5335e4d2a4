"""The poll, asked once or several times, the survey with two coins, and what they estimate."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from dpaudit.claims import PureDP, compose
from mechanisms.poll import Estimator, poll, repeated_poll
from mechanisms.randomized_response import randomized_response
from mechanisms.survey import survey
from mechanisms.truth import epsilon_of, truth_of


def printed_variance(p: float, share: float) -> float:
    """Equation 14 as the text has it."""
    return (
        share / p
        - share**2
        + (1 - p) / (2 * p**2)
        - (1 - p) ** 2 / (4 * p**2)
        - share * (1 - p) / p
    )


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_the_variance_is_that_of_the_text(p: float, share: float) -> None:
    assert Estimator(p).variance(share) == pytest.approx(printed_variance(p, share), abs=1e-12)


def test_the_interval_done_by_hand() -> None:
    assert Estimator(0.5).half_width(0.5, 100) == pytest.approx(0.1959964, abs=1e-7)
    low, high = Estimator(0.5).interval(4_000, 10_000)
    assert (low, high) == pytest.approx((0.2807964, 0.3192036), abs=1e-7)
    # 100 answers without a Yes: the estimate is -½, the share in its variance is 0.
    low, high = Estimator(0.5).interval(0, 100)
    assert (low + high) / 2 == pytest.approx(-0.5)
    assert high - low == pytest.approx(2 * 1.959964 * math.sqrt(0.75 / 100), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, math.log(3), 5.0])
def test_the_poll_at_an_epsilon_has_that_epsilon(epsilon: float) -> None:
    p = Estimator.at_epsilon(epsilon).p
    assert truth_of(randomized_response).epsilon(0, 1, p=p) == pytest.approx(epsilon, rel=1e-12)
    assert Estimator.at_epsilon(math.inf).p == 1


def test_the_interval_covers_as_often_as_it_should_and_the_printed_one_does_not() -> None:
    """Equations 15 and 16 print Φ(1 - α/2) = 0.835 where Φ⁻¹(1 - α/2) = 1.960 is meant."""
    p, share, answers, runs = 0.5, 0.3, 2_000, 20_000
    law = truth_of(randomized_response).pmf
    q = share * law(1, p=p)[1] + (1 - share) * law(0, p=p)[1]
    yes = np.random.default_rng(1).binomial(answers, q, runs).tolist()
    estimator = Estimator(p)
    estimates = np.array([estimator.estimate(one, answers) for one in yes])
    spread = math.sqrt(estimator.variance(share) / answers)
    # Six standard errors: one false alarm in 10⁸.
    assert abs(estimates.mean() - share) <= 6 * spread / math.sqrt(runs)
    assert estimates.std() == pytest.approx(spread, rel=6 / math.sqrt(2 * runs))
    intervals = [estimator.interval(one, answers) for one in yes]
    covered = np.mean([low <= share <= high for low, high in intervals])
    assert covered == pytest.approx(0.95, abs=0.01)
    printed = NormalDist().cdf(0.975) * spread
    assert np.mean(abs(estimates - share) <= printed) == pytest.approx(0.596, abs=0.025)


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_composition_adds_up_and_is_attained(runs: int, p: float) -> None:
    """Proposition 3 of Lalanne 2020."""
    once = PureDP(truth_of(randomized_response).epsilon(0, 1, p=p))
    together = truth_of(repeated_poll)
    exact = epsilon_of(together.pmf(0, p=p, runs=runs), together.pmf(1, p=p, runs=runs))
    assert exact == pytest.approx(compose([once] * runs).point().epsilon, rel=1e-12)


def test_only_changed_answers_cost_something() -> None:
    truth = truth_of(poll)
    people, one, two = [1, 0, 1], [1, 0, 0], [0, 0, 0]
    assert truth.epsilon(people, people) == 0
    assert truth.epsilon(people, one) == pytest.approx(math.log(3))
    assert truth.epsilon(people, two) == pytest.approx(math.log(9))  # a group of two
    assert epsilon_of(truth.pmf(people), truth.pmf(two)) == pytest.approx(math.log(9))


def test_the_survey_done_by_hand() -> None:
    truth = truth_of(survey)
    assert truth.pmf("No") == {"No": 0.75, "Yes": 0.25}
    for heads, ratio in ((0.25, 5 / 3), (0.5, 3), (0.75, 7)):
        assert math.exp(truth.epsilon("Yes", "No", heads=heads)) == pytest.approx(ratio)
