"""The search for a larger sensitivity, on functions whose sensitivity is known."""

from __future__ import annotations

import itertools
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from benchmarks.sensitivity import CASES, Case, search
from dpaudit.errors import UsageError
from dpaudit.searching.sensitivity import SensitivityResult
from tests.neighbouring import relation
from tests.raising import code

# Short lists, so that few lengths are tried.
UNIT = "list of 0 to 6 number in [0, 1]"
XY = "table of 0 to 3 {x: number in [0, 9], y: number in [0, 9]}"
TABLE = "table of 0 to 6 {age: integer in [0, 120], city: category [a, b]}"


def found(function: Callable[..., Any] | str, **more: Any) -> SensitivityResult:
    asked: dict[str, Any] = {"space": UNIT, "adjacency": "add-remove", "claimed": 1}
    return dpaudit.sensitivity(function, **{**asked, **more})


def inside(function: Callable[..., Any] | str, **more: Any) -> SensitivityResult:
    return found(function, inside_only=True, **more)


def first(result: SensitivityResult) -> Any:
    assert result.witness is not None
    return result.witness


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.searching.sensitivity._RANDOM_PAIRS", 10)
    monkeypatch.setattr("dpaudit.searching.drawing.INPUTS_PER_RUN", 10)
    monkeypatch.setattr("dpaudit.searching.sensitivity._MAX_CLIMBED", 600)
    monkeypatch.setattr("dpaudit.searching.climbing._MAX_LENGTH", 20)
    monkeypatch.setattr("dpaudit.searching.climbing._MAX_NEIGHBOURS", 4)


# One of each kind of function, relation and norm; benchmarks/sensitivity.py has them all.
SOME = (
    "mean of 1 to 30",
    "histogram, l2",
    "median of five",
    "linear map, linf:1",
    "linear map, l1:1",
    "count of high ones",
    "a hump inside",
    "17 records",
)


@pytest.mark.parametrize(
    "case", [one for one in CASES if one.name in SOME], ids=lambda case: case.name
)
def test_a_wrong_claim_is_refuted(case: Case) -> None:
    result = search(case, case.wrong)
    witness = first(result)
    assert result.exceeded
    assert witness.kind == "distance"
    assert witness.inside
    assert case.wrong < witness.distance <= case.sensitivity * (1 + 1e-9)
    assert relation(case.space, case.adjacency).holds_inside(witness.d1, witness.d2)


# Those whose largest distance is attained elsewhere than at the bounds, or by rounding.
HARD = ("mean of ten", "a hump inside")


@pytest.mark.parametrize(
    "case", [one for one in CASES if one.name in HARD], ids=lambda case: case.name
)
def test_a_tight_claim_is_not_refuted(case: Case) -> None:
    result = search(case, case.sensitivity)
    assert not result.exceeded
    assert result.witnesses == ()
    assert result.snippet == ""
    assert result.largest is not None
    assert result.largest.distance == pytest.approx(case.sensitivity, rel=1e-3)


def test_the_largest_distance_agrees_with_all_pairs_of_a_small_space() -> None:
    """All lists of up to three integers, every record added: enumerated by hand."""

    def odd(rows: list[int]) -> list[float]:
        return [sum(rows) ** 2 % 7, max(rows, default=0) * len(rows)]

    lists = [list(one) for size in range(3) for one in itertools.product(range(3), repeat=size)]
    largest = max(
        sum(abs(a - b) for a, b in zip(odd(one), odd([*one[:place], new, *one[place:]]),
                                       strict=True))
        for one in lists for new in range(3) for place in range(len(one) + 1)
    )  # fmt: skip
    result = inside(odd, space="list of 0 to 3 integer in [0, 2]", claimed=0)
    assert result.largest is not None
    assert result.largest.distance == largest


def test_rounding_refutes_nothing() -> None:
    def mean(rows: list[float]) -> float:
        return sum(rows) / 7

    space = "vector of 7 number in [0, 0.7]"
    assert not inside(mean, space=space, adjacency="replace", claimed=0.1).exceeded
    assert inside(mean, space=space, adjacency="replace", claimed=0.1 * (1 - 1e-6)).exceeded


def test_outside_the_space_is_noted_and_decides_nothing() -> None:
    result = found(sum)
    assert (result.exceeded, result.witnesses) == (False, ())
    assert {one.kind for one in result.beyond} == {"distance", "infinite", "raises"}
    assert not any(one.inside for one in result.beyond)
    assert result.snippet
    assert inside(sum).beyond == ()
    # What is wrong inside comes first.
    twice = found(lambda rows: 2 * sum(rows))
    assert first(twice).inside
    assert twice.beyond == ()


def test_outside_the_space_counts_if_asked() -> None:
    result = found(sum, outside=True)
    assert result.exceeded
    assert result.beyond == ()
    assert not first(result).inside
    assert {one.kind for one in result.witnesses} == {"distance", "infinite", "raises"}
    assert result.largest is not None
    assert result.largest.inside
    assert result.largest.distance == 1
    assert first(found(lambda rows: 2 * sum(rows), outside=True)).inside
    with pytest.raises(UsageError, match="either inside"):
        inside(sum, outside=True)


def test_an_exception_of_one_input_is_a_find_of_its_own() -> None:
    result = inside(lambda rows: sum(rows) / len(rows))
    (witness,) = result.witnesses
    assert witness.kind == "raises"
    assert witness.distance == math.inf
    assert witness.d1 == [] or witness.d2 == []
    assert witness.words.startswith(
        f"raises only for d{1 if witness.d1 == [] else 2}: ZeroDivisionError"
    )
    assert any("ZeroDivisionError" in str(one) for one in witness.outputs)


def test_noise_is_refused() -> None:
    assert code(found, lambda rows: sum(rows) + random.random()) == "function-not-repeatable"
    rng = np.random.default_rng(0)
    assert code(found, lambda rows: len(rows) + rng.laplace()) == "function-not-repeatable"


def shuffled(rows: list[Any]) -> list[Any]:
    return random.sample(rows, len(rows))


def test_a_random_order_of_records_does_not_count() -> None:
    result = inside(shuffled, norm="records")
    assert not result.exceeded
    assert result.largest is not None
    assert result.largest.distance == 1
    half = code(inside, lambda rows: random.sample(rows, len(rows) // 2), norm="records")
    assert half == "function-not-repeatable"


def test_rare_noise_is_refused_where_it_would_be_a_witness() -> None:
    rng = np.random.default_rng(0)

    def rarely(rows: list[float]) -> float:
        return 50.0 if rng.random() < 0.01 else float(len(rows))

    assert code(inside, rarely) == "function-not-repeatable"


def test_mechanisms_are_refused() -> None:
    def noisy(rows: list[float], rng: np.random.Generator) -> float:
        return sum(rows) + rng.laplace()

    def batch(rows: list[float], size: int) -> list[float]:
        return [sum(rows)] * size

    for function in (noisy, batch):
        assert code(found, function) == "function-not-repeatable"


def test_inputs_that_a_function_changes_are_not_those_of_the_next_call() -> None:
    def emptying(rows: list[Any]) -> int:
        number = len(rows)
        rows.clear()
        return number

    assert not found(emptying).exceeded


@pytest.mark.parametrize(
    ("form", "function", "kind"),
    [
        ("array", lambda rows: rows[:, 0].sum() / 120 if rows.size else 0.0, np.ndarray),
        ("pandas", lambda rows: rows["age"].sum() / 120, pd.DataFrame),
    ],
)
def test_forms(form: str, function: Any, kind: type) -> None:
    space = "table of 0 to 3 {age: integer in [0, 120], weight: integer in [0, 9]}"
    kinds = set()

    def recorded(rows: Any) -> Any:
        kinds.add(type(rows))
        return function(rows)

    assert not inside(recorded, form=form, space=space).exceeded
    assert kinds == {kind}
    assert inside(recorded, form=form, space=space, claimed=0.5).exceeded


def test_parameters_reach_the_function() -> None:
    def clamped(rows: list[float], high: float = 1.0) -> float:
        return sum(min(value, high) for value in rows)

    space = "list of 0 to 3 number in [0, 9]"
    assert not inside(clamped, space=space).exceeded
    assert inside(clamped, space=space, params={"high": 2.0}).exceeded


def test_random_pairs_find_what_no_edge_and_no_climb_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No value at an edge and no length is wrong here, and no step leads there."""

    def needle(rows: list[int]) -> float:
        return 9.0 if len(rows) == 4 and rows[0] > rows[1] > rows[2] else 0.0

    monkeypatch.setattr("dpaudit.searching.sensitivity._RANDOM_PAIRS", 400)
    result = inside(needle, space="list of 4 to 6 integer in [0, 1000]")
    assert max(map(len, (first(result).d1, first(result).d2))) == 5


def test_messages_of_exceptions_may_differ() -> None:
    def refuse(rows: list[float]) -> float:
        if not rows:
            raise ValueError(f"{object()} {random.random()}")
        return 0.0

    assert [witness.kind for witness in inside(refuse).witnesses] == ["raises"]


def test_inputs_that_a_generator_makes_are_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the generator knows which other inputs there may be."""
    (tmp_path / "made.py").write_text(
        "def even(rng):\n    return [2 * int(x) for x in rng.integers(0, 5, size=rng.integers(5))]"
    )
    monkeypatch.chdir(tmp_path)

    def total(rows: list[int]) -> int:
        assert all(value % 2 == 0 and value <= 8 for value in rows)
        return sum(rows)

    space = "import:made.py:even"
    assert not inside(total, space=space, claimed=8).exceeded
    assert first(inside(total, space=space, claimed=7)).distance == 8


def test_transformations_by_the_records_that_differ() -> None:
    def per_user(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in rows if row["age"] >= 18]

    assert not inside(per_user, space=TABLE, norm="records").exceeded
    twice = inside(lambda rows: rows + rows[:1], space=TABLE, norm="records")
    assert first(twice).distance == 2
    assert first(twice).outputs in (([], first(twice).d2 * 2), (first(twice).d1 * 2, []))
    # One replaced record is one step, by which a filter may add a record.
    assert not inside(per_user, space=TABLE, norm="records", adjacency="replace").exceeded
    assert code(inside, len, norm="records") == "answer-without-distance"


def test_the_search_ends_when_the_time_is_over() -> None:
    calls = itertools.count()

    def slow(rows: list[float]) -> float:
        next(calls)
        time.sleep(0.005)
        return sum(rows) / 2

    whole = inside(slow)
    assert not whole.notes
    assert next(calls) > 100  # of 5 ms, so that 0.2 s are never enough
    assert any("time was over" in note for note in inside(slow, time=0.2).notes)
    assert code(inside, len, time=1e-9) == "mechanism-slow"


def test_the_same_search_finds_the_same() -> None:
    results = [inside(lambda rows: 3 * max(rows, default=0)) for _ in range(2)]
    assert results[0].witnesses == results[1].witnesses
    assert results[0].tried == results[1].tried


def test_bad_input() -> None:
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"claimed": -1}, "option-invalid"),
        ({"claimed": math.nan}, "option-invalid"),
        ({"norm": "l3"}, "option-invalid"),
        ({"form": "panda"}, "option-invalid"),
        ({"seed": -1}, "option-invalid"),
        ({"time": 0}, "option-invalid"),
        ({"adjacency": None}, "option-missing"),
        ({"adjacency": "add"}, "adjacency-invalid"),
        ({"space": "text", "adjacency": "l1:1"}, "space-without-neighbours"),
    ]
    assert [(more, code(found, len, **more)) for more, _ in mistakes] == mistakes


PROGRAM = """
def ages(rows): return sum(row["age"] for row in rows)
def frame(rows): return rows["age"].sum()
def array(rows): return rows.sum(axis=0)
def of_nan(rows): return sum(1 if row != row else 9 for row in rows)
"""


@pytest.mark.parametrize(
    ("function", "more"),
    [
        ("mine.py:ages", {"space": TABLE}),
        ("mine.py:frame", {"space": TABLE, "form": "pandas"}),
        ("mine.py:array", {"space": "list of vector of 2 number in [0, 9]", "form": "array"}),
        ("mine.py:array", {"space": XY, "form": "numpy", "claimed": 0.5}),
        ("mine.py:of_nan", {"space": "list of 0 to 2 number in [0, 1] or NaN", "claimed": 3}),
    ],
)
def test_the_snippet_shows_both_answers(
    function: str, more: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    result = inside(function, **more)
    assert result.exceeded
    ran = subprocess.run(
        [sys.executable, "-c", result.snippet], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    # An array is printed without commas.
    shown = [eval(re.sub(r"(?<=[\d.]) +", ", ", line)) for line in ran.stdout.splitlines()]
    assert shown == list(first(result).outputs)
