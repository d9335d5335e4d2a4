"""An output that only one input gives: what a pass says would have been refuted, is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import PureDP
from dpaudit.stats.power import POWER

Interval = Callable[[int, int], tuple[float, float]]

SAMPLES, RUNS = 10_000, 40


def rare_output(bit: int, size: int, rng: np.random.Generator, p: float) -> Any:
    """Laplace noise that attains ε = 1, and 1e9 with probability p for d1 alone."""
    noisy = bit + rng.laplace(size=size)
    return np.where(rng.random(size) < (0.0 if bit else p), 1e9, noisy)


def audited(p: float, seed: int) -> AuditResult:
    mechanism = partial(rare_output, p=p)
    return dpaudit.audit(mechanism, 0, 1, PureDP(1.0), samples=SAMPLES, seed=seed, no_trace=True)


def refutations(p: float) -> int:
    return sum(audited(p, seed).verdict is Verdict.VIOLATION for seed in range(RUNS))


def detectable() -> float:
    (certificate,) = audited(0.0, 0).certificates
    assert certificate.detectable_rare is not None
    return certificate.detectable_rare


def test_an_output_as_rare_as_a_pass_says_is_refuted_in_9_of_10_runs(share: Interval) -> None:
    assert share(refutations(detectable()), RUNS)[1] >= POWER


def test_an_output_a_third_as_probable_mostly_is_not(share: Interval) -> None:
    assert share(refutations(detectable() / 3), RUNS)[1] < 0.5
