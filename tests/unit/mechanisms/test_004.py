"""k-ary randomized response, RAPPOR, and noise from scipy.stats, against other computations."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mechanisms import local, scipy_noise
from mechanisms.truth import truth_of


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(3), Fraction(20, 7)])
def test_printed_probability_is_the_right_one(k: int, ratio: Fraction) -> None:
    """With e^ε = `ratio`, p = k/(k - 1 + e^ε) gives odds of e^ε, in exact fractions."""
    p = k / (k - 1 + ratio)
    truth, lie = 1 - p + p / k, p / k
    assert truth / lie == ratio
    assert truth + (k - 1) * lie == 1
    law = truth_of(local.kary_randomized_response).pmf(
        0, possible_outputs=range(k), epsilon=math.log(ratio)
    )
    assert law[0] == pytest.approx(float(truth))
    assert law[k - 1] == pytest.approx(float(lie))


def test_printed_response_tells_the_truth_or_fails() -> None:
    random.seed(1)
    answers = Counter(_answer_or_failure("tea") for _ in range(20_000))
    law = truth_of(local.kary_randomized_response_printed).pmf("tea")
    assert set(answers) == set(law) == {"tea", "TypeError"}
    for atom, probability in law.items():
        assert answers[atom] / 20_000 == pytest.approx(probability, abs=0.02)
    assert law["tea"] == pytest.approx((math.e - 1) / (math.e + 2))
    truth = truth_of(local.kary_randomized_response_printed)
    assert truth.epsilon("tea", "water") == math.inf
    # Whatever ε is claimed, a true answer is a certain giveaway.
    assert truth.profile("tea", "water", 20.0) == pytest.approx(law["tea"])


def test_printed_response_is_right_for_a_list() -> None:
    random.seed(2)
    printed, options = local._kary_rr, list(local.DRINKS)
    answers = Counter(printed("tea", options, 1.0) for _ in range(20_000))  # type: ignore[arg-type]  # the remedy
    for atom, probability in truth_of(local.kary_randomized_response).pmf("tea").items():
        assert answers[atom] / 20_000 == pytest.approx(probability, abs=0.02)


def _answer_or_failure(value: Any) -> str:
    try:
        return str(local.kary_randomized_response_printed(value))
    except TypeError:
        return "TypeError"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_rappor_by_enumeration_of_the_flips(epsilon: float) -> None:
    flip, truth = 1 / (1 + math.exp(epsilon / 2)), truth_of(local.rappor)
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for flips in product((0, 1), repeat=3):
        bits = tuple(one ^ other for one, other in zip(flips, (0, 1, 0), strict=True))
        law[bits] += math.prod(flip if one else 1 - flip for one in flips)
    assert truth.pmf(1, domain_size=3, epsilon=epsilon) == pytest.approx(dict(law))
    assert truth.epsilon(0, 1, epsilon=epsilon) == pytest.approx(epsilon)
    whole = truth_of(local.rappor_whole_epsilon)
    assert whole.epsilon(0, 1, epsilon=epsilon) == pytest.approx(2 * epsilon)


def test_scipy_laplace_is_what_it_says() -> None:
    truth = truth_of(scipy_noise.laplace_mech)
    v, params = [3.0, 1.0], {"sensitivity": 2.0, "epsilon": 0.5}
    drawn = scipy_noise.laplace_mech(v, size=20_000, rng=np.random.default_rng(1), **params)
    assert drawn.shape == (20_000, 2)
    for column, centre in zip(drawn.T, v, strict=True):
        assert stats.kstest(column, stats.laplace(centre, 4.0).cdf).pvalue > 1e-6
    density = math.prod(stats.laplace(centre, 4.0).pdf(1.7) for centre in v)
    assert truth.density([1.7, 1.7], v, **params) == pytest.approx(density)
    below, moved = [-9.0, -9.0], [4.0, 2.0]
    ratio = truth.density(below, v, **params) / truth.density(below, moved, **params)
    assert math.log(ratio) == pytest.approx(truth.epsilon(v, moved, **params)) == 0.5


def test_scipy_discrete_laplace_is_what_it_says() -> None:
    truth = truth_of(scipy_noise.discrete_laplace_mech)
    v, params, size = [3, 1], {"sensitivity": 2.0, "epsilon": 1.0}, 50_000
    drawn = scipy_noise.discrete_laplace_mech(v, size=size, rng=np.random.default_rng(2), **params)
    assert drawn.dtype.kind == "i"
    counts = Counter(map(tuple, drawn.tolist()))
    alone = [{y: stats.dlaplace.pmf(y, 0.5, loc=centre) for y in range(-3, 8)} for centre in v]
    for output in product(range(-3, 8), repeat=2):
        probability = truth.density(output, v, **params)
        assert probability == pytest.approx(alone[0][output[0]] * alone[1][output[1]])
        error = math.sqrt(probability * (1 - probability) / size)
        assert abs(counts[output] / size - probability) <= 6 * error + 1e-4
    assert truth.epsilon(v, [4, 2], **params) == pytest.approx(1.0)


def test_floats_give_the_laplace_input_away() -> None:
    """From 1, no output is finer than 2⁻⁵³, whatever the noise; from 0, a quarter of them are."""
    rng = np.random.default_rng(3)
    zero, one = (scipy_noise.laplace_mech([x], size=20_000, rng=rng) for x in (0.0, 1.0))
    assert np.mean([*map(scipy_noise.finer_than_2_to_minus_53, zero)]) == pytest.approx(
        0.27, abs=0.02
    )
    assert not any(map(scipy_noise.finer_than_2_to_minus_53, one))
    assert not scipy_noise.finer_than_2_to_minus_53([2.0**-53, 1e300])
    assert scipy_noise.finer_than_2_to_minus_53([1.0, 2.0**-54])
