"""Where a few coins are all that is random, the laws of the output are exact."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyClaim, PureDP, RenyiDP
from dpaudit.import_path import resolve
from dpaudit.targets.target import AnyTarget, CallableTarget, ImportedTarget
from dpaudit.tracing.mechanism_trace import subject_of, trace_pair
from dpaudit.tracing.runs.coins import Laws, laws_of
from dpaudit.tracing.runs.running import Coupler
from mechanisms.truth import epsilon_of as true_epsilon
from mechanisms.truth import truth_of


def laws(target: AnyTarget, d1: Any, d2: Any) -> Laws | None:
    return laws_of(Coupler(subject_of(target), (d1, d2)))


def of(function: Callable[..., Any], d1: Any = 0, d2: Any = 1) -> Laws | None:
    return laws(CallableTarget(function=function), d1, d2)


@pytest.mark.parametrize(
    ("path", "d1", "d2", "params"),
    [
        ("survey:survey", "Yes", "No", {"heads": 0.25}),
        ("poll:repeated_poll", 0, 1, {"runs": 3}),
        ("local:rappor", 0, 1, {}),
        ("exponential:common_disease", [0, 0, 1, 2], [0, 1, 1, 2], {}),
        ("indistinguishable:chain", [0, 0], [1, 0], {}),
        ("pdp:counterexample", 0, 1, {}),
    ],
)
def test_they_are_those_that_are_stated(path: str, d1: Any, d2: Any, params: Any) -> None:
    target = ImportedTarget(path=f"mechanisms.{path}", params=params)
    result = laws(target, d1, d2)
    assert result is not None
    truth = truth_of(resolve(f"mechanisms.{path}"))
    first, second = truth.pmf(d1, **params), truth.pmf(d2, **params)
    for law, stated in ((result.first, first), (result.second, second)):
        likely = sorted(p for p in stated.values() if p > 0)
        assert sorted(p for p in law if p > 0) == pytest.approx(likely, rel=1e-9)
    assert result.epsilon == pytest.approx(true_epsilon(first, second), rel=1e-9)


def ladder(x: int, rng: np.random.Generator) -> str:
    u = rng.random()
    if u < 0.2 + 0.1 * x:
        return "low"
    if u > 0.75:
        return "high"
    return "middle" if u >= 0.5 else "lower"


def test_a_number_that_is_compared_several_times() -> None:
    result = of(ladder)
    assert result is not None
    assert sorted(result.first) == pytest.approx([0.2, 0.25, 0.25, 0.3], abs=1e-12)
    assert sorted(result.second) == pytest.approx([0.2, 0.25, 0.25, 0.3], abs=1e-12)
    assert result.epsilon == pytest.approx(math.log(1.5), rel=1e-9)


def impossible(x: int, rng: np.random.Generator) -> int:
    u = rng.random()
    if u < 0.5:
        return 0
    return 1 if u < 0.4 else 2  # never 1


def test_what_an_earlier_comparison_excludes_is_impossible() -> None:
    result = of(impossible)
    assert result is not None
    assert sorted(p for p in result.first if p > 0) == pytest.approx([0.5, 0.5])


def retried(x: int, rng: np.random.Generator) -> int:
    while True:
        answer = int(rng.integers(2))
        if rng.random() < (0.75 if answer == x else 0.25):
            return answer


def a_piece_of_it(x: int, rng: np.random.Generator) -> int:
    u = rng.random()
    return 0 if u < 0.5 else int(np.float64(u).hex()[5:7], 16) % 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rng: x + rng.laplace() if rng.random() < 0.5 else 0.0,
        a_piece_of_it,
        lambda x: x ^ (os.urandom(1)[0] % 2) ^ random.randrange(2),
        lambda x, rng: sum(rng.random() < 0.5 for _ in range(40)),
        retried,
        lambda x, rng: bool(rng.random() < (np.nan if x else 0.5)),
    ],
)
def test_where_other_things_are_random_or_odds_are_no_number_there_are_none(
    function: Callable[..., Any],
) -> None:
    assert of(function) is None


def response(x: int, rng: np.random.Generator) -> int:
    return x if rng.random() < 0.75 else 1 - x


def rarely(x: int, rng: np.random.Generator) -> str:
    return "seen" if x and rng.random() < 0.02 else "-"


@pytest.mark.parametrize(
    ("function", "claim", "is_refuted"),
    [
        (response, PureDP(math.log(3) + 1e-9), False),
        (response, PureDP(1.09), True),
        (response, RenyiDP(2.0, 0.8474), False),
        (response, RenyiDP(2.0, 0.847), True),
        (response, GaussianDP(1.0), True),
        (response, GaussianDP(1.4), False),
        (rarely, ApproximateDP(1.0, 0.02), False),
        (rarely, ApproximateDP(1.0, 0.019), True),
        (rarely, None, True),
        (response, None, False),
    ],
)
def test_the_laws_decide(
    function: Callable[..., Any], claim: PrivacyClaim | None, is_refuted: bool
) -> None:
    trace = trace_pair(CallableTarget(function=function), 0, 1, claim)
    assert bool(trace.causes) is is_refuted


def close(x: int, rng: np.random.Generator) -> float:
    """Of equal numbers but for the last digit, at a tie of decimal rounding."""
    tie = 2.0**-13
    return (tie if x else tie * (1 + 2**-52)) if rng.random() < 0.5 else -0.0 * (1 - 2 * x)


def large(x: int, rng: np.random.Generator) -> int:
    return 12_345_678_901 + (x if rng.random() < 0.75 else 1 - x)


def test_outputs_are_one_that_differ_by_rounding_only() -> None:
    result = of(close)
    assert result is not None
    assert result.first == result.second == [0.5, 0.5]
    result = of(large)
    assert result is not None
    assert result.epsilon == pytest.approx(math.log(3))


def test_a_loop_that_rejects_is_no_certain_cause() -> None:
    target = CallableTarget(function=retried)
    assert not trace_pair(target, 0, 1, PureDP(math.log(3) + 1e-9)).causes


def masked_in_a_loop(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln(0.68/0.32): two coins of 0.8 on one line."""
    answers = []
    for x in data:
        for _ in range(2):
            x ^= int(rng.random() < 0.2)
        answers.append(x)
    return answers


def counted_in_a_loop(data: list[int], rng: np.random.Generator) -> int:
    return sum(masked_in_a_loop(data, rng))


def two_steps(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln 3."""
    return [x if rng.random() < 0.5 else int(rng.integers(2)) for x in data]


def counted(data: list[int], rng: np.random.Generator) -> int:
    return sum(two_steps(data, rng))


@pytest.mark.parametrize(
    ("function", "epsilon", "many"),
    [
        (counted, math.log(3), 20),
        (masked_in_a_loop, math.log(0.68 / 0.32), 80),
        (counted_in_a_loop, math.log(0.68 / 0.32), 9),
    ],
)
def test_no_more_than_one_answer_costs_is_a_cause(
    function: Callable[..., Any], epsilon: float, many: int
) -> None:
    d1, d2 = [0, 1] * (many // 2) + [0], [0, 1] * (many // 2) + [1]
    target = CallableTarget(function=function)
    assert not trace_pair(target, d1, d2, PureDP(epsilon * (1 + 1e-9))).causes


def one_coin_each(data: list[int], rng: np.random.Generator) -> list[int]:
    return [x if rng.random() < 0.95 else 1 - x for x in data]


def test_a_poll_of_twenty_costs_one_answer() -> None:
    target = CallableTarget(function=one_coin_each)
    trace = trace_pair(target, [0] * 20, [0] * 19 + [1], PureDP(1.0))
    assert trace.total == f"ε = {math.log(19):.4g}"
    assert trace.causes[0].cost == pytest.approx(math.log(19))


def two_dice(x: int, rng: np.random.Generator) -> tuple[float, list[int]]:
    """ln 81 for the answers, next to noise of ε = 1/2."""
    answers = [x if random.randrange(10) > 0 else 1 - x for _ in range(2)]
    return x + rng.laplace(scale=2), answers


def two_dice_and_unused_noise(x: int, rng: np.random.Generator) -> tuple[float, list[int]]:
    rng.normal()
    return two_dice(x, rng)


def one_die(x: int, rng: np.random.Generator) -> tuple[float, int]:
    return x + rng.laplace(scale=2), x if random.randrange(10) > 0 else 1 - x


@pytest.mark.parametrize("function", [two_dice, two_dice_and_unused_noise])
def test_choices_that_only_together_hide_an_entry_next_to_other_noise_are_no_pass(
    function: Callable[..., Any],
) -> None:
    trace = trace_pair(CallableTarget(function=function), 0, 1, PureDP(5.0))
    kinds = [(f.kind, f.is_cause) for f in trace.findings if f.kind != "unused-noise"]
    assert kinds == [("no-noise", False)]
    assert (trace.total, trace.understood) == (None, False)


def test_a_choice_that_alone_hides_an_entry_next_to_other_noise_is_listed() -> None:
    trace = trace_pair(CallableTarget(function=one_die), 0, 1, PureDP(5.0))
    assert (trace.findings, trace.total) == ((), None)
    assert {site.primitive: site.cost for site in trace.sites} == {"rng.laplace": 0.5, "coin": None}
