"""First calls of a mechanism: outputs that are too long, draws that are too slow."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.time_left import late_words
from dpaudit.errors import MechanismError
from dpaudit.outcomes import from_raw
from dpaudit.outcomes.frames import Frame, Series
from dpaudit.outcomes.reader import MAX_ENTRIES, checked_length


@dataclasses.dataclass
class Record:
    first: Any
    second: Any


def test_entries_are_counted_at_all_depths() -> None:
    for output, length in [
        (0.5, 1),
        (None, 1),
        ("x" * 800, 100),
        (b"x" * 80, 10),
        ([1, [2, 3]], 4),
        ({"a": 1, "b": (1, 2)}, 6),
        ({1, 2, 3}, 3),
        (np.zeros((20, 30)), 600),
        (np.array([[1, 2], "x" * 80], dtype=object), 14),
        (pd.DataFrame({"a": [1, 2], "b": [3, 4]}), 4),
        (Frame("a DataFrame", {"a": [1, 2], "b": {"x": 3, "y": 4}}), 4),
        (pd.Series([1, 2, 3]), 3),
        (Series("Series of int64", [1, 2, 3]), 3),
        (pa.table({"a": [1, 2], "b": [3, 4]}), 4),
        (pa.array([1, 2, 3]), 3),
        (Record(1, [2, 3]), 4),
        ([0] * MAX_ENTRIES, MAX_ENTRIES),
    ]:
        assert checked_length(output) == length


def test_an_output_that_contains_itself_is_refused_by_the_reader() -> None:
    inside: list[Any] = [0]
    inside.append(inside)
    assert checked_length(inside) > 100
    with pytest.raises(MechanismError, match="contain themselves"):
        from_raw([inside])


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ([0] * 1_000_000, r"\(a list of 1,000,000\)"),
        (np.zeros(1_000_000), r"\(a ndarray of 1,000,000\)"),
        ("x" * 10**7, r"\(a str of 10,000,000\)"),
        ([[0] * 1_000] * 1_000, r"\(a list of 1,000\)"),
        (range(10**12), r"\(a range of 1,000,000,000,000\)"),
        (dict.fromkeys(range(60_000), 0), r"\(a dict of 60,000\)"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_output_that_is_too_long_is_refused(output: Any, words: str) -> None:
    with pytest.raises(MechanismError, match=f"{words}.*") as caught:
        checked_length(output)
    assert caught.value.code == "output-too-large"
    assert "post_process" in str(caught.value)


def test_the_message_gives_the_duration() -> None:
    for given, shown in (
        ((3.0, 14.0, 1, 8.14), ["3 s", "100 draws", "14 draws", "8.1 s"]),
        ((0.5, 0.25, 3, 1_200.0), ["0.5 s", "100 draws", "3 pairs", "0.25 draws", "1,200 s"]),
    ):
        assert re.findall(r"[\d.,]+ (?:draws|pairs|s\b)", late_words(*given)) == shown


def test_a_plan_reports_a_late_end_as_soon_as_it_is_known() -> None:
    now, told = [0.0], list[tuple[float, int]]()
    plan = Plan(0, 10.0, clock=lambda: now[0], late=lambda rate, spent: told.append((rate, spent)))
    assert next(plan.learning_sizes()) == 25
    now[0] = 5.0
    plan.close_buffer_if_due(25)
    assert plan.buffer_until == 25
    plan.plan_by_clock(25)
    assert told == [(5.0, 25)]
    # Three quarters of the fewest draws are left for certification.
    assert (plan.budget, plan.freeze_at) == (100, 25)
