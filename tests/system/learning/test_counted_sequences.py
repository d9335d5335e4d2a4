"""Scores of sequences show more with more draws, measured on later draws."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.blocks import only, parts
from dpaudit.attacks.counted_sequences import CountedEntries
from dpaudit.attacks.learning import relearn
from dpaudit.attacks.objective import Objective, best_predicted
from dpaudit.attacks.prefixes import banded_sums, prefixes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, pool
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import by_input
from dpaudit.levels.rare_filter import USUAL_DRAWS
from dpaudit.levels.scores import ScoreLevels
from dpaudit.outcomes import from_raw
from tests.unit.attacks.test_counted_sequences import (
    ENTRIES,
    KEPT,
    MORE,
    counted_on,
    drawn,
    flags,
    learned,
)

AIM = Objective(ProfilePoint(0.0, 0.0), 500_000)


@functools.cache
def side_by_side(size: int, seed: int) -> SelectionDraws:
    """Answers above a noisy threshold with their numbers, flags of other ones, and noise."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    shift = np.where(is_d1, 0.5, -0.5)[:, None]
    noisy = shift + rng.laplace(0.0, 6.0, (size, 8))
    above = noisy >= rng.laplace(2.0, 2.0, (size, 1))
    before: Any = np.cumsum(above, axis=1) - above
    answers = np.where(before < 2, np.where(above, noisy, -1_000.0), -2_000.0)
    noise = rng.normal(size=(size, 2)) + 0.1 * shift
    noise[:, 1] += noise[:, 0]
    return SelectionDraws(from_raw(np.hstack([answers, flags(shift, size, rng), noise])), is_d1)


@pytest.fixture
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.attacks.blocks._DRAWS_TO_REFIT", KEPT)


def explained(draws: SelectionDraws, order: Candidate) -> float:
    """Return how many nats a draw is likelier by the score that is frozen than by even odds."""
    level = order.level_map()
    assert isinstance(level, ScoreLevels)
    sign = np.where(draws.is_d1, 1.0, -1.0)
    return math.log(2) - float(np.mean(np.logaddexp(0.0, -sign * level.score(draws.outcomes))))


def test_more_draws_tell_more() -> None:
    later = drawn(100_000, 77)
    first, last = learned(0), learned(10)
    assert explained(later, last) > explained(later, first) + 0.0003
    # As much as if all had been kept.
    every = [drawn(KEPT, 0), *(drawn(MORE, n) for n in range(1, 11))]
    (kept,) = prefixes(pool(every))
    assert explained(later, last) > explained(later, kept) - 0.0002


def test_what_is_promised_is_what_later_draws_give() -> None:
    order, later = learned(10), drawn(100_000, 77)
    found = relearn([order], AIM, [RareTable.of(drawn(KEPT, 0), USUAL_DRAWS)])
    rule = found.portfolio
    guesses = rule.guesses[rule(later.outcomes)]
    right = (guesses == np.where(later.is_d1, 1, -1)).sum()
    wrong = np.count_nonzero(guesses) - right
    promised = best_predicted(order, AIM)
    assert promised > 0
    error = math.sqrt(1 / right + 1 / wrong)
    assert abs(math.log(right / wrong) - promised) < 4 * error + 0.15


def test_nothing_is_promised_where_nothing_tells() -> None:
    order = learned(6, 0.0)
    assert best_predicted(order, AIM) < 0.03
    assert explained(drawn(100_000, 81, 0.0), order) < 1e-4


def test_what_is_foretold_is_lowered_where_draws_do_not_go_along() -> None:
    """Entries told something once; those that are counted from then on tell nothing."""
    order = honest = learned(1)
    for number in range(1, 4):
        order = counted_on(order, drawn(MORE, 500 + number, shift=0.0))
        honest = counted_on(honest, drawn(MORE, 500 + number))
    assert best_predicted(order, AIM) < best_predicted(honest, AIM) / 3


@pytest.mark.usefixtures("goes_on")
def test_sequences_side_by_side_are_learned_anew_and_added_up() -> None:
    (first,) = parts(side_by_side(KEPT, 0))
    last = first
    for number in range(1, 7):
        last = counted_on(last, side_by_side(MORE, number))
    later = side_by_side(50_000, 77)
    assert explained(later, last) > explained(later, first) + 0.0005
    learner = last.refit
    assert isinstance(learner, CountedEntries)
    assert [len(own) for own in learner.by_entry] == [8, ENTRIES]
    counter = learner.counter
    counts = by_input(counter, later.outcomes, later.is_d1)
    assert counts.sum() == later.size * (1 + 8 + ENTRIES)
    # By intervals of the very score that they were cut from, to the last digit.
    cut = ScoreLevels.cut(learner.total.made(learner.scores), learner.trial.edges)
    assert np.array_equal(counts[: cut.levels], by_input(cut, later.outcomes, later.is_d1))
    # Counted as the score says that is frozen.
    level = last.level_map()
    assert "3 independent parts " in level.words(np.arange(level.levels) < 3)


def test_numbers_beside_flags_are_learned_anew_by_their_bands() -> None:
    def drawn_so(size: int, seed: int) -> SelectionDraws:
        return only([f"output[{n}]" for n in range(8)], side_by_side(size, seed))

    first, *_ = banded_sums(drawn_so(KEPT, 0))
    last = first
    for number in range(1, 7):
        last = counted_on(last, drawn_so(MORE, number))
    later = drawn_so(100_000, 77)
    assert explained(later, last) > explained(later, first)
