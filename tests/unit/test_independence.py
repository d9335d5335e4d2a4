"""Draws that depend on each other are noticed, and those of correct mechanisms never are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import ProfilePoint, PureDP
from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.outcomes import from_raw
from dpaudit.sampling.chunks import Head
from dpaudit.sampling.independence import check_heads, check_independence, check_uncached
from mechanisms import dependence, laplace, randomized_response

POINT = ProfilePoint(1.0, 0.0)
BLOCKS = [100, 125, 156, 195, 244, 305]
SIZE = sum(BLOCKS)


def audited(mechanism: Any, **more: Any) -> AuditResult:
    given = {"samples": 50_000, **more}
    return dpaudit.audit(mechanism, 0.0, 1.0, PureDP(1.0), **given)


def warned(result: AuditResult) -> str:
    return " ".join(text for one in result.certificates for text in one.warnings)


def drawn(values: Any, is_d1: Any = None, seed: int = 0) -> SelectionDraws:
    outcomes = from_raw(values)
    tossed = np.random.default_rng(seed).random(outcomes.size) < 0.5
    return SelectionDraws(outcomes, tossed if is_d1 is None else is_d1)


@pytest.mark.parametrize(
    ("specimen", "message"),
    [
        (dependence.fixed_seed, "block 2 of the draws repeats block 1"),
        (dependence.restarted, "block 2 of the draws repeats block 1"),
        (dependence.cached, "is wrapped by functools.cache"),
        (dependence.depleted, "repeat those 701 before them"),
    ],
)
def test_what_cannot_be_is_an_error(specimen: Any, message: str) -> None:
    result = audited(specimen)
    assert result.verdict is Verdict.ERROR
    assert result.error is not None
    assert message in result.error


@pytest.mark.parametrize(
    ("specimen", "message"),
    [
        (dependence.counted, "depend on the ones just before them (output: Ljung–Box p"),
        (dependence.computed_once, "either the mechanism is not random, or it returns a stored"),
    ],
)
def test_what_is_unlikely_is_a_warning(specimen: Any, message: str) -> None:
    assert message in warned(audited(specimen))


def test_a_generator_that_every_worker_has_a_copy_of() -> None:
    """One process draws on; of two, the second repeats what the first one drew."""
    assert audited(dependence.copied).verdict is Verdict.NO_VIOLATION_FOUND
    noise = np.random.default_rng(1).laplace(size=SIZE)
    coins = np.random.default_rng(2).random(2 * SIZE) < 0.5
    values = np.where(coins, 0, 1) + np.concatenate([noise, noise])
    with pytest.raises(MechanismError, match="block 7 of the draws repeats block 1"):
        check_independence(drawn(values, coins), [*BLOCKS, *BLOCKS], POINT)
    with pytest.raises(MechanismError, match=f"repeat those {SIZE:,} before them"):
        check_independence(drawn(values, coins), [2 * SIZE], POINT)


def test_a_copy_that_is_first_seen_when_certifying() -> None:
    noise = np.random.default_rng(1).laplace(size=SIZE)
    first, second = (np.random.default_rng(seed).random(SIZE) < 0.5 for seed in (3, 4))
    learned = drawn(np.where(first, 0, 1) + noise, first)
    assert check_independence(learned, BLOCKS, POINT) == []
    later = from_raw(np.where(second, 0, 1) + noise)
    heads = [
        Head.of(later.take(slice(start, None)), second[start:]) for start in range(0, SIZE, 300)
    ]
    with pytest.raises(MechanismError, match="repeat those"):
        check_heads(learned, heads)
    check_heads(learned, [])


def test_chunks_of_a_fixed_seed_are_alike_when_certifying_too() -> None:
    noise = np.random.default_rng(1).laplace(size=64)
    arms = np.arange(64) < 32
    heads = [Head.of(from_raw(noise), arms) for _ in range(5)]
    with pytest.raises(MechanismError, match="repeat those 64 before them"):
        check_heads(drawn(np.random.default_rng(5).laplace(size=500)), heads)


def test_one_seed_in_turns() -> None:
    """Calls in turns, the generator restarted at every block: alike where the inputs are."""
    noise = np.random.default_rng(1).laplace(size=max(BLOCKS))
    coins = np.random.default_rng(2).random(SIZE) < 0.5
    values = np.where(coins, 0, 1) + np.concatenate([noise[:size] for size in BLOCKS])
    with pytest.raises(MechanismError, match="block 2 of the draws repeats block 1"):
        check_independence(drawn(values, coins), BLOCKS, POINT)


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


@pytest.mark.parametrize("law", LAWS)
def test_independent_draws_are_not_warned_about(law: str) -> None:
    for seed in range(40):
        draws = drawn(LAWS[law](np.random.default_rng(seed)), seed=seed)
        assert check_independence(draws, BLOCKS, POINT) == []


@pytest.mark.parametrize(
    "mechanism",
    [
        laplace.laplace,
        laplace.laplace_scalar,
        laplace.wrong_density,
        randomized_response.randomized_response,
    ],
)
def test_correct_and_broken_mechanisms_are_not_warned_about(mechanism: Any) -> None:
    result = audited(mechanism)
    assert result.verdict is not Verdict.ERROR
    assert warned(result) == ""


def test_one_output_each_is_no_wonder_when_the_claim_allows_it() -> None:
    arms = np.random.default_rng(0).random(200) < 0.5
    sure = check_independence(drawn(arms * 1.0, arms), [200], ProfilePoint(1.0, 0.0))
    assert len(sure) == 1
    assert check_independence(drawn(arms * 1.0, arms), [200], ProfilePoint(6.0, 0.0)) == []


def test_a_function_that_is_not_cached_passes() -> None:
    check_uncached("f", [len, partial(len), None])
