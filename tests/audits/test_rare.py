"""Leaks that are rare among the draws that are kept: what may refute the claim is chosen before
what shows more and cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproximateDP, Verdict
from dpaudit.attacks.choosing import selection

# The second is one for which the look at the usual alone does not do.
SEEDS = (1, 2)
CLAIM = ApproximateDP(1.1, 1e-5)


def rarely(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    """Laplace noise; hardly ever, the same number for one input alone."""
    found = dataset + rng.laplace(size=size)
    found[(rng.random(size) < 2e-3) & (dataset == 1)] = 77.0
    return found


def meets(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.laplace(scale=1 / 1.1, size=size)


def verdicts(mechanism: Any) -> list[Verdict]:
    return [
        dpaudit.audit(mechanism, 1, 0, CLAIM, samples=200_000, seed=seed).verdict for seed in SEEDS
    ]


def test_a_rare_value_is_found() -> None:
    assert verdicts(rarely) == [Verdict.VIOLATION] * len(SEEDS)


def test_it_is_missed_where_only_the_usual_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "likely_to_refute", lambda *_: None)
    assert Verdict.NO_VIOLATION_FOUND in verdicts(rarely)


def test_what_meets_the_claim_is_not_refuted() -> None:
    assert verdicts(meets) == [Verdict.NO_VIOLATION_FOUND] * len(SEEDS)


def test_recorded_outputs() -> None:
    rng = np.random.default_rng(0)
    d1, d2 = (rarely(one, size=100_000, rng=rng) for one in (1, 0))
    assert dpaudit.bound(d1, d2, CLAIM).verdict is Verdict.VIOLATION


def gaussian(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.normal(scale=2.4224, size=size)


@pytest.mark.parametrize("seed", [8, 10, 19])
def test_what_the_law_foretells_is_not_given_up_for_a_few_lucky_outputs(seed: int) -> None:
    """A standard deviation of 2.42 has ε = 1.61 at δ = 1e-5; some 10 outputs in the tail of 100,000
    seem to say more, and are luck."""
    claim = ApproximateDP(1.0, 1e-5)
    found = dpaudit.audit(gaussian, 3, 2, claim, samples=1_000_000, seed=seed)
    assert found.verdict is Verdict.VIOLATION


def other_end(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    """Normal noise that meets the claim; rarely, of the larger input a small number."""
    found = dataset + rng.normal(scale=3.7307, size=size)
    return np.where((rng.random(size) < 3e-4) & (dataset == 1), -20.0, found)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_value_that_is_seen_some_times_is_followed(seed: int) -> None:
    """15 of the 100,000 draws that are kept have it: too many for what is rare, too few for a cell
    of its own."""
    claim = ApproximateDP(1.0, 1e-5)
    found = dpaudit.audit(other_end, 0, 1, claim, samples=2_000_000, seed=seed)
    assert found.verdict is Verdict.VIOLATION
