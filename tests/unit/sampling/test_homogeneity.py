"""Draws that differ from call to call give a warning or an error; independent draws do not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from benchmarks.dependence import LAWS, SIZES
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.errors import MechanismError
from dpaudit.outcomes import from_raw
from dpaudit.sampling.independence import check_blocks, check_calls
from dpaudit.sampling.state import changed, kept_state
from mechanisms import laplace

LEVEL = 1e-4
SIZE, BLOCKS = next(iter(SIZES.items()))


def test_independent_draws_are_not_warned_about() -> None:
    for law in LAWS:
        for size in SIZES:
            for seed in range(15):
                rng = np.random.default_rng(seed)
                draws = SelectionDraws(from_raw(LAWS[law](rng, size)), rng.random(size) < 0.5)
                assert check_calls(draws, SIZES[size], LEVEL) == []


def test_an_unlikely_difference_is_a_warning() -> None:
    rng = np.random.default_rng(0)
    is_d1 = rng.random(SIZE) < 0.5
    values = rng.normal(size=SIZE) + 1.2 * (np.arange(SIZE) < 200)
    (text,) = check_calls(SelectionDraws(from_raw(values), is_d1), BLOCKS, LEVEL)
    assert "differ from call to call more than independent draws should (p <" in text


def test_blocks_that_differ_are_an_error() -> None:
    guesses = np.array([1, 0, -1])
    rng = np.random.default_rng(0)
    alike = [Tally(rng.multinomial(60, [1 / 6] * 6).reshape(3, 2)) for _ in range(16)]
    assert check_blocks(alike, guesses, LEVEL) == []
    apart = [Tally(np.array([[30, 30], [0, 0], [0, 0]][:: 1 - 2 * (i % 2)])) for i in range(16)]
    with pytest.raises(MechanismError) as error:
        check_blocks(apart, guesses, LEVEL)
    assert error.value.code == "draws-differ"


class Counter:
    def __init__(self) -> None:
        self.calls = 0
        self.rng = np.random.default_rng(0)

    def __call__(self, x: float) -> float:
        self.calls += 1
        return x + self.rng.laplace()

    def idle(self, x: float) -> float:
        return x + self.rng.laplace()


def counted() -> Callable[[float], float]:
    calls = [0]

    def mechanism(x: float) -> float:
        calls[0] += 1
        return x

    return mechanism


class Remembering:
    noise: dict[float, float] = {}  # noqa: RUF012  # the mistake to find

    def __call__(self, x: float) -> float:
        return x + self.noise.setdefault(x, 0.5)


@cache
def _noise(x: float) -> float:
    return x / 3


def of_a_cache(x: float) -> float:
    return x + _noise(x)


def of_itself(x: float) -> float:
    of_itself.last = x  # type: ignore[attr-defined]
    return x


def test_variables_that_calls_change_are_named() -> None:
    cases: list[tuple[Any, str]] = [
        (Counter(), "Counter.calls"),
        (Counter().__call__, "Counter.calls"),
        (partial(Counter()), "Counter.calls"),
        (counted(), "calls"),
        (of_itself, "of_itself.last"),
        (Remembering(), "Remembering.noise"),
        (of_a_cache, "_noise"),
    ]
    for mechanism, name in cases:
        before = kept_state(mechanism)
        mechanism(1.0)
        assert changed(before, kept_state(mechanism)) == (name,)


def test_a_generator_is_no_state() -> None:
    for mechanism in (Counter().idle, partial(laplace.laplace_scalar, rng=np.random.default_rng())):
        before = kept_state(mechanism)
        assert mechanism(1.0) != mechanism(1.0)
        assert changed(before, kept_state(mechanism)) == ()


def test_builtin_functions_have_no_variables() -> None:
    assert kept_state(len, None) == {}
