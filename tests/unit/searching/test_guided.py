"""Pairs like one that leaks: still neighbours, and changed in the ways that answers ask for."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dpaudit.searching.follow_ups import around
from dpaudit.searching.proposals import Proposal
from tests.neighbouring import relation

VECTOR = "vector of 3 number in [0, 10]"


def like(d1: Any, d2: Any, adjacency: str, values: list[Any]) -> list[Proposal]:
    pair = Proposal(d1, d2, "given", "edge", True)
    source = around([pair], values, relation(VECTOR, adjacency), np.random.default_rng(0))
    return list(islice(source, 300))


@pytest.mark.parametrize("kind", ["linf", "l1", "coordinate"])
def test_answers_stay_neighbours(kind: str) -> None:
    adjacency = f"{kind}:1"
    found = like([5.0, 5.0, 5.0], [5.0, 6.0, 5.0], adjacency, [0.0, 2.5, 9.0])
    assert len(found) == 300
    for one in found:
        assert relation(VECTOR, adjacency).holds(one.d1, one.d2)


def test_one_answer_can_become_all_of_them() -> None:
    found = like([5.0, 5.0, 5.0], [5.0, 6.0, 4.0], "linf:1", [2.0])
    pairs = [(one.d1, one.d2) for one in found]
    assert ([5.0, 5.0, 5.0], [6.0, 6.0, 6.0]) in pairs
    assert ([5.0, 6.0, 5.0], [5.0, 5.0, 4.0]) in pairs  # the other way
    assert ([5.0, 5.0, 5.0], [5.0, 5.0, 4.0]) in pairs  # still
    assert ([5.0, 2.0, 5.0], [5.0, 3.0, 4.0]) in pairs  # elsewhere, and as far apart


def test_what_is_no_number_moves_nothing() -> None:
    found = like([5.0, 5.0, 5.0], [6.0, 5.0, 5.0], "linf:1", [None, float("nan"), 1.0])
    assert all(isinstance(x, float) and x == x for one in found for x in (*one.d1, *one.d2))
