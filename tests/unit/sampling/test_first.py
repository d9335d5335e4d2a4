"""First calls of a mechanism: outputs that are too long, draws that are too slow."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpaudit.outcomes import from_raw
from dpaudit.outcomes.frames import Frame, PlainSeries
from dpaudit.outcomes.reader import MAX_ENTRIES, checked_length
from tests.raising import code


@dataclasses.dataclass
class Record:
    first: Any
    second: Any


def test_entries_are_counted_at_all_depths() -> None:
    for output, length in [
        (0.5, 1),
        ("x" * 800, 100),
        ([1, [2, 3]], 4),
        ({"a": 1, "b": (1, 2)}, 6),
        ({1, 2, 3}, 3),
        (np.zeros((20, 30)), 600),
        (np.array([[1, 2], "x" * 80], dtype=object), 14),
        (Frame("a DataFrame", {"a": [1, 2], "b": {"x": 3, "y": 4}}), 4),
        (PlainSeries("PlainSeries of int64", [1, 2, 3]), 3),
        (pa.table({"a": [1, 2], "b": [3, 4]}), 4),
        (Record(1, [2, 3]), 4),
        ([0] * MAX_ENTRIES, MAX_ENTRIES),
    ]:
        assert checked_length(output) == length


def test_an_output_that_contains_itself_is_refused_by_the_reader() -> None:
    inside: list[Any] = [0]
    inside.append(inside)
    assert checked_length(inside) > 100
    assert code(from_raw, [inside]) == "output-too-large"


@pytest.mark.parametrize(
    "output",
    [np.zeros(1_000_000), "x" * 10**7, [[0] * 1_000] * 1_000, range(10**12)],
    ids=lambda output: type(output).__name__,
)
def test_an_output_that_is_too_long_is_refused(output: Any) -> None:
    assert code(checked_length, output) == "output-too-large"
