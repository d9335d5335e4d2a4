"""The witness of a Rényi divergence that is frozen: direction, order, cap, prediction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.stats.witness import (
    _CAPS,
    DivergenceWitness,
    FloatArray,
    best_stakes,
    divergence_lower,
    most_telling_witness,
)

ALPHA = 0.00375
DRAWS = 200_000
# Rare on d1, a hundred times as rare on d2: D(P ‖ Q) is large, D(Q ‖ P) is small.
LOPSIDED = np.array([[0.10, 0.001], [0.90, 0.999]])
# Either input the other one's mirror image.
EVEN = np.array([[0.7, 0.3], [0.3, 0.7]])


def divergence(laws: FloatArray, order: float, *, from_d1: bool) -> float:
    first, second = laws.T if from_d1 else laws[:, ::-1].T
    return math.log(float(first**order @ second ** (1 - order))) / (order - 1)


def chosen(laws: FloatArray, limits: dict[float, float], draws: float = DRAWS) -> DivergenceWitness:
    found = most_telling_witness(laws * 10_000, limits, draws, ALPHA)
    assert found is not None
    return found


def test_the_direction_is_that_of_the_larger_divergence() -> None:
    order = 2.0
    one = divergence(LOPSIDED, order, from_d1=True)
    assert one > 2 * divergence(LOPSIDED, order, from_d1=False)
    assert chosen(LOPSIDED, {order: 1.0}).from_d1
    assert not chosen(LOPSIDED[:, ::-1], {order: 1.0}).from_d1


def test_the_witness_is_the_log_ratio_where_no_cap_is_needed() -> None:
    witness = chosen(EVEN, {2.0: 1.0})
    assert np.abs(witness.values) == pytest.approx([math.log(7 / 3)] * 2)
    assert witness.values[0] == pytest.approx(-witness.values[1])


def test_counts_of_inputs_that_were_drawn_unequally_often_are_taken_as_shares() -> None:
    uneven = LOPSIDED * [3_000, 9_000]
    witness = most_telling_witness(uneven, {2.0: 1.0}, DRAWS, ALPHA)
    assert witness is not None
    assert witness.values == pytest.approx(chosen(LOPSIDED, {2.0: 1.0}).values)


def test_of_several_orders_the_one_that_promises_the_largest_multiple_of_what_is_allowed() -> None:
    orders = (1.2, 2.0, 5.0)
    truth = {order: divergence(EVEN, order, from_d1=True) for order in orders}
    for least in orders:
        limits = {order: truth[order] * (0.5 if order == least else 1.0) for order in orders}
        assert chosen(EVEN, limits).order == least


def test_the_promise_is_nearly_the_best_of_all_that_could_be_chosen() -> None:
    """Over all caps and both directions, each with the stakes that suit it."""
    order, expected = 4.0, LOPSIDED * DRAWS / 2
    best = 0.0
    for cap in _CAPS:
        for from_d1 in (True, False):
            laws = LOPSIDED if from_d1 else LOPSIDED[:, ::-1]
            values = np.clip(np.log(laws[:, 0] / laws[:, 1]), -cap, cap)
            stakes, _ = best_stakes(order, values, laws, DRAWS / 2, ALPHA)
            one = DivergenceWitness(order, from_d1, tuple(values), stakes)
            best = max(best, divergence_lower(one, expected, ALPHA))
    found = divergence_lower(chosen(LOPSIDED, {order: 1.0}), expected, ALPHA)
    assert 0.97 * best <= found <= divergence(LOPSIDED, order, from_d1=True)


@pytest.mark.parametrize(
    ("laws", "limits", "draws"),
    [
        (np.full((8, 2), 1 / 8), {2.0: 1.0}, DRAWS),
        (np.ones((1, 2)), {2.0: 1.0}, DRAWS),
        (EVEN, {2.0: 1.0}, 20),
        (EVEN, {}, DRAWS),
        # e^{a g} of the smallest cap is too large for an order like this.
        (EVEN, {10_000.0: 1.0}, DRAWS),
    ],
)
def test_nothing_is_frozen_where_nothing_is_promised(
    laws: FloatArray, limits: dict[float, float], draws: float
) -> None:
    assert most_telling_witness(laws * 10_000, limits, draws, ALPHA) is None


@pytest.mark.parametrize("order", [1.0001, 20.0])
def test_inputs_that_share_no_output_have_a_witness_of_finite_numbers(order: float) -> None:
    apart = np.array([[1.0, 0.0], [0.0, 1.0]])
    witness = chosen(apart, {order: 1.0})
    assert all(math.isfinite(one) for one in (*witness.values, *witness.stakes))
    # The largest divergence that n draws can show is about log(n / log(1/α)).
    assert divergence_lower(witness, apart * DRAWS / 2, ALPHA) > 8
