"""Orders of what is rare: which cells there are, how they are counted, and in what words."""

import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.portfolio import Rule
from dpaudit.levels.rare_cells import frequent_column
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import Raised, from_raw

ARMS = np.array([50_000, 50_000])
PURE = ProfilePoint(1.0, 0.0)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a new generator, so that no other test changes its numbers."""
    return np.random.default_rng(0)


def table_of(seen: Any, kept: Any, is_d1: list[bool]) -> RareTable:
    """Return the rare outputs of 100,000 draws. seen: usual ones.  kept, is_d1: the rare ones."""
    outcomes = from_raw(seen)
    rare_filter = RareFilter.of(SelectionDraws(outcomes, np.arange(outcomes.size) % 2 == 0))
    return RareTable(rare_filter, SelectionDraws(from_raw(kept), np.array(is_d1, dtype=bool)), ARMS)


def order_of(seen: Any, kept: Any, is_d1: list[bool]) -> Candidate | None:
    found = table_of(seen, kept, is_d1).order()
    return found[0] if found else None


def words_of_d1(order: Candidate) -> str:
    """Return the event that an outcome is at the level most for d1."""
    chosen = np.arange(len(order.counts)) == len(order.counts) - 2
    return order.level_map().words(chosen)


def test_a_value_that_one_input_gives_is_the_last_level() -> None:
    order = order_of([0.0, 1.0] * 50, [77.0] * 12, [True] * 12)
    assert order is not None
    assert order.counts.tolist() == [[49_988, 50_000], [12, 0], [0, 0]]
    assert words_of_d1(order) == "output is 77"
    levels = order.level_map()(from_raw([0.0, 77.0, 1.0, 5.0]))
    assert levels.tolist() == [0, 1, 0, 0]


def test_many_cells_that_say_nothing_do_not_hide_one_that_does(rng: np.random.Generator) -> None:
    noise = rng.choice(np.arange(100.0, 107.0), size=100)
    kept = [*noise.tolist(), *[77.0] * 20]
    is_d1 = [*(rng.random(100) < 0.5).tolist(), *[True] * 20]
    order = order_of([0.0, 1.0] * 50, kept, is_d1)
    assert order is not None
    assert words_of_d1(order) == "output is 77"
    assert order.estimate is not None
    shares = order.estimate.draws[:, 0] / order.estimate.draws.sum(axis=1)
    assert shares[-1] > 0.95
    assert np.abs(shares[:-1] - 0.5).max() < 0.1


def test_far_tails_are_parted_at_the_widest_gap(rng: np.random.Generator) -> None:
    usual = rng.normal(size=5_000)
    far = usual.max() + np.concatenate([rng.random(10), 1e6 + rng.random(10)])
    order = order_of(usual, far, [True, False] * 5 + [True] * 10)
    assert order is not None
    assert order.counts[-2].tolist() == [10, 0]
    assert words_of_d1(order).startswith("output ≥ 500000")


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
    words = order.level_map().words
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
    assert order.counts[1:].sum() == 12
    level = order.level_map()
    found = level(from_raw([usual[0], later, usual[1]]))
    assert found[0] == found[2] == 0 < found[1]
    # Whatever it stands beside: all the others may have the same.
    assert level(from_raw([later])).tolist() == [found[1]]
    assert level(from_raw([later, later])).tolist() == [found[1]] * 2
    assert re.search(r"seen fewer than \d+ times in 100 draws|length", words_of_d1(order))


@pytest.mark.parametrize("count", [9, 15, 19, 20, 40])
def test_the_words_of_few_numbers_among_labels_say_what_is_in_a_level(count: int) -> None:
    numbers = [one / 8 for one in range(count)]
    order = order_of([*["a"] * 300, *numbers], numbers, [True] * count)
    assert order is not None
    level = order.level_map()
    found = level(from_raw(numbers))
    for one in range(level.levels):
        words = level.words(np.arange(level.levels) == one)
        # An interval, and not what is in none.
        if "output" in words and not any(other in words for other in ("none", "seen", "no ")):
            said = words.replace("≤", "<=").replace("≥", ">=").replace(" is ", " == ")
            inside = [eval(said, {"output": number}) for number in numbers]
            assert (found == one).tolist() == inside, words


def test_a_rare_exception_is_called_one() -> None:
    kept = [Raised(f"Error{number}", "") for number in range(12)]
    order = order_of([0.0, 1.0] * 50, kept, [True] * 12)
    assert order is not None
    assert words_of_d1(order).endswith("such as the exception Error0")


def test_what_is_rare_in_another_way_says_nothing_of_what_is_rare_in_one() -> None:
    kept = [*[77.0] * 20, *(3.5 + number / 7 for number in range(20))]
    order = order_of([0.0, 1.0] * 50, kept, [True] * 20 + [True, False] * 10)
    assert order is not None
    assert words_of_d1(order) == "output is 77"
    assert sorted(order.counts[1:-1].tolist()) == [[10, 10], [20, 0]]


def test_an_output_is_in_a_cell_only_if_it_is_rare() -> None:
    # Of those that are rare some have no "b": but so have all that are usual.
    kept = [{"a": 1, "b": 2}] * 9 + [{"a": 77}] * 9
    order = order_of([{"a": 1}] * 50, kept, [True] * 9 + [False] * 9)
    assert order is not None
    usual, with_b, other = order.level_map()(from_raw([{"a": 1}, {"a": 1, "b": 2}, {"a": 77}]))
    assert len({usual, with_b, other}) == 3
    assert order.counts[usual].tolist() == [50_000 - 9, 50_000 - 9]


def test_what_came_up_once_is_no_cell() -> None:
    assert order_of([0.0, 1.0] * 50, [77.0], [True]) is None
    assert order_of([0.0, 1.0] * 50, [], []) is None


def rule_of(table: RareTable, point: ProfilePoint = PURE, coming: int = 100_000) -> Rule | None:
    return table.rule([point], coming)


def guessed(rule: Rule | None, raw: Any) -> list[int]:
    assert rule is not None
    return [int(one) for one in rule.guesses[rule.level(from_raw(raw))]]


NORMAL = np.random.default_rng(0).normal(size=5_000)
# Usual outputs; rare ones that one input alone gives; more outputs, of which the second one is one
# to guess; the event in words.
KINDS: dict[str, tuple[Any, Any, Any, str]] = {
    "value": ([0.0, 1.0] * 50, [77.0] * 30, [0.0, 77.0, 78.0], "output is 77"),
    "label": (["a", "b"] * 50, ["z"] * 30, ["a", "z", "y"], "output is 'z'"),
    "none": ([0.0, 1.0] * 50, [None] * 30, [0.0, None, 1.0], "output is None"),
    "key": (
        [{"a": 1}, {"a": 2}] * 50,
        [{"a": 1, "b": 2}] * 30,
        [{"a": 1}, {"a": 1, "b": 2}, {"a": 2}],
        'output["b"] is a number or length of output is 2',
    ),
    "length": (
        [[1, 2], [1, 3]] * 50,
        [[1, 2, 3]] * 30,
        [[1, 2], [1, 2, 3], [1, 3]],
        "length of output is 3",
    ),
    "exception": (
        [0.0, 1.0] * 50,
        [Raised("ValueError", "")] * 30,
        [0.0, Raised("ValueError", ""), 1.0],
        "ValueError is raised",
    ),
    "texts that never repeat": (
        ["a", "b"] * 50,
        [f"debug-{chr(192 + n)}" for n in range(30)],
        ["a", "debug-zz", "b"],
        "output is a value seen fewer than 10 times in 100 draws, such as 'debug-À'",
    ),
    "numbers that never repeat": (
        [0.0, 1.0] * 50,
        [3.5 + n / 7 for n in range(30)],
        [0.0, 77.25, 1.0],
        "output is a value seen fewer than 10 times in 100 draws, such as 3.5",
    ),
    "far tail": (NORMAL, 1e6 + NORMAL[:30], [0.0, 1e6, -3.0], "output ≥ 999998.2"),
    "one column of three": (
        [[0, 1, 2], [1, 0, 2], [1, 1, 3]] * 30,
        [[0, 1, 9], [1, 1, 9], [1, 0, 9]] * 10,
        [[0, 1, 2], [1, 1, 9], [1, 0, 3]],
        "output[2] is 9",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_rare_rule_guesses_d1_where_d1_alone_gave_an_output(kind: str) -> None:
    usual, kept, later, words = KINDS[kind]
    rule = rule_of(table_of(usual, kept, [True] * 30))
    assert guessed(rule, later) == [0, 1, 0]
    assert rule is not None
    assert (rule.words(1), rule.words(-1)) == (words, None)
    assert rule.role == "rare"
    assert rule.share == 0.08


@pytest.mark.parametrize("kind", KINDS)
def test_the_rare_rule_guesses_d2_where_d2_alone_gave_an_output(kind: str) -> None:
    usual, kept, later, words = KINDS[kind]
    rule = rule_of(table_of(usual, kept, [False] * 30))
    assert guessed(rule, later) == [0, -1, 0]
    assert rule is not None
    assert rule.words(-1) == words


@pytest.mark.parametrize("kind", KINDS)
def test_a_rare_rule_of_d2_alone_never_guesses_d1(kind: str) -> None:
    """Else it pays for δ twice, and its report shows an event that never happens."""
    usual, kept, *_ = KINDS[kind]
    rule = rule_of(table_of(usual, kept, [False] * 30))
    assert rule is not None
    assert rule.words(1) is None
    assert 1 not in rule.guesses


def test_a_value_of_each_input_is_guessed_for_each() -> None:
    kept, is_d1 = [77.0] * 20 + [78.0] * 20, [True] * 20 + [False] * 20
    rule = rule_of(table_of([0.0, 1.0] * 50, kept, is_d1))
    assert guessed(rule, [77.0, 78.0, 0.0, 79.0]) == [1, -1, 0, 0]
    assert rule is not None
    assert (rule.words(1), rule.words(-1)) == ("output is 77", "output is 78")


@pytest.mark.parametrize(("of_77", "of_78", "guesses"), [(30, 20, [1, 0]), (20, 30, [0, -1])])
def test_with_delta_the_rare_rule_is_of_the_input_that_gave_more(
    of_77: int, of_78: int, guesses: list[int]
) -> None:
    kept, is_d1 = [77.0] * of_77 + [78.0] * of_78, [True] * of_77 + [False] * of_78
    table = table_of([0.0, 1.0] * 50, kept, is_d1)
    assert guessed(rule_of(table, ProfilePoint(1.0, 1e-5)), [77.0, 78.0]) == guesses
    assert guessed(rule_of(table), [77.0, 78.0]) == [1, -1]


def test_delta_excuses_what_is_rarer() -> None:
    table = table_of([0.0, 1.0] * 50, [77.0] * 30, [True] * 30)
    assert rule_of(table, ProfilePoint(1.0, 1e-4)) is not None
    assert rule_of(table, ProfilePoint(1.0, 1e-3)) is None


@pytest.mark.parametrize(("d1", "d2", "is_guessed"), [
    (1, 0, False), (2, 0, True), (0, 2, True), (2, 1, False), (20, 1, False),
])  # fmt: skip
def test_a_cell_is_guessed_if_one_input_alone_gave_it_twice(
    d1: int, d2: int, is_guessed: bool
) -> None:
    table = table_of([0.0, 1.0] * 50, [77.0] * (d1 + d2), [True] * d1 + [False] * d2)
    assert (rule_of(table, coming=1_000_000) is not None) is is_guessed


@pytest.mark.parametrize(("coming", "is_worth_it"), [(50_000, False), (200_000, True)])
def test_a_cell_too_rare_for_the_draws_to_come_is_left_out(coming: int, is_worth_it: bool) -> None:
    table = table_of([0.0, 1.0] * 50, [77.0] * 6, [True] * 6)
    assert (rule_of(table, coming=coming) is not None) is is_worth_it


def test_the_columns_of_the_rare_rule_are_named() -> None:
    usual, kept, *_ = KINDS["one column of three"]
    assert table_of(usual, kept, [True] * 30).guessed_by([PURE], 100_000) == {"output[2]"}
    assert table_of(usual, kept, [True, False] * 15).guessed_by([PURE], 100_000) == set()


def test_the_rare_rule_expects_what_it_saw() -> None:
    rule = rule_of(table_of([0.0, 1.0] * 50, [77.0] * 30, [True] * 30))
    assert rule is not None
    assert rule.expected_guesses is not None
    assert rule.expected_guesses.sum() == pytest.approx(30)
    right, wrong = rule.right_and_wrong
    assert 29 < right < 30
    assert 0 < wrong < 1


def test_an_outcome_that_is_rare_in_two_columns_is_expected_once() -> None:
    rule = rule_of(table_of([[0, 1], [1, 0]] * 50, [[9, 8]] * 30, [True] * 30))
    assert rule is not None
    assert rule.expected_guesses is not None
    assert rule.expected_guesses.sum() == pytest.approx(30)


def test_the_length_of_usual_outcomes_is_no_rare_output() -> None:
    """All usual outcomes have one entry, so that lengths are a column of the rare ones alone."""
    kept = [*[{"a": 1, "b": 2}] * 9, *[{"a": 77}] * 9]
    rule = rule_of(table_of([{"a": 1}] * 50, kept, [True] * 9 + [False] * 9))
    assert guessed(rule, [{"a": 1}, {"a": 1, "b": 2}, {"a": 77}]) == [0, 1, -1]


def test_the_rare_rule_may_be_sent_to_a_worker() -> None:
    for usual, kept, later, _ in KINDS.values():
        rule = rule_of(table_of(usual, kept, [True] * 30))
        again = pickle.loads(pickle.dumps(rule))
        assert guessed(again, later) == guessed(rule, later)


def leaking(
    noise: str, value: float, seed: int, size: int, p: float = 1e-3, *, both: bool = False
) -> SelectionDraws:
    """Return draws of noise, which differs by 1 between the inputs; rarely a value of d1 alone or,
    with `both`, a value of each input."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    made: Any = {
        "Laplace": rng.laplace,
        "normal": rng.normal,
        "decimals": rng.laplace,
        "integers": rng.laplace,
    }[noise](size=size)
    # Rounded last: rounding errors of a sum tell of its parts.
    made = np.round(made + is_d1, {"decimals": 1, "integers": 0}.get(noise, 17))
    leaks = rng.random(size) < p
    if both:
        made[leaks] = value + is_d1[leaks]
    else:
        made[leaks & is_d1] = value
    return SelectionDraws(from_raw(made), is_d1)


def right_and_wrong(rule: Rule, draws: SelectionDraws) -> tuple[int, int]:
    guesses = rule.guesses[rule.level(draws.outcomes)]
    right = int(np.count_nonzero(guesses == np.where(draws.is_d1, 1, -1)))
    return right, int(np.count_nonzero(guesses)) - right


@pytest.mark.parametrize("noise", ["Laplace", "integers", "decimals"])
def test_without_a_leak_the_rare_rule_is_not_sure(noise: str) -> None:
    """Both meet ε = 1: what one input alone gave was luck."""
    for seed in range(10):
        draws = leaking(noise, 0.0, seed, 12_500, p=0.0)
        for table in (RareTable.of(draws, 10), RareTable.of(draws, 100), frequent(draws)):
            rule = table.rule([PURE], 87_500)
            if rule is not None:
                right, wrong = right_and_wrong(rule, leaking(noise, 0.0, seed, 100_000, p=0.0))
                assert right + wrong < 2_000
                assert binom.sf(right - 1, right + wrong, 1 / (1 + np.exp(-1))) > 1e-3


def harmless(rule: Rule | None, later: SelectionDraws) -> bool:
    """Return whether a rule does not guess better than by luck."""
    if rule is None:
        return True
    right, wrong = right_and_wrong(rule, later)
    return bool(binom.sf(right - 1, right + wrong, 0.5) > 1e-3)


def distinct(size: int, seed: int) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(size).astype(float) + seed * size
    return SelectionDraws(from_raw(numbers), rng.random(size) < 0.5)


def texts(size: int, seed: int) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    words = [f"{seed}-{n}" for n in rng.permutation(size).tolist()]
    return SelectionDraws(from_raw(words), rng.random(size) < 0.5)


def rare_labels(size: int, seed: int) -> SelectionDraws:
    """Return texts of which each comes from two to four times."""
    rng = np.random.default_rng(seed)
    words = [f"label {n}" for n in rng.integers(size // 3, size=size).tolist()]
    return SelectionDraws(from_raw(words), rng.random(size) < 0.5)


def rare_vectors(size: int, seed: int) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    return SelectionDraws(from_raw(rng.integers(size, size=(size, 4))), rng.random(size) < 0.5)


@pytest.mark.parametrize(("family", "size", "often"), [
    (distinct, 100_000, 10), (distinct, 100_000, None), (texts, 20_000, 100),
    (rare_labels, 20_000, 10), (rare_labels, 20_000, None), (rare_vectors, 50_000, 100),
])  # fmt: skip
def test_where_all_outputs_are_rare_no_rule_is_found_by_luck(
    family: Any, size: int, often: int | None
) -> None:
    for seed in range(2):
        draws = family(size, seed)
        table = frequent(draws) if often is None else RareTable.of(draws, often)
        assert harmless(table.rule([PURE], 7 * size), family(size, 2 + seed))


def frequent(draws: SelectionDraws) -> RareTable:
    return RareTable.frequent(draws, RareFilter.of(draws))


def mixed(kind: str, size: int, seed: int, p: float) -> SelectionDraws:
    """Return outputs that both inputs give alike; with probability p, d1 gives another one."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    leaks = np.flatnonzero(is_d1 & (rng.random(size) < p))
    if kind == "vectors":
        numbers = rng.integers(5, size=(size, 3)).astype(float)
        numbers[leaks, 1] = 9.0
        return SelectionDraws(from_raw(numbers), is_d1)
    if kind in ("texts", "none", "lengths", "keys"):
        usual: Any = {"texts": "a", "none": 1.0, "lengths": [1, 2], "keys": {"a": 1}}[kind]
        other: Any = {"texts": "z", "none": None, "lengths": [1], "keys": {"a": 1, "b": 2}}[kind]
        made = [usual] * size
        for place in leaks.tolist():
            made[place] = other
        return SelectionDraws(from_raw(made), is_d1)
    noise = rng.integers(5, size=size) if kind == "integers" else rng.laplace(size=size)
    numbers = noise.astype(float)
    numbers[leaks] = {
        "integers": 77.0,
        "value": 1e9,
        "value inside the range": 0.25,
        "range": 1e6 * (1 + rng.random(len(leaks))),
        "range below": -1e6 * (1 + rng.random(len(leaks))),
    }[kind]
    return SelectionDraws(from_raw(numbers), is_d1)


MIXED = (
    *("integers", "value", "value inside the range", "range", "range below"),
    *("texts", "none", "lengths", "keys", "vectors"),
)


@pytest.mark.parametrize(
    ("kind", "p"), [(kind, (0.005, 0.05, 0.4)[n % 3]) for n, kind in enumerate(MIXED)]
)
def test_an_output_of_one_input_is_guessed_however_often_it_repeats(kind: str, p: float) -> None:
    point = ProfilePoint(6.0, 0.0)
    table = frequent(mixed(kind, 50_000, 0, p))
    rule = table.rule([point], 50_000_000)
    assert rule is not None
    right, wrong = right_and_wrong(rule, mixed(kind, 50_000, 1, p))
    assert right == pytest.approx(25_000 * p, rel=0.3)
    assert wrong == 0


@pytest.mark.parametrize("kind", MIXED)
def test_frequent_outputs_of_both_inputs_make_no_rule(kind: str) -> None:
    table = frequent(mixed(kind, 20_000, 0, 0.0))
    assert table.columns == []
    assert table.rule([PURE], 10**9) is None


@pytest.mark.parametrize("kind", ["integers", "value", "vectors"])
def test_the_witness_counts_a_draw_at_one_level(kind: str) -> None:
    """Else it expects a leak at levels where it does not occur, and its stakes are too small."""
    draws = mixed(kind, 20_000, 0, 0.1)
    learned = learn(draws, Objective(PURE, 100_000))
    portfolio = learned.portfolio
    assert [rule.role for rule in portfolio.rules][1] == "rare"
    found = learned.expected_by_joint_level(draws)
    assert found is not None
    assert found.shape == (portfolio.levels, 2)
    counts = by_arm(portfolio(draws.outcomes), portfolio.levels, draws.is_d1)
    # The last level of the main rule is for unseen outputs, with half a draw of either input.
    assert found.sum() == pytest.approx(draws.size, abs=2)
    extra = slice(portfolio.main.level.levels, None)
    assert found[extra].sum(axis=1) == pytest.approx(counts[extra].sum(axis=1), rel=0.01, abs=1)


@pytest.mark.parametrize("numbers", [
    np.random.default_rng(0).normal(size=1_000), np.arange(1_000.0), np.empty(0),
    np.array([0.0, np.inf, -np.inf, 1e308, -1e308]),
])  # fmt: skip
def test_numbers_that_never_repeat_have_no_cells(numbers: Any) -> None:
    assert frequent_column(from_raw(numbers).columns[0]) is None


def test_infinite_and_largest_numbers_have_cells() -> None:
    numbers = np.repeat([0.0, 1.0, 1.7e308, -1.7e308, np.inf, -np.inf], 20)
    column = from_raw(numbers).columns[0]
    cells = frequent_column(column)
    assert cells is not None
    assert len(set(cells(column).tolist())) == 6


def test_a_frequent_value_at_a_large_claim_is_no_certain_leak() -> None:
    """Of 403 draws with the value 2, noise that attains ε = 6 gives one by the other input."""
    rng = np.random.default_rng(0)
    is_d1 = rng.random(50_000) < 0.5
    ratio = -np.expm1(-6.0)
    noise = rng.geometric(ratio, size=50_000) - rng.geometric(ratio, size=50_000) + is_d1
    (column,) = frequent(SelectionDraws(from_raw(noise.astype(float)), is_d1)).columns
    assert column.is_tail[column(from_raw([2.0]).columns[0])].all()


def test_among_very_many_rare_values_no_rule_is_found_by_luck() -> None:
    """100,000 rare values, two draws of each: one input alone gave half of them."""
    rng = np.random.default_rng(0)
    kept = np.repeat(np.arange(100_000) + 10.0, 2)
    table = table_of([0.0, 1.0] * 50, kept, (rng.random(200_000) < 0.5).tolist())
    rule = rule_of(table, coming=1_000_000)
    later = np.repeat(np.arange(100_000) + 10.0, 2)
    assert harmless(rule, SelectionDraws(from_raw(later), rng.random(200_000) < 0.5))
    assert rule is None or len(table.columns) == 1


def test_a_clear_value_among_many_that_are_luck_is_guessed() -> None:
    rng = np.random.default_rng(1)
    kept = [*rng.integers(1_000, 3_000, size=2_000).tolist(), *[77] * 40]
    is_d1 = [*(rng.random(2_000) < 0.5).tolist(), *[True] * 40]
    rule = rule_of(table_of([0.0, 1.0] * 50, kept, is_d1))
    assert guessed(rule, [77.0, 0.0]) == [1, 0]
    later = [float(n) for n in range(1_000, 3_000)]
    assert np.count_nonzero(guessed(rule, later)) < 20


def test_a_word_of_the_event_is_true_of_what_is_guessed_and_of_nothing_else() -> None:
    """Of numbers an event is a list of values and intervals, which Python can read."""
    rng = np.random.default_rng(3)
    for seed in range(20):
        kept = rng.choice([50.0, 51.5, 60.25, -3.0, 4.5, 7.0], size=60)
        of_d1 = rng.random(6) < 0.5
        is_d1 = of_d1[np.searchsorted([-3.0, 4.5, 7.0, 50.0, 51.5, 60.25], kept)]
        rule = rule_of(table_of([0.0, 1.0] * 50, kept.tolist(), is_d1.tolist()))
        assert rule is not None, seed
        every = np.unique([*kept, 0.0, 1.0, 2.0, 50.5, 61.0, -4.0])
        guesses = guessed(rule, every)
        for guess in (1, -1):
            words = rule.words(1) if guess == 1 else rule.words(-1)
            if guess not in guesses or words is None:
                continue
            values = re.sub(r"output is ", "", words).replace(" or ", ", ").split(", ")
            assert [float(one) for one in values] == [
                one for one, own in zip(every, guesses, strict=True) if own == guess
            ]


def test_a_new_length_of_each_input_is_guessed_for_each() -> None:
    kept, is_d1 = [[1, 2, 3]] * 20 + [[1, 2, 3, 4]] * 20, [True] * 20 + [False] * 20
    rule = rule_of(table_of([[1, 2], [1, 3]] * 50, kept, is_d1))
    assert guessed(rule, [[1, 2], [1, 2, 3], [1, 2, 3, 4]]) == [0, 1, -1]
