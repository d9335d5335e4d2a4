"""What a filter lets through: what was hardly ever seen among selection draws, and nothing else."""

import uuid
from typing import Any

import numpy as np
import pytest

from dpaudit.draws import SelectionDraws
from dpaudit.levels.rare_filter import USUAL_DRAWS, RareFilter
from dpaudit.outcomes import Column, Outcomes, Raised, concatenate, from_raw

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=5_000)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a new generator, so that no other test changes the numbers."""
    return np.random.default_rng(1)


class Boom(Exception):
    """An exception of a mechanism."""


def sieve_of(raw: Any) -> RareFilter:
    outcomes = from_raw(raw)
    return RareFilter.of(SelectionDraws(outcomes, np.arange(outcomes.size) % 2 == 0))


@pytest.mark.parametrize(
    ("seen", "later", "strange"),
    [
        ([0.0, 1.0] * 50, [0.0, 1.0, 77.0, -1.0], [2, 3]),
        (NUMBERS, [0.0, 1e6, -np.inf, 0.5, np.inf], [1, 2, 4]),
        (["a", "b"] * 50, ["a", "c", "b", None, 2.0], [1, 3, 4]),
        ([{"a": 1, "b": 2}, {"a": 1}] * 50, [{"a": 1}, {"b": 2}, {"a": 1, "b": 2}], [1]),
        ([[1, 2]] * 50, [[1, 2], [1, 2, 3], [1]], [1, 2]),
        ([True, 1] * 50, [True, 1, "True"], [2]),
    ],
)
def test_what_was_hardly_ever_seen_is_let_through(
    seen: Any, later: list[Any], strange: list[int]
) -> None:
    found = sieve_of(seen).is_rare(from_raw(later))
    assert np.flatnonzero(found).tolist() == strange


@pytest.mark.parametrize(
    ("seen", "strange"),
    [
        ([{"a": 1}, {"a": 1, "b": 2}] * 50, {"a": 1, "b": 3}),
        ([{1, 2}, {1}, {2}, set()] * 50, {1, 2, 3}),
        ([[1], [1, 1]] * 50, [1, 2]),
        ([0.0, 1.0] * 50, [0.0]),
    ],
)
def test_what_is_let_through_does_not_depend_on_what_it_stands_beside(
    seen: Any, strange: Any
) -> None:
    rare_filter = sieve_of(seen)
    usual = seen[:2]
    assert rare_filter.is_rare(from_raw([*usual, strange])).tolist() == [False] * len(usual) + [
        True
    ]
    assert rare_filter.is_rare(from_raw([strange])).tolist() == [True]
    assert rare_filter.is_rare(from_raw([strange] * 3)).all()
    assert not rare_filter.is_rare(from_raw(usual[:1])).any()


def test_places_that_hold_much_in_many_ways_are_no_rarity(rng: np.random.Generator) -> None:
    sets = [set(rng.permutation(12)[:6].tolist()) for _ in range(2_000)]
    rare_filter = sieve_of(sets)
    assert not rare_filter.is_rare(from_raw(sets)).any()
    assert rare_filter.is_rare(from_raw([*sets[:50], {*list(sets[50])[1:], 99}])).tolist() == [
        False
    ] * 50 + [True]


def test_a_new_text_is_new_only_if_its_content_is(rng: np.random.Generator) -> None:
    texts = [f"{number:.9f} rows" for number in rng.uniform(size=3_000)]
    seen = RareFilter.seen(SelectionDraws(from_raw(texts[:2_000]), np.zeros(2_000, dtype=bool)))
    assert seen is not None
    assert seen.is_rare(from_raw(texts[2_000:])).mean() < 0.01
    assert seen.is_rare(from_raw(["0.5 lines", "7.5 rows"])).all()
    ids = [f"id {uuid.uuid5(uuid.NAMESPACE_URL, text)}" for text in texts]
    seen = RareFilter.seen(SelectionDraws(from_raw(ids[:2_000]), np.zeros(2_000, dtype=bool)))
    assert seen is not None
    assert seen.is_rare(from_raw(ids[2_000:])).all()


def test_a_number_seen_often_is_usual_and_one_seen_less_is_not() -> None:
    seen = [1.0] * 1_000 + [2.0] * USUAL_DRAWS + [3.0] * (USUAL_DRAWS - 1)
    assert sieve_of(seen).is_rare(from_raw([1.0, 2.0, 3.0])).tolist() == [False, False, True]


def test_of_numbers_that_do_not_repeat_the_tails_are_rare(rng: np.random.Generator) -> None:
    share = sieve_of(NUMBERS).is_rare(from_raw(rng.normal(size=100_000))).mean()
    assert 0.5 < share / (2 * USUAL_DRAWS / len(NUMBERS)) < 2


def seen_by(raw: Any) -> RareFilter:
    return seen_of(from_raw(raw))


def seen_of(outcomes: Outcomes) -> RareFilter:
    rare_filter = RareFilter.seen(SelectionDraws(outcomes, np.arange(outcomes.size) % 2 == 0))
    assert rare_filter is not None
    return rare_filter


@pytest.mark.parametrize(
    ("seen", "later", "new"),
    [
        ([0.0, 1.0] * 50 + [2.0] * 2, [0.0, 2.0, 1.5, -1.0], [2, 3]),
        (
            map(float, range(12)),
            [3.0, 3.5, 11.0, 12.0, -1.0],
            [3, 4],
        ),  # no value repeats: what is beyond them
        (NUMBERS.tolist(), [float(NUMBERS.min()), float(NUMBERS.max()), 1e6, -np.inf, 0.1], [2, 3]),
        ([0.0, 1.0] * 50, [0.0, -0.0, 1.0, 1], [1, 3]),
        ([[1.0]] * 50, [[1.0], (1.0,), [-0.0]], [1, 2]),
        (["a", "b"] * 50 + ["c"], ["a", "c", "d", None, 2.0], [2, 3, 4]),
        ([{"a": 1}] * 50, [{"a": 1}, {"a": 1, "b": 2}, {"a": 1}], [1]),
        ([[1, 2]] * 50, [[1, 2], [1, 2, 3], [1]], [1, 2]),
        ([1.0] * 50, [1.0, np.nan, Boom("a")], [1, 2]),
    ],
)
def test_what_was_never_seen_is_new(seen: Any, later: list[Any], new: list[int]) -> None:
    raw = [Raised("Boom", "a") if isinstance(one, Boom) else one for one in later]
    assert np.flatnonzero(seen_by(list(seen)).is_rare(from_raw(raw))).tolist() == new


def test_nothing_that_was_seen_is_new(rng: np.random.Generator) -> None:
    vectors = rng.geometric(0.3, size=(3_000, 20))
    assert not seen_by(vectors).is_rare(from_raw(vectors)).any()


def test_of_outcomes_too_wide_to_look_at_whole_nothing_is_said() -> None:
    outcomes = from_raw(np.zeros((20, 300)))
    assert RareFilter.seen(SelectionDraws(outcomes, np.arange(20) % 2 == 0)) is None


@pytest.mark.parametrize("usual", [range(-40, 900, 7), [0.5, *range(50)], [0, 10**9]])
def test_numbers_are_looked_up_as_they_are_searched_for(
    usual: Any, rng: np.random.Generator
) -> None:
    rare_filter = sieve_of([*map(float, usual)] * USUAL_DRAWS)
    values = np.array(sorted(usual), dtype=float)
    odd = [np.inf, -np.inf, 1e300, -1e300, values[0] - 1, values[-1] + 1, 3.25, -0.0]
    later = np.concatenate([values, values + 0.5, odd, rng.integers(-60, 1_000, 500)])
    (column,) = rare_filter.columns
    is_rare = column.is_rare(Column("output", later))
    assert is_rare.tolist() == [one not in set(values) for one in later.tolist()]


@pytest.mark.parametrize(
    ("seen", "kept", "usual", "strange"),
    [
        ([0.0, 1.0] * 50, [7.0] * 3 + [8.0] * 2, [0.0, 1.0, 7.0], [8.0, 9.0]),
        (["a", "b"] * 50, ["c", "d", "c", None, "c"], ["a", "c"], ["d", None, 2.0]),
        ([[1, 2]] * 50, [[1, 2, 3]] * 3 + [[1]], [[1, 2], [1, 2, 3]], [[1], [1, 2, 3, 4]]),
    ],
)
def test_what_came_up_often_of_what_was_let_through_becomes_usual(
    seen: Any, kept: Any, usual: list[Any], strange: list[Any]
) -> None:
    first, outcomes = sieve_of(seen), from_raw(kept)
    rare_filter, rows = first.narrowed(outcomes, 3)
    assert not rare_filter.is_rare(from_raw(usual)).any()
    assert rare_filter.is_rare(from_raw(strange)).all()
    # Of what became usual there is a row, and a filter of what was seen lets none of it through.
    shown = concatenate([from_raw(seen), outcomes.take(rows)])
    is_usual = ~rare_filter.is_rare(outcomes)
    assert not seen_of(shown).is_rare(outcomes.take(is_usual)).any()
    assert len(rows) <= 3


def test_a_range_grows_to_as_many_from_either_end(rng: np.random.Generator) -> None:
    rare_filter = sieve_of(NUMBERS)
    (column,) = rare_filter.columns
    kept = rng.normal(size=200_000)
    kept = kept[rare_filter.is_rare(from_raw(kept))]
    (wider,) = rare_filter.narrowed(from_raw(kept), 50)[0].columns
    low, high = wider.numbers.tolist()
    assert 40 < (kept < low).sum() < 50 > (kept > high).sum() > 40
    # Fewer are beyond an end than that: it stays.
    (same,) = rare_filter.narrowed(from_raw(kept[kept > 0]), 50)[0].columns
    assert same.numbers.tolist() == [column.numbers[0], high]


@pytest.mark.parametrize(("often", "scale"), [(1, 1.0), (10, 1e-9), (2, 1e300)])
def test_what_is_frequent_at_the_end_of_a_range_is_usual(
    often: int, scale: float, rng: np.random.Generator
) -> None:
    """An end is a short number, and beyond what is frequent there, not before it."""
    frequent = np.full(500, 0.123456789)
    numbers = scale * np.concatenate([frequent, -frequent, rng.uniform(-0.1, 0.1, 4_000)])
    beyond = scale * np.array([[-1.0], [1.0]]) * rng.uniform(0.2, 1, often)
    outcomes = from_raw(np.append(numbers, beyond))
    rare_filter = RareFilter.of(SelectionDraws(outcomes, np.arange(outcomes.size) % 2 == 0), often)
    assert rare_filter.columns[0].is_range
    assert not rare_filter.is_rare(from_raw(numbers)).any()
    assert rare_filter.is_rare(from_raw(beyond.ravel())).sum() == 2 * (often - 1)


def test_a_new_key_that_is_spared_stays_strange() -> None:
    rare_filter, leak = sieve_of([{"a": 1}] * 50), from_raw([{"a": 1, "b": 2}] * 30)
    assert not rare_filter.narrowed(leak, 20)[0].is_rare(leak).any()
    assert rare_filter.narrowed(leak, 20, frozenset({'output["b"]'}))[0].is_rare(leak).all()


def in_letters(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "abcdefghij"))


@pytest.mark.parametrize(
    ("raw", "is_new"),
    [
        ([in_letters(max(i, 49)) for i in range(100)], True),
        ([in_letters(max(i, 51)) for i in range(100)], False),
        ([f"{i} {in_letters(i)}'s" for i in range(100)], True),
        ([f"{uuid.UUID(int=i * 2**97)}: hit" for i in range(100)], False),
        ([{"name": in_letters(i)} for i in range(100)], False),
        (NUMBERS, False),
    ],
)
def test_texts_are_new_if_half_of_them_occur_once_without_their_numbers(
    raw: Any, is_new: bool
) -> None:
    outcomes = from_raw(raw)
    found = RareFilter.seen(SelectionDraws(outcomes, np.arange(outcomes.size) % 2 == 0))
    assert found is not None
    assert found.new_texts is is_new
