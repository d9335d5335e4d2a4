"""The score at every level, the kept candidate, and counts of further draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.additive import additive
from dpaudit.attacks.single_columns import one_dimensional
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, Scorer, by_score
from dpaudit.levels.level_map import by_input
from dpaudit.levels.scores import Scored, aligned
from dpaudit.outcomes import from_raw


def never_frozen() -> Any:
    raise AssertionError("a score that is only counted is not made")


def test_a_score_that_rises_by_noise_alone_has_one_position() -> None:
    """Two kinds of outputs, each with errors of its own: the errors say nothing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 40_000)
    halves = 2 * kind + 0.2 * rng.normal(size=(2, 40_000))
    score = halves.mean(axis=0)
    selection = SelectionDraws(from_raw(score), np.arange(40_000) % 2 == 0)
    without, with_halves = (
        by_score(Scored("any", score, never_frozen, by_fit), selection).position
        for by_fit in (np.stack([score] * 2), halves)
    )
    assert without is not None
    assert with_halves is not None
    for middle in (0.0, 2.0):
        own = np.abs(with_halves - middle) < 1
        assert own.sum() > 25
        assert np.ptp(with_halves[own]) < 0.4  # the outermost levels have four draws
        assert np.ptp(without[own]) > 0.6


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


SIZE = 20_000


def drawn(columns: int, seed: int = 0, size: int = SIZE) -> SelectionDraws:
    """Return Laplace noise in every column, and in prefix sums if there are several: d1 adds 1."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    noise = rng.laplace(size=(size, columns)) + is_d1[:, None]
    return SelectionDraws(from_raw(noise[:, 0] if columns == 1 else noise.cumsum(axis=1)), is_d1)


def labelled(draws: SelectionDraws) -> Candidate:
    """Return the order by size, in which labels are placed again after further draws."""
    return next(one for one in one_dimensional(draws) if one.is_smooth)


def counted_on(candidate: Candidate, draws: SelectionDraws) -> Candidate:
    return candidate.add(by_input(candidate.counter, draws.outcomes, draws.is_d1))


@pytest.mark.parametrize(("attack", "columns"), [(one_dimensional, 1), (additive, 5)])
def test_further_draws_are_counted_by_level(attack: Scorer, columns: int) -> None:
    draws, later = drawn(columns), drawn(columns, seed=1)
    candidate = attack(draws)[0]
    after = counted_on(candidate, later)
    by_level = by_input(candidate.level_map(), later.outcomes, later.is_d1)
    assert np.array_equal(after.counts, candidate.counts + by_level)


def censored(seed: int, size: int, *, below: float = 0.0, lost: float = 0.0) -> SelectionDraws:
    """Return Laplace noise, of d1 1 larger, with None for what is less than `below` and for so
    large a share of all the rest."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    noise = rng.laplace(size=size) + is_d1
    is_none = (noise < below) | (rng.random(size) < lost)
    outputs = [None if none else one for none, one in zip(is_none, noise.tolist(), strict=True)]
    return SelectionDraws(from_raw(outputs), is_d1)


def label_and_levels(candidate: Candidate) -> tuple[int, int]:
    """Return the level of None, and how many there are."""
    return int(candidate.level_map()(from_raw([None, 0.5]))[0]), len(candidate.counts) - 1


@pytest.mark.parametrize("seed", range(3))
def test_a_label_that_no_number_tells_more_than_is_beyond_them_all(seed: int) -> None:
    # Numbers from -0.1 to 0 tell as much as the label: by luck alone it may stand among them.
    first = labelled(censored(seed, SIZE, below=-0.1))
    counted = counted_on(first, censored(100 + seed, 5 * SIZE, below=-0.1))
    assert label_and_levels(counted)[0] == 0
    low, high = counted.level_map()(from_raw([-0.05, 3.0])).tolist()
    assert 0 < low < high


@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_a_label_moves_where_further_draws_put_it(lost: float) -> None:
    """lost: at first few labels tell of small numbers, then all labels are lost by chance."""
    first, later = (
        censored(0, SIZE, below=-3),
        censored(1, 20 * SIZE, below=-99 if lost else -3, lost=lost),
    )
    counted = counted_on(labelled(first), later)
    level, levels = label_and_levels(counted)
    assert (0.25 * levels < level < 0.75 * levels) if lost else level == 0
    seen = [by_input(counted.level_map(), draws.outcomes, draws.is_d1) for draws in (first, later)]
    assert np.array_equal(counted.counts, seen[0] + seen[1])
    assert counted.position is not None
    assert np.all(np.diff(counted.position) > 0)


def test_numbers_are_in_order_of_size_whatever_was_counted() -> None:
    draws = censored(0, SIZE, below=-1)
    draws = SelectionDraws(draws.outcomes, ~draws.is_d1)
    one = labelled(draws)
    assert one.attack.endswith("falling")
    numbers = from_raw([float(number) for number in np.linspace(-1, 12, 400)])
    for candidate in (one, counted_on(one, draws)):
        assert np.all(np.diff(candidate.level_map()(numbers)) <= 0)
