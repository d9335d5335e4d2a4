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


def divided_in_place(rows: Rows, rng: Rng) -> Any:
    noise = rng.normal(scale=4.0, size=3)
    noise /= len(rows)
    return noise


@pytest.mark.parametrize(
    ("function", "scales"),
    [
        (lambda rows, rng: rng.laplace(scale=max(rows)), (3.0, 2.0)),
        (lambda rows, rng: (rng.normal(scale=4) + rng.normal(scale=3)) / len(rows), (5 / 3, 2.5)),
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


@pytest.mark.parametrize(
    ("function", "claim"),
    [
        (unused, ONE),
        (lambda rows, rng: rng.laplace(scale=1 / len(rows)) * len(rows) + len(rows), ONE),
        (lambda rows, rng: rng.normal(scale=1 + 1e-6 * len(rows)), ApproximateDP(1.0, 1e-5)),
    ],
)
def test_a_scale_that_the_output_does_not_show_is_no_cause(
    function: Callable[..., Any], claim: PrivacyClaim
) -> None:
    assert kinds(dpaudit.trace(function, [3, 1, 1], [2, 1], claim)) == []


@pytest.mark.parametrize(
    "function",
    [
        lambda rows, rng: len(rows) + rng.choice([-1, 1]) * np.log(1 - rng.random()),
        lambda rows, rng: (
            np.array([len(rows), 7.0]) + rng.choice([-1, 1], size=2) * np.log(rng.random(2))
        ),
    ],
)
def test_a_random_sign_times_a_logarithm_is_laplace_noise(function: Callable[..., Any]) -> None:
    (cause,) = dpaudit.trace(function, [1, 1], [1], PureDP(0.5)).causes
    assert cause.kind == "too-little-noise"
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
        values = [value for name, value in rows if name == group]
        if not values:
            sums.append(0.0)
            continue
        sums.append(sum(values) + rng.laplace(scale=1.0))
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


def test_a_branch_is_no_cause_if_each_output_is_possible_in_both() -> None:
    trace = dpaudit.trace(start_of_another_law, [-1, -1], [-1, 1], ONE)
    assert not trace.causes
    (finding,) = (finding for finding in trace.findings if finding.kind == "control-flow")
    assert finding.line.code.startswith("if not")


def unseen() -> float:
    return int.from_bytes(os.urandom(4), "big") / 2**32


def test_an_array_of_uniform_numbers_that_is_compared_with_a_number_is_a_choice_for_each() -> None:
    def chosen(rows: Rows, rng: Rng) -> Any:
        kept = rng.random(3) < 0.5
        return [float(sum(kept)) + rng.laplace(scale=3.0) for _ in rows]

    trace = dpaudit.trace(chosen, [0, 0, 0], [0, 0], ONE)
    assert [cause.kind for cause in trace.causes] == ["no-noise"]


def test_a_length_without_noise_is_a_cause_beside_noise_that_is_not_seen() -> None:
    (cause,) = dpaudit.trace(lambda rows: [unseen() for _ in rows], [1, 1], [1], ONE).causes
    assert (cause.kind, cause.words.split()[0]) == ("no-noise", "len(output)")
    assert not dpaudit.trace(lambda rows: [len(rows) + unseen()], [1, 1], [1], ONE).causes
