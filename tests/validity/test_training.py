"""Bugs of training code are refuted in the median by 2,000 draws; correct training is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

import dpaudit
from benchmarks.traces import claim_of
from dpaudit.certificates.result import Verdict
from dpaudit.import_path import resolve
from mechanisms.causes.planted import Cause
from mechanisms.training.planted import TRAINING

NOMINAL, RUNS, MOST = 0.1, 40, 2_000
IsAbove = Callable[[Iterable[bool], int, float], bool]

# Claims of the correct counterparts are tight for σ, C and q: the canary reaches them.
CORRECT = [one for one in TRAINING if one.correct != one.broken]


def refuted(path: str, one: Cause, seed: int, samples: int, confidence: float) -> tuple[bool, int]:
    """Return whether an audit refutes the claim, and its number of draws."""
    result = dpaudit.audit(
        resolve(path), one.d1, one.d2, claim_of(one), samples=samples, confidence=confidence,
        seed=seed, params=one.params,
    )  # fmt: skip
    return result.verdict is Verdict.VIOLATION, result.draws


@pytest.mark.parametrize("one", TRAINING, ids=lambda one: one.name)
def test_a_bug_is_refuted_in_the_median_by_few_draws(one: Cause) -> None:
    """Of five seeds, three or more need at most 2,000 draws."""
    few = many = 0
    for seed in range(5):
        found, draws = refuted(one.broken, one, seed, 2 * MOST, 0.95)
        few, many = (few + 1, many) if found and draws <= MOST else (few, many + 1)
        if max(few, many) == 3:  # the others cannot change the median
            break
    assert few == 3


def alarms(which: Callable[[Cause], str | None]) -> Iterator[bool]:
    for run in range(RUNS):
        one = CORRECT[run % len(CORRECT)]
        path = which(one)
        assert path is not None
        yield refuted(path, one, 100 + run, 1_000, 1 - NOMINAL)[0]


def test_correct_training_does_not_exceed_the_nominal_rate(is_above: IsAbove) -> None:
    assert not is_above(alarms(lambda one: one.correct), RUNS, NOMINAL)


def test_broken_training_is_caught_by_the_same_check(is_above: IsAbove) -> None:
    assert is_above(alarms(lambda one: one.broken), RUNS, NOMINAL)
