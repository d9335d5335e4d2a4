"""Functions whose sensitivity is known: how long the search takes to refute wrong claims, and that
it refutes no correct one.

    python -m benchmarks.sensitivity
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dpaudit
from dpaudit.searching.sensitivity import Norm, SensitivityResult

UNIT = "list of number in [0, 1]"
VISITS = "table {who: user, city: category [a, b, c]}"
WEIGHED = "table {city: category [a, b, c], weight: number in [0, 10]}"
Rows = list[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A function, its sensitivity (worked out by hand), and a smaller claimed one."""

    name: str
    function: Callable[[Any], Any]
    space: str
    adjacency: Any
    norm: Norm
    sensitivity: float
    wrong: float


def histogram(rows: Rows) -> dict[str, int]:
    return Counter(row["city"] for row in rows)


def weights(rows: Rows) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows:
        found[row["city"]] = found.get(row["city"], 0.0) + row["weight"]
    return found


def variance(rows: Rows) -> float:
    mean = sum(rows) / len(rows)
    return math.fsum((value - mean) ** 2 for value in rows) / len(rows)


def clipped_sum(rows: Rows) -> list[float]:
    """Gradients clipped to length 1."""
    scaled = [[x / max(1.0, math.hypot(*row)) for x in row] for row in rows]
    return [math.fsum(column) for column in zip(*scaled, strict=True)] or [0.0] * 3


def clamped_sum(rows: Rows) -> list[float]:
    """Gradients of which each entry is clamped, not the length."""
    clamped = [[min(max(x, -1.0), 1.0) for x in row] for row in rows]
    return [math.fsum(column) for column in zip(*clamped, strict=True)] or [0.0] * 3


def matrix(rows: Rows) -> list[float]:
    """A linear map whose columns have the l1 norms 3, 5 and 1."""
    x, y, z = rows
    return [x - 2 * y, 2 * x + 3 * y, z]


def steps(rows: Rows) -> float:
    """The length of a walk, to which the order matters."""
    return math.fsum(abs(b - a) for a, b in pairwise(rows))


def hump(rows: Rows) -> float:
    """High only near 0.37, where no edge is."""
    return max((3 - 20 * abs(value - 0.37) for value in rows), default=0.0) * (rows != [])


def seventeen(rows: Rows) -> float:
    return 5.0 if len(rows) == 17 else 0.0


def capped_contributions(rows: Rows) -> dict[str, int]:
    """At most two cities of each user, each once: those that come first."""
    kept: dict[Any, list[str]] = {}
    for row in rows:
        own = kept.setdefault(row["who"], [])
        if len(own) < 2 and row["city"] not in own:
            own.append(row["city"])
    return Counter(city for own in kept.values() for city in own)


def upper(rows: Rows) -> Rows:
    return [value for value in rows if value > 0.5]


def doubled(rows: Rows) -> Rows:
    return [*rows, *rows]


def largest_left_out(rows: Rows) -> Rows:
    """When a larger record comes, the one that was the largest does: still one more."""
    return sorted(rows)[:-1]


def first_three(rows: Rows) -> Rows:
    """When a smaller record comes, another one leaves."""
    return sorted(rows)[:3]


CASES = (
    Case("count", len, UNIT, "add-remove", "l1", 1, 0.5),
    Case("sum of [-3, 1]", sum, "list of number in [-3, 1]", "add-remove", "l1", 3, 1),
    Case("sum of [2, 5], added", sum, "list of number in [2, 5]", "add-remove", "l1", 5, 3),
    Case("sum of [2, 5], replaced", sum, "list of number in [2, 5]", "replace", "l1", 3, 2.5),
    Case("mean of ten", lambda rows: sum(rows) / 10, "vector of 10 number in [0, 1]", "replace",
         "l1", 0.1, 1 / 11),
    Case("mean of 1 to 30", lambda rows: sum(rows) / len(rows),
         "list of 1 to 30 number in [0, 1]", "add-remove", "l1", 0.5, 1 / 30),
    Case("variance of ten", variance, "vector of 10 number in [0, 1]", "replace", "l1", 0.09, 0.05),
    Case("histogram, l1", histogram, WEIGHED, "replace", "l1", 2, 1),
    Case("histogram, l2", histogram, WEIGHED, "replace", "l2", math.sqrt(2), 1),
    Case("histogram, linf", histogram, WEIGHED, "replace", "linf", 1, 0.5),
    Case("weighed histogram", weights, WEIGHED, "add-remove", "l1", 10, 1),
    Case("median of five", lambda rows: sorted(rows)[2], "vector of 5 number in [0, 1]", "replace",
         "l1", 1, 0.2),
    Case("maximum", max, "list of 1 to 30 number in [0, 100]", "add-remove", "l1", 100, 50),
    Case("distinct values", lambda rows: len({row["city"] for row in rows}), WEIGHED, "add-remove",
         "l1", 1, 0.9),
    Case("gradients, clipped", clipped_sum, "list of vector of 3 number in [-9, 9]", "add-remove",
         "l2", 1, 0.99),
    Case("gradients, clamped", clamped_sum, "list of vector of 3 number in [-9, 9]", "add-remove",
         "l2", math.sqrt(3), 1),
    Case("linear map, linf:1", lambda rows: rows[0] - 2 * rows[1] + 3 * rows[2],
         "vector of 3 number in [-9, 9]", "linf:1", "l1", 6, 3),
    Case("linear map, l1:1", matrix, "vector of 3 number in [-9, 9]", "l1:1", "l1", 5, 3),
    Case("linear map, coordinate:2", matrix, "vector of 3 integer in [-9, 9]", "coordinate:2",
         "linf", 6, 5),
    Case("count of high ones", lambda rows: sum(value > 0.9 for value in rows),
         "vector of 8 number in [0, 1]", "hamming:3", "l1", 3, 2),
    Case("one user's visits, two cities", histogram, VISITS,
         {"user": "who", "groups": 2, "per_group": 1, "group": "city"}, "l1", 2, 1),
    Case("visits, capped by code", capped_contributions, VISITS, "user:who", "l1", 2, 1),
    Case("length of a walk", steps, "vector of 8 number in [0, 1]", "replace", "l1", 2, 1),
    Case("a hump inside", hump, UNIT, "add-remove", "l1", 20.0 * 0.63, 12.5),
    Case("17 records", seventeen, UNIT, "add-remove", "l1", 5, 1),
    Case("filter", upper, UNIT, "add-remove", "records", 1, 0),
    Case("filter, replaced", upper, UNIT, "replace", "records", 1, 0),
    Case("doubled", doubled, UNIT, "add-remove", "records", 2, 1),
    Case("without the largest", largest_left_out, UNIT, "add-remove", "records", 1, 0),
    Case("the first three", first_three, UNIT, "add-remove", "records", 2, 1),
)  # fmt: skip


def search(case: Case, claimed: float) -> SensitivityResult:
    return dpaudit.sensitivity(
        case.function,
        space=case.space,
        adjacency=case.adjacency,
        claimed=claimed,
        norm=case.norm,
        inside_only=True,
    )


def main() -> int:
    wrong_answers = 0
    print(f"{'function':<31}      Δ  claim  found  pairs records    s")
    for case in CASES:
        for claimed in (case.sensitivity, case.wrong):
            began = time.process_time()
            result = search(case, claimed)
            seconds = time.process_time() - began
            seen = 0.0 if result.largest is None else result.largest.distance
            witness = result.witness
            size = "" if witness is None else f"{len(witness.d1)}, {len(witness.d2)}"
            is_wrong = result.exceeded is (claimed >= case.sensitivity)
            wrong_answers += is_wrong
            print(
                f"{case.name:<31} {case.sensitivity:6.4g} {claimed:6.4g} {seen:6.4g} "
                f"{sum(result.tried.values()):6} {size:>7} {seconds:4.1f}"
                f"{'  WRONG' if is_wrong else ''}"
            )
    print(f"{wrong_answers} wrong answers in {2 * len(CASES)}")
    return 1 if wrong_answers else 0


if __name__ == "__main__":
    sys.exit(main())
