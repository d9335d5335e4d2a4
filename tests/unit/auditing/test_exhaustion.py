"""Mechanisms that calls use up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.auditing.safeguards.kept_state import exhausted
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import CallableTarget

PAIR = NeighbouringPair([1], [0])


def words(function: Callable[..., Any]) -> str | None:
    target = CallableTarget(function=function)
    return exhausted(lambda: Sampler(target, [PAIR], 0), target, PAIR, 1_000)


def raises_after(choose: Callable[[np.random.Generator], int]) -> Callable[..., int]:
    """Return a mechanism that raises after some calls with one generator."""
    left: list[tuple[np.random.Generator, list[int]]] = []

    def mechanism(data: list[int], rng: np.random.Generator) -> int:
        if not left or left[-1][0] is not rng:
            left.append((rng, [choose(rng)]))
        left[-1][1][0] -= 1
        if left[-1][1][0] < 0:
            raise ValueError("no")
        return len(data)

    return mechanism


def test_exceptions_of_all_calls_after_some_use_a_mechanism_up() -> None:
    found = words(raises_after(lambda rng: 30))
    assert found is not None
    assert "after 30 calls" in found


def test_exceptions_by_chance_do_not() -> None:
    assert words(raises_after(lambda rng: int(rng.integers(1, 200)))) is None
