"""Recorded rows that depend on each other are errors or warnings; independent ones are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

import dpaudit
from benchmarks.dependence import LAWS as SHARED_LAWS
from dpaudit.auditing.recorded_outputs import (
    FixedSplit,
    RecordedAudit,
    TossedSplit,
    audit_recorded,
    read_outcomes,
    separate_samples,
)
from dpaudit.auditing.safeguards import row_order
from dpaudit.auditing.safeguards.row_order import check_guesses, check_rows, sorted_inputs
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import PureDP
from dpaudit.outcomes import from_raw
from tests.raising import code

SIZE = 2_000
SEEDS = range(8)
CLAIM = PureDP(0.1)
Rng = np.random.Generator
FIXED = "the sample sizes were fixed"


def autoregressive(rng: Rng, size: int = SIZE, rho: float = 0.99) -> Any:
    noise = rng.normal(size=size) * np.sqrt(1 - rho**2)
    noise[0] = rng.normal()
    return lfilter([1.0], [1.0, -rho], noise)


def halved(rng: Rng) -> Any:
    return rng.laplace(size=SIZE) + np.repeat([0.0, 1.0], SIZE // 2)


def wandering(rng: Rng) -> Any:
    return rng.laplace(size=SIZE) + rng.normal(size=SIZE).cumsum() / 20


def repeated(rng: Rng) -> Any:
    return np.repeat(rng.normal(size=10), 1_000)


def in_rounds(rng: Rng) -> Any:
    return np.tile(rng.normal(size=10), 1_000)


def doubled(rng: Rng) -> Any:
    return np.tile(rng.normal(size=SIZE), 2)


def stuck(rng: Rng) -> Any:
    """Return a Markov chain that keeps its state with probability 0.8."""
    return rng.normal(size=SIZE)[np.cumsum(rng.random(SIZE) < 0.2)]


DEPENDENT: list[Callable[[Rng], Any]] = [
    autoregressive, halved, wandering, repeated, in_rounds, doubled, stuck,
]  # fmt: skip


def audited(d1: Any, d2: Any, **more: Any) -> AuditResult:
    return dpaudit.bound(d1, d2, CLAIM, **more)


def with_arm(outcomes: Any, is_d1: Any) -> AuditResult:
    table = read_outcomes(outcomes)
    audit = RecordedAudit(
        name="n",
        source="s",
        pair="p",
        outcomes=table,
        is_d1=is_d1,
        claim=CLAIM,
        coin_flipped=True,
    )
    return audit_recorded(audit)


def warnings(result: AuditResult) -> list[str]:
    every = [text for one in result.certificates for text in one.warnings]
    return [text for text in every if not text.startswith(FIXED)]


def one(result: AuditResult) -> Certificate:
    (certificate,) = result.certificates
    return certificate


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the checks of the order of rows."""
    monkeypatch.setattr(row_order.RowOrder, "observe", lambda *_: [])


def test_rows_that_depend_on_each_other_are_no_silent_violation() -> None:
    for law in DEPENDENT:
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            result = audited(law(rng), law(rng))
            assert result.verdict is Verdict.ERROR or warnings(result), seed


@pytest.mark.usefixtures("unchecked")
def test_without_checks_these_rows_look_like_a_leak() -> None:
    """Negative control of the test above."""
    rngs = map(np.random.default_rng, SEEDS)
    results = [audited(autoregressive(rng), autoregressive(rng)) for rng in rngs]
    assert sum(one.verdict is Verdict.VIOLATION for one in results) > len(results) / 2


def test_a_column_that_drifts_is_an_error_whatever_the_event() -> None:
    """An event without this column has equal shares in all parts of the recording."""
    is_d1 = np.random.default_rng(1).random(SIZE) < 0.5
    for law in (halved, autoregressive):
        outcomes = from_raw(law(np.random.default_rng(0)))
        assert code(check_rows, outcomes, is_d1, {}, in_turns=True) == "draws-differ"


def test_repeated_rows_are_an_error() -> None:
    rng = np.random.default_rng(0)
    for draws in (in_rounds(rng), doubled(rng)):
        assert audited(draws, rng.laplace(size=SIZE)).error_code == "draws-repeat"


def test_negative_correlation_is_a_warning() -> None:
    """It makes segments more alike, so the exact test does not see it."""
    rng = np.random.default_rng(0)
    result = audited(autoregressive(rng, rho=-0.5), rng.normal(size=SIZE))
    assert len(warnings(result)) == 1


def test_inputs_in_turns_that_share_their_noise() -> None:
    """Each input by itself is independent; together the rows are not."""
    rng = np.random.default_rng(1)
    arms = np.tile([True, False, False, True], SIZE // 4)
    noise = np.repeat(rng.normal(size=SIZE // 2), 2)
    assert warnings(with_arm(noise + 1e-6 * rng.normal(size=SIZE), arms))


def test_a_column_beyond_the_first_ones_shows_in_the_event() -> None:
    """The guesses of the frozen rule are compared as well."""
    rng = np.random.default_rng(0)
    d1, d2 = (rng.normal(size=(SIZE, 20)) for _ in range(2))
    d1[:, 12] += np.repeat([0.0, 6.0], SIZE // 2)
    assert audited(d1, d2).error_code == "draws-differ"


LAWS: dict[str, Callable[[Rng, int], Any]] = {
    **SHARED_LAWS,
    "None": lambda rng, size: [None if one < 0.3 else one for one in rng.random(size).tolist()],
    "lists": lambda rng, size: [["ab"[one], two] for one, two in rng.integers(0, 2, (size, 2))],
}


def test_independent_rows_are_not_warned_about() -> None:
    for law in LAWS:
        for seed in range(3):
            rng = np.random.default_rng(seed)
            size = (300, SIZE)[seed % 2]
            outcomes, is_d1 = from_raw(LAWS[law](rng, size)), rng.random(size) < 0.5
            assert sorted_inputs(outcomes, is_d1) == {}
            assert check_rows(outcomes, is_d1, {}, in_turns=True) == []
            levels = rng.integers(0, 6, size)
            assert check_guesses(levels, is_d1, np.array([1, 1, 0, 0, -1, -1]), {}) == []


def test_the_level_is_kept() -> None:
    """The level is 0.2; the guesses, which have a quarter of it, are not compared here."""
    level, alarms, recordings = 0.2, 0, 0
    for seed in range(5):
        for law in LAWS.values():
            rng = np.random.default_rng([seed, 7])
            outcomes, is_d1 = from_raw(law(rng, 300)), rng.random(300) < 0.5
            found = sorted_inputs(outcomes, is_d1, level)
            alarms += bool(check_rows(outcomes, is_d1, found, in_turns=True, level=level))
            recordings += 1
    assert alarms <= 0.75 * level * recordings


def test_the_evidence_has_a_mean_of_at_most_one_over_all_orders() -> None:
    events = np.array(list(permutations([True] * 3 + [False] * 5)))
    found = np.exp([[*row_order._by_segments(event)] for event in np.unique(events, axis=0)])
    assert found.shape == (56, 1)  # four segments of two rows
    assert found.mean() <= 1 + 1e-9
    assert found.max() > 1


def test_the_chance_of_a_sorted_order_is_exact() -> None:
    for values in [[0, 0, 1, 1, 2], [0, 0, 0, 0, 1], [0, 1, 2, 3, 4], [0] * 5]:
        orders = [np.array(order, dtype=float) for order in permutations(values)]
        for log_limit in np.log([0.009, 0.02, 0.05, 0.1, 0.3, 0.5, 0.9]):
            share = np.mean([row_order._is_sorted(order, log_limit) for order in orders])
            assert share <= np.exp(log_limit)
        distinct = len({tuple(order) for order in orders})
        ordered = np.sort(np.array(values, dtype=float))
        assert row_order._is_sorted(ordered, np.log(2 / distinct) + 1e-9)
        assert not row_order._is_sorted(ordered, np.log(2 / distinct) - 1e-9)


def unrolled(values: Any) -> list[int]:
    return [one for one, times in Counter(values.tolist()).most_common() for _ in range(times)]


def test_sorted_rows_cannot_be_checked_which_is_a_warning() -> None:
    orders: tuple[Any, ...] = (np.sort, unrolled, lambda values: sorted(map(str, values)))
    for order in orders:
        rng = np.random.default_rng(0)
        result = audited(*(order(rng.poisson(4, SIZE)) for _ in range(2)))
        assert result.verdict is Verdict.NO_VIOLATION_FOUND
        (text,) = warnings(result)
        assert " sorted " in text


def test_a_column_that_numbers_the_rows_is_an_error() -> None:
    """It would distinguish files of different lengths, or files that continue to count."""
    rng = np.random.default_rng(0)
    values, places = rng.normal(size=SIZE), np.arange(SIZE)
    numbered = np.column_stack([places, values])
    result = audited(numbered, np.column_stack([places + SIZE, values[::-1]]))
    assert result.error_code == "recording-invalid"
    assert with_arm(numbered, rng.random(SIZE) < 0.5).error_code == "recording-invalid"


def test_the_split_takes_rows_from_all_parts_of_the_file() -> None:
    """The seed picks learning and certifying rows, so both have the same distribution."""
    rng = np.random.default_rng(0)
    d1, d2, both = (np.sort(rng.random(size)) for size in (SIZE, SIZE, 2 * SIZE))
    separate, arms, _ = separate_samples(d1, d2, "p")
    for kind, outcomes, is_d1 in (
        (FixedSplit, separate, arms),
        (TossedSplit, read_outcomes(both), rng.random(2 * SIZE) < 0.5),
    ):
        split = kind(is_d1, np.random.default_rng(0))
        kept, more = split.learn_from(SIZE // 2), split.learn_from(SIZE // 4)
        game, pair = split.rest()
        assert len(kept) + len(more) + len(pair) == len(np.unique([*kept, *more, *pair]))
        assert len(pair) == 2 * SIZE - 3 * SIZE // 4
        for rows in (kept, more, game, pair):
            for arm in (is_d1, ~is_d1):
                taken = np.sort(outcomes.columns[0].numbers[rows[arm[rows]]])
                assert np.abs(taken - np.linspace(0, 1, len(taken))).max() < 0.1


def test_guesses_of_a_sorted_input_are_not_compared() -> None:
    levels, is_d1 = np.repeat([0, 1], 500), np.tile([True, False], 500)
    guesses = np.array([1, -1])
    assert check_guesses(levels, is_d1, guesses, {"d1": "output", "d2": "output"}) == []
    assert code(check_guesses, levels, is_d1, guesses, {"d1": "output"}) == "draws-differ"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01])
def test_an_input_that_rarely_varies_shows_no_dependence(share: float) -> None:
    """An output of one input alone is the clearest leak, and must not become an error."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rare, often = rng.random(SIZE) < share, rng.random(SIZE) < 0.5
        assert warnings(audited(rare.astype(int), often.astype(int))) == []
