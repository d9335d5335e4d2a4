"""False alarms of audits of recorded draws, on claims that are exactly met, and invalid twins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing import recorded_outputs
from dpaudit.auditing.options import BoundMethod
from dpaudit.auditing.recorded_outputs import (
    FixedSplit,
    RecordedAudit,
    Rows,
    audit_recorded,
    separate_samples,
)
from dpaudit.certificates.result import Verdict
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses

# Enough runs to catch the twin, which refutes with probability 0.84, almost surely.
NOMINAL, SEED, RUNS = 0.1, 20_245, 60
Interval = Callable[[int, int], tuple[float, float]]
IsAbove = Callable[[Iterable[bool], int, float], bool]
Draw = Callable[[np.random.Generator, bool], Any]


def response(size: int) -> Draw:
    """Randomised response, tight at ε = 1."""
    right = math.e / (1 + math.e)
    return lambda rng, is_d1: (rng.random(size) < right) == is_d1


def same(size: int) -> Draw:
    """No loss at all, tight at ε = 0, and plenty to overfit."""
    return lambda rng, is_d1: rng.normal(size=size)


def revealing(size: int) -> Draw:
    """Reveals with probability 0.05, else randomised response: tight at (1, 0.05)."""

    def draw(rng: np.random.Generator, is_d1: bool) -> Any:
        answers = response(size)(rng, is_d1) * 1
        return np.where(rng.random(size) < 0.05, 2 + is_d1, answers)

    return draw


CASES: dict[str, tuple[Callable[[int], Draw], PrivacyClaim, tuple[int, int]]] = {
    "response": (response, PureDP(1.0), (500, 500)),
    "response, uneven": (response, PureDP(1.0), (250, 2_500)),
    "no loss": (same, PureDP(0.0), (500, 500)),
    "revealing": (revealing, ApproximateDP(1.0, 0.05), (500, 500)),
}


# What came of audits that took the bound which promised more, by case, run, and that bound: an
# audit of the same run that is asked for this bound is the very same one.
_CHOSEN: dict[tuple[str, int, str], bool] = {}


def alarms(case: str, bound: BoundMethod | None = None) -> Iterator[bool]:
    make, claim, sizes = CASES[case]
    rng = np.random.default_rng([SEED, list(CASES).index(case)])
    for run in itertools.count():
        draws = [make(size)(rng, arm) for size, arm in zip(sizes, (True, False), strict=True)]
        if bound is not None and (case, run, bound) in _CHOSEN:
            yield _CHOSEN[case, run, bound]
            continue
        d1, d2 = draws
        outcomes, is_d1, positions = separate_samples(d1, d2, "")
        audit = RecordedAudit(
            outcomes=outcomes,
            is_d1=is_d1,
            positions=positions,
            name="",
            source="",
            pair="",
            claim=claim,
            confidence=1 - NOMINAL,
            seed=run,
            bound=bound,
        )
        result = audit_recorded(audit)
        refuted = result.verdict is Verdict.VIOLATION
        if bound is None:
            (certificate,) = result.certificates
            _CHOSEN[case, run, certificate.fixed.method] = refuted
        yield refuted


@pytest.mark.parametrize("case", CASES)
def test_a_true_claim_is_refuted_no_more_often_than_nominal(case: str, is_above: IsAbove) -> None:
    assert not is_above(alarms(case), RUNS, NOMINAL)


@pytest.mark.parametrize("bound", ["game", "clopper-pearson"])
def test_uneven_arms_keep_the_level_with_either_bound(
    bound: BoundMethod, is_above: IsAbove
) -> None:
    assert not is_above(alarms("response, uneven", bound=bound), RUNS, NOMINAL)


@pytest.fixture
def certify_what_was_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the mistake: the draws that chose the event certify it."""

    class Reused(FixedSplit):
        def learn_from(self, rows: int) -> Rows:
            super().learn_from(rows)
            self.certifying = super().rest()
            return self.certifying[0]

        def rest(self) -> tuple[Rows, Rows]:
            return self.certifying

    monkeypatch.setattr(recorded_outputs, "FixedSplit", Reused)


@pytest.mark.usefixtures("certify_what_was_learned_from")
def test_its_invalid_twin_is_caught_by_the_same_check(is_above: IsAbove) -> None:
    assert is_above(alarms("no loss"), RUNS, NOMINAL)


def guess_alarms(delta: float, claimed: float, runs: int = 20_000) -> tuple[int, int]:
    """Return how often a mechanism that attains the bound is refuted, and how often it may be."""
    rng = np.random.default_rng(SEED)
    law, critical = _attaining(20, 1.0, delta)
    right = rng.choice(21, size=runs, p=law)
    p = np.array([one_run.p_value(Guesses(20, 20, k), 1.0, claimed) for k in range(21)])
    level = p[critical] * (1 + 1e-9)
    return int((p[right] <= level).sum()), int(runs * level)


def _attaining(guesses: int, epsilon: float, delta: float) -> tuple[Any, int]:
    """Return the law of right guesses that reaches the bound at a critical value, and that value.

    h_k: the probability of one outcome with k right; h_{k+1} = e^ε h_k, but for a leap at the
    critical value (docs/method.md §12).
    """
    critical = 18
    k = np.arange(guesses + 1)
    ways = np.array([math.comb(guesses, int(one)) for one in k], dtype=float)
    leap = np.where(k >= critical, np.exp(epsilon * (k - critical)), 0.0)
    leap *= delta / math.comb(guesses - 1, critical - 1)
    smooth = np.exp(epsilon * k) / (ways @ np.exp(epsilon * k))
    law = ways * (leap + smooth * (1 - ways @ leap))
    return law / law.sum(), critical


def test_guesses_keep_the_level_and_reach_it(share: Interval) -> None:
    found, expected = guess_alarms(0.02, claimed=0.02)
    low, high = share(found, 20_000)
    assert low <= expected / 20_000 <= high


def test_guesses_without_the_correction_for_delta_are_caught(share: Interval) -> None:
    found, expected = guess_alarms(0.02, claimed=0.0)
    assert share(found, 20_000)[0] > expected / 20_000
