"""A bounded witness of a Rényi divergence: closed forms, exact enumeration, sharpness."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from dpaudit.stats.witness import (
    DivergenceWitness,
    best_stakes,
    divergence_lower,
    log_wealth,
    p_value,
)

ALPHA = 0.05


def of_coins(
    p: float,
    q: float,
    order: float,
    draws: float,
    *,
    g: tuple[float, float] | None = None,
    alpha: float = ALPHA,
) -> DivergenceWitness:
    """Return the witness with g the log-ratio of two coins, or another g, for this number of
    draws."""
    laws = np.array([[p, q], [1 - p, 1 - q]])
    values = np.log(laws[:, 0] / laws[:, 1]) if g is None else np.array(g)
    return DivergenceWitness(
        order, True, tuple(values), best_stakes(order, values, laws, draws, alpha)[0]
    )


def of_normals(
    shift: float, order: float, draws: float, cap: float, alpha: float = 0.0075
) -> tuple[DivergenceWitness, NDArray[np.float64]]:
    """Return the witness of N(shift, 1) against N(0, 1) on 80 levels, and their laws."""
    edges = np.linspace(-5, 5 + shift, 79)
    laws = np.stack(
        [np.diff(norm.cdf(np.concatenate([[-np.inf], edges - m, [np.inf]]))) for m in (shift, 0)],
        axis=1,
    )
    values = np.clip(np.log(laws[:, 0] / laws[:, 1]), -cap, cap)
    stakes, _ = best_stakes(order, values, laws, draws, alpha)
    return DivergenceWitness(order, True, tuple(values), stakes), laws


def binary_divergence(p: float, q: float, order: float) -> float:
    """Return D_a of two coins (Mironov 2017, Def. 3)."""
    powers = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return math.log(powers) / (order - 1)


def test_with_ever_more_draws_the_divergence_of_two_coins_is_reached() -> None:
    for order, (p, q) in product(
        [1.1, 2.0, 6.0], [(0.6, 0.4), (0.9, 0.5), (0.02, 0.01), (0.3, 0.7)]
    ):
        truth = binary_divergence(p, q, order)
        draws = np.array([1e5, 1e7, 1e9])
        bounds = [
            divergence_lower(
                of_coins(p, q, order, n), n * np.array([[p, q], [1 - p, 1 - q]]), ALPHA
            )
            for n in draws
        ]
        assert bounds == sorted(bounds)
        assert 0.98 * truth < bounds[-1] <= truth


def test_the_true_divergence_is_refuted_no_more_often_than_alpha() -> None:
    for (p, q, order), g in product(
        [(0.7, 0.3, 2.0), (0.55, 0.45, 5.0), (0.9, 0.2, 1.2)],
        [None, (0.4, -0.1), (-0.3, 0.8), (0.0, 0.0)],
    ):
        # All tallies of this number of draws per input, with their probabilities: no simulation.
        draws, alpha = 10, 0.2
        witness = of_coins(p, q, order, draws, g=g, alpha=alpha)
        truth = binary_divergence(p, q, order)
        wrong = sum(
            binom.pmf(i, draws, p) * binom.pmf(j, draws, q)
            for i, j in product(range(draws + 1), repeat=2)
            if p_value(witness, np.array([[i, j], [draws - i, draws - j]]), truth) <= alpha
        )
        assert wrong <= alpha


def test_a_product_of_wealths_is_on_average_no_gain() -> None:
    draws, p, q, order = 12, 0.7, 0.4, 3.0
    witness = of_coins(p, q, order, draws)
    truth = binary_divergence(p, q, order)
    mean = sum(
        binom.pmf(i, draws, p)
        * binom.pmf(j, draws, q)
        * math.exp(log_wealth(witness, np.array([[i, j], [draws - i, draws - j]]), truth))
        for i, j in product(range(draws + 1), repeat=2)
    )
    assert mean <= 1


def partly_kept(*gains: float) -> float:
    """Return the log of the product of wealths of each of which a tenth is not bet."""
    return sum(max(math.log(0.9) + gain, math.log(0.1)) for gain in gains)


def test_the_least_product_is_that_of_a_fine_grid() -> None:
    witness, laws = of_normals(1.0, 2.0, 5_000, 2.5)
    counts = np.random.default_rng(3).multinomial(5_000, laws.T).T
    (x, y), power = witness.raised, 2.0
    for divergence in (0.0, 0.3, 0.8, 1.5):

        def remaining(mean: float, divergence: float = divergence) -> float:
            partner = mean**power * math.exp(-divergence)
            return partly_kept(
                float(counts[:, 0] @ np.log1p(witness.stakes[0] * (x - mean))),
                float(counts[:, 1] @ np.log1p(witness.stakes[1] * (partner - y))),
            )

        means = np.geomspace(x.min(), x.max(), 501)
        least = int(np.argmin([remaining(mean) for mean in means]))
        around = np.linspace(means[max(0, least - 1)], means[min(500, least + 1)], 4_001)
        truth = min(map(remaining, around.tolist()))
        assert truth - 1.1e-3 <= log_wealth(witness, counts, divergence) <= truth + 1e-3


def test_a_search_that_ends_early_ends_on_the_same_side() -> None:
    for divergence, off in product(
        [0.0, 0.5, 0.9, 2.0], [-5.0, -0.01, -1e-6, 0.0, 1e-6, 0.01, 5.0]
    ):
        witness, laws = of_normals(1.0, 2.0, 5_000, 2.5)
        counts = np.random.default_rng(3).multinomial(5_000, laws.T).T
        whole = log_wealth(witness, counts, divergence)
        needed = whole + off
        assert (log_wealth(witness, counts, divergence, needed) >= needed) is (off <= 0)


def test_bound_and_p_value_say_the_same() -> None:
    witness, laws = of_normals(1.0, 2.0, 50_000, 2.5)
    counts = np.random.default_rng(4).multinomial(50_000, laws.T).T
    bound = divergence_lower(witness, counts, ALPHA)
    assert (
        p_value(witness, counts, bound * 0.9999) <= ALPHA < p_value(witness, counts, bound * 1.0003)
    )


def test_the_other_direction_is_the_other_arm() -> None:
    witness, laws = of_normals(1.0, 2.0, 50_000, 2.5)
    counts = np.random.default_rng(6).multinomial(50_000, laws.T).T
    turned = DivergenceWitness(witness.order, False, witness.values, witness.stakes)
    assert divergence_lower(turned, counts[:, ::-1], ALPHA) == divergence_lower(
        witness, counts, ALPHA
    )


@pytest.mark.parametrize(
    "given",
    [
        {"order": 1.0},
        {"values": ()},
        {"values": (math.inf, 0.0)},
        {"stakes": (0.1, 10.0)},
    ],
)
def test_what_is_no_witness_is_refused(given: dict[str, Any]) -> None:
    usual = {"order": 2.0, "from_d1": True, "values": (-1.0, 1.0), "stakes": (0.1, 0.1)}
    with pytest.raises(ValueError, match=r"witness|stakes"):
        DivergenceWitness(**{**usual, **given})


@pytest.mark.parametrize("order", [1 + 1e-9, 1.0001, 1.05, 20.0])
def test_rounding_of_powers_never_helps(order: float) -> None:
    """As the order nears 1, X nears 1 at every level, and its digits are lost; the bound with them,
    and never beyond the truth."""
    p, q, draws = 0.7, 0.3, 10**9
    truth = p * math.log(p / q) + q * math.log(q / p) if order < 1.001 else math.inf
    witness = of_coins(p, q, order, draws)
    counts = draws * np.array([[p, q], [1 - p, 1 - q]])
    bound = divergence_lower(witness, counts, ALPHA)
    assert 0 <= bound < min(truth * 1.001, math.log(p / q))
    assert order < 1.001 or bound > 0.3


def test_all_draws_on_one_level_show_nothing() -> None:
    counts = np.array([[10**12, 10**12], [0, 0]])
    witness = of_coins(0.7, 0.3, 2.0, 1_000)
    assert divergence_lower(witness, counts, ALPHA) == 0
    assert p_value(witness, counts, 0.0) == 1
    assert divergence_lower(witness, 0 * counts, ALPHA) == 0
