"""Whole audits show more when they learn from half of few draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP
from dpaudit.auditing.schedule import Plan


def one_of_a_thousand(dataset: int, size: int, rng: np.random.Generator) -> Any:
    """Return randomised response with 1,000 answers at ε = 2; d1 and d2 are two of them."""
    honest = rng.random(size) < (math.exp(2) - 1) / (math.exp(2) + 999)
    return np.where(honest, dataset, rng.integers(1_000, size=size))


def test_half_of_few_draws_shows_what_an_eighth_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def misses(most: int) -> int:
        """Return the number of 24 audits that show less than ½, at most `most`."""
        missed = 0
        for seed in range(24):
            found = dpaudit.audit(one_of_a_thousand, 0, 1, PureDP(2.0), samples=20_000, seed=seed)
            missed += found.epsilon_lower <= 0.5
            if missed == most:
                break
        return missed

    with_half = misses(3)
    monkeypatch.setattr(Plan, "extend_buffer", lambda plan: False)
    assert with_half <= 2
    assert misses(with_half + 4) == with_half + 4
