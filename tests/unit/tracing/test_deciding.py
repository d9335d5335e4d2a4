"""Noise that decides a part of the output by a comparison, which few runs may not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.claims import PureDP

Rng = np.random.Generator


def coin(bit: int, rng: Rng) -> int:
    """4-DP."""
    return bit if rng.laplace() < 3.2 else 1 - bit


def coins(bit: int, rng: Rng) -> int:
    """Of four numbers, one is enough."""
    return bit if (rng.laplace(size=4) < 6).all() else 1 - bit


def whole(bit: int, rng: Rng) -> int:
    return bit if rng.geometric(0.5) < 7 else 1 - bit


def fails(bit: int, rng: Rng) -> float:
    if (rng.normal() < 2.5) == bool(bit):
        raise ValueError("no")
    return 0.0


@pytest.mark.parametrize("mechanism", [coin, coins, whole, fails])
def test_a_comparison_that_is_nearly_always_true_is_noise_too(mechanism: Any) -> None:
    found = dpaudit.trace(mechanism, 0, 1, PureDP(8.0))
    assert found.causes == ()
    assert found.total is None
    assert "no pass" in " ".join(found.notes) or found.findings


def never(bit: int, rng: Rng) -> int:
    """Noise that would decide it once in 10¹⁴ draws."""
    return bit if rng.laplace() < 32 else 1 - bit


def withheld(bit: int, rng: Rng) -> int | None:
    """What one input alone gives is withheld now and then."""
    return bit if rng.laplace() < 3.2 else None


def beside(bit: int, rng: Rng) -> tuple[int, bool]:
    return bit, bool(rng.laplace() < 3.2)


@pytest.mark.parametrize("mechanism", [never, withheld, beside])
def test_noise_that_makes_neither_input_like_the_other_hides_nothing(mechanism: Any) -> None:
    (cause,) = dpaudit.trace(mechanism, 0, 1, PureDP(8.0)).causes
    assert cause.kind == "no-noise"
    assert "no noise hides the difference" in cause.words


@pytest.mark.parametrize("d2", [0.02, 0.5])
def test_a_remainder_hides_a_number_though_it_hardly_ever_turns_over(d2: float) -> None:
    """Without runs at the ends of its range, the uniform number seems to be in the output."""

    def padded(value: float, rng: Rng) -> float:
        return float((value + rng.random()) % 1)

    assert not dpaudit.trace(padded, 0.01, d2, PureDP(1.0)).causes
