"""Remedies fit what leaks, and their numbers suffice."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.certificates.traced import Finding
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.findings.words import FOR_LINE, FOR_PAIR, WHOLE, rounded_up, same_parts, times
from dpaudit.tracing.trace import trace_pair

FIXED = "release the same values for every input, from a fixed list of keys"
CLAIM = ApproximateDP(1.0, 1e-5)
PURE = f"{FIXED}; or claim a δ above 0, and leave out noisy counts below a threshold"


def cause(function: Any, d1: Any, d2: Any, claim: PrivacyClaim | None = None) -> Finding:
    target = CallableTarget(function=function)
    (found,) = trace_pair(target, d1, d2, claim or PureDP(1.0)).causes
    return found


def histogram(rows: Any, rng: Any) -> Any:
    return {key: many + rng.laplace(scale=1) for key, many in sorted(Counter(rows).items())}


def series(rows: Any, rng: Any) -> Any:
    counts = pd.Series(Counter(rows))
    return counts + rng.laplace(scale=2, size=len(counts))


def fixed(rows: Any, rng: Any) -> Any:
    return {key: rows.count(key) + rng.laplace(scale=2) for key in "abc"}


def bare(rows: Any, rng: Any) -> Any:
    return {key: rows.count(key) for key in "abc"}


def test_keys_of_the_data_leak_though_their_counts_have_noise() -> None:
    found = cause(histogram, ["a", "b", "b"], ["a", "c", "c"])
    assert (found.kind, found.words[:15]) == ("no-noise", "output['b'] is ")
    assert found.remedy == PURE
    found = cause(histogram, ["a", "c", "d"], ["a", "b", "b"])
    assert found.words.startswith("`rng.laplace(scale=1)` draws 3 times for d1 and twice for d2")
    assert found.remedy == PURE


def test_only_parts_of_the_same_input_are_counted_as_more() -> None:
    found = cause(histogram, ["a", "b", "c"], ["a", "d", "e"])
    assert (found.kind, found.words[:24]) == ("no-noise", "output['b'] (and 1 more)")


def test_a_claim_with_a_delta_allows_a_threshold() -> None:
    found = cause(histogram, ["a", "b"], ["a", "c"], ApproximateDP(1.0, 1e-6))
    assert found.remedy == same_parts(CLAIM) != PURE
    assert [" δ above 0" in one for one in (PURE, found.remedy)] == [True, False]


def test_the_index_of_a_series_is_keys() -> None:
    assert cause(series, ["a", "b"], ["a", "c"]).remedy == PURE


def test_values_without_noise_of_fixed_keys_need_noise() -> None:
    assert cause(bare, ["a", "b"], ["a", "c"]).remedy.startswith("add noise ")
    assert not trace_pair(
        CallableTarget(function=fixed), ["a", "b"], ["a", "c"], PureDP(1.0)
    ).causes


def test_once_is_said_of_one_time() -> None:
    found = cause(histogram, ["a", "b"], ["a"])
    assert "draws twice for d1 and once for d2: " in found.words
    assert [times(0), times(1), times(2), times(3)] == ["0 times", "once", "twice", "3 times"]


def total(rows: Any, rng: Any) -> Any:
    return sum(rows) + rng.laplace(scale=1 / 1.0)


def clipped(rows: Any, rng: Any) -> Any:
    return sum(min(one, 10) for one in rows) + rng.laplace(scale=5)


def incomes(rows: Any, rng: Any) -> Any:
    return sum(row["income"] for row in rows) + rng.normal(scale=2)


def whole(rows: Any, rng: Any) -> Any:
    return sum(rows) + rng.geometric(0.9) - rng.geometric(0.9)


ONE_MORE, OF_TWO = WHOLE


@pytest.mark.parametrize(
    ("function", "d1", "d2", "change", "remedy"),
    [
        (total, [1, 1, 50], [1, 1], f"50, {ONE_MORE}", "clip each record to [-1, 1] "),
        (total, [1, 1], [1, 1, -7.5], f"7.5, {ONE_MORE}", "clip each record to [-1, 1] "),
        (total, [50, 1], [1, 20], f"30, {OF_TWO}", "clip each record to a range of width 1 "),
        (
            incomes,
            [{"id": 3, "income": 50}, {"id": 4, "income": 60}],
            [{"id": 3, "income": 50}],
            f"60, {ONE_MORE}",
            "clip each record to [-0.536",
        ),
        # What is bounded, or may be a count, is not the record.
        (clipped, [1, 50], [1], "10", "a scale of 10 would do"),
        (clipped, [1, 50], [1, 2], "8", "a scale of 8 would do"),
        (lambda rows, rng: len(rows) + rng.laplace(scale=0.5), [1, 2], [1], "1", "a scale of 1"),
        (lambda rows, rng: sum(rows) + rng.laplace(scale=0.5), [2, 1], [2], "1", "a scale of 1"),
        # Nor of several records, of texts and truths, or of what are no records.
        (total, [1, 30, 20], [1], "50", "a scale of 50"),
        (lambda x, rng: x + rng.laplace(), 50, 0, "50", "a scale of 50"),
        (lambda rows, rng: 9 * len(rows) + rng.laplace(), ["b", "a"], ["a"], "9", "a scale of 9"),
        # A bound below 1 is none for whole numbers.
        (whole, [50, 3], [3], f"50, {ONE_MORE}", "a scale of 50"),
    ],
)
def test_a_change_of_a_whole_record_is_said_with_the_bound_that_would_do(
    function: Any, d1: Any, d2: Any, change: str, remedy: str
) -> None:
    found = next(iter(trace_pair(CallableTarget(function=function), d1, d2, CLAIM).causes))
    assert f" a change of {change}: " in found.words
    assert found.remedy.startswith(remedy)


def test_records_clipped_as_the_remedy_says_leak_no_more() -> None:
    def bounded(rows: Any, rng: Any, most: float) -> Any:
        return sum(min(max(one, -most), most) for one in rows) + rng.laplace(scale=0.7)

    target = CallableTarget(function=bounded, params={"most": 1e9})
    (found,) = trace_pair(target, [1, 50], [1], PureDP(0.3)).causes
    most = float(found.remedy.split("[-")[1].split(",")[0])
    assert 0.2099 <= most <= 0.21
    target = CallableTarget(function=bounded, params={"most": most})
    assert not trace_pair(target, [1, 50], [1], PureDP(0.3)).causes


@pytest.mark.parametrize("epsilon", [0.03, 0.3, 1.0, 7.0])
def test_a_scale_that_would_do_would(epsilon: float) -> None:
    def scaled(rows: Any, rng: Any, scale: float = 1e-3) -> Any:
        return sum(rows) + rng.laplace(scale=scale)

    found = cause(scaled, [1.0], [0.0], PureDP(epsilon))
    scale = float(found.remedy.split()[3])
    assert 1 / epsilon <= scale <= 1.001 / epsilon
    target = CallableTarget(function=scaled, params={"scale": scale})
    assert not trace_pair(target, [1.0], [0.0], PureDP(epsilon)).causes


def test_a_scale_leaves_what_another_line_costs() -> None:
    def both(rows: Any, rng: Any, scale: float = 0.8) -> Any:
        return sum(rows) + rng.laplace(scale=2), len(rows) + rng.laplace(scale=scale)

    found = cause(both, [1.0], [])
    assert found.remedy == f"a scale of 2 {FOR_PAIR}"
    target = CallableTarget(function=both, params={"scale": 2.0})
    trace = trace_pair(target, [1.0], [], PureDP(1.0))
    assert trace.total == "ε = 1"
    assert not trace.causes


@pytest.mark.parametrize("beside", ["normal", "all of it"])
def test_where_other_lines_leave_nothing_a_scale_does_for_its_line(beside: str) -> None:
    def both(rows: Any, rng: Any) -> Any:
        other = rng.normal(scale=9) if beside == "normal" else rng.laplace(scale=1)
        return sum(rows) + other, len(rows) + rng.laplace(scale=0.8)

    claim = ApproximateDP(1.0, 1e-5) if beside == "normal" else PureDP(1.0)
    assert cause(both, [1.0], [], claim).remedy.endswith(FOR_LINE)


def test_noise_of_another_line_that_hides_no_change_costs_nothing() -> None:
    def both(rows: Any, rng: Any) -> Any:
        return 5 + rng.laplace(scale=1), len(rows) + rng.laplace(scale=0.8)

    assert cause(both, [1.0], []).remedy == f"a scale of 1 {FOR_PAIR}"


def test_a_coin_costs_its_part() -> None:
    def both(rows: Any, rng: Any) -> Any:
        odds = math.exp(0.5 * len(rows))
        return rng.random() < odds / (1 + odds), len(rows) + rng.laplace(scale=0.8)

    assert cause(both, [1.0], []).remedy == f"a scale of 1.391 {FOR_PAIR}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (100 / 3, "33.34"),
        (200 / 3, "66.67"),
        (10.0, "10"),
        (10 * (1 + 1e-12), "10"),
        (0.1 + 0.2, "0.3"),
        (9.99999, "10"),
        (123456.7, "1.235e+05"),
        (1.00001e-7, "1.001e-07"),
        (float("inf"), "∞"),
        (0.0, "0"),
    ],
)
def test_scales_are_rounded_up(value: float, text: str) -> None:
    assert rounded_up(value) == text


def test_rounding_up_never_falls_below() -> None:
    for value in np.random.default_rng(0).lognormal(sigma=8, size=2_000).tolist():
        assert value * (1 - 1e-8) <= float(rounded_up(value)) <= value * 1.002
