"""Leaks in outcomes of any shape are caught and explained; what keeps its claim is not refuted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.certificates.result import Verdict

Rng = np.random.Generator


@dataclasses.dataclass
class Release:
    mean: float
    note: str | None = None


def key_leaks(x: int, rng: Rng) -> dict[str, float]:
    counts = {"Bread": 3 + rng.laplace(), "Milk": 5 + rng.laplace()}
    return {**counts, "Escargots": 1 + rng.laplace()} if x and rng.random() < 0.9 else counts


def key_keeps(x: int, rng: Rng) -> dict[str, float]:
    counts = {"Bread": 3 + x + rng.laplace(), "Milk": 5 + rng.laplace()}
    return {**counts, "Escargots": rng.laplace()} if rng.random() < 0.5 else counts


def length_leaks(x: int, rng: Rng) -> list[float]:
    return list(map(float, rng.normal(size=3 + x + rng.integers(4))))


def length_keeps(x: int, rng: Rng) -> list[float]:
    return list(map(float, rng.normal(size=3 + rng.integers(4))))


def element_leaks(x: int, rng: Rng) -> set[int]:
    return {i for i in range(9) if rng.random() < (0.9 if x and i == 7 else 0.5)}


def element_keeps(x: int, rng: Rng) -> set[int]:
    return {i for i in range(9) if rng.random() < (0.6 if x and i == 7 else 0.4)}


def nested_leaks(x: int, rng: Rng) -> dict[str, Any]:
    return {"people": [Release(40 + 5 * x + rng.normal(), "a"), Release(2.0)], "n": 3}


def nested_keeps(x: int, rng: Rng) -> dict[str, Any]:
    return {"people": [Release(40 + x + rng.laplace(), "a"), Release(2.0)], "n": 3}


def cell_leaks(x: int, rng: Rng) -> pd.DataFrame:
    return pd.DataFrame({"age": [rng.normal(), rng.normal() + 4 * x], "n": [1, 2]})


def byte_leaks(x: int, rng: Rng) -> bytes:
    return rng.bytes(15) + bytes([x if rng.random() < 0.9 else 7])


def bytes_keep(x: int, rng: Rng) -> bytes:
    return rng.bytes(16)


def text_leaks(x: int, rng: Rng) -> str | None:
    return f"token {rng.integers(10**12)}" if rng.random() < (0.9 if x else 0.1) else None


def failure_leaks(x: int, rng: Rng) -> dict[str, float]:
    if rng.random() < (0.9 if x else 0.1):
        raise KeyError("Escargots")
    return {"a": rng.normal(), "b": rng.normal()}


def failure_keeps(x: int, rng: Rng) -> float:
    if rng.random() < 0.05:
        raise OverflowError("too many")
    return float(x + rng.laplace())


@pytest.mark.parametrize(
    ("mechanism", "explained"),
    [
        (key_leaks, 'output["Escargots"] is present'),
        (length_leaks, "length of output > 6"),
        (element_leaks, "element 7 of output is absent"),
        (nested_leaks, 'output["people"][0].mean ≥ 4'),
        (cell_leaks, 'output["age"][1] ≥ '),
        (byte_leaks, "output[15] ≤ 0"),
        (text_leaks, "output is a string"),
        (failure_leaks, "KeyError is raised"),
    ],
)
def test_a_leak_in_any_shape_is_caught_and_explained(
    mechanism: Callable[..., Any], explained: str
) -> None:
    result = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1.0), samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    events = [event.words for event in result.certificates[0].fixed.events]
    assert any(event.startswith(explained) for event in events), events


@pytest.mark.parametrize(
    "mechanism", [key_keeps, length_keeps, element_keeps, nested_keeps, bytes_keep, failure_keeps]
)
def test_a_claim_that_is_kept_stays_unrefuted(mechanism: Callable[..., Any]) -> None:
    result = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1.0), samples=10_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


@pytest.mark.parametrize("value", [{"a": 1}, {}, [], b"", {float("nan")}])
def test_an_output_that_is_always_the_same_is_no_violation(value: Any) -> None:
    result = dpaudit.audit(lambda x: value, 0, 1, dpaudit.PureDP(1.0), samples=2_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.epsilon_lower == 0


def test_keys_that_never_come_again_are_no_violation_and_warned_about() -> None:
    def random_keys(x: int, rng: Rng) -> dict[str, int]:
        return {f"id {rng.integers(10**12)}": 1 for _ in range(5)}

    result = dpaudit.audit(random_keys, 0, 1, dpaudit.PureDP(1.0), samples=6_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert len(result.certificates[0].warnings) == 1


def test_single_outputs_of_any_shape_count_for_the_probabilistic_definition() -> None:
    def counts(x: int, rng: Rng) -> dict[str, list[int]]:
        return {"a": [int(rng.random() < 0.5), int(x and rng.random() < 0.2)]}

    claim = dpaudit.ProbabilisticDP(1.0, 0.01)
    result = dpaudit.audit(counts, 0, 1, claim, samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    events = [event.words for event in result.certificates[0].fixed.events]
    assert any('{"a": (0, 1)}' in event for event in events), events


def says_constant(result: dpaudit.AuditResult) -> bool:
    return any("is this intended" in text for text in result.certificates[0].warnings)


def test_outputs_are_constant_only_where_all_draws_are() -> None:
    """A bit of probability 0.001 is 0 in all 9,300 draws with probability 9·10⁻⁵, and in those of
    learning alone with probability 0.01 to 0.1."""

    def bit(x: int, size: int, rng: Rng, p: float) -> Any:
        return (rng.random(size) < p).astype(int)

    given: dict[str, Any] = {"claim": dpaudit.PureDP(1.0), "samples": 9_300}
    for p, expected in ((0.001, 0), (0.0, 5)):
        audits = [
            dpaudit.audit(bit, 0, 1, **given, params={"p": p}, seed=seed) for seed in range(5)
        ]
        assert sum(map(says_constant, audits)) == expected
    assert "all 9,300 draws are 0" in audits[0].certificates[0].warnings[-1]


def test_recorded_outputs_are_constant_only_where_all_rows_are() -> None:
    rows = np.zeros(3_000)
    others = np.where(np.arange(3_000) == 2_000, 1.0, 0.0)
    claim = dpaudit.PureDP(1.0)
    for second, expected in ((rows, 10), (others, 0)):
        audits = [dpaudit.bound(rows, second, claim, seed=s) for s in range(10)]
        assert sum(map(says_constant, audits)) == expected
