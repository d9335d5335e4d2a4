"""Evidence over nights: how often valid mechanisms raise an alarm, and what would break it.

Under the claim M_t - t is a supermartingale. By optional stopping, an alarm at level α within n
nights has probability at most n · α, and the mean number of nights to an alarm is at least 1/α.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from benchmarks.nights import Law, laplace, nights_to_alarm, tight
from dpaudit.certificates.result import FreshCounts
from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.nights.detector import log_evidence, log_factors

from .conftest import IsAbove

LEVEL, NIGHTS, RUNS = 0.05, 4, 400
POINT = ProfilePoint(0.1, 0.0)
# A mechanism that meets its claim just so on each of 40 outputs: half of them are e^ε times as
# likely for d1, half for d2.
CELLS, DRAWS = 40, 2_000
LAW = np.array([[math.exp(POINT.epsilon), 1.0], [1.0, math.exp(POINT.epsilon)]] * (CELLS // 2))
LAW /= LAW.sum()

Night = Callable[[np.random.Generator], FreshCounts]


def draws(rng: np.random.Generator, size: int = DRAWS) -> Tally:
    return Tally(rng.multinomial(size, LAW.ravel()).reshape(CELLS, 2))


# The same every night.
LEARNED = draws(np.random.default_rng(0), 200 * DRAWS)


def guessed(learned: Tally, fresh: Tally) -> FreshCounts:
    """Return the counts on `fresh` of the rule that guesses the more frequent input."""
    game = fresh.game(np.sign(learned.counts[:, 0] - learned.counts[:, 1]))
    none = game.draws - game.correct - game.wrong
    return FreshCounts(game.correct, game.wrong, none, game.two_guesses, POINT)


def proper(rng: np.random.Generator) -> FreshCounts:
    return guessed(LEARNED, draws(rng))


def learned_from_its_own_draws(rng: np.random.Generator) -> FreshCounts:
    fresh = draws(rng)
    return guessed(fresh, fresh)


def rerun_until_it_looks_bad(rng: np.random.Generator) -> FreshCounts:
    return max((proper(rng) for _ in range(10)), key=lambda counts: counts.right - counts.wrong)


def alarms(night: Night) -> Iterator[bool]:
    """Yield for each run whether it raises an alarm within `NIGHTS` nights."""
    for seed in range(RUNS):
        rng = np.random.default_rng([1, seed])
        factors = np.array([[log_factors(night(rng), POINT)] for _ in range(NIGHTS)])
        evidence = [log_evidence(factors[:until]) for until in range(1, NIGHTS + 1)]
        yield max(evidence) >= math.log(1 / LEVEL)


@pytest.mark.parametrize(
    ("night", "is_invalid"),
    [(proper, False), (learned_from_its_own_draws, True), (rerun_until_it_looks_bad, True)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_alarms_within_a_few_nights(night: Night, is_invalid: bool, is_above: IsAbove) -> None:
    assert is_above(alarms(night), RUNS, NIGHTS * LEVEL) is is_invalid


@pytest.mark.parametrize(
    ("point", "law", "private"),
    [
        (ProfilePoint(0.1, 0.0), laplace(0.1), laplace(0.05)),
        (ProfilePoint(1.0, 0.01), tight(ProfilePoint(1.0, 0.01), 0.05), (0.1, 0.05, 0.85)),
    ],
)
def test_alarms_after_a_long_past(
    point: ProfilePoint, law: Law, private: Law, is_above: IsAbove
) -> None:
    def law_of(night: int) -> Law:
        return private if night <= 200 else law

    nights = nights_to_alarm(law_of, point, LEVEL, runs=2_000, most=100, past=200)
    assert not is_above((nights <= 10).tolist(), 2_000, 10 * LEVEL)
    assert nights.mean() > 1 / LEVEL


def test_a_small_leak_is_found_as_fast_after_a_long_past() -> None:
    point, leak = ProfilePoint(1.0, 0.0), laplace(1.02)

    def after_the_past(night: int) -> Law:
        return leak if night > 200 else laplace(1.0)

    at_once = nights_to_alarm(lambda night: leak, point, 1e-4, runs=100, most=50)
    later = nights_to_alarm(after_the_past, point, 1e-4, runs=100, most=50, past=200)
    assert sorted(at_once.tolist())[50] <= 7
    assert sorted(later.tolist())[50] <= 7
