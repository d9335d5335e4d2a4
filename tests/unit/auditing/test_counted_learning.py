"""Learning from counts, with too little memory for all rare outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import NAME as RARE
from dpaudit.attacks.single_columns import one_dimensional
from dpaudit.auditing import counted_learning
from dpaudit.auditing.counted_learning import CountedLearning
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import from_raw
from dpaudit.sampling.sampler import rare

AIM = Objective(ProfilePoint(1.0, 1e-6), 1_000_000)


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_learning, "MAX_KEPT_DRAWS", 1_024)


def side_by_side(size: int, seed: int, share: float) -> SelectionDraws:
    """Return numbers alike for d1 and d2, and a label that is more frequent for d1."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    label = (rng.random(size) < 2e-3) & (rng.random(size) < np.where(is_d1, share, 1 - share))
    numbers = rng.normal(size=(size, 6))
    numbers[:, 0] = np.where(label, 77.0, rng.integers(2, size=size))
    return SelectionDraws(from_raw(numbers), is_d1)


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("share", [0.5, 0.98])
def test_rare_outputs_are_evicted_unless_they_may_refute(share: float) -> None:
    """A label with some hundred draws is evicted, unless it may refute the claim."""
    selection = side_by_side(2_000, 0, share)
    counts = CountedLearning(selection, learn(selection, AIM))
    for seed in range(1, 100):
        draws = side_by_side(1_000, seed, share)
        counts.rare.add(rare(counts.rare.rare_filter, draws.outcomes, draws.is_d1))
        counts.make_room(2_000 + 1_000 * seed, 2_000 + 1_000 * seed, AIM)
    is_kept = bool(counts.rare.rare_filter.is_rare(from_raw([[77.0, *[0.0] * 5]]))[0])
    assert is_kept == (share > 0.5)
    (let_go,) = counts.rare.dropped()
    assert let_go.endswith("more often than others")
    seen = RareFilter.seen(counts.kept())
    assert seen is not None
    assert not seen.is_rare(from_raw([[77.0, *[0.0] * 5]])).any()


@pytest.mark.usefixtures("little_room")
def test_eviction_does_not_depend_on_the_rest_of_the_budget() -> None:
    """The rest may depend on the clock, and a continued run must use the same filter."""
    selection = side_by_side(20_000, 0, 0.9)
    strange = []
    for future_draws in (100, 10_000_000):
        counts = CountedLearning(selection, learn(selection, AIM))
        more = side_by_side(60_000, 2, 0.9)
        counts.rare.add(rare(counts.rare.rare_filter, more.outcomes, more.is_d1))
        counts.make_room(80_000, 160_000, replace(AIM, future_draws=future_draws))
        strange.append(
            counts.rare.rare_filter.is_rare(side_by_side(50_000, 1, 0.9).outcomes).tolist()
        )
    assert strange[0] == strange[1]
    assert counts.rare.dropped()


def test_outputs_that_may_refute_keep_their_filter() -> None:
    rng = np.random.default_rng(1)
    is_d1 = rng.random(100_000) < 0.5
    numbers: Any = is_d1 + rng.normal(scale=3.7307, size=100_000)
    numbers[np.flatnonzero(is_d1)[:15]] = -20.0
    selection = SelectionDraws(from_raw(numbers), is_d1)
    learned = learn(selection, Objective(ProfilePoint(1.0, 1e-5), 1_000_000), (one_dimensional,))
    assert [rule.attack for rule in learned.portfolio.rules] == [
        "threshold, rising",
        RARE,
        RARE,
    ]
    rare_filter = CountedLearning(selection, learned).rare.rare_filter
    assert rare_filter.is_rare(from_raw([-20.0, 0.1])).tolist() == [True, False]
    assert not RareFilter.of(selection).is_rare(from_raw([-20.0])).any()
