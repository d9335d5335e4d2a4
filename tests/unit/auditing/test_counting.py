"""What is counted to learn from, when there is no room for all that is rare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.choosing.aim import Aim
from dpaudit.attacks.choosing.selection import learn
from dpaudit.attacks.one_dimensional import one_dimensional
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.auditing.counting import Counts
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.sieve import Sieve
from dpaudit.outcomes import from_raw
from dpaudit.sampling.chunks import MOST_KEPT, Rare
from dpaudit.tally import Tally

AIM = Aim(ProfilePoint(1.0, 1e-6), 1_000_000)


def drawn(size: int, seed: int = 0) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    return SelectionDraws(from_raw(rng.normal(size=size)), rng.random(size) < 0.5)


def add(counts: Counts, rare: int, draws: int, lost: int = 0) -> None:
    none = [Tally(np.zeros((one.levels, 2), dtype=np.int64)) for one in counts.counters]
    counts.add(none, Rare(drawn(rare), lost), (draws // 2, draws // 2))


def stands_for(counts: Counts) -> tuple[int, int]:
    """Return how many draws the rare outputs are of, and how many of them are kept."""
    (rare,) = [one for one in counts.found() if one.attack == RARE]
    return int(rare.held_out.sum()), counts.kept().size


@pytest.fixture
def counts() -> Counts:
    selection = drawn(20_000)
    return Counts(selection, learn(selection, AIM))


def test_what_is_kept_stands_for_the_draws_that_it_is_of(counts: Counts) -> None:
    start, kept = stands_for(counts)
    rare = kept - 20_000
    add(counts, 5_000, 1_000_000)
    assert stands_for(counts) == (start + 1_000_000, kept + 5_000)
    # Of the next ones there is room for a part, which stands for as large a part of the draws.
    room = MOST_KEPT - rare - 5_000
    add(counts, MOST_KEPT, 1_000_000)
    draws, now = stands_for(counts)
    assert now == 20_000 + MOST_KEPT
    assert draws - start - 1_000_000 == pytest.approx(1_000_000 * room / MOST_KEPT, abs=2)
    assert counts.dropped() == [f"{MOST_KEPT - room:,} rare outputs beyond {MOST_KEPT:,}"]
    # Then they say no more of how rare they are, and are not diluted.
    add(counts, 0, 8_000_000)
    add(counts, 3, 8_000_000)
    assert stands_for(counts) == (draws, now)


def test_what_a_block_lost_is_of_its_draws(counts: Counts) -> None:
    start, _ = stands_for(counts)
    add(counts, 1_000, 1_000_000, lost=MOST_KEPT)
    room = MOST_KEPT - (counts.kept().size - 20_000 - 1_000)
    share = room / (1_000 + MOST_KEPT)
    assert stands_for(counts)[0] - start == pytest.approx(1_000_000 * share, abs=2)


def test_what_may_refute_the_claim_is_followed_by_its_own_sieve() -> None:
    rng = np.random.default_rng(1)
    is_d1 = rng.random(100_000) < 0.5
    numbers: Any = is_d1 + rng.normal(scale=3.7307, size=100_000)
    numbers[np.flatnonzero(is_d1)[:15]] = -20.0
    selection = SelectionDraws(from_raw(numbers), is_d1)
    learned = learn(selection, Aim(ProfilePoint(1.0, 1e-5), 1_000_000), (one_dimensional,))
    assert learned.distinguisher.attack == RARE
    sieve = Counts(selection, learned).sieve
    assert sieve.strange(from_raw([-20.0, 0.1])).tolist() == [True, False]
    assert not Sieve.of(selection).strange(from_raw([-20.0])).any()
