"""What lies in a space, where its edges are, and what is simpler."""

from __future__ import annotations

import math
from graphlib import TopologicalSorter
from typing import Any

import pytest

from dpaudit.searching import drawing
from dpaudit.searching.drawing import drawn
from dpaudit.searching.space import identity
from dpaudit.searching.spaces import parse_space
from tests.raising import code

NAN, INF = math.nan, math.inf
LINES = [
    "number in [0, 1]",
    "number in [-inf, -2]",
    "integer in [7, inf]",
    "number",
    "integer in [0, 120]",
    "integer",
    "boolean",
    "category [1, 2.5]",
    "text",
    "bytes",
    "user",
    "number or missing",
    "number in [0, 1] or NaN",
    "list of number in [0, 1]",
    "list of 2 to 4 text",
    "record {age: integer in [0, 120], city: category [a, b]}",
    "table {id: user, x: number or missing}",
    "vector of 400 number",
]


@pytest.mark.parametrize(
    ("line", "inside", "outside"),
    [
        ("number in [0, 1]", [0.0, -0.0, 1.0, 0, 5e-324], [-1e-9, 1.1, NAN, INF, True, "0", None]),
        ("number", [NAN, INF, -INF, 3], [True, None, "a"]),
        ("number in [0, inf]", [INF, 0.0], [NAN, -1.0]),
        ("integer in [0, 9]", [0, 9], [10, -1, 5.0, True, None]),
        ("boolean", [True, False], [0, 1, None]),
        ("category [1, 2]", [1, 2], [1.0, True, 3]),
        ("category [a]", ["a"], ["A", None]),
        ("text", ["", "é"], [None, 3]),
        ("bytes", [b"", b"\xff"], [None, "a"]),
        ("user", [1, "ann"], [None, 1.5, True]),
        ("number in [0, 1] or missing", [None, 0.5], [2.0]),
        ("number in [0, 1] or NaN", [float("nan"), 0.5], [None, 2.0]),
        ("list of 1 to 2 boolean", [[True], [True, False]], [[], [True] * 3, (True,), [1]]),
        ("table {a: boolean}", [[], [{"a": True}]], [[{"b": True}], [{}], [{"a": True, "b": 1}]]),
    ],
)  # fmt: skip
def test_containment(line: str, inside: list[Any], outside: list[Any]) -> None:
    space = parse_space(line)
    assert [one for one in inside if not space.contains(one)] == []
    assert [one for one in outside if space.contains(one)] == []


@pytest.mark.parametrize("line", LINES)
def test_simplest_usual_and_drawn_values_lie_inside(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "INPUTS_PER_RUN", 8)
    space = parse_space(line)
    given = drawn(space.strategy(), 1, line)
    for value in (
        space.simplest,
        space.usual(),
        *space.spread(4),
        *(next(given) for _ in range(16)),
    ):
        assert space.contains(value), value
    assert len(space.spread(4)) == 4


@pytest.mark.parametrize("line", LINES)
def test_edges_come_once_and_those_inside_first(line: str) -> None:
    space = parse_space(line)
    edges = list(space.edges())
    assert len({identity(one.value) for one in edges}) == len(edges)
    assert all(one.inside == space.contains(one.value) for one in edges)
    assert [one.inside for one in edges] == sorted((one.inside for one in edges), reverse=True)
    assert any(one.inside for one in edges)


@pytest.mark.parametrize("line", LINES)
def test_what_is_simpler_comes_to_an_end(line: str) -> None:
    """Shrinking from any edge never returns to a value that it left."""
    space = parse_space(line)
    simpler: dict[Any, list[Any]] = {}
    todo = [one.value for one in space.edges() if _size(one.value) < 5][:15] or [space.simplest]
    while todo and len(simpler) < 500:
        value = todo.pop()
        if identity(value) not in simpler:
            found = list(space.simpler(value))
            assert len(found) < 100
            simpler[identity(value)] = [identity(one) for one in found]
            todo += found
    TopologicalSorter(simpler).prepare()  # raises CycleError


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


def test_identity_tells_apart_what_equality_does_not() -> None:
    values = [0.0, -0.0, 0, False, NAN, None, "", "nan", [0.0], [-0.0], {"a": 0.0}, {"a": -0.0}]
    assert len(set(map(identity, values))) == len(values)
    assert identity(float("nan")) == identity(-NAN)


def test_only_numbers_may_be_nan() -> None:
    assert code(parse_space, "category [a, b] or NaN") == "space-invalid"
