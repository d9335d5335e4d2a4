"""Rare outputs are learned from an eighth of the draws, over many seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.rules import rare_rule
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw
from tests.unit.attacks.test_rare_outputs import PURE, right_and_wrong


def leaking(
    noise: str, value: float, seed: int, size: int, p: float = 1e-3, *, both: bool = False
) -> SelectionDraws:
    """Return draws of noise, which differs by 1 between the inputs; rarely a value of d1 alone or,
    with `both`, a value of each input."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    made: Any = {
        "Laplace": rng.laplace,
        "normal": rng.normal,
        "decimals": rng.laplace,
        "integers": rng.laplace,
    }[noise](size=size)
    # Rounded last: rounding errors of a sum tell of its parts.
    made = np.round(made + is_d1, {"decimals": 1, "integers": 0}.get(noise, 17))
    leaks = rng.random(size) < p
    if both:
        made[leaks] = value + is_d1[leaks]
    else:
        made[leaks & is_d1] = value
    return SelectionDraws(from_raw(made), is_d1)


@pytest.mark.parametrize(("noise", "value", "both"), [
    ("Laplace", 50.0, True), ("Laplace", 1e9, False), ("Laplace", 0.25, True),
    ("normal", 0.25, False), ("integers", 50.0, False),
])  # fmt: skip
def test_natural_tails_do_not_dilute_a_clear_value(noise: str, value: float, both: bool) -> None:
    """An eighth of 100 / p draws is learned from; the others refute, at the share of the rule."""
    refuted = 0
    for seed in range(20):
        draws = leaking(noise, value, seed, 12_500, both=both)
        tables = [RareTable.of(draws, often) for often in (10, 100)]
        found = rare_rule(tables, Objective(PURE, 87_500))
        assert found is not None
        later = leaking(noise, value, 100 + seed, 87_500, both=both)
        right, wrong = right_and_wrong(found[0], later)
        chance = binom.sf(right - 1, right + wrong, 1 / (1 + np.exp(-1)))
        refuted += chance <= 0.08 * 0.75 * 0.01
    assert refuted >= 18
