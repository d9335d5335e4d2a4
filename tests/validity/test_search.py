"""Whole searches: planted leaks are found on the worst pairs of their space."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Verdict, ZeroConcentratedDP
from mechanisms.neighbours.planted import PLANTED
from mechanisms.noisy_max import winning_law
from mechanisms.truth import epsilon_of
from tests.neighbouring import relation

UNIT = "list of number in [0, 1]"


def search(mechanism: Any, **more: Any) -> dpaudit.AuditResult:
    given = {"space": UNIT, "adjacency": "add-remove", "samples": 40_000, **more}
    return dpaudit.search(mechanism, given.pop("claim", PureDP(1.0)), **given)


QUICK = ("clamps-one-side", "empty-is-exact", "bound-read-twice", "even-for-all", "overflows")


@pytest.mark.parametrize("name", QUICK)
def test_planted_leaks_are_found(name: str) -> None:
    """Those that take a second; `python -m benchmarks.search` has all."""
    (planted,) = (one for one in PLANTED if one.name == name)
    given = {"space": planted.space, "adjacency": planted.adjacency, "params": dict(planted.params)}
    broken = search(planted.broken, samples=20_000, **given)
    assert broken.verdict is Verdict.VIOLATION, str(broken)
    correct = search(planted.correct, samples=10_000, confidence=0.99999, **given)
    assert correct.verdict is Verdict.NO_VIOLATION_FOUND, str(correct)


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("largest-rarely-passes", 200_000),
        ("many-rarely-pass", 200_000),
        ("largest-often-passes", 20_000),
    ],
)
def test_a_pair_that_could_exceed_the_claim_wins_against_one_that_uses_all_of_it(
    name: str, samples: int
) -> None:
    """The claim is used in full at the bounds; the leak is in a rare event, or inside them."""
    (planted,) = (one for one in PLANTED if one.name == name)
    given = {"space": planted.space, "adjacency": planted.adjacency, "samples": samples}
    results = [search(planted.broken, seed=seed, **given) for seed in range(10)]
    assert sum(one.verdict is Verdict.VIOLATION for one in results) >= 9


def law_without_noise(answers: list[float]) -> dict[int, float]:
    """Return which of five answers is the first above 5, noise of scale 2 added, and no other."""
    law, none = dict[int, float](), 1.0
    for place, answer in enumerate([*np.clip(answers, 0, 10).tolist(), math.inf]):
        tail = math.exp(-abs(answer - 5) / 2) / 2
        above = 1 - tail if answer >= 5 else tail
        law[place], none = none * above, none * (1 - above)
    return law


def law_of_direction(answers: list[float]) -> dict[int, float]:
    return winning_law(np.clip(answers, 0, 10).tolist(), 1.0)


@pytest.mark.parametrize(
    ("name", "law", "seed"),
    [
        ("noise-for-one-direction", law_of_direction, 1),
        ("threshold-without-noise", law_without_noise, 36),
    ],
)
def test_the_pair_is_as_bad_as_the_worst_pattern(
    name: str, law: Callable[[list[float]], dict[int, float]], seed: int
) -> None:
    """Judged by exact laws, on pairs that differ little after few draws."""
    (planted,) = (one for one in PLANTED if one.name == name)
    given = {"space": planted.space, "adjacency": planted.adjacency}
    result = search(planted.broken, samples=2_000_000, seed=seed, **given)
    assert result.searched is not None

    def truth(d1: list[float], d2: list[float]) -> float:
        return epsilon_of(law(d1), law(d2))

    pairs = relation(planted.space, "linf:1").pattern_pairs()
    worst = max(truth(d1, d2) for d1, d2, _ in pairs)
    assert truth(*result.searched.found[0]) >= 0.99 * worst


def counts_groups(rows: list[Any], rng: np.random.Generator) -> float:
    """Add noise for one group of a user, who may be in ten."""
    return len({(row["user"], row["group"]) for row in rows}) + rng.normal(0, 5)


def test_a_user_in_every_group_is_found() -> None:
    result = search(
        counts_groups,
        claim=ZeroConcentratedDP(0.02),
        space="table of 0 to 30 {user: user, group: integer in [0, 9]}",
        adjacency="user:user",
        samples=10_000,
        no_trace=True,
    )
    assert result.verdict is Verdict.VIOLATION
    assert result.searched is not None
    d1, d2 = result.searched.found[0]
    users = {row["user"] for row in d1}
    assert len({row["group"] for row in d2 if row["user"] not in users}) == 10


def raises_from_258_on(rows: list[Any], rng: np.random.Generator) -> float:
    if len(rows) > 257:
        raise OverflowError("too many")
    return rng.laplace()


def raises_for_many_equal(rows: list[Any], rng: np.random.Generator) -> int:
    weight = math.exp(-2.0 * len(rows)) if len(set(rows)) == 1 else 1.0
    if weight == 0:
        raise RuntimeError("no candidate")
    return int(rng.random() < 0.5)


@pytest.mark.parametrize(
    ("mechanism", "sizes", "first"),
    [
        (raises_from_258_on, "250 to 260", 258),
        (raises_for_many_equal, "0 to 500", 373),
    ],
)
def test_the_length_is_found_from_which_exceptions_begin(
    mechanism: Any, sizes: str, first: int
) -> None:
    space = f"list of {sizes} number in [0, 1]"
    result = search(mechanism, space=space, samples=5_000, no_trace=True)
    assert result.verdict is Verdict.VIOLATION
    assert result.searched is not None
    lengths = [sorted(map(len, pair)) for pair in result.searched.found]
    assert [first - 1, first] in lengths
