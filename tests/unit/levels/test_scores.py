"""What a score is expected to say at every level, and which of several scores is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.objective import Objective, best_of, promise
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import BinSource, OrderedBins, by_score
from dpaudit.levels.scores import Scored, aligned
from dpaudit.levels.tuning import PENALTY
from dpaudit.outcomes import from_raw

DRAWS = 40_000


def never_frozen() -> Any:
    raise AssertionError("a score that is only counted is not made")


def position_of(scores: np.ndarray, halves: np.ndarray) -> np.ndarray:
    is_d1 = np.arange(DRAWS) % 2 == 0
    selection = SelectionDraws(from_raw(scores), is_d1)
    found = by_score(Scored("any", scores, never_frozen, halves), selection).position
    assert found is not None
    return found


def test_a_score_that_rises_by_noise_alone_has_one_position() -> None:
    """Two kinds of outputs, each with errors of its own: the errors say nothing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, DRAWS)
    halves = 2 * kind + 0.2 * rng.normal(size=(2, DRAWS))
    score = halves.mean(axis=0)
    without, with_halves = (position_of(score, one) for one in (np.stack([score] * 2), halves))
    for middle in (0.0, 2.0):
        own = np.abs(with_halves - middle) < 1
        assert own.sum() > 25
        assert np.ptp(with_halves[own]) < 0.4  # the outermost levels have four draws
        assert np.ptp(without[own]) > 0.6


def test_a_position_without_noise_is_the_score() -> None:
    score = np.random.default_rng(1).normal(size=DRAWS)
    ordered = np.sort(score)
    found = position_of(score, np.stack([score, score]))
    assert found[0] == pytest.approx(ordered[:1].mean(), abs=0.5)
    assert found[-1] == pytest.approx(ordered[-4:].mean(), abs=0.1)
    assert (np.diff(found) > 0).all()


def test_of_orders_that_promise_about_as_much_the_one_that_tells_more_is_kept() -> None:
    """Rare outputs may be lucky: of two thousand draws a hundred more are of d1 than expected."""
    score, draws = np.linspace(-1, 1, 60), 2_000
    better, lucky = (counted(slope * score, draws) for slope in (1.0, 0.85))
    lucky[-2] = [1_530, 470]
    both = [
        OrderedBins(name, counts, PENALTY, BinSource(), is_smooth=True, position=score)
        for name, counts in (("lucky", lucky), ("better", better))
    ]
    aim = Objective(ProfilePoint(5.0, 0.0), 10**6)
    promised = [promise(one, aim)[0] for one in both]
    assert promised[1] < promised[0] < promised[1] / 0.85
    assert best_of(both, aim).attack == "better"
    assert best_of([both[0], replace(both[1], is_smooth=False)], aim).attack == "lucky"


def counted(log_odds: np.ndarray, draws: int) -> np.ndarray:
    """Return the expected counts at levels of equal mass, with none unseen."""
    ahead = np.rint(draws / (1 + np.exp(-log_odds))).astype(np.int64)
    return np.append(np.stack([ahead, draws - ahead], axis=1), [[0, 0]], axis=0)


def test_outputs_without_a_score_stay_without_one() -> None:
    """Held-out scores of each fold are put on the scale of the score that is kept."""
    rng = np.random.default_rng(5)
    kept = np.where(rng.random(4_000) < 0.2, np.nan, rng.normal(size=4_000))
    fold = rng.integers(0, 4, 4_000)
    placed = aligned(kept * (1 + fold), fold, kept)
    assert np.array_equal(np.isnan(placed), np.isnan(kept))
    told = ~np.isnan(kept)
    assert np.abs(np.sort(placed[told]) - np.sort(kept[told])).max() < 0.5
    assert np.isnan(aligned(kept * np.nan, fold, kept)).all()
    assert np.isnan(aligned(kept, fold, kept * np.nan)).all()
