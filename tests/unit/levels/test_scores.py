"""The score at every level, the kept candidate, and intervals that are finer than levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive
from dpaudit.attacks.objective import Objective, best_of, rank_key
from dpaudit.attacks.single_columns import one_dimensional
from dpaudit.attacks.whitened import innovations
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Fixed, OrderedBins, Scorer, by_score
from dpaudit.levels.level_map import LevelMap, by_input
from dpaudit.levels.scores import Intervals, Scored, aligned, filled
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
    unused = Fixed(cast(LevelMap, None))
    both = [
        OrderedBins(name, counts, False, unused, is_smooth=True, position=score)
        for name, counts in (("lucky", lucky), ("better", better))
    ]
    aim = Objective(ProfilePoint(5.0, 0.0), 10**6)
    promised = [rank_key(one, aim)[0] for one in both]
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


SIZE = 20_000


def drawn(columns: int, seed: int = 0, size: int = SIZE) -> SelectionDraws:
    """Return Laplace noise in every column, and in prefix sums if there are several: d1 adds 1."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    noise = rng.laplace(size=(size, columns)) + is_d1[:, None]
    return SelectionDraws(from_raw(noise[:, 0] if columns == 1 else noise.cumsum(axis=1)), is_d1)


def finest(attack: Scorer, draws: SelectionDraws) -> tuple[OrderedBins, Intervals]:
    """Return the first order of an attack that can be cut finer, and what it is made of."""
    one = next(
        one for one in attack(draws) if isinstance(one, OrderedBins) and one.intervals is not None
    )
    assert one.intervals is not None
    return one, one.intervals


def tallied(level: NDArray[np.integer], levels: int, draws: SelectionDraws) -> NDArray[np.int64]:
    both = [level[draws.is_d1], level[~draws.is_d1]]
    return np.stack([np.bincount(one, minlength=levels) for one in both], axis=1)


ORDERS: list[tuple[Scorer, int]] = [(one_dimensional, 1), (additive, 5), (innovations, 5)]


@pytest.mark.parametrize(("attack", "columns"), ORDERS)
def test_levels_are_made_of_intervals(attack: Scorer, columns: int) -> None:
    draws, later = drawn(columns), drawn(columns, seed=1)
    one, found = finest(attack, draws)
    assert len(found.level) == found.each.levels - 1 > len(one.counts)
    assert np.all(np.diff(found.level) >= 0)
    assert np.array_equal(found.by_level(), one.counts)
    # The map to intervals is a finer one of the same order.
    level = np.append(found.level, len(one.counts) - 1)
    each = found.each(later.outcomes).astype(np.int64)
    assert np.array_equal(level[each], one.level_map()(later.outcomes))


@pytest.mark.parametrize(("attack", "columns"), ORDERS)
def test_further_draws_are_counted_by_interval(attack: Scorer, columns: int) -> None:
    draws, later = drawn(columns), drawn(columns, seed=1)
    one, found = finest(attack, draws)
    assert one.counter is found.each
    more = tallied(found.each(later.outcomes).astype(np.int64), found.each.levels, later)
    after = one.add(more)
    by_level = tallied(one.level_map()(later.outcomes).astype(np.int64), len(one.counts), later)
    assert np.array_equal(after.counts, one.counts + by_level)
    assert after.intervals is not None
    assert np.array_equal(after.intervals.counts, found.counts + more)


@pytest.mark.parametrize(("attack", "columns"), ORDERS)
@pytest.mark.parametrize(("low", "high"), [(20, 40), (0, 30), (1, 2)])
def test_it_is_cut_finer_near_a_rule(attack: Scorer, columns: int, low: int, high: int) -> None:
    one, found = finest(attack, drawn(columns))
    cut = one.near(low, high)
    assert len(cut.counts) <= 64
    assert np.array_equal(cut.counts.sum(axis=0), one.counts.sum(axis=0))
    near = found.near(low, high)
    own = np.bincount(near.level)
    for place in np.searchsorted(found.level, [low, high]):
        if place > 0:
            around = near.level[max(1, place - 3) : place + 4]
            assert np.all(own[around] == 1)  # each a level of its own
    later = drawn(columns, seed=1)
    level = cut.level_map()(later.outcomes).astype(np.int64)
    by_interval = np.append(near.level, len(cut.counts) - 1)
    assert np.array_equal(level, by_interval[found.each(later.outcomes).astype(np.int64)])
    assert cut.coordinate is not None
    assert np.all(np.diff(cut.coordinate) > 0)


def test_means_are_those_of_the_draws() -> None:
    draws = drawn(1)
    one, found = finest(one_dimensional, draws)
    positions, own = found.positions(), one.position
    assert positions is not None
    assert own is not None
    assert np.allclose(positions, own)
    # In their units numbers are known but for a shift and a factor.
    level = found.each(draws.outcomes).astype(np.int64)
    numbers = draws.outcomes.columns[0].numbers
    total, many = np.bincount(level, weights=numbers), np.bincount(level)
    seen = many > 0
    assert found.position is not None
    known = found.position[: len(many)][seen]
    assert abs(np.corrcoef(total[seen] / many[seen], known)[0, 1]) == pytest.approx(1)


def test_where_positions_do_not_rise_places_are_shares_of_the_draws() -> None:
    _, found = finest(one_dimensional, drawn(1))
    flat = replace(found, position=np.zeros(len(found.level)))
    masses = found.by_level()[:-1].sum(axis=1)
    assert np.allclose(flat.coordinates(), np.cumsum(masses) - masses / 2, atol=0.5)
    assert flat.positions() is not None
    assert np.array_equal(replace(found, position=None).coordinates(), flat.coordinates())


def test_levels_without_draws_have_places_of_their_own() -> None:
    _, found = finest(one_dimensional, drawn(1))
    counts = found.counts * 10_000
    counts[100:104] = 0
    empty = replace(found, position=None, counts=counts).near(30, 40)
    empty = replace(empty, level=np.arange(len(empty.level)))
    assert np.all(np.diff(empty.coordinates()) > 0)


@pytest.mark.parametrize("size", [500, 1_000])
def test_few_draws_are_not_cut_finer(size: int) -> None:
    for attack, columns in ORDERS:
        found = attack(drawn(columns, size=size))
        assert all(one.near(2, 4) is one for one in found)


def censored(seed: int, size: int, *, below: float = 0.0, lost: float = 0.0) -> SelectionDraws:
    """Return Laplace noise, of d1 1 larger, with None for what is less than `below` and for so
    large a share of all the rest."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    noise = rng.laplace(size=size) + is_d1
    is_none = (noise < below) | (rng.random(size) < lost)
    outputs = [None if none else one for none, one in zip(is_none, noise.tolist(), strict=True)]
    return SelectionDraws(from_raw(outputs), is_d1)


def label_and_levels(one: OrderedBins) -> tuple[int, int]:
    """Return the level of None, and how many there are."""
    return int(one.level_map()(from_raw([None, 0.5]))[0]), len(one.counts) - 1


@pytest.mark.parametrize("seed", range(8))
def test_a_label_that_no_number_tells_more_than_is_beyond_them_all(seed: int) -> None:
    # Numbers from -0.1 to 0 tell as much as the label: by luck alone it may stand among them.
    one, _ = finest(one_dimensional, censored(seed, SIZE, below=-0.1))
    more = censored(100 + seed, 5 * SIZE, below=-0.1)
    one = one.add(by_input(one.counter, more.outcomes, more.is_d1))
    assert label_and_levels(one)[0] == 0
    low, high = int(one.level_map()(from_raw([-0.05]))[0]), int(one.level_map()(from_raw([3.0]))[0])
    assert 0 < low < high


def test_a_label_that_tells_nothing_stands_among_numbers() -> None:
    one, _ = finest(one_dimensional, censored(0, SIZE, below=-99, lost=0.3))
    level, levels = label_and_levels(one)
    assert 0.25 * levels < level < 0.75 * levels


@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_a_label_moves_where_further_draws_put_it(lost: float) -> None:
    """lost: at first few labels tell of small numbers, then all labels are lost by chance."""
    one, found = finest(one_dimensional, censored(0, SIZE, below=-3))
    later = censored(1, 20 * SIZE, below=-99 if lost else -3, lost=lost)
    one = one.add(by_input(one.counter, later.outcomes, later.is_d1))
    level, levels = label_and_levels(one)
    assert (0.25 * levels < level < 0.75 * levels) if lost else level == 0
    # What it is made of, what it makes of outcomes and what was tallied say the same.
    assert one.intervals is not None
    seen = tallied(one.level_map()(later.outcomes), len(one.counts), later)
    first = by_level(found, one)
    assert np.array_equal(one.counts, first + seen)
    assert one.position is not None
    assert np.all(np.diff(one.position) > 0)
    near = one.near(5, levels - 5)
    seen = tallied(near.level_map()(later.outcomes), len(near.counts), later)
    assert near.counts.sum() == one.counts.sum()
    assert np.all(near.counts >= seen)
    assert near.coordinate is not None
    assert np.all(np.diff(near.coordinate) > 0)


def by_level(found: Intervals, later: OrderedBins) -> NDArray[np.int64]:
    """Return the counts of intervals by the levels that they have later."""
    made = later.intervals
    assert made is not None
    return replace(made, counts=found.counts).by_level()


@pytest.mark.parametrize("is_falling", [False, True])
def test_numbers_are_in_order_of_size_whatever_was_counted(is_falling: bool) -> None:
    draws = censored(0, SIZE, below=-1)
    if is_falling:
        draws = SelectionDraws(draws.outcomes, ~draws.is_d1)
    one, found = finest(one_dimensional, draws)
    assert one.attack.endswith("falling" if is_falling else "rising")
    numbers = from_raw([float(number) for number in np.linspace(-1, 12, 400)])
    for level in (found.each(numbers), one.level_map()(numbers)):
        steps = np.diff(level) * (-1 if is_falling else 1)
        assert np.all(steps >= 0)


def test_positions_that_are_not_known_are_between_or_beyond_the_others() -> None:
    nan = np.nan
    position = filled(np.array([nan, nan, 1.0, nan, 2.0, 4.0, nan]))
    assert position.tolist() == [-1.0, 0.0, 1.0, 1.5, 2.0, 4.0, 6.0]
    assert filled(np.array([nan, 1.0, nan])).tolist() == [0.0, 0.0, 0.0]
