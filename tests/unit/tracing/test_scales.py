"""The scale that a line draws, and the scales of its noise in the output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import GaussianDP

Rng = np.random.Generator
SIGMA = 5.0
# A record that is added moves the clipped sum by at most 1 in each of two parameters.
CLAIM = GaussianDP(math.sqrt(2) / SIGMA * 1.000001)
PAIRS = [([0, 0, 0], [0, 0]), ([2, -2, 0], [2, -2]), ([3, 1, 2], [3, 1])]


def step(
    records: Sequence[float],
    rng: Rng,
    rate: float = 1.0,
    size: int | None = None,
    start: float = 0.0,
    steps: int = 1,
) -> Any:
    """Train two parameters. Broken unless `size`, the size of a batch, is given."""
    weights = np.full(2, start)
    for _ in range(steps):
        total = np.zeros(2)
        for record in records:
            total += np.clip((record - weights) / 3, -1, 1)
        gradient = total + rng.normal(0.0, SIGMA, size=2)
        gradient /= len(records) if size is None else size
        weights = weights + rate * gradient
    return weights


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("rate", "start", "steps"), [(1.0, 0.25, 1), (0.1, 0.0, 3)])
def test_noise_that_is_divided_by_the_number_of_records_has_the_scales_of_the_output(
    pair: tuple[list[float], list[float]], rate: float, start: float, steps: int
) -> None:
    def trained(records: Sequence[float], rng: Rng) -> Any:
        return step(records, rng, rate, start=start, steps=steps)

    trace = dpaudit.trace(trained, *pair, CLAIM)
    (cause,) = trace.causes
    assert cause.kind == "data-dependent-scale"
    assert cause.line.code == "rng.normal(0.0, SIGMA, size=2)"
    scales = [rate * SIGMA * math.sqrt(steps) / len(records) for records in pair]
    assert trace.sites[0].scales == pytest.approx(scales)


@pytest.mark.parametrize(("pair", "steps"), [(PAIRS[1], 1), (PAIRS[2], 3)])
def test_a_public_size_of_a_batch_is_no_cause(
    pair: tuple[list[float], list[float]], steps: int
) -> None:
    def trained(records: Sequence[float], rng: Rng) -> Any:
        return step(records, rng, size=3, steps=steps)

    claim = GaussianDP(math.sqrt(steps) * CLAIM.mu)
    assert dpaudit.trace(trained, *pair, claim).findings == ()


def test_random_first_weights_are_noise_that_the_output_contains() -> None:
    def trained(records: Sequence[float], rng: Rng) -> Any:
        start = rng.uniform(-1.0, 1.0, size=2)
        gradient = sum(records) / 10 + rng.normal(scale=SIGMA, size=2)
        return start - gradient / 3

    assert dpaudit.trace(trained, [1, 2, 3], [1, 2], CLAIM).findings == ()
