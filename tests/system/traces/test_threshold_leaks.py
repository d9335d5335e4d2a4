"""What one input alone may have in its output costs a δ, which the law of the noise tells."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP, PrivacyClaim
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import trace_pair

pytestmark = pytest.mark.usefixtures("shared_runs")
D1, D2 = ["a", "a", "c", "c"], ["a", "a", "b", "c", "c"]
TAU = 1 - math.log(2 * 0.01)


def counts(data: Sequence[str], tau: float, rng: np.random.Generator) -> dict[str, float]:
    released = {}
    for key, count in Counter(data).items():
        noisy = count + rng.laplace(scale=1.0)
        if noisy >= tau:
            released[key] = noisy
    return released


def keys(data: Sequence[str], tau: float, rng: np.random.Generator) -> list[str]:
    return sorted(k for k, count in Counter(data).items() if tau - count < rng.normal(0, 1))


def whole(data: Sequence[str], tau: float, rng: np.random.Generator) -> list[str]:
    p = 1 - math.exp(-1.0)
    released = []
    for key, count in sorted(Counter(data).items()):
        noise = rng.geometric(p) - rng.geometric(p)
        if count + noise > tau:
            released.append(key)
    return released


def arrays(data: Sequence[str], tau: float, rng: np.random.Generator) -> list[str]:
    words, many = np.unique(data, return_counts=True)
    return sorted(words[many + rng.laplace(size=len(many)) > tau].tolist())


LAPLACE, NORMAL = 0.01, 1 - NormalDist().cdf(TAU - 1)


@pytest.mark.parametrize(
    ("function", "delta"),
    [(counts, LAPLACE), (keys, NORMAL)],
)
def test_the_probability_is_held_against_delta(function: Callable[..., Any], delta: float) -> None:
    target = CallableTarget(function=function, params={"tau": TAU})
    assert not trace_pair(target, D1, D2, ApproximateDP(20.0, delta * 1.001)).causes
    claims: tuple[PrivacyClaim, ...] = (
        ApproximateDP(20.0, delta * 0.999),
        ApproximateDP(1.0, delta / 2),
    )
    for claim in claims:
        causes = trace_pair(target, D1, D2, claim).causes
        assert [cause.kind for cause in causes] == ["too-little-noise"]
        assert f"probability {delta:.4g}" in causes[0].words
        assert "d2 alone" in causes[0].words
        assert "d1 alone" in trace_pair(target, D2, D1, claim).causes[0].words


@pytest.mark.parametrize("function", [counts, whole, arrays])
@pytest.mark.parametrize(("d1", "d2"), [(D1, D1[1:]), (["a"], ["a", "a"])])
def test_what_both_may_have_is_no_cause(
    function: Callable[..., Any], d1: list[str], d2: list[str]
) -> None:
    target = CallableTarget(function=function, params={"tau": TAU})
    assert not trace_pair(target, d1, d2, ApproximateDP(20.0, 1e-9)).causes


@pytest.mark.parametrize("d2", [["a", "a", "b"], ["a"] * 30 + ["b"]])
def test_of_arrays_only_what_one_input_alone_has_is_named(d2: list[str]) -> None:
    target = CallableTarget(function=arrays, params={"tau": TAU})
    claim: PrivacyClaim = ApproximateDP(1.0, LAPLACE * 1.001)
    for pair in ((d2[:-1], d2), (d2, d2[:-1])):
        assert not trace_pair(target, *pair, claim).causes
        for cause in trace_pair(target, *pair, ApproximateDP(1.0, LAPLACE / 2)).causes:
            assert "releases 'b'" in cause.words


def rare_in_both(data: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Whoever is there, "x" is shown where two pieces of noise are both large."""
    released = [key for key in data if rng.laplace() > 9]
    if rng.laplace() > 9 and rng.laplace() > 9:
        released.append("b")
    return released


def test_what_takes_two_pieces_of_noise_is_possible() -> None:
    target = CallableTarget(function=rare_in_both)
    assert not trace_pair(target, ["a"], ["a", "b"], ApproximateDP(1.0, 1e-9)).causes


def winner(data: Sequence[str], tau: float, rng: np.random.Generator) -> str | None:
    """The key that occurs most, as noise has it, if that is above a threshold."""
    noisy = {k: v + rng.laplace(scale=2) for k, v in sorted(Counter(data).items())}
    best = max(noisy, key=lambda key: noisy[key])
    return best if noisy[best] > tau else None


@pytest.mark.parametrize("key", ["b", "z"])
def test_what_other_noise_has_a_say_in_is_less_likely_than_its_threshold_says(key: str) -> None:
    """Noise of `a` alone, far below, does not release another key."""
    target = CallableTarget(function=winner, params={"tau": 1 + 2 * math.log(50)})
    many = ["a"] * 8
    for pair in (([*many, key], many), (many, [*many, key])):
        assert not trace_pair(target, *pair, ApproximateDP(1.0, 0.01)).causes
