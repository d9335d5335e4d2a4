from __future__ import annotations

import functools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.blocks import KINDS, Fit, _offsets, kinds
from dpaudit.attacks.objective import Objective, rank_key
from dpaudit.attacks.scorers import SCORERS
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import FOLDS, HALF, folds
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


@functools.cache
def drawn(
    mechanism: Callable[[Mask, Rng], Any], size: int, seed: int = 1, of_d1: float = 0.5
) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < of_d1
    return SelectionDraws(from_raw(mechanism(is_d1, rng)), is_d1)


def promised(found: Candidate) -> float:
    return rank_key(found, AIM)[0]


@pytest.mark.parametrize("mechanism", [with_gaps, walk_or_total])
def test_outputs_of_each_kind_tell_more_by_themselves(
    mechanism: Callable[[Mask, Rng], Any],
) -> None:
    draws = drawn(mechanism, 8_000)
    (found,) = kinds(draws)
    assert found.attack == KINDS
    others = [promised(one) for attack in OTHERS for one in attack(draws)]
    assert promised(found) > 1.05 * max(others)


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
