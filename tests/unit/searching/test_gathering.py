"""Pairs that traces suggest: from the catalogue, and by climbing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.searching import gathering
from dpaudit.searching.gathering import by_traces
from dpaudit.searching.proposals import Proposal
from dpaudit.targets.target import CallableTarget, CommandTarget, RepeatedTarget
from dpaudit.tracing.trace import Scorer, can_score
from tests.neighbouring import relation

Rng = np.random.Generator

UNIT, WIDE = (f"list of number in {bounds}" for bounds in ([0, 1], [-5, 5]))


def suggested(score: Any, space: str, adjacency: str, **options: Any) -> list[Proposal]:
    given = {"scores": 100, "inside_only": True, **options}
    return list(by_traces(relation(space, adjacency), score, **given))


def total(data: Sequence[float], rng: Rng) -> float:
    """Clip one side alone."""
    return sum(min(one, 1.0) for one in data) + rng.laplace()


def test_a_score_is_what_noise_hides_in_its_scales() -> None:
    score = Scorer(CallableTarget(function=total))
    assert score([0.5], []) == 0.5
    assert score([0.5, -7.0], [0.5]) == 7.0
    assert score([0.5], [0.5]) == 0.0
    assert score([0.5, math.nan], [0.5]) > 100


def test_what_has_no_noise_scores_higher() -> None:
    def bare(data: Sequence[float], rng: Rng) -> tuple[float, int]:
        if len(data) > 2:
            raise ValueError
        return len(data) + rng.laplace(), len(data)

    score = Scorer(CallableTarget(function=bare))
    assert score([1.0], []) > 100
    assert score([1.0, 1.0, 1.0], [1.0, 1.0]) > 100


def test_the_best_of_the_catalogue_come_first_and_are_neighbours() -> None:
    score = Scorer(CallableTarget(function=total))
    space, adjacency = WIDE, "add-remove"
    found = suggested(score, space, adjacency)
    assert score(found[0].d1, found[0].d2) == 5.0
    assert {one.origin for one in found} == {"trace"}
    for one in found:
        assert one.inside
        assert relation(space, adjacency).holds(one.d1, one.d2)


def test_climbing_goes_on_where_the_catalogue_ends() -> None:
    def products(data: Sequence[float], rng: Rng) -> float:
        return math.prod([1 + one for one in data]) + rng.laplace()

    score = Scorer(CallableTarget(function=products))
    found = suggested(score, "list of 1 to 6 number in [0, 1]", "replace", scores=300)
    best = max(score(one.d1, one.d2) for one in found)
    assert best >= 4.0


def test_equal_searches_are_equal_and_few_scores_are_few() -> None:
    score = Scorer(CallableTarget(function=total))
    space, adjacency = WIDE, "add-remove"
    one, other = (suggested(score, space, adjacency, scores=40) for _ in range(2))
    assert one
    assert one == other
    calls = []

    def counted(d1: Any, d2: Any) -> float:
        calls.append(d1)
        return score(d1, d2)

    suggested(counted, space, adjacency, scores=10)
    assert len(calls) <= 10
    assert not suggested(score, space, adjacency, seconds=-1.0)


def test_outside_of_the_space_where_that_is_asked_for() -> None:
    score = Scorer(CallableTarget(function=total))
    found = suggested(score, UNIT, "add-remove", inside_only=False)
    assert any(not one.inside and score(one.d1, one.d2) > 100 for one in found)


def test_what_can_be_scored() -> None:
    one = CallableTarget(function=total)
    assert can_score(one)
    assert can_score(RepeatedTarget(target=one, times=3))
    assert Scorer(RepeatedTarget(target=one, times=3))([0.5], []) == 0.5
    assert not can_score(CommandTarget(words=("./program",)))


@pytest.mark.parametrize("no_trace", [False, True])
def test_a_search_tries_them(no_trace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pair is one that nothing else proposes."""

    def rare(numbers: Sequence[float], size: int, rng: Rng) -> Any:
        return 9.0 * (0.1234 in numbers) + rng.laplace(size=size)

    def suggesting(*given: Any, scores: int, **more: Any) -> list[Proposal]:
        assert scores > 0
        return [Proposal([0.1234], [], "suggested", "trace", True)]

    monkeypatch.setattr(gathering, "by_traces", suggesting)
    result = dpaudit.search(
        rare, dpaudit.PureDP(1.0), space=UNIT, adjacency="add-remove",
        inside=True, samples=5_000, no_trace=no_trace,
    )  # fmt: skip
    assert result.searched is not None
    assert (result.searched.found[0] == ([0.1234], [])) is not no_trace
    assert (result.verdict is dpaudit.Verdict.VIOLATION) is not no_trace
