"""How often a comparison with new processes accuses independent draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.new_processes import KINDS, LAWS, difference
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw
from dpaudit.sampling.between_processes import Division, between_processes, order_free_cells
from tests.validity.conftest import IsAbove

# Far above the level of an audit, which no simulation could tell from 0.
LEVEL = 1e-2
RUNS = 2_000


@pytest.mark.parametrize("name", ["number", "count", "numbers_of_a_set", "names_of_a_set"])
def test_independent_draws_are_accused_no_more_often_than_stated(
    is_above: IsAbove, name: str
) -> None:
    alarms = (bool(difference(LAWS[name], 8, 40, seed, LEVEL)) for seed in range(RUNS))
    assert not is_above(alarms, RUNS, LEVEL)


def test_a_value_that_each_process_keeps_is_accused_more_often(is_above: IsAbove) -> None:
    """The planted twin: a law of its own for every process."""
    kind = KINDS["one value, fresh noise of spread 1"]
    alarms = (bool(difference(kind, 8, 40, seed, LEVEL)) for seed in range(RUNS))
    assert is_above(alarms, RUNS, LEVEL)


def test_cells_that_follow_from_the_draws_of_one_process_accuse_more_often(
    is_above: IsAbove,
) -> None:
    """The planted twin: cells may follow from all draws together only."""

    def alarms() -> Iterator[bool]:
        for seed in range(RUNS):
            rng = np.random.default_rng(seed)
            values, is_d1 = rng.normal(size=(9, 40)), rng.random((9, 40)) < 0.5
            parts = [
                SelectionDraws(from_raw(each), arm) for each, arm in zip(values, is_d1, strict=True)
            ]
            cells = order_free_cells(from_raw(values.ravel()))
            valid = [Division(cell, range(9)) for cell in cells]
            seen = Division(np.isin(values.ravel(), values[0]).astype(np.int64), range(9))
            assert between_processes(parts, valid, 1e-6)[1] == ""
            yield bool(between_processes(parts, [*valid, seen], LEVEL)[1])

    assert is_above(alarms(), RUNS, LEVEL)


def test_a_rule_about_the_order_of_a_set_accuses_processes_with_other_orders(
    is_above: IsAbove,
) -> None:
    """The planted twin: the cells of a rule are for processes with one hash seed only."""
    law = LAWS["numbers_of_a_set"]
    alarms = (
        bool(difference(law, 8, 40, seed, LEVEL, is_order_shared=False)) for seed in range(RUNS)
    )
    assert is_above(alarms, RUNS, LEVEL)
