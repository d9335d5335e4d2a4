"""Scores of sequences that are refitted to draws counted entry by entry."""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks import sequences as weights_module
from dpaudit.attacks.blocks import parts
from dpaudit.attacks.counted_sequences import CountedEntries, SequenceScored, Sum
from dpaudit.attacks.prefixes import prefixes
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import by_input
from dpaudit.levels.piecewise_smoothing import expected
from dpaudit.outcomes import Outcomes, from_raw

ENTRIES, KEPT, MORE = 24, 10_000, 20_000


def flags(shift: Any, size: int, rng: np.random.Generator) -> Any:
    """Whether answers are above a noisy threshold, up to the third one; those of the second half
    move the other way."""
    half = np.arange(ENTRIES) < ENTRIES // 2
    answers = np.where(half, shift, -shift)
    above = answers + rng.laplace(0.0, 6.0, (size, ENTRIES)) >= rng.laplace(2.0, 2.0, (size, 1))
    return np.where(np.cumsum(above, axis=1) - above < 3, above.astype(np.int64), -1)


@functools.cache
def drawn(size: int, seed: int, shift: float = 0.5) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    return SelectionDraws(
        from_raw(flags(np.where(is_d1, shift, -shift)[:, None], size, rng)), is_d1
    )


def counted_on(order: Candidate, draws: SelectionDraws) -> Candidate:
    return order.add(by_input(order.counter, draws.outcomes, draws.is_d1))


@functools.cache
def learned(rounds: int, shift: float = 0.5) -> Candidate:
    """Return the order after kept draws and a number of rounds of counted ones."""
    if rounds == 0:
        (order,) = prefixes(drawn(KEPT, 0, shift))
        return order
    before = learned(rounds - 1, shift)
    return counted_on(before, drawn(MORE, rounds, shift))


def test_levels_hold_as_many_draws_as_they_were_told_to() -> None:
    order, later = learned(5), drawn(100_000, 77)
    level = order.level_map()
    assert level.levels == len(order.counts)
    share = np.bincount(level(later.outcomes), minlength=level.levels) / later.size
    told = order.counts.sum(axis=1) / order.counts.sum()
    assert np.abs(np.cumsum(share) - np.cumsum(told)).max() < 0.02
    assert order.estimate is not None
    assert np.allclose(order.estimate.draws.sum(), order.counts.sum())
    assert (
        pickle.loads(pickle.dumps(level))(later.outcomes).tolist() == level(later.outcomes).tolist()
    )


def test_no_draw_tells_of_an_order_that_was_fitted_to_it() -> None:
    order = learned(0)
    for number in range(1, 8):
        order = counted_on(order, drawn(MORE, number))
        learner = order.refit
        assert isinstance(learner, CountedEntries)
        draws = KEPT + number * MORE
        assert [int(own.sum()) for (one,) in [learner.by_entry] for own in one] == [draws] * ENTRIES
        # It is refitted whenever draws have doubled, and measured by the draws after each fit.
        assert draws < 2 * learner.fitted_to
        assert learner.trial.draws == draws - learner.fitted_to
        if learner.earlier is not None:
            assert learner.earlier.draws <= learner.fitted_to


def test_sequences_are_counted_alike_in_any_pieces() -> None:
    counter, draws = learned(3).counter, drawn(50_000, 80)
    whole = by_input(counter, draws.outcomes, draws.is_d1)
    some = np.random.default_rng(0).permutation(draws.size)
    parts = (some[:7], some[7:33_000], some[33_000:])
    every = [by_input(counter, draws.outcomes.take(one), draws.is_d1[one]) for one in parts]
    assert np.array_equal(np.sum(every, axis=0), whole)
    again = pickle.loads(pickle.dumps(counter))
    assert np.array_equal(by_input(again, draws.outcomes, draws.is_d1), whole)
    # By the interval of its score, and by every entry.
    assert whole.sum() == draws.size * (1 + ENTRIES)


def test_draws_of_another_shape_are_counted_as_well() -> None:
    order = learned(2)
    strange = SelectionDraws(
        from_raw([[0, 7], [1], "none", None, [0] * 40] * 20), np.arange(100) % 2 == 0
    )
    order = counted_on(order, strange)
    assert order.level_map()(strange.outcomes).max() < len(order.counts)


def test_what_counted_draws_show_at_last_takes_no_longer_to_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Values that came up in none of the draws that were kept, after every past."""
    (order,) = prefixes(drawn(KEPT, 0))
    counter = order.counter
    counts = np.full((counter.levels, 2), 20)
    learned_from: list[int] = []

    def noticed(seen: Any, *given: Any) -> Any:
        learned_from.append(seen.shape[1])
        return expected(seen, *given)

    monkeypatch.setattr(weights_module, "expected", noticed)
    monkeypatch.setattr(weights_module, "_MAX_TABLES", 50)
    order.add(counts).level_map()
    assert max(learned_from) == 50


class NoScore:
    """A score that no outcome has."""

    columns = ()

    def __call__(self, outcomes: Outcomes) -> Any:
        return np.full(outcomes.size, np.nan)

    def words(self) -> str:
        return "is none"


@functools.cache
def side_by_side(size: int, seed: int) -> SelectionDraws:
    """Answers above a noisy threshold with their numbers, flags of other ones, and noise."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    shift = np.where(is_d1, 0.5, -0.5)[:, None]
    noisy = shift + rng.laplace(0.0, 6.0, (size, 8))
    above = noisy >= rng.laplace(2.0, 2.0, (size, 1))
    before: Any = np.cumsum(above, axis=1) - above
    given = np.where(before < 2, np.where(above, noisy, -1_000.0), -2_000.0)
    noise = rng.normal(size=(size, 2)) + 0.1 * shift
    noise[:, 1] += noise[:, 0]
    return SelectionDraws(from_raw(np.hstack([given, flags(shift, size, rng), noise])), is_d1)


@pytest.fixture
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.attacks.blocks._DRAWS_TO_REFIT", KEPT)


@pytest.mark.usefixtures("goes_on")
def test_an_outcome_without_one_of_the_parts_has_no_score() -> None:
    (order,) = parts(side_by_side(KEPT, 0))
    order = counted_on(order, side_by_side(MORE, 1))
    whole = side_by_side(4, 2).outcomes
    strange = from_raw([[0.0] * (8 + ENTRIES), "none", None])
    for outcomes, gaps in ((whole, 0), (strange, 3)):
        counts = by_input(order.counter, outcomes, np.arange(outcomes.size) % 2 == 0)
        assert isinstance(order.refit, CountedEntries)
        assert counts[order.refit.counter.bins - 1].sum() == gaps
        assert (order.level_map()(outcomes) == len(order.counts) - 1).sum() == gaps


def test_an_order_in_which_no_outcome_has_a_score_stays_as_it_is() -> None:
    (order,) = prefixes(drawn(KEPT, 0))
    assert isinstance(order.scored, SequenceScored)
    total = replace(Sum.of(order.scored), rest=NoScore())
    assert CountedEntries.of(drawn(KEPT, 0), order.scored, total) is None
