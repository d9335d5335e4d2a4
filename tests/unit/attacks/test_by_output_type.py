from __future__ import annotations

import functools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.blocks import KINDS, ByKind, Fit, Parts, _offsets, kinds
from dpaudit.attacks.objective import Objective, rank_key
from dpaudit.attacks.scorers import SCORERS
from dpaudit.attacks.weighted_sums import logistic
from dpaudit.attacks.whitened import innovations
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.levels.level_map import FOLDS, HALF, LevelMap, folds
from dpaudit.levels.scores import Scored
from dpaudit.outcomes import from_raw
from dpaudit.outcomes.tables import TimedOutcomes

AIM = Objective(ProfilePoint(1.0, 0.0), 1_000_000)
Mask = NDArray[np.bool_]
Rng = np.random.Generator
OTHERS = [one for one in SCORERS if one is not kinds]


def walk(is_d1: Mask, rng: Rng) -> list[Any]:
    steps = rng.laplace(0.0, 1.0, (len(is_d1), 6)) + np.where(is_d1, 0.0, 0.3)[:, None]
    return list(np.cumsum(steps, axis=1).tolist())


def with_gaps(is_d1: Mask, rng: Rng) -> list[Any]:
    """A walk; in two draws of a hundred None."""
    gaps = rng.random(len(is_d1)) < 0.02
    return [None if gap else one for gap, one in zip(gaps, walk(is_d1, rng), strict=True)]


def walk_or_total(is_d1: Mask, rng: Rng) -> list[Any]:
    """A walk, or in six draws of ten a dict with a total, which is larger for d1."""
    total = (rng.laplace(0.0, 1.0, len(is_d1)) + np.where(is_d1, 0.5, 0.0)).tolist()
    is_total = rng.random(len(is_d1)) < 0.6
    return [
        {"total": one, "of": 6.0} if is_short else steps
        for is_short, one, steps in zip(is_total, total, walk(is_d1, rng), strict=True)
    ]


def telling_kind(is_d1: Mask, rng: Rng) -> list[Any]:
    """A walk that tells little by itself, more often longer for d1."""
    is_long = rng.random(len(is_d1)) < np.where(is_d1, 0.6, 0.4)
    return [one if long else one[:4] for long, one in zip(is_long, walk(is_d1, rng), strict=True)]


@functools.cache
def drawn(
    mechanism: Callable[[Mask, Rng], Any], size: int, seed: int = 1, of_d1: float = 0.5
) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < of_d1
    return SelectionDraws(from_raw(mechanism(is_d1, rng)), is_d1)


def promised(found: Candidate) -> float:
    return rank_key(found, AIM)[0]


def words(level: LevelMap) -> str:
    return level.words(np.arange(level.levels) == level.levels - 2)


@pytest.mark.parametrize("mechanism", [with_gaps, walk_or_total, telling_kind])
def test_outputs_of_each_kind_tell_more_by_themselves(
    mechanism: Callable[[Mask, Rng], Any],
) -> None:
    draws = drawn(mechanism, 8_000)
    (found,) = kinds(draws)
    assert found.attack == KINDS
    others = [promised(one) for attack in OTHERS for one in attack(draws)]
    assert promised(found) > 1.05 * max(others)


def test_gaps_cost_hardly_more_than_the_draws_that_have_them() -> None:
    whole = [one for attack in OTHERS for one in attack(drawn(walk, 12_000))]
    (found,) = kinds(drawn(with_gaps, 12_000))
    assert promised(found) > 0.9 * max(map(promised, whole))


@pytest.mark.parametrize(
    "rows",
    [
        lambda size, rng: rng.normal(size=(size, 3)),
        lambda size, rng: rng.choice(["a", "b", "c"], size).tolist(),
        lambda size, rng: [[str(word), 1.5] for word in rng.choice(["a", "b"], size)],
    ],
    ids=["numbers", "words", "words beside a number"],
)
def test_outputs_of_one_kind_are_left_to_others(rows: Callable[[int, Rng], Any]) -> None:
    rng = np.random.default_rng(1)
    assert kinds(SelectionDraws(from_raw(rows(4_000, rng)), rng.random(4_000) < 0.5)) == []


def test_kinds_that_tell_nothing_are_left_out() -> None:
    draws = drawn(with_gaps, 8_000)
    luck = np.random.default_rng(2).random(8_000) < 0.5
    assert kinds(SelectionDraws(draws.outcomes, luck)) == []


def test_few_draws_and_many_columns_are_not_looked_at() -> None:
    def wide(is_d1: Mask, rng: Rng) -> list[Any]:
        numbers = rng.normal(size=(len(is_d1), 130)) + is_d1[:, None]
        return [None if row < 100 else one for row, one in enumerate(numbers.tolist())]

    assert kinds(drawn(with_gaps, 900)) == []
    assert kinds(drawn(wide, 2_100)) == []


@pytest.mark.parametrize("mechanism", [with_gaps, walk_or_total])
def test_its_levels_are_those_of_each_output_by_itself(
    mechanism: Callable[[Mask, Rng], Any],
) -> None:
    (found,) = kinds(drawn(mechanism, 8_000))
    level = pickle.loads(pickle.dumps(found.level_map()))
    later = drawn(mechanism, 300, seed=2).outcomes
    together: NDArray[np.intp] = level(later)
    assert len(set(together.tolist())) > 10
    assert together.max() < level.levels
    alone = [int(level(later.take(slice(row, row + 1)))[0]) for row in range(60)]
    assert alone == together[:60].tolist()
    timed = TimedOutcomes(later, np.random.default_rng(1).random(300))
    assert level(timed).tolist() == together.tolist()


def test_what_was_never_seen_has_a_level() -> None:
    (found,) = kinds(drawn(with_gaps, 8_000))
    level = found.level_map()
    strange = from_raw([[1.0], "word", {"a": 1.0}, [None] * 6])
    assert set(level(strange).tolist()) <= set(range(level.levels))


def test_it_says_what_it_does() -> None:
    (found,) = kinds(drawn(walk_or_total, 8_000))
    said = words(found.level_map())
    assert "scores outputs of 2 kinds by themselves" in said
    (found,) = kinds(drawn(with_gaps, 8_000))
    assert "scores outputs of the usual kind by themselves" in words(found.level_map())


def unequal_gaps(is_d1: Mask, rng: Rng) -> list[Any]:
    """A walk, or None: for d1 in six draws of ten, for d2 in three."""
    gaps = rng.random(len(is_d1)) < np.where(is_d1, 0.6, 0.3)
    return [None if gap else one for gap, one in zip(gaps, walk(is_d1, rng), strict=True)]


def scored_of(found: Candidate) -> Scored:
    assert found.scored is not None
    return found.scored


@pytest.mark.parametrize(("attack", "of_d1"), [(innovations, 0.8), (logistic, 0.5)])
def test_how_often_a_kind_is_drawn_is_counted_once(
    attack: Scorer, of_d1: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log-odds of logistic regression have it in them, sums of log-ratios have not."""
    monkeypatch.setattr("dpaudit.attacks.blocks.SCORING", (attack,))
    draws = drawn(unequal_gaps, 20_000, of_d1=of_d1)
    (found,) = kinds(draws)
    is_walk = np.array(draws.outcomes.column("output[0]").codes) == 0
    held_out = scored_of(found).held_out
    for rows in (is_walk, is_walk & (held_out > np.median(held_out[is_walk]))):
        share = 1 / (1 + np.exp(-held_out[rows] - math.log(of_d1 / (1 - of_d1))))
        error = math.sqrt(float((share * (1 - share)).sum()))
        assert abs(share.sum() - draws.is_d1[rows].sum()) < 4 * error
    frozen = scored_of(found).final_score()(draws.outcomes)
    assert abs(float((frozen - held_out)[is_walk].mean())) < 0.03
    assert abs(float((frozen - held_out)[~is_walk].mean())) < 0.03
    halves = scored_of(found).halves
    assert halves is not None
    assert np.abs((halves - held_out)[:, is_walk].mean(axis=1)).max() < 0.1


def test_outputs_of_another_kind_have_the_sum_over_columns() -> None:
    draws = drawn(unequal_gaps, 8_000)
    (found,) = kinds(draws)
    score = scored_of(found).final_score()
    assert isinstance(score, ByKind)
    assert len(score.kinds) == 1
    none = draws.outcomes.take(np.flatnonzero(np.array(draws.outcomes.column("output[0]").codes)))
    assert score(none).tolist() == score.rest(none).tolist()
    others = [promised(one) for attack in OTHERS for one in attack(draws)]
    assert promised(found) > 1.1 * max(others)


def test_offsets_are_held_out() -> None:
    rng = np.random.default_rng(1)
    is_d1 = rng.random(4_000) < 0.3
    scores = rng.normal(size=4_000)
    half = np.stack([scores, scores])
    scored = Scored("any", scores, lambda: pytest.fail("not frozen"), half)
    fit = Fit(kinds, scored, half, 9.0)
    fold = folds(4_000)
    by_fold, by_half = _offsets(fit, is_d1, 0.0)
    for one in range(FOLDS):
        changed = _offsets(fit, np.where(fold == one, True, is_d1), 0.0)
        assert changed[0][one] == by_fold[one]
        assert (np.delete(changed[0], one) > np.delete(by_fold, one)).all()
        assert changed[1][int(one < HALF)] == by_half[int(one < HALF)]
    assert np.allclose(by_fold, math.log(0.3 / 0.7) - 0.15, atol=0.2)
    assert np.allclose(by_half, by_fold[-1], atol=0.15)


def test_a_kind_that_is_noise_is_left_to_the_sum_over_columns() -> None:
    def noise_or_walk(is_d1: Mask, rng: Rng) -> list[Any]:
        every = walk(is_d1, rng)
        noise = rng.normal(size=(len(is_d1), 3)).tolist()
        is_noise = rng.random(len(is_d1)) < 0.4
        return [low if one else high for one, low, high in zip(is_noise, noise, every, strict=True)]

    (found,) = kinds(drawn(noise_or_walk, 20_000))
    score = scored_of(found).final_score()
    assert isinstance(score, ByKind)
    assert len(score.kinds) == 1


def test_what_columns_tell_each_by_itself_is_left_to_their_sum() -> None:
    def independent(is_d1: Mask, rng: Rng) -> list[Any]:
        signs = (rng.random((len(is_d1), 4)) < np.where(is_d1, 0.6, 0.5)[:, None]).astype(float)
        gaps = rng.random(len(is_d1)) < 0.3
        return [None if gap else one for gap, one in zip(gaps, signs.tolist(), strict=True)]

    assert sum(bool(kinds(drawn(independent, 8_000, seed))) for seed in range(5)) <= 1


def test_parts_are_tried() -> None:
    def two_walks(is_d1: Mask, rng: Rng) -> list[Any]:
        gaps = rng.random(len(is_d1)) < 0.02
        every = zip(gaps, walk(is_d1, rng), walk(is_d1, rng), strict=True)
        return [None if gap else [*one, *np.abs(other)] for gap, one, other in every]

    draws = drawn(two_walks, 15_000)
    (found,) = kinds(draws)
    score = scored_of(found).final_score()
    assert isinstance(score, ByKind)
    assert isinstance(score.kinds[0].score, Parts)


def test_rare_kinds_are_left_to_the_sum_over_columns() -> None:
    def many(is_d1: Mask, rng: Rng) -> list[Any]:
        lengths = rng.integers(1, 13, len(is_d1))
        return [
            one[:many]
            for one, many in zip(np.tile(walk(is_d1, rng), 2).tolist(), lengths, strict=True)
        ]

    assert kinds(drawn(many, 15_000)) == []


def test_numbers_as_large_as_they_can_be_are_looked_at() -> None:
    rng = np.random.default_rng(1)
    is_d1 = rng.random(4_000) < 0.5
    numbers = np.where(rng.random((4_000, 2)) < 0.5, 1.0, -1.0) * 1e308
    gaps = rng.random(4_000) < np.where(is_d1, 0.3, 0.1)
    rows = [None if gap else one for gap, one in zip(gaps, numbers.tolist(), strict=True)]
    with np.errstate(over="raise"):
        kinds(SelectionDraws(from_raw(rows), is_d1))
