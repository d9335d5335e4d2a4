"""JSON values to records and back: quick ways for what there is most of change nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpaudit.reports.records import DamagedRecord, decode


@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[float, ...], [1, "NaN"], (1.0, math.nan)),
        (tuple[tuple[int, int], ...], [[1, 2], [3, 4]], ((1, 2), (3, 4))),
        (
            tuple[tuple[float, float], ...],
            [[1, 2.5], ["Infinity", 0.0]],
            ((1.0, 2.5), (math.inf, 0.0)),
        ),
        (tuple[tuple[str, int | None], ...], [["a", None]], (("a", None),)),
        (tuple[tuple[int, ...], ...], [[], [1]], ((), (1,))),
        (tuple[str, ...], [], ()),
    ],
)
def test_lists_become_tuples_of_what_their_hints_say(hint: Any, value: Any, made: Any) -> None:
    assert repr(decode(hint, value, "x")) == repr(made)


def test_what_is_wrong_is_named_by_its_place() -> None:
    pairs = tuple[tuple[int, int], ...]
    damaged: list[tuple[Any, Any, str]] = [
        (tuple[str, ...], [[]], "x[0]"),
        (tuple[int, ...], [1, True], "x[1]"),
        (tuple[int, ...], [1, 2.0], "x[1]"),
        (pairs, [[1, 2], [3]], "x[1]"),
        (pairs, [[1, 2], [3, True]], "x[1][1]"),
        (pairs, [[1, 2], (3, 4)], "x[1]"),
        (tuple[int, ...], {"a": 1}, "x"),
    ]
    for hint, value, place in damaged:
        with pytest.raises(DamagedRecord) as caught:
            decode(hint, value, "x")
        assert str(caught.value).startswith(f"{place} ")
