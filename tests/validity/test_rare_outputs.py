"""An output that only one input gives is refuted as often as a pass says, rare or frequent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import GaussianDP, PrivacyClaim, PureDP
from dpaudit.stats.power import POWER

IsBelow = Callable[[Iterable[bool], int, float], bool]


def laplace(bit: int, size: int, rng: np.random.Generator, *, epsilon: float) -> Any:
    return bit + rng.laplace(scale=1 / epsilon, size=size)


def geometric(bit: int, size: int, rng: np.random.Generator, *, epsilon: float) -> Any:
    ratio = -np.expm1(-epsilon)
    return bit + (rng.geometric(ratio, size=size) - rng.geometric(ratio, size=size)).astype(float)


def normal(bit: int, size: int, rng: np.random.Generator, *, mu: float) -> Any:
    return bit + rng.normal(scale=1 / mu, size=size)


# Noise that attains the claim, the claim, and draws.
SETTINGS: dict[str, tuple[Any, PrivacyClaim, int]] = {
    "Laplace, ε = 1": (partial(laplace, epsilon=1.0), PureDP(1.0), 10_000),
    "Laplace, ε = 5": (partial(laplace, epsilon=5.0), PureDP(5.0), 40_000),
    "geometric, ε = 6": (partial(geometric, epsilon=6.0), PureDP(6.0), 100_000),
    "normal, μ = 1": (partial(normal, mu=1.0), GaussianDP(1.0), 40_000),
}
RUNS = 20


def rare_output(bit: int, size: int, rng: np.random.Generator, *, noise: Any, p: float) -> Any:
    """Noise, and 1e9 with probability p for d1 = 0 alone."""
    noisy = noise(bit, size, rng)
    return np.where(rng.random(size) < (0.0 if bit else p), 1e9, noisy)


def audited(name: str, p: float, seed: int) -> AuditResult:
    noise, claim, samples = SETTINGS[name]
    mechanism = partial(rare_output, noise=noise, p=p)
    return dpaudit.audit(mechanism, 0, 1, claim, samples=samples, seed=seed, no_trace=True)


def refutations(name: str, p: float) -> Iterator[bool]:
    return (audited(name, p, seed).verdict is Verdict.VIOLATION for seed in range(RUNS))


def detectable(name: str) -> float:
    (certificate,) = audited(name, 0.0, 0).certificates
    assert certificate.detectable_rare is not None
    return certificate.detectable_rare


# All but the first and the fourth repeat more than 100 times among the draws to learn from.
@pytest.mark.parametrize(("name", "times"), [
    ("Laplace, ε = 1", 1), ("Laplace, ε = 5", 1), ("geometric, ε = 6", 1),
    ("normal, μ = 1", 1), ("normal, μ = 1", 5),
])  # fmt: skip
def test_an_output_as_frequent_as_a_pass_says_is_refuted_in_9_of_10_runs(
    is_below: IsBelow, name: str, times: int
) -> None:
    assert not is_below(refutations(name, times * detectable(name)), RUNS, POWER)


def test_an_output_a_third_as_probable_mostly_is_not(is_below: IsBelow) -> None:
    name = "Laplace, ε = 1"
    assert is_below(refutations(name, detectable(name) / 3), RUNS, 0.5)
