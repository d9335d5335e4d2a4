"""The store of rare draws keeps all outputs of its filter, and narrows the filter when full."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.auditing import counted_learning
from dpaudit.auditing.counted_learning import RareStore
from dpaudit.draws import SelectionDraws, pool
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import from_raw
from dpaudit.sampling.sampler import rare

MOST = 1_024
COLUMNS = 6
NONE = frozenset[str]()


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_learning, "MAX_KEPT_DRAWS", MOST)


def drawn(size: int, seed: int, leak: float = 1e-4) -> SelectionDraws:
    """Return numbers, integers, and rare values of d1 alone."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    found = rng.normal(size=(size, COLUMNS))
    found[:, 1] = rng.geometric(0.2, size=size)
    found[(rng.random(size) < leak) & is_d1, 2] = 1e6
    found[:, 3] = np.where((rng.random(size) < leak) & is_d1, 9, rng.integers(5, size=size))
    return SelectionDraws(from_raw(found), is_d1)


def store() -> tuple[RareStore, list[SelectionDraws]]:
    first = drawn(10_000, 0)
    return RareStore(RareFilter.of(first), first), [first]


def arms(draws: SelectionDraws) -> list[int]:
    d1 = int(draws.is_d1.sum())
    return [d1, draws.size - d1]


def add(to: RareStore, draws: SelectionDraws) -> None:
    to.add(rare(to.rare_filter, draws.outcomes, draws.is_d1))


def test_the_store_keeps_all_draws_that_its_filter_selects() -> None:
    found, every = store()
    for seed in range(1, 31):
        every.append(drawn(10_000, seed))
        add(found, every[-1])
        total = pool(every)
        if not found.has_room(total.size):
            found.make_room(total.size, NONE)
            assert found.has_room(total.size)
        is_rare = found.rare_filter.is_rare(total.outcomes)
        assert (
            found.pool_kept().outcomes.keys().tolist()
            == total.outcomes.take(is_rare).keys().tolist()
        )
        assert found.pool_kept().is_d1.tolist() == total.is_d1[is_rare].tolist()
        assert found.arms.tolist() == arms(total)
        assert found.size <= MOST
    # Nothing was lost, and what d1 alone gave is there.
    (let_go,) = found.dropped()
    assert "more often " in let_go
    columns = found.pool_kept().outcomes.columns
    for place, value in ((2, 1e6), (3, 9.0)):
        was = total.outcomes.columns[place].numbers == value
        assert was.sum() >= 10
        assert (columns[place].numbers == value).sum() == was.sum()


def test_evicted_outputs_count_as_seen() -> None:
    first = drawn(10_000, 0, leak=0.0)
    found, every = RareStore(RareFilter.of(first), first), [first]
    for seed in range(1, 11):
        every.append(drawn(10_000, seed, leak=1e-2))
        add(found, every[-1])
        if not found.has_room(100_000):
            found.make_room(100_000, NONE)
    # Of the leaks, which are no part of what was drawn first, hardly any is kept.
    assert (found.pool_kept().outcomes.columns[3].numbers == 9).sum() < 100
    seen = RareFilter.seen(pool([first, *found.seen]))
    assert seen is not None
    assert not seen.is_rare(pool(every).outcomes).any()


def test_spared_columns_are_kept() -> None:
    for spared in (frozenset({"output[3]"}), NONE):
        found, _ = store()
        for seed in range(1, 5):
            add(found, drawn(10_000, seed, leak=1e-2))
        before = (found.pool_kept().outcomes.columns[3].numbers == 9).sum()
        assert before > 100
        found.make_room(100_000, spared)
        left = (found.pool_kept().outcomes.columns[3].numbers == 9).sum()
        # Some of the evicted draws are rare in another column.
        assert left == before if spared else left < 5


def test_a_full_store_stands_for_the_draws_before() -> None:
    found, _ = store()
    several = [drawn(10_000, seed) for seed in range(1, 13)]
    for one in several:
        add(found, one)
    assert not found.has_room(1)
    kept, before = found.size, found.arms.tolist()
    assert kept <= MOST
    # Neither the next ones, nor those that there would be room for: both are no sample of all.
    add(found, drawn(10_000, 21))
    add(found, drawn(10, 22))
    assert (found.size, found.arms.tolist()) == (kept, before)
    (words,) = found.dropped()
    assert words.endswith("no room")
    # With a narrower filter there is room again, for as many draws as it takes then.
    found.make_room(130_000, NONE)
    assert found.has_room(130_000)
    more = drawn(10_000, 23)
    add(found, more)
    assert found.arms.tolist() == np.add(before, arms(more)).tolist()
    assert len(found.dropped()) == 2
