"""Scores of sequences that are refitted to draws counted entry by entry."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np

from dpaudit.attacks.counted_sequences import CountedEntries
from dpaudit.attacks.prefixes import prefixes
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import by_input
from dpaudit.outcomes import from_raw

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
