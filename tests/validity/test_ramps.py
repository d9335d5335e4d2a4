"""Ramps in whole audits: smoothed levels certify more."""

from __future__ import annotations

import numpy as np

import dpaudit


def test_the_rare_outputs_of_normal_noise_are_foretold_by_the_frequent_ones() -> None:
    """An oracle reaches 3.35 with as many draws; on counts as they are, 3.0 is usual."""

    def noisy(x: float, size: int, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.normal(x, 1.0, size))

    claim = dpaudit.ApproximateDP(4.3768, 1e-5)
    bounds = [
        dpaudit.audit(
            noisy, 0.0, 1.0, claim, samples=1_000_000, seed=seed, stop="never"
        ).epsilon_lower
        for seed in range(3)
    ]
    assert np.median(bounds) > 3.15
    assert max(bounds) < 4.3768
