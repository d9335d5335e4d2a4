"""The spaces in which a search looks for a pair that shows more than the pair of an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import PureDP
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.mutating.spaces import space_of
from dpaudit.targets.target import ImportedTarget


def spaces(d1: Any, d2: Any) -> list[tuple[str, str]]:
    target, pair = ImportedTarget(path="m:f"), NeighbouringPair(d1, d2)
    spec = AuditSpec(name="a", target=target, pairs=(pair,), claim=PureDP(1.0))
    return [(s.space.words(), s.adjacency.describe()) for s in space_of(spec)]


@pytest.mark.parametrize(
    ("d1", "d2", "wide", "narrow", "relation"),
    [
        (0, 2, "integer in [-200, 202]", "integer in [0, 2]", "linf:2"),
        ([1.0], [], "list of number in [-99, 101]", "list of number in [1, 1]", "add-remove"),
        ([1, 3], [1, 2], "list of integer in [-199, 203]", "list of integer in [1, 3]", "replace"),
        (
            [{"a": 1, "b": "x"}],
            [],
            "table {a: integer in [-99, 101], b: category [x, new]}",
            "table {a: integer in [1, 1], b: category [x]}",
            "add-remove",
        ),
        (
            np.array([[0.0, 1.0]]),
            np.array([[1.0, 1.0]]),
            "list of vector of 2 number in [-100, 101]",
            "list of vector of 2 number in [0, 1]",
            "replace",
        ),
    ],
)
def test_spaces_are_like_the_pair(d1: Any, d2: Any, wide: str, narrow: str, relation: str) -> None:
    assert spaces(d1, d2) == [(wide, relation), (narrow, relation)]


@pytest.mark.parametrize(("d1", "d2"), [(object(), object()), ({"a": 1}, {"a": 2}), (True, False)])
def test_other_inputs_have_no_space(d1: Any, d2: Any) -> None:
    assert spaces(d1, d2) == []
