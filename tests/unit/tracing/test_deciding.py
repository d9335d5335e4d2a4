"""Noise that decides a part of the output by a comparison, which few runs may not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.claims import PureDP

Rng = np.random.Generator


def fails(bit: int, rng: Rng) -> float:
    if (rng.normal() < 2.5) == bool(bit):
        raise ValueError("no")
    return 0.0


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda bit, rng: bit if (rng.laplace(size=4) < 6).all() else 1 - bit,
        lambda bit, rng: bit if rng.geometric(0.5) < 7 else 1 - bit,
        fails,
    ],
)
def test_a_comparison_that_is_nearly_always_true_is_noise_too(mechanism: Any) -> None:
    trace = dpaudit.trace(mechanism, 0, 1, PureDP(8.0))
    assert trace.causes == ()
    assert trace.total is None
    assert "no pass" in " ".join(trace.notes) or trace.findings


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda bit, rng: bit if rng.laplace() < 32 else 1 - bit,  # else once in 10¹⁴ draws
        lambda bit, rng: bit if rng.laplace() < 3.2 else None,
        lambda bit, rng: (bit, bool(rng.laplace() < 3.2)),
    ],
)
def test_noise_that_makes_neither_input_like_the_other_hides_nothing(mechanism: Any) -> None:
    (cause,) = dpaudit.trace(mechanism, 0, 1, PureDP(8.0)).causes
    assert cause.kind == "no-noise"


@pytest.mark.parametrize("d2", [0.02, 0.5])
def test_a_remainder_hides_a_number_though_it_hardly_ever_turns_over(d2: float) -> None:
    """Without runs at the ends of its range, the uniform number seems to be in the output."""

    def padded(value: float, rng: Rng) -> float:
        return float((value + rng.random()) % 1)

    assert not dpaudit.trace(padded, 0.01, d2, PureDP(1.0)).causes
