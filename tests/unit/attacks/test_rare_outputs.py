"""Orders of what is rare: which cells there are, how they are counted, and in what words."""

import pickle
from typing import Any, Literal

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


def words_of_d1(order: Candidate) -> str:
    """Return the event that an outcome is at the level most for d1."""
    chosen = np.arange(len(order.counts)) == len(order.counts) - 2
    return order.level_map().words(chosen)


def test_a_value_that_one_input_gives_is_the_last_level() -> None:
    (order,) = table_of([0.0, 1.0] * 50, [77.0] * 12, [True] * 12).order()
    assert order.counts.tolist() == [[49_988, 50_000], [12, 0], [0, 0]]
    assert words_of_d1(order) == "output is 77"
    levels = order.level_map()(from_raw([0.0, 77.0, 1.0, 5.0]))
    assert levels.tolist() == [0, 1, 0, 0]


def test_many_cells_that_say_nothing_do_not_hide_one_that_does(rng: np.random.Generator) -> None:
    noise = rng.choice(np.arange(100.0, 107.0), size=100)
    kept = [*noise.tolist(), *[77.0] * 20]
    is_d1 = [*(rng.random(100) < 0.5).tolist(), *[True] * 20]
    (order,) = table_of([0.0, 1.0] * 50, kept, is_d1).order()
    assert words_of_d1(order) == "output is 77"
    assert order.estimate is not None
    shares = order.estimate.draws[:, 0] / order.estimate.draws.sum(axis=1)
    assert shares[-1] > 0.95
    assert np.abs(shares[:-1] - 0.5).max() < 0.1


def test_of_many_columns_the_order_names_those_that_tell() -> None:
    usual = [[0.0] * 7, [1.0] * 7] * 50
    kept = [[9.0] * 6 + [0.0]] * 20 + [[0.0] * 6 + [77.0]] * 20
    (order,) = table_of(usual, kept, [True, False] * 10 + [True] * 20).order()
    assert words_of_d1(order) == "output[6] is 77"


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
    "far tail": (NORMAL, 1e6 + NORMAL[:30], [0.0, 1e6, -3.0], "output ≥ 999998.2"),
    "one column of three": (
        [[0, 1, 2], [1, 0, 2], [1, 1, 3]] * 30,
        [[0, 1, 9], [1, 1, 9], [1, 0, 9]] * 10,
        [[0, 1, 2], [1, 1, 9], [1, 0, 3]],
        "output[2] is 9",
    ),
}  # fmt: skip


@pytest.mark.parametrize("guess", [1, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_the_rare_rule_guesses_the_input_that_alone_gave_an_output(
    kind: str, guess: Literal[1, -1]
) -> None:
    """And never the other input: else it pays for δ twice."""
    usual, kept, later, words = KINDS[kind]
    rule = rule_of(table_of(usual, kept, [guess == 1] * 30))
    assert guessed(rule, later) == [0, guess, 0]
    assert guessed(rule, later[1:2]) == [guess]  # whatever it stands beside
    assert guessed(pickle.loads(pickle.dumps(rule)), later) == [0, guess, 0]
    assert rule is not None
    assert -guess not in rule.guesses
    assert [rule.words(side) for side in (1, -1)] == [words, None][::guess]
    assert rule.role == "rare"
    assert rule.share == 0.08


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


def test_the_length_of_usual_outcomes_is_no_rare_output() -> None:
    """All usual outcomes have one entry, so that lengths are a column of the rare ones alone."""
    kept = [*[{"a": 1, "b": 2}] * 9, *[{"a": 77}] * 9]
    rule = rule_of(table_of([{"a": 1}] * 50, kept, [True] * 9 + [False] * 9))
    assert guessed(rule, [{"a": 1}, {"a": 1, "b": 2}, {"a": 77}]) == [0, 1, -1]


def laplace(decimals: int, seed: int, size: int) -> SelectionDraws:
    """Return draws of rounded noise, which differs by 1 between the inputs."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    return SelectionDraws(from_raw(np.round(rng.laplace(size=size) + is_d1, decimals)), is_d1)


def right_and_wrong(rule: Rule, draws: SelectionDraws) -> tuple[int, int]:
    guesses = rule.guesses[rule.level(draws.outcomes)]
    right = int(np.count_nonzero(guesses == np.where(draws.is_d1, 1, -1)))
    return right, int(np.count_nonzero(guesses)) - right


@pytest.mark.parametrize("decimals", [17, 1, 0])
def test_without_a_leak_the_rare_rule_is_not_sure(decimals: int) -> None:
    """Both meet ε = 1: what one input alone gave was luck."""
    for seed in range(10):
        draws = laplace(decimals, seed, 12_500)
        for table in (RareTable.of(draws, 10), RareTable.of(draws, 100), frequent(draws)):
            rule = table.rule([PURE], 87_500)
            if rule is not None:
                right, wrong = right_and_wrong(rule, laplace(decimals, seed, 100_000))
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


def rare_labels(size: int, seed: int) -> SelectionDraws:
    """Return texts of which each comes from two to four times."""
    rng = np.random.default_rng(seed)
    words = [f"label {n}" for n in rng.integers(size // 3, size=size).tolist()]
    return SelectionDraws(from_raw(words), rng.random(size) < 0.5)


def rare_vectors(size: int, seed: int) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    return SelectionDraws(from_raw(rng.integers(size, size=(size, 4))), rng.random(size) < 0.5)


@pytest.mark.parametrize(("family", "size", "often"), [
    (distinct, 100_000, None), (rare_labels, 20_000, 10), (rare_vectors, 50_000, 100),
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
    if kind in ("none", "lengths", "keys"):
        usual: Any = {"none": 1.0, "lengths": [1, 2], "keys": {"a": 1}}[kind]
        other: Any = {"none": None, "lengths": [1], "keys": {"a": 1, "b": 2}}[kind]
        made = [usual] * size
        for place in leaks.tolist():
            made[place] = other
        return SelectionDraws(from_raw(made), is_d1)
    numbers = rng.laplace(size=size)
    numbers[leaks] = 0.25 if kind != "range" else -1e6 * (1 + rng.random(len(leaks)))
    return SelectionDraws(from_raw(numbers), is_d1)


MIXED = "value inside the range", "range", "none", "lengths", "keys", "vectors"


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


def test_the_witness_counts_a_draw_at_one_level() -> None:
    """Else it expects a leak at levels where it does not occur, and its stakes are too small."""
    draws = mixed("vectors", 20_000, 0, 0.1)
    learned = learn(draws, Objective(PURE, 100_000))
    portfolio = learned.portfolio
    assert [rule.role for rule in portfolio.rules][1] == "rare"
    expected = learned.expected_by_joint_level(draws)
    assert expected is not None
    counts = by_arm(portfolio(draws.outcomes), portfolio.levels, draws.is_d1)
    # The last level of the main rule is for unseen outputs, with half a draw of either input.
    assert expected.sum() == pytest.approx(draws.size, abs=2)
    extra = slice(portfolio.main.level.levels, None)
    assert expected[extra].sum(axis=1) == pytest.approx(counts[extra].sum(axis=1), rel=0.01, abs=1)


def test_a_frequent_value_at_a_large_claim_is_no_certain_leak() -> None:
    """Of 403 draws with the value 2, noise that attains ε = 6 gives one by the other input."""
    rng = np.random.default_rng(0)
    is_d1 = rng.random(50_000) < 0.5
    ratio = -np.expm1(-6.0)
    noise = rng.geometric(ratio, size=50_000) - rng.geometric(ratio, size=50_000) + is_d1
    (column,) = frequent(SelectionDraws(from_raw(noise.astype(float)), is_d1)).columns
    assert column.is_tail[column(from_raw([2.0]).columns[0])].all()
