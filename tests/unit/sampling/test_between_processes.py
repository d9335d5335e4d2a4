"""Draws of several processes: what shows a difference, and what the order of a set changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.new_processes import KINDS, LAWS, difference
from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw
from dpaudit.sampling.between_processes import (
    Division,
    between_processes,
    order_free_cells,
    rule_cells,
)

LEVEL = 1e-5


def divisions(*outputs: Any) -> list[list[int]]:
    """Return the cells of some outputs, without divisions that have one cell."""
    cells = [cell.tolist() for cell in order_free_cells(from_raw(list(outputs)))]
    return [cell for cell in cells if len(set(cell)) > 1]


@pytest.mark.parametrize(
    ("output", "reordered", "other"),
    [
        (["a", "b", "a"], ["b", "a", "a"], ["b", "b", "a"]),
        ([("a", 1.5), ("b", 2.5)], [("b", 2.5), ("a", 1.5)], [("a", 1.5), ("c", 2.5)]),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 2, "y": 1}),
        ("a, bc", "bc, a", "a, bd"),
        ([0.1 + 0.2 + 0.3], [0.3 + 0.2 + 0.1], [0.7]),
        (math.nan, math.nan, None),
    ],
)
def test_cells_depend_on_entries_but_not_on_their_order(
    output: Any, reordered: Any, other: Any
) -> None:
    assert divisions(*[output, reordered] * 4) == []
    assert divisions(*[output, other] * 4)


@pytest.mark.parametrize("name", KINDS)
def test_noise_that_a_process_keeps_is_found(name: str) -> None:
    assert all(difference(KINDS[name], 4, 2_000, seed) for seed in range(3))


@pytest.mark.parametrize("name", LAWS)
def test_the_order_of_a_set_is_no_difference(name: str) -> None:
    assert not any(difference(LAWS[name], 8, 200, seed) for seed in range(5))


def drawn(values: Any, seed: int = 0) -> SelectionDraws:
    outcomes = from_raw(values)
    return SelectionDraws(outcomes, np.random.default_rng(seed).random(outcomes.size) < 0.5)


def test_a_difference_in_the_event_of_a_rule_is_found() -> None:
    """A rare output is no cell of equal mass by itself, but a guess of the rule."""
    rng = np.random.default_rng(0)

    def values(is_d1: Any, rate: float) -> Any:
        is_rare = (rng.random(len(is_d1)) < rate) & is_d1
        return np.where(is_rare, 0.5, rng.normal(size=len(is_d1)))

    is_d1 = rng.random(20_000) < 0.5
    learned = SelectionDraws(from_raw(values(is_d1, 0.02)), is_d1)
    rule = learn(learned, Objective(ProfilePoint(0.5, 0.0), 20_000)).portfolio
    parts = []
    for rate in [0.02, *[0.0, 0.04] * 4]:
        is_d1 = rng.random(2_000) < 0.5
        parts.append(SelectionDraws(from_raw(values(is_d1, rate)), is_d1))
    outcomes = from_raw(np.concatenate([part.outcomes.columns[0].numbers for part in parts]))
    cells = rule_cells(outcomes, rule, rule.guesses)
    assert between_processes(parts, [Division(cell, range(9)) for cell in cells], LEVEL)[1]
    # Of the other processes, only those with equal laws are compared.
    alike = [Division(cell, (1, 3, 5, 7)) for cell in cells]
    assert between_processes(parts, alike, LEVEL)[1] == ""
    assert [int(cell.max()) < 16 for cell in cells] == [True, True]


def test_no_new_process_and_no_division_are_no_difference() -> None:
    part = drawn(np.arange(20.0))
    divisions = [Division(cell, [0]) for cell in order_free_cells(part.outcomes)]
    assert between_processes([part], divisions, LEVEL) == (0.0, "")
    assert between_processes([part, part], [], LEVEL) == (0.0, "")
