"""Draws that depend on each other are errors or warnings; those of correct mechanisms are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.dependence import LAWS as CALL_LAWS
from benchmarks.dependence import SIZES as CALL_SIZES
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.outcomes import from_raw
from dpaudit.sampling.chunks import Head
from dpaudit.sampling.homogeneity import check_blocks, check_calls
from dpaudit.sampling.independence import (
    _varies,
    check_heads,
    check_independence,
)
from tests.raising import code, refusal

POINT = ProfilePoint(1.0, 0.0)
BLOCKS = [100, 125, 156, 195, 244, 305]
SIZE = sum(BLOCKS)


def drawn(values: Any, is_d1: Any = None, seed: int = 0) -> SelectionDraws:
    outcomes = from_raw(values)
    tossed = np.random.default_rng(seed).random(outcomes.size) < 0.5
    return SelectionDraws(outcomes, tossed if is_d1 is None else is_d1)


def test_a_copied_generator_shows_in_certification_blocks() -> None:
    noise = np.random.default_rng(1).laplace(size=SIZE)
    first, second = (np.random.default_rng(seed).random(SIZE) < 0.5 for seed in (3, 4))
    learned = drawn(np.where(first, 0, 1) + noise, first)
    assert check_independence(learned, BLOCKS, POINT) == []
    later = from_raw(np.where(second, 0, 1) + noise)
    heads = [
        Head.of(later.take(slice(start, None)), second[start:]) for start in range(0, SIZE, 300)
    ]
    assert code(check_heads, learned, heads) == "draws-repeat"
    check_heads(learned, [])


def test_certification_blocks_with_a_fixed_seed_are_an_error() -> None:
    noise = np.random.default_rng(1).laplace(size=64)
    arms = np.arange(64) < 32
    heads = [Head.of(from_raw(noise), arms) for _ in range(5)]
    learned = drawn(np.random.default_rng(5).laplace(size=500))
    assert code(check_heads, learned, heads) == "draws-repeat"


def test_a_seed_that_every_block_sets_again_is_an_error() -> None:
    """Inputs alternate, so blocks are equal only where their inputs are."""
    noise = np.random.default_rng(1).laplace(size=max(BLOCKS))
    coins = np.random.default_rng(2).random(SIZE) < 0.5
    values = np.where(coins, 0, 1) + np.concatenate([noise[:size] for size in BLOCKS])
    error = refusal(check_independence, drawn(values, coins), BLOCKS, POINT)
    assert error.code == "draws-repeat"
    assert "block 2" in str(error)


def test_draws_that_repeat_within_a_block_are_an_error() -> None:
    values = np.tile(np.random.default_rng(1).laplace(size=SIZE), 2)
    assert code(check_independence, drawn(values), [2 * SIZE], POINT) == "draws-repeat"


LAWS: dict[str, Callable[[np.random.Generator], Any]] = {
    "continuous": lambda rng: rng.laplace(size=SIZE),
    "constant": lambda _: np.ones(SIZE),
    "bit": lambda rng: rng.integers(0, 2, SIZE),
    "rare bit": lambda rng: rng.random(SIZE) < 0.003,
    "few numbers": lambda rng: rng.geometric(0.3, SIZE),
    "thousand": lambda rng: rng.integers(0, 1_000, SIZE),
    "heavy tail": lambda rng: rng.standard_cauchy(SIZE),
    "vectors": lambda rng: rng.integers(0, 2, (SIZE, 6)),
    "words": lambda rng: rng.choice(["yes", "no", "perhaps"], SIZE).tolist(),
    "distinct words": lambda rng: [f"{one:x}" for one in rng.integers(0, 2**60, SIZE)],
    "some NaN": lambda rng: np.where(rng.random(SIZE) < 0.2, np.nan, rng.normal(size=SIZE)),
}


def test_independent_draws_are_not_warned_about() -> None:
    for law in LAWS:
        for seed in range(5):
            draws = drawn(LAWS[law](np.random.default_rng(seed)), seed=seed)
            assert check_independence(draws, BLOCKS, POINT) == []


def test_one_output_for_each_input_is_a_warning_unless_the_claim_allows_it() -> None:
    arms = np.random.default_rng(0).random(200) < 0.5
    sure = check_independence(drawn(arms * 1.0, arms), [200], ProfilePoint(1.0, 0.0))
    assert len(sure) == 1
    assert check_independence(drawn(arms * 1.0, arms), [200], ProfilePoint(6.0, 0.0)) == []


def test_one_value_in_nearly_all_draws_shows_nothing() -> None:
    for share, varies in [(0.89, True), (0.92, False)]:
        for usual in [math.nan, math.inf, -1.0]:
            numbers = np.random.default_rng(0).normal(size=1_000)
            numbers[: int(1_000 * share)] = usual
            assert _varies(np.random.default_rng(1).permutation(numbers)) is varies


LEVEL = 1e-4
CALL_SIZE, CALL_BLOCKS = next(iter(CALL_SIZES.items()))


def test_independent_calls_are_not_warned_about() -> None:
    for law in CALL_LAWS:
        for size in CALL_SIZES:
            for seed in range(5):
                rng = np.random.default_rng(seed)
                draws = SelectionDraws(from_raw(CALL_LAWS[law](rng, size)), rng.random(size) < 0.5)
                assert check_calls(draws, CALL_SIZES[size], LEVEL) == []


def test_an_unlikely_difference_is_a_warning() -> None:
    rng = np.random.default_rng(0)
    is_d1 = rng.random(CALL_SIZE) < 0.5
    values = rng.normal(size=CALL_SIZE) + 1.2 * (np.arange(CALL_SIZE) < 200)
    assert len(check_calls(SelectionDraws(from_raw(values), is_d1), CALL_BLOCKS, LEVEL)) == 1


def test_blocks_that_differ_are_an_error() -> None:
    guesses = np.array([1, 0, -1])
    rng = np.random.default_rng(0)
    alike = [Tally(rng.multinomial(60, [1 / 6] * 6).reshape(3, 2)) for _ in range(16)]
    assert check_blocks(alike, guesses, LEVEL) == []
    apart = [Tally(np.array([[30, 30], [0, 0], [0, 0]][:: 1 - 2 * (i % 2)])) for i in range(16)]
    assert code(check_blocks, apart, guesses, LEVEL) == "draws-differ"
