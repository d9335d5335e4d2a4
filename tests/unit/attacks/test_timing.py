"""How long a call takes is an outcome where that is asked for, and nothing else changes.

Loops that wait for the clock stand for work that depends on the input: their lengths are so far
apart that a busy machine cannot make the one look like the other.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dpaudit.adapters.loading import load_mechanism, timed_calls
from dpaudit.outcomes import concatenate, from_raw, timed
from dpaudit.outcomes.columns import ELAPSED
from dpaudit.targets.target import CallableTarget, ComposedTarget, repeated


def wait(microseconds: float) -> None:
    end = time.perf_counter_ns() + int(microseconds * 1_000)
    while time.perf_counter_ns() < end:
        pass


def failing(x: int) -> int:
    wait(400 if x else 20)
    if x == 2:
        raise KeyError("x")
    return x


def test_a_timed_table_is_the_table_and_one_column() -> None:
    plain = [from_raw([{"a": 1.5}, {"a": 2.5}]), from_raw([{"a": 3.5, "b": "x"}])]
    tables = [timed(one, np.arange(one.size) + 5) for one in plain]
    both = concatenate(tables)
    assert both.keys().tolist() == concatenate(plain).keys().tolist()
    assert both.words(range(3)) == concatenate(plain).words(range(3))
    assert [column.name for column in both.columns][-1] == ELAPSED
    assert both.column(ELAPSED).numbers.tolist() == [5, 6, 5]
    last = both.take(np.array([2, 1]))
    assert last.column(ELAPSED).numbers.tolist() == [5, 6]
    assert last.column('output["a"]').numbers.tolist() == [3.5, 2.5]


def timed_draws(target: Any, inputs: list[Any]) -> tuple[list[Any], list[float]]:
    outputs, nanoseconds = timed_calls(load_mechanism(target))(inputs, np.random.default_rng(0))
    return list(outputs), [one / 1_000 for one in nanoseconds]


def test_every_call_is_timed_also_one_that_raises() -> None:
    outputs, microseconds = timed_draws(CallableTarget(function=failing), [0, 1, 2])
    assert outputs[:2] == [0, 1]
    assert outputs[2].kind == "KeyError"
    assert microseconds[0] >= 20
    assert min(microseconds[1:]) >= 400


def test_calls_of_a_composition_and_of_runs_add_up() -> None:
    one = CallableTarget(function=failing)
    outputs, microseconds = timed_draws(ComposedTarget(parts=(one, one, one)), [1, 1])
    assert outputs == [(1, 1, 1)] * 2
    assert min(microseconds) >= 1_200
    outputs, microseconds = timed_draws(repeated(one, 2), [1, 2])
    assert outputs[0] == (1, 1)
    assert outputs[1].kind == "KeyError"
    assert min(microseconds) >= 800


def test_post_processing_is_applied_and_not_timed() -> None:
    def later(output: int) -> int:
        wait(20_000)
        return output + 10

    target = CallableTarget(function=failing, post_process=later)
    outputs, microseconds = timed_draws(target, [0, 0, 0])
    assert outputs == [10, 10, 10]
    assert min(microseconds) < 20_000
