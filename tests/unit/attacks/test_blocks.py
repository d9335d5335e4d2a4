from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.blocks import PARTS, _parts, gain, log_odds, offset, parts
from dpaudit.attacks.objective import Objective, rank_key
from dpaudit.attacks.scorers import SCORERS
from dpaudit.attacks.whitened import innovations
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


def test_a_single_column_is_a_part() -> None:
    draws = drawn(20_000, numbers, counts)
    (found,) = parts(draws)
    others = [one for one in SCORERS if one is not parts]
    assert promised(found) > promised(best(draws, *others))


def test_a_part_that_tells_nothing_is_left_out() -> None:
    assert parts(drawn(20_000, answers, noise)) == []
    (found,) = parts(drawn(20_000, answers, noise, prefix_sums))
    assert "2 independent parts " in words(found)


def words(found: Candidate) -> str:
    level = found.level_map()
    return level.words(np.arange(level.levels) == level.levels - 2)


def test_it_names_what_moves_it_most() -> None:
    (found,) = parts(drawn(20_000, answers, counts))
    assert "most of all output[6]" in words(found)


@pytest.mark.parametrize("as_lists", [False, True])
def test_its_levels_are_those_of_each_output_by_itself(as_lists: bool) -> None:
    releases = answers, prefix_sums, counts
    draws = drawn(12_000, *releases, as_lists=as_lists)
    later = drawn(300, *releases, seed=2, as_lists=as_lists)
    (found,) = parts(draws)
    level = pickle.loads(pickle.dumps(found.level_map()))
    together: NDArray[np.intp] = level(later.outcomes)
    assert len(set(together.tolist())) > 10
    assert together.max() < level.levels
    alone = [int(level(later.outcomes.take(slice(row, row + 1)))[0]) for row in range(50)]
    assert alone == together[:50].tolist()


def test_outputs_of_another_shape_have_a_level() -> None:
    (found,) = parts(drawn(12_000, answers, prefix_sums))
    level = found.level_map()
    assert level(from_raw([[1.0], "word", None])).tolist() == [level.levels - 1] * 3


def test_attacks_that_do_not_apply_to_all_draws_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_few(selection: SelectionDraws) -> list[Candidate]:
        return innovations(selection) if selection.size <= 10_000 else []

    monkeypatch.setattr("dpaudit.attacks.blocks.SCORING", (of_few,))
    monkeypatch.setattr("dpaudit.attacks.blocks.MANY_DRAWS", 8_000)
    assert parts(drawn(9_000, prefix_sums, prefix_sums))
    assert parts(drawn(30_000, prefix_sums, prefix_sums)) == []


def test_a_part_that_few_draws_say_nothing_of_is_found_by_many() -> None:
    def weak(is_d1: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
        steps = rng.laplace(0.0, 1.0, (len(is_d1), 4)) + 0.025 * is_d1[:, None]
        return np.cumsum(steps, axis=1)

    every = drawn(100_000, weak, answers)
    few = every.take(slice(10_000))
    assert parts(few) == []
    assert parts(every)


def test_timed_outcomes_have_the_scores_of_others() -> None:
    draws, later = drawn(12_000, numbers, prefix_sums), drawn(300, numbers, prefix_sums, seed=2)
    (found,) = parts(draws)
    level = found.level_map()
    timed = TimedOutcomes(later.outcomes, np.random.default_rng(1).random(300))
    assert level(timed).tolist() == level(later.outcomes).tolist()


def test_of_many_parts_none_is_looked_at() -> None:
    assert len(_parts(drawn(4_096, *[prefix_sums] * 8))) == 8
    assert _parts(drawn(4_096, *[prefix_sums] * 9)) == []


def test_few_draws_and_many_columns_are_not_looked_at() -> None:
    assert parts(drawn(9_000, answers, prefix_sums)) == []
    assert parts(drawn(12_000, answers, prefix_sums, *[noise] * 45)) == []


@pytest.mark.parametrize("added", [-3.0, 0.0, 5.0])
def test_an_offset_takes_back_what_was_added(added: float) -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(0.5, 1.0, 50_000)
    is_d1 = rng.random(50_000) < 1 / (1 + np.exp(-odds))
    assert offset(odds + added, is_d1) == pytest.approx(-added, abs=0.05)
    # What was added does not count as an explanation.
    assert gain(odds + added, is_d1) == pytest.approx(gain(odds, is_d1), rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_noise_explains_nothing(share: float) -> None:
    rng = np.random.default_rng(1)
    is_d1 = rng.random(20_000) < share
    assert abs(gain(np.full(20_000, log_odds(is_d1)), is_d1)) < 1e-6
    assert abs(gain(np.zeros(20_000), is_d1)) < 1e-6
    assert gain(rng.normal(0.0, 0.5, 20_000), is_d1) < 0


def test_a_draw_without_a_score_is_explained_by_how_often_each_input_came_up() -> None:
    is_d1 = np.array([True, False, True, True])
    assert gain(np.full(4, math.nan), is_d1) == pytest.approx(0.0)
    some = gain(np.array([2.0, -2.0, math.nan, 2.0]), is_d1)
    assert 0 < some < gain(np.array([2.0, -2.0, 2.0, 2.0]), is_d1)


def test_scores_without_bounds_and_one_input_alone() -> None:
    is_d1 = np.array([True, False, True, False])
    assert gain(np.array([math.inf, -math.inf, math.inf, -math.inf]), is_d1) > 2
    assert math.isfinite(offset(np.zeros(5), np.ones(5, dtype=bool)))
    assert math.isfinite(gain(np.array([math.inf, 0.0]), np.array([False, False])))
