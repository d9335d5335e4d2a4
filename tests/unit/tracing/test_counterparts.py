"""Which events of two runs a trace compares, and what it says of a branch that data decide."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproximateDP, PureDP, Trace
from dpaudit.claims import PrivacyClaim

Rng = np.random.Generator
ONE = PureDP(1.0)
Rows = Any


def kinds(trace: Trace) -> list[str]:
    return [cause.kind for cause in trace.causes]


# Noise whose scale depends on the data, and that is added to no number.


def times_the_largest(rows: Rows, rng: Rng) -> Any:
    return float(max(rows) * rng.standard_normal())


def drawn_with_the_largest(rows: Rows, rng: Rng) -> Any:
    return rng.laplace(scale=max(rows))


def quotient_of_a_sum(rows: Rows, rng: Rng) -> Any:
    return (rng.normal(scale=4.0) + rng.normal(scale=3.0)) / len(rows)


def divided_in_place(rows: Rows, rng: Rng) -> Any:
    noise = rng.normal(scale=4.0, size=3)
    noise /= len(rows)
    return noise


@pytest.mark.parametrize(
    ("function", "scales"),
    [
        (times_the_largest, (3.0, 2.0)),
        (drawn_with_the_largest, (3.0, 2.0)),
        (quotient_of_a_sum, (5 / 3, 2.5)),
        (divided_in_place, (4 / 3, 2.0)),
    ],
)
def test_noise_alone_with_a_scale_of_the_data_is_a_cause(
    function: Callable[..., Any], scales: tuple[float, float]
) -> None:
    trace = dpaudit.trace(function, [3, 1, 1], [2, 1], ONE)
    assert kinds(trace) == ["data-dependent-scale"]
    assert trace.sites[0].scales == pytest.approx(scales)


def unused(rows: Rows, rng: Rng) -> Any:
    rng.normal(scale=len(rows))
    return len(rows) + rng.laplace(scale=1.0)


def sign_alone(rows: Rows, rng: Rng) -> Any:
    return bool(rng.normal() / len(rows) > 0), len(rows) + rng.laplace(scale=1.0)


def scaled_back(rows: Rows, rng: Rng) -> Any:
    return rng.laplace(scale=1 / len(rows)) * len(rows) + len(rows)


def nearly_constant(rows: Rows, rng: Rng) -> Any:
    return rng.normal(scale=1 + 1e-6 * len(rows))


@pytest.mark.parametrize(
    ("function", "claim"),
    [
        (unused, ONE),
        (sign_alone, ONE),
        (scaled_back, ONE),
        (nearly_constant, ApproximateDP(1.0, 1e-5)),
    ],
)
def test_a_scale_that_the_output_does_not_show_is_no_cause(
    function: Callable[..., Any], claim: PrivacyClaim
) -> None:
    assert kinds(dpaudit.trace(function, [3, 1, 1], [2, 1], claim)) == []


# Noise with a random sign.


def chosen_sign(rows: Rows, rng: Rng) -> Any:
    return len(rows) + rng.choice([-1, 1]) * np.log(1 - rng.random())


def integer_sign(rows: Rows, rng: Rng) -> Any:
    return len(rows) + (2 * rng.integers(2) - 1) * np.log(rng.random())


def signs_of_a_vector(rows: Rows, rng: Rng) -> Any:
    return np.array([len(rows), 7.0]) + rng.choice([-1, 1], size=2) * np.log(rng.random(2))


@pytest.mark.parametrize("function", [chosen_sign, integer_sign, signs_of_a_vector])
def test_a_random_sign_times_a_logarithm_is_laplace_noise(function: Callable[..., Any]) -> None:
    (cause,) = dpaudit.trace(function, [1, 1], [1], PureDP(0.5)).causes
    assert cause.kind == "too-little-noise"
    assert cause.line.code.startswith("rng.random(")
    assert cause.cost == pytest.approx(1.0, rel=1e-3)
    assert not dpaudit.trace(function, [1, 1], [1], ONE).causes


def one_record_with_noise(rows: Rows, rng: Rng) -> Any:
    record = rows[rng.integers(len(rows))]
    return record + rng.choice([-1, 1]) * np.log(rng.random())


def test_a_record_that_is_picked_at_random_costs_what_the_mixture_costs() -> None:
    trace = dpaudit.trace(one_record_with_noise, [0, 0, 0], [0, 0, 1], PureDP(0.46))
    assert not trace.causes
    costs = [site.cost for site in trace.sites if site.cost]
    assert costs == pytest.approx([math.log(2 / 3 + math.e / 3)], rel=1e-3)


# Groups and branches.


def groups(rows: Rows, rng: Rng) -> list[float]:
    sums = []
    for group in range(3):
        own = [value for name, value in rows if name == group]
        if not own:
            sums.append(0.0)
            continue
        sums.append(sum(own) + rng.laplace(scale=1.0))
    return sums


def noised(value: float, scale: float, rng: Rng) -> Any:
    return value + rng.laplace(scale=scale)


def by_helper(rows: Rows, rng: Rng) -> Any:
    if len(rows) > 1:
        return noised(100.0, 2.0, rng)
    return noised(0.0, 1.0, rng)


def test_groups_are_compared_by_their_iteration() -> None:
    trace = dpaudit.trace(groups, [(0, 5), (2, 7)], [(1, 1), (2, 7)], ONE)
    assert kinds(trace) == ["no-noise"]
    assert [(site.entries, site.shift) for site in trace.sites] == [(1, 0.0)]


def test_calls_of_a_function_from_two_branches_are_not_compared() -> None:
    trace = dpaudit.trace(by_helper, [1, 1], [1], ONE)
    assert {site.shift for site in trace.sites} <= {0.0}
    assert not {"too-little-noise", "data-dependent-scale"} & {*kinds(trace)}
    assert "control-flow" in {finding.kind for finding in trace.findings}


def start_of_another_law(rows: Rows, rng: Rng) -> Any:
    start = rng.normal()
    if not [row for row in rows if row > 0]:
        return start
    return 1.0 + rng.laplace(scale=1.0)


def start_in_any_range(rows: Rows, rng: Rng) -> Any:
    start = rng.uniform(-1e9, 1e9)
    if not [row for row in rows if row > 0]:
        return start
    return 1.0 + rng.laplace(scale=1.0)


@pytest.mark.parametrize("function", [start_of_another_law, start_in_any_range])
def test_a_branch_is_no_cause_if_each_output_is_possible_in_both(
    function: Callable[..., Any],
) -> None:
    trace = dpaudit.trace(function, [-1, -1], [-1, 1], ONE)
    assert not trace.causes
    (finding,) = (one for one in trace.findings if one.kind == "control-flow")
    assert finding.line.code.startswith("if not")


# Noise that a trace does not see.


def unseen() -> float:
    return int.from_bytes(os.urandom(4), "big") / 2**32


def as_many_as_rows(rows: Rows) -> list[float]:
    return [unseen() for _ in rows]


def always_three(rows: Rows) -> list[float]:
    return [len(rows) + unseen() for _ in range(3)]


def test_an_array_of_uniform_numbers_that_is_compared_with_a_number_is_a_choice_for_each() -> None:
    def chosen(rows: Rows, rng: Rng) -> Any:
        kept = rng.random(3) < 0.5
        return [float(sum(kept)) + rng.laplace(scale=3.0) for _ in rows]

    trace = dpaudit.trace(chosen, [0, 0, 0], [0, 0], ONE)
    assert [cause.kind for cause in trace.causes] == ["no-noise"]


def test_a_length_without_noise_is_a_cause_beside_noise_that_is_not_seen() -> None:
    (cause,) = dpaudit.trace(as_many_as_rows, [1, 1], [1], ONE).causes
    assert (cause.kind, cause.words.split()[0]) == ("no-noise", "len(output)")
    assert not dpaudit.trace(always_three, [1, 1], [1], ONE).causes
