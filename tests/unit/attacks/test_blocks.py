from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.blocks import PARTS, _parts, parts
from dpaudit.attacks.objective import Objective, rank_key
from dpaudit.attacks.scorers import SCORERS
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.outcomes import from_raw
from dpaudit.outcomes.tables import TimedOutcomes

AIM = Objective(ProfilePoint(1.0, 0.0), 1_000_000)
FloatArray = NDArray[np.float64]


def answers(is_d1: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    """A sparse vector on six queries, all 0 or all 1: above or below, and -1 after the first one
    above."""
    noisy = np.where(is_d1, 0.0, 1.0)[:, None] + rng.laplace(0.0, 2.0, (len(is_d1), 6))
    above = noisy >= rng.laplace(0.0, 1.0, (len(is_d1), 1))
    return np.where(np.cumsum(above, axis=1) > above, -1.0, above)


def numbers(is_d1: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    """The same on ten queries with more noise, with the answer that was compared in place of 1."""
    noisy = np.where(is_d1, 0.0, 1.0)[:, None] + rng.laplace(0.0, 4.0, (len(is_d1), 10))
    above = noisy >= rng.laplace(0.0, 2.0, (len(is_d1), 1))
    is_after = np.cumsum(above, axis=1) > above
    return np.where(above & ~is_after, noisy, np.where(is_after, -2000.0, -1000.0))


def prefix_sums(is_d1: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    numbers = rng.laplace(0.0, 1.0, (len(is_d1), 4))
    return np.cumsum(numbers + np.where(is_d1, 0.0, 1.0)[:, None], axis=1)


def noise(is_d1: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    return rng.normal(size=(len(is_d1), 3))


def counts(is_d1: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    return rng.laplace(0.0, 1.0, (len(is_d1), 1)) + is_d1[:, None]


def drawn(size: int, *releases: Any, seed: int = 1, as_lists: bool = False) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    every = [one(is_d1, rng) for one in releases]
    raw: Any = np.concatenate(every, axis=1)
    if as_lists:  # answers end with the first one above
        raw = [
            ([x for x in first if x >= 0], *rest)
            for first, *rest in zip(*(one.tolist() for one in every), strict=True)
        ]
    return SelectionDraws(from_raw(raw), is_d1)


def names(*places: int) -> tuple[str, ...]:
    return tuple(f"output[{place}]" for place in places)


def best(draws: SelectionDraws, *attacks: Scorer) -> Candidate:
    found = [one for attack in attacks for one in attack(draws)]
    return max(found, key=promised)


def promised(found: Candidate) -> float:
    return rank_key(found, AIM)[0]


def test_columns_that_depend_on_each_other_are_a_part() -> None:
    draws = drawn(4_096, answers, prefix_sums)
    assert _parts(draws) == [names(*range(6)), names(*range(6, 10))]


def test_columns_that_depend_on_no_other_are_one_part() -> None:
    draws = drawn(4_096, noise, answers, counts)
    assert _parts(draws) == [names(*range(3, 9)), names(0, 1, 2, 9)]


@pytest.mark.parametrize(
    "releases", [(answers,), (noise,), (counts,), (noise, counts)], ids=lambda one: len(one)
)
def test_one_release_or_independent_columns_alone_are_no_parts(releases: tuple[Any, ...]) -> None:
    assert _parts(drawn(4_096, *releases)) == []
    assert parts(drawn(12_000, *releases)) == []


@pytest.mark.parametrize("share", [0.5, 0.005])
def test_rare_values_do_not_look_as_if_they_hang_together(share: float) -> None:
    rng = np.random.default_rng(3)
    linked = 0
    for _ in range(12):
        bits = (rng.random((4_096, 24)) < share).astype(np.float64)
        linked += _parts(SelectionDraws(from_raw(bits), rng.random(4_096) < 0.5)) != []
    assert linked <= 2


def test_what_parts_tell_adds_up() -> None:
    draws = drawn(20_000, numbers, prefix_sums)
    (found,) = parts(draws)
    assert found.attack == PARTS
    others = [one for one in SCORERS if one is not parts]
    assert promised(found) > 1.05 * promised(best(draws, *others))


def test_a_part_that_tells_nothing_is_left_out() -> None:
    assert parts(drawn(20_000, answers, noise)) == []


def test_its_levels_are_those_of_each_output_by_itself() -> None:
    releases = answers, prefix_sums, counts
    draws = drawn(12_000, *releases, as_lists=True)
    later = drawn(300, *releases, seed=2, as_lists=True)
    (found,) = parts(draws)
    level = pickle.loads(pickle.dumps(found.level_map()))
    together: NDArray[np.intp] = level(later.outcomes)
    assert len(set(together.tolist())) > 10
    assert together.max() < level.levels
    alone = [int(level(later.outcomes.take(slice(row, row + 1)))[0]) for row in range(50)]
    assert alone == together[:50].tolist()
    timed = TimedOutcomes(later.outcomes, np.random.default_rng(1).random(300))
    assert level(timed).tolist() == together.tolist()
    assert level(from_raw([[1.0], "word", None])).tolist() == [level.levels - 1] * 3
