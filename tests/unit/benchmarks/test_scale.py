"""The model of cost: blocks, outcomes in memory and time for budgets of any size."""

from __future__ import annotations

import pytest

from dpaudit.auditing.schedule import Plan, limits_for


@pytest.mark.parametrize("columns", [1, 1_000])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("budget", [10**6, 10**9, 10**11])
def test_blocks_stay_few_and_what_is_held_small(budget: int, single: bool, columns: int) -> None:
    plan = Plan(budget, None, limits_for(columns, single_draws=single))
    sizes = list(plan.certifying_sizes(plan.freeze_at))
    assert sum(sizes) == budget - plan.freeze_at
    assert len(sizes) < 17_000
    assert plan.limits.block * columns <= 4_000_000
    assert max(sizes) <= max(plan.limits.block, min(budget // 200, 524_288), budget // 16_384)
    confirming = list(plan.confirming_sizes(budget // 2))
    assert sum(confirming) == budget // 2
    assert len(confirming) < 17_000
