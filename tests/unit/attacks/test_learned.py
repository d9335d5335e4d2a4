"""Learned scores: weighted sums, what is new in each coordinate, boosted trees."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks import trees as interplay
from dpaudit.attacks.additive import additive
from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.trees import NAME as TREES
from dpaudit.attacks.trees import trees
from dpaudit.attacks.weighted_sums import _cross_fitted, _fit, logistic
from dpaudit.attacks.whitened import innovations
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.levels.level_map import FOLDS, folds
from dpaudit.levels.portfolio import Portfolio
from dpaudit.levels.rule_tables import RuleTable, predicted_epsilon
from dpaudit.levels.scores import cross_fitted
from dpaudit.outcomes import from_raw

Rng = np.random.Generator
Batch = NDArray[np.float64]


def prefix_sums(dataset: float, size: int, rng: Rng) -> Batch:
    """Sums of the first 1, …, 6 answers; the input is the fourth."""
    answers = rng.laplace(size=(size, 6))
    answers[:, 3] += dataset
    return np.cumsum(answers, axis=1)


def correlated(dataset: float, size: int, rng: Rng) -> Batch:
    """A small leak in ten columns under large noise that they share."""
    leak = 0.1 * dataset * np.linspace(-1, 1, 10)
    return 3 * rng.normal(size=(size, 1)) + rng.normal(size=(size, 10)) / 2 + leak


def signs(dataset: float, size: int, rng: Rng) -> Batch:
    """Whether the signs of two of three numbers agree says the input, with ε = 1."""
    numbers = rng.normal(size=(size, 3))
    agree = (rng.random(size) < 1 / (1 + math.exp(-1))) == bool(dataset)
    numbers[:, 1] = np.abs(numbers[:, 1]) * np.sign(numbers[:, 0]) * np.where(agree, 1, -1)
    return numbers


def noise(dataset: float, size: int, rng: Rng) -> Batch:
    return rng.normal(size=(size, 4))


def turned_by_word(dataset: float, size: int, rng: Rng) -> list[tuple[str, float | None]]:
    """A number whose sign says the input, the other way round beside one of three words."""
    truthful = (rng.random(size) < 0.75) == bool(dataset)
    words = rng.choice(["a", "b", "c"], size)
    numbers = np.abs(rng.normal(size=size)) * np.where(truthful == (words == "b"), 1, -1)
    return [
        (str(word), None if abs(number) > 2 else math.nan if abs(number) > 1.8 else float(number))
        for word, number in zip(words, numbers, strict=True)
    ]


def drawn(mechanism: Callable[..., Any], size: int, seed: int = 0) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    both = [mechanism(one, size, rng) for one in (0.0, 1.0)]
    if isinstance(both[0], np.ndarray):
        first = is_d1.reshape(-1, *(1,) * (both[0].ndim - 1))
        return SelectionDraws(from_raw(np.where(first, *both)), is_d1)
    rows = [both[0][i] if first else both[1][i] for i, first in enumerate(is_d1)]
    return SelectionDraws(from_raw(rows), is_d1)


def promise(candidate: Candidate, coming: int = 1_000_000) -> float:
    table = RuleTable.of(candidate.counts)
    return float(
        np.max(predicted_epsilon(table, 0.0, coming, candidate.penalty_of_counts(is_pure=False)))
    )


def promised(attack: Scorer, draws: SelectionDraws) -> float:
    return max(map(promise, attack(draws)))


def aim(coming: int = 1_000_000, claimed: float = 1.0) -> Objective:
    return Objective(ProfilePoint(claimed, 0.0), coming)


def certified(
    draws: SelectionDraws,
    mechanism: Callable[..., Any],
    size: int = 60_000,
    learned: Portfolio | None = None,
) -> float:
    """Return the log-ratio of correct to wrong guesses of what was learned, on other draws.

    learned: from these draws, if it is known already."""
    learned = learned or learn(draws, aim()).portfolio
    other = drawn(mechanism, size, seed=99)
    guesses = learned.guesses[learned(other.outcomes)]
    right = int(np.sum(guesses * np.where(other.is_d1, 1, -1) > 0))
    return math.log(right / (np.count_nonzero(guesses) - right))


def test_what_columns_say_only_together_is_found_by_weighing_them() -> None:
    draws = drawn(correlated, 20_000)
    assert promised(additive, draws) < 0.1
    assert promised(logistic, draws) > 0.7
    assert certified(draws, correlated) > 0.8


def test_prefix_sums_are_seen_through() -> None:
    draws = drawn(prefix_sums, 10_000)
    assert promised(additive, draws) < 0.7
    assert promised(logistic, draws) > 0.85
    assert promised(innovations, draws) > 0.85
    assert certified(draws, prefix_sums) == pytest.approx(1.0, abs=0.04)


def test_trees_take_words_gaps_and_none() -> None:
    draws = drawn(turned_by_word, 8_000)
    # By itself the number is right in 7 of 12 draws.
    assert promised(additive, draws) < math.log(7 / 5)
    assert learn(draws, aim()).portfolio.main.attack == TREES
    assert certified(draws, turned_by_word, 20_000) > 0.9 * math.log(3)


def test_what_is_learned_is_the_same_again_and_elsewhere() -> None:
    draws = drawn(signs, 4_000)
    first, second = learn(draws, aim()), learn(draws, aim())
    copied = pickle.loads(pickle.dumps(first.portfolio))
    level = first.portfolio(draws.outcomes)
    assert np.array_equal(level, second.portfolio(draws.outcomes))
    assert np.array_equal(level, copied(draws.outcomes))
    some = draws.outcomes.take(np.arange(70)[::-7])
    assert np.array_equal(first.portfolio(some), level[np.arange(70)[::-7]])
    assert len(copied(draws.outcomes.take(slice(0)))) == 0


@pytest.mark.parametrize("attack", [logistic, innovations])
def test_a_score_depends_on_its_outcome_alone(attack: Scorer) -> None:
    draws = drawn(prefix_sums, 3_000)
    for candidate in attack(draws):
        level = candidate.level_map()
        some = np.arange(500)[::-3]
        assert np.array_equal(level(draws.outcomes)[some], level(draws.outcomes.take(some)))
        assert candidate.counts.sum() == draws.size
        assert pickle.loads(pickle.dumps(level))(draws.outcomes).max() < level.levels


@pytest.mark.parametrize("seed", range(2))
def test_noise_promises_nothing(seed: int) -> None:
    draws = drawn(noise, 5_000, seed)
    scores = [one.scored for one in logistic(draws) if one.scored is not None]
    found = [*logistic(draws), *innovations(draws), *trees(draws, scores)]
    assert max(promise(one, 40_000) for one in found) < 0.06
    assert not interplay.has_interplay(draws, logistic(draws)[0])


def test_pairs_of_bits_that_are_noise_are_rarely_worth_a_search() -> None:
    """χ² of four cells is far from normal: by its standard deviation, a look in ten found some."""
    found = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        draws = SelectionDraws(from_raw(rng.integers(2, size=(2_000, 20))), rng.random(2_000) < 0.5)
        found += interplay.has_interplay(draws, logistic(draws)[0])
    assert found <= 1


def _design(features: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.ones(len(features)), features])


def test_weights_are_those_of_another_library() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    features = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5))
    target = (rng.random(400) < 1 / (1 + np.exp(-features @ [2, 0, -1, 0, 0.5]))).astype(float)
    weights = _fit(_design(features), target)
    other = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(features, target)
    assert weights[1:] == pytest.approx(other.coef_[0], abs=1e-3)
    assert weights[0] == pytest.approx(other.intercept_[0], abs=1e-3)


def test_held_out_odds_are_those_of_a_fit_without_the_fold() -> None:
    rng = np.random.default_rng(5)
    design = _design(rng.normal(size=(250, 8)))
    target = (rng.random(250) < 0.5).astype(float)
    likeliest = _fit(design[:200], target[:200])
    held_out, _, _ = _cross_fitted(design, target, 200, [], likeliest)
    fold = folds(200)
    for one in range(FOLDS):
        rest, inside = np.flatnonzero(fold != one), np.flatnonzero(fold == one)
        wanted = design[inside] @ _fit(design[rest], target[rest])
        assert held_out[inside] == pytest.approx(wanted, abs=0.02)
    # Draws beyond those that are fitted have had no part in the weights that are kept.
    assert held_out[200:] == pytest.approx(design[200:] @ _fit(design[:200], target[:200]))


@pytest.mark.parametrize(("size", "fits"), [(90, 4), (199, 4), (200, 2), (1_000, 2)])
def test_no_draw_is_scored_by_a_fit_that_saw_it(size: int, fits: int) -> None:
    seen: list[set[int]] = []

    def fit(rows: NDArray[np.int64]) -> set[int]:
        assert len(rows) <= 100
        seen.append(set(rows.tolist()))
        return seen[-1]

    def score(fitted: set[int], rows: NDArray[np.int64]) -> Batch:
        return np.array([-1.0 if one in fitted else one for one in rows.tolist()])

    held_out, kept, halves = cross_fitted(size, 100, fit, score)
    assert (halves is not None) == (fits == 2)
    assert held_out.tolist() == list(range(size))
    assert len(seen) == fits
    assert kept in seen
