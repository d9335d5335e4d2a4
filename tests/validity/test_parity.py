"""Comparisons of two implementations: false alarms, certified distances, and a planted twin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally, by_arm
from dpaudit.outcomes import from_raw
from dpaudit.stats.game import p_value

IsAbove = Callable[[Iterable[bool], int, float], bool]

NOMINAL, SAMPLES = 0.1, 400
# The twin refutes 79 % of equal laws (600 seeds), so that 60 runs find it almost surely.
RUNS, TWIN_RUNS, LAWS = 300, 60, 200
OUTPUTS = 5


def plain(x: float, rng: np.random.Generator) -> float:
    return x + float(rng.laplace())


def batched(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def drawn_from(law: Any) -> Callable[..., Any]:
    def mechanism(x: Any, size: int, rng: np.random.Generator) -> Any:
        return rng.choice(OUTPUTS, p=law, size=size)

    return mechanism


def test_equal_laws_are_refuted_no_more_often_than_nominal(is_above: IsAbove) -> None:
    def alarms() -> Iterator[bool]:
        for seed in range(RUNS):
            result = dpaudit.parity(
                plain, batched, [0, 1], samples=SAMPLES, confidence=1 - NOMINAL, seed=seed
            )
            yield result.refuted

    assert not is_above(alarms(), RUNS, NOMINAL)


def selection(rng: np.random.Generator) -> SelectionDraws:
    """Return draws of A and B with one law."""
    return SelectionDraws(from_raw(rng.laplace(size=SAMPLES)), rng.random(SAMPLES) < 0.5)


@pytest.mark.parametrize(("is_fresh", "runs"), [(True, RUNS), (False, TWIN_RUNS)])
def test_a_distance_chosen_on_its_own_draws_is_caught(
    is_fresh: bool, runs: int, is_above: IsAbove
) -> None:
    objective = Objective(ProfilePoint(0.0, 0.0), SAMPLES, for_distance=True)

    def alarms() -> Iterator[bool]:
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            learning_draws = selection(rng)
            main = learn(learning_draws, objective, with_rare=False).portfolio.main
            certifying = selection(rng) if is_fresh else learning_draws
            levels = main.level(certifying.outcomes)
            tally = Tally(by_arm(levels, main.level.levels, certifying.is_d1))
            yield p_value(tally.game(main.guesses), 0.0, 0.0, NOMINAL) <= NOMINAL

    assert is_above(alarms(), runs, NOMINAL) is not is_fresh


def test_a_certified_distance_exceeds_the_exact_one_no_more_often_than_nominal(
    is_above: IsAbove,
) -> None:
    shares = []

    def errors() -> Iterator[bool]:
        for seed in range(LAWS):
            laws = np.random.default_rng(seed).dirichlet(np.ones(OUTPUTS), size=2)
            exact = float(np.abs(laws[0] - laws[1]).sum()) / 2
            a, b = map(drawn_from, laws)
            result = dpaudit.parity(a, b, [None], samples=2_000, confidence=1 - NOMINAL, seed=seed)
            shares.append(result.delta_lower / exact)
            yield result.delta_lower > exact

    assert not is_above(errors(), LAWS, NOMINAL)
    assert np.median(shares) > 0.7
