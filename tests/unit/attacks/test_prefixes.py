"""Sequences of few values: what each entry tells, given those before it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.additive import additive
from dpaudit.attacks.prefixes import prefixes
from dpaudit.attacks.sequences import sequence_predictor
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw

Rng = np.random.Generator
ENTRIES = 12


def sparse_vector(dataset: float, size: int, rng: Rng) -> Any:
    """Flags up to the first one above a noisy threshold, then -1: the answers of the second half
    move the other way."""
    answers = np.where(np.arange(ENTRIES) < ENTRIES // 2, dataset, 1 - dataset)
    noisy = answers + rng.laplace(0.0, 4.0, (size, ENTRIES))
    above = (noisy >= rng.laplace(0.0, 2.0, (size, 1))).astype(np.int64)
    return np.where(np.cumsum(above, axis=1) - above < 1, above, -1)


def chain(dataset: float, size: int, rng: Rng) -> Any:
    """Bits, each like the number of those before it in one input, unlike it in the other."""
    bits = np.zeros((size, ENTRIES), dtype=np.int64)
    bits[:, 0] = rng.random(size) < 0.5
    for place in range(1, ENTRIES):
        is_even = bits[:, :place].sum(axis=1) % 2 == 0
        bits[:, place] = rng.random(size) < np.where(is_even, 0.6, 0.4) + (dataset - 0.5) / 10
    return bits


def bits(dataset: float, size: int, rng: Rng) -> Any:
    return (rng.random((size, ENTRIES)) < 0.4 + 0.1 * dataset).astype(np.int64)


def words(dataset: float, size: int, rng: Rng) -> list[list[str]]:
    """Lists of words that end with the first one above."""
    rows = sparse_vector(dataset, size, rng).tolist()
    return [["above" if one else "below" for one in row if one >= 0] for row in rows]


def drawn(mechanism: Callable[..., Any], size: int, seed: int = 3) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    both = [mechanism(dataset, size, rng) for dataset in (1.0, 0.0)]
    if isinstance(both[0], np.ndarray):
        return SelectionDraws(from_raw(np.where(is_d1[:, None], *both)), is_d1)
    rows = [both[0][n] if one else both[1][n] for n, one in enumerate(is_d1.tolist())]
    return SelectionDraws(from_raw(rows), is_d1)


def explained(draws: SelectionDraws, score: Any) -> float:
    """Return how many nats a draw is likelier by a score than by even odds."""
    sign = np.where(draws.is_d1, 1.0, -1.0)
    return math.log(2) - float(np.mean(np.logaddexp(0.0, -sign * score(draws.outcomes))))


@pytest.mark.parametrize("mechanism", [sparse_vector, chain, words])
def test_entries_that_depend_on_those_before_tell_more_by_them(mechanism: Any) -> None:
    (found,) = prefixes(drawn(mechanism, 20_000))
    (total,) = additive(drawn(mechanism, 20_000))
    assert found.scored is not None
    assert total.scored is not None
    later = drawn(mechanism, 50_000, seed=8)
    gain = explained(later, found.scored.final_score())
    assert gain > 0
    assert gain > explained(later, total.scored.final_score()) + 0.0005


def test_entries_that_are_independent_are_left_to_sums() -> None:
    assert not prefixes(drawn(bits, 20_000))


def test_what_depends_on_no_input_promises_nothing() -> None:
    rng = np.random.default_rng(0)
    outcomes = from_raw(sparse_vector(1.0, 10_000, rng))
    (found,) = prefixes(SelectionDraws(outcomes, rng.random(10_000) < 0.5))
    assert found.scored is not None
    other = SelectionDraws(from_raw(sparse_vector(1.0, 10_000, rng)), rng.random(10_000) < 0.5)
    assert explained(other, found.scored.final_score()) < 0.0003


def test_a_score_depends_on_its_outcome_alone() -> None:
    draws = drawn(words, 3_000)
    (found,) = prefixes(draws)
    level, some = found.level_map(), np.arange(500)[::-3]
    assert np.array_equal(level(draws.outcomes)[some], level(draws.outcomes.take(some)))
    assert np.array_equal(level(draws.outcomes), pickle.loads(pickle.dumps(level))(draws.outcomes))
    assert found.counts.sum() == draws.size
    # An entry that learning never saw, and all entries after it, have weight 0.
    assert found.scored is not None
    strange = from_raw([["strange", "below"], ["strange"], [7.0, "above", "above"]])
    assert found.scored.final_score()(strange).tolist() == [0.0, 0.0, 0.0]


def every_sequence() -> Any:
    after = [[0] * first + [1] + [-1] * (ENTRIES - 1 - first) for first in range(ENTRIES)]
    return np.array([*after, [0] * ENTRIES])


def odds_of_sequences() -> tuple[Any, Any]:
    """Return the expected counts of 20,000 draws by sequence and input, (sequences, 2), and their
    log-ratios."""
    noise = np.linspace(-80, 80, 16_001)
    laws = []
    for dataset in (1.0, 0.0):
        answers = np.where(np.arange(ENTRIES) < ENTRIES // 2, dataset, 1 - dataset)
        away = noise[:, None] - answers
        tail = np.exp(-np.abs(away) / 4) / 2
        below = np.where(away < 0, tail, 1 - tail)
        before = np.cumprod(np.hstack([np.ones((len(noise), 1)), below]), axis=1)
        law = np.hstack([before[:, :-1] * (1 - below), before[:, -1:]])
        weight = np.exp(-np.abs(noise) / 2)
        laws.append(weight @ law / weight.sum())
    both = np.stack(laws, axis=1)
    return 1e4 * both, np.log(both[:, 0] / both[:, 1])


def test_sequences_predict_each_other() -> None:
    means, truth = odds_of_sequences()
    outcomes, errors = from_raw(every_sequence()), []
    for seed in range(8):
        counts = np.random.default_rng(seed).poisson(means)
        predictor = sequence_predictor(outcomes, counts)
        assert predictor is not None
        (predicted,) = predictor(counts[None])
        alone = np.log((counts[:, 0] + 0.5) / (counts[:, 1] + 0.5))
        errors.append([np.mean((share - truth)[6:] ** 2) for share in (predicted, alone)])
    by_prediction, by_counts = np.mean(errors, axis=0)
    assert by_prediction < 0.5 * by_counts
