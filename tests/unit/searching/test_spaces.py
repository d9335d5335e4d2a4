"""What lies in a space, where its edges are, and what is simpler."""

from __future__ import annotations

import math
from graphlib import TopologicalSorter
from itertools import islice
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
    "number in [3, 3]",
    "number in [-5, -2]",
    "number in [-inf, -2]",
    "number",
    "integer in [0, 120]",
    "integer in [7, inf]",
    "integer",
    "boolean",
    "category [a, b]",
    "category [1, 2.5]",
    "text",
    "bytes",
    "user",
    "number or missing",
    "number in [0, 1] or NaN",
    "list of number in [0, 1]",
    "list of 2 to 4 text",
    "vector of 3 integer in [0, 9]",
    "record {age: integer in [0, 120], city: category [a, b]}",
    "table {id: user, x: number or missing}",
    "list of vector of 2 boolean",
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


def test_the_edges_of_a_number() -> None:
    edges = {identity(one.value): one.words for one in parse_space("number in [2, 4]").edges()}
    for value, words in [
        (2.0, "the lower bound"),
        (4.0, "the upper bound"),
        (0.0, "below the lower bound"),
        (6.0, "above the upper bound"),
        (-0.0, "-0.0"),
        (5e-324, "the smallest positive float"),
        (NAN, "NaN"),
        (INF, "inf"),
        (-INF, "-inf"),
        (None, "missing"),
        (1e18, "huge"),
        (1.7976931348623157e308, "the largest float"),
        (-1.7976931348623157e308, "the smallest float"),
    ]:
        assert edges[identity(value)] in (words, "0"), value


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


def test_a_value_outside_becomes_one_inside() -> None:
    assert next(iter(parse_space("number in [2, 4]").simpler(NAN))) == 2.0
    assert next(iter(parse_space("category [a, b]").simpler("c"))) == "a"
    assert next(iter(parse_space("integer in [0, 9]").simpler(2**64))) == 0
    assert list(parse_space("number").simpler(0.0)) == []


def test_identity_tells_apart_what_equality_does_not() -> None:
    values = [0.0, -0.0, 0, False, NAN, None, "", "nan", [0.0], [-0.0], {"a": 0.0}, {"a": -0.0}]
    assert len(set(map(identity, values))) == len(values)
    assert identity(float("nan")) == identity(-NAN)


@pytest.mark.parametrize(
    ("space", "bounds"),
    [
        ("number in [0, 1]", (0.0, 1.0)),
        ("number in [-3e-9, 2e-9]", (-3e-9, 2e-9)),
        ("number in [0.123456, 0.123457]", (0.123456, 0.123457)),
        ("number in [0, inf]", (0.0, math.inf)),
    ],
)
def test_random_numbers_have_few_digits_and_stay_inside(
    space: str, bounds: tuple[float, float]
) -> None:
    values = list(islice(drawn(parse_space(space).strategy(), 3, space), 100))
    assert all(bounds[0] <= value <= bounds[1] for value in values)
    if space != "number in [0.123456, 0.123457]":  # no shorter numbers are inside
        assert all(value == float(f"{value:.3g}") for value in values if abs(value) < 1e308)


def test_columns_of_random_records_keep_their_order() -> None:
    space = parse_space("record {z: integer, a: text, m: number, b: boolean}")
    rows = islice(drawn(space.strategy(), 0, "records"), 100)
    assert {tuple(row) for row in rows} == {("z", "a", "m", "b")}


@pytest.mark.parametrize(
    ("value", "first"),
    [(0.9999999999999999, 0.0), (-1.99e-160, 0.0), (1.23456789e200, 0.0)],
)
def test_a_number_that_is_long_to_write_has_shorter_ones(value: float, first: float) -> None:
    simpler = list(parse_space("number").simpler(value))
    assert simpler[0] == first
    assert float(f"{value:.1g}") in simpler or value == -1.99e-160
    assert value not in simpler
    assert -1.99e-160 not in list(parse_space("number").simpler(1.0))


def test_nan_may_be_in_a_space() -> None:
    space = parse_space("number in [0, 1] or NaN")
    assert space.words() == "number in [0, 1] or NaN"
    assert space.contains(math.nan)
    assert not space.contains(None)
    (edge,) = (edge for edge in space.edges() if edge.value != edge.value)
    assert edge.inside
    both = parse_space("number in [0, 1] or missing or nan")
    assert both.contains(None)
    assert both.contains(math.nan)
    assert code(parse_space, "category [a, b] or NaN") == "space-invalid"
