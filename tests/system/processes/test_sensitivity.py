"""Sensitivity of functions in another Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.raising import code
from tests.unit.searching.test_sensitivity import few_pairs as few_pairs
from tests.unit.searching.test_sensitivity import first, inside

ELSEWHERE = """
import random

def total(rows):
    if len(rows) == 3:
        raise ValueError("three")
    return 2 * sum(rows)

def shuffled(rows):
    random.shuffle(rows := list(rows))
    return rows

def columns(rows):
    return rows.sum(axis=0)

def noisy(rows, rng):
    return rng.random()
"""


def test_another_python_gives_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "else_where.py").write_text(ELSEWHERE)
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"space": "list of 0 to 3 number in [0, 1]", "claimed": 1}
    here, there = (
        inside("else_where.py:total", **given, **more) for more in ({}, {"python": sys.executable})
    )
    assert there.witnesses == here.witnesses
    assert [one.kind for one in there.witnesses] == ["distance", "raises"]
    assert there.snippet == here.snippet
    arrays = {**given, "space": "vector of 2 vector of 2 number in [0, 1]", "form": "array"}
    array = inside("else_where.py:columns", **arrays, adjacency="replace", python=sys.executable)
    assert first(array).distance == 2


def test_randomness_in_another_python_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call has another seed there: with one seed, an order would seem to be no random one."""
    (tmp_path / "else_where.py").write_text(ELSEWHERE)
    monkeypatch.chdir(tmp_path)
    there: dict[str, Any] = {"python": sys.executable}
    vector = {"space": "vector of 6 number", "adjacency": "replace"}
    assert code(inside, "else_where.py:shuffled", **vector, **there) == "function-not-repeatable"
    assert code(inside, "else_where.py:noisy", **there) == "function-not-repeatable"
