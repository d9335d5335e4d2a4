"""Orders of what is rare: which cells there are, how they are counted, and in what words."""

from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.rare import rare
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.sieve import Sieve
from dpaudit.outcomes import Raised, from_raw

ARMS = np.array([50_000, 50_000])


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of the test's own: the numbers hang on no other test."""
    return np.random.default_rng(0)


def order_of(seen: Any, kept: Any, is_d1: list[bool]) -> Candidate | None:
    outcomes = from_raw(seen)
    sieve = Sieve.of(SelectionDraws(outcomes, np.arange(outcomes.size) % 2 == 0))
    found = rare(sieve, SelectionDraws(from_raw(kept), np.array(is_d1)), ARMS)
    return found[0] if found else None


def words_of_d1(order: Candidate) -> str:
    """Return the event that an outcome is at the level most for d1."""
    chosen = np.arange(len(order.held_out)) == len(order.held_out) - 2
    return order.freeze().words(chosen)


def test_a_value_that_one_input_gives_is_the_last_level() -> None:
    order = order_of([0.0, 1.0] * 50, [77.0] * 12, [True] * 12)
    assert order is not None
    assert order.held_out.tolist() == [[49_988, 50_000], [12, 0], [0, 0]]
    assert words_of_d1(order) == "output is 77"
    levels = order.freeze()(from_raw([0.0, 77.0, 1.0, 5.0]))
    assert levels.tolist() == [0, 1, 0, 0]


def test_many_cells_that_say_nothing_do_not_hide_one_that_does(rng: np.random.Generator) -> None:
    noise = rng.choice(np.arange(100.0, 108.0), size=100)
    kept = [*noise.tolist(), *[77.0] * 20]
    is_d1 = [*(rng.random(100) < 0.5).tolist(), *[True] * 20]
    order = order_of([0.0, 1.0] * 50, kept, is_d1)
    assert order is not None
    assert words_of_d1(order) == "output is 77"
    assert order.shrunk is not None
    shares = order.shrunk.expected[:, 0] / order.shrunk.expected.sum(axis=1)
    assert shares[-1] > 0.95
    assert np.abs(shares[:-1] - 0.5).max() < 0.1


def test_far_tails_are_parted_at_the_widest_gap(rng: np.random.Generator) -> None:
    usual = rng.normal(size=5_000)
    far = usual.max() + np.concatenate([rng.random(10), 1e6 + rng.random(10)])
    order = order_of(usual, far, [True, False] * 5 + [True] * 10)
    assert order is not None
    assert order.held_out[-2].tolist() == [10, 0]
    assert words_of_d1(order).startswith("output ≥ 1000")


def test_a_new_key_a_label_and_an_exception_are_told_apart() -> None:
    kept = [{"a": 1, "b": 2}] * 9
    order = order_of([{"a": 1}] * 50, kept, [True] * 9)
    assert order is not None
    assert "b" in words_of_d1(order)
    order = order_of(["x", "y"] * 50, ["z"] * 9, [True] * 9)
    assert order is not None
    assert words_of_d1(order) == "output is 'z'"


def test_the_words_of_what_is_not_rare() -> None:
    order = order_of([0.0, 1.0] * 50, [77.0] * 12, [True] * 12)
    assert order is not None
    words = order.freeze().words
    assert words(np.array([True, False, False])) == "none of: output is 77"
    assert words(np.array([True, True, False])) == "any output"
    assert words(np.array([False, False, True])) == "no output"


@pytest.mark.parametrize(
    ("usual", "kept", "later"),
    [
        (["a", "b"], [f"debug-{number}" for number in range(12)], "debug-99"),
        ([0.0, 1.0], [3.5 + number / 7 for number in range(12)], 77.25),
        ([0.0, 1.0], [f"debug-{number}" for number in range(12)], "debug-99"),
        ([{"a": 1}, {"a": 2}], [{"a": 1, f"key {n}": 2} for n in range(12)], {"a": 2, "key": 1}),
        ([[1, 2], [1, 3]], [[1, 2, *range(n)] for n in range(1, 13)], [1, 3, *range(20)]),
    ],
)
def test_what_is_rare_and_never_the_same_twice_is_a_level(
    usual: list[Any], kept: list[Any], later: Any
) -> None:
    order = order_of(usual * 50, kept, [True] * 12)
    assert order is not None
    assert order.held_out[1:].sum() == 12
    level = order.freeze()
    found = level(from_raw([usual[0], later, usual[1]]))
    assert found[0] == found[2] == 0 < found[1]
    # Whatever it stands beside: all the others may have the same.
    assert level(from_raw([later])).tolist() == [found[1]]
    assert level(from_raw([later, later])).tolist() == [found[1]] * 2
    assert "rare output such as " in words_of_d1(order) or "length" in words_of_d1(order)


@pytest.mark.parametrize("count", [9, 15, 19, 20, 40])
def test_the_words_of_few_numbers_among_labels_say_what_is_in_a_level(count: int) -> None:
    numbers = [one / 8 for one in range(count)]
    order = order_of([*["a"] * 300, *numbers], numbers, [True] * count)
    assert order is not None
    level = order.freeze()
    found = level(from_raw(numbers))
    for one in range(level.levels):
        words = level.words(np.arange(level.levels) == one)
        # An interval, and not what is in none.
        if "output" in words and not any(other in words for other in ("none", "rare", "no ")):
            said = words.replace("≤", "<=").replace("≥", ">=").replace(" is ", " == ")
            inside = [eval(said, {"output": number}) for number in numbers]
            assert (found == one).tolist() == inside, words


def test_a_rare_exception_is_called_one() -> None:
    kept = [Raised(f"Error{number}", "") for number in range(12)]
    order = order_of([0.0, 1.0] * 50, kept, [True] * 12)
    assert order is not None
    assert words_of_d1(order).startswith("a rare output such as the exception Error0 (seen")


def test_what_is_rare_in_another_way_says_nothing_of_what_is_rare_in_one() -> None:
    kept = [*[77.0] * 20, *(3.5 + number / 7 for number in range(20))]
    order = order_of([0.0, 1.0] * 50, kept, [True] * 20 + [True, False] * 10)
    assert order is not None
    assert words_of_d1(order) == "output is 77"
    assert sorted(order.held_out[1:-1].tolist()) == [[10, 10], [20, 0]]


def test_an_output_is_in_a_cell_only_if_it_is_rare() -> None:
    # Of those that are rare some have no "b": but so have all that are usual.
    kept = [{"a": 1, "b": 2}] * 9 + [{"a": 77}] * 9
    order = order_of([{"a": 1}] * 50, kept, [True] * 9 + [False] * 9)
    assert order is not None
    usual, with_b, other = order.freeze()(from_raw([{"a": 1}, {"a": 1, "b": 2}, {"a": 77}]))
    assert len({usual, with_b, other}) == 3
    assert order.held_out[usual].tolist() == [50_000 - 9, 50_000 - 9]


def test_what_came_up_once_is_no_cell() -> None:
    assert order_of([0.0, 1.0] * 50, [77.0], [True]) is None
    assert order_of([0.0, 1.0] * 50, [], []) is None
