"""The bound of an interrupted audit is valid whatever moment the user chooses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np

import dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import BETTING_SHARE
from dpaudit.certificates.result import Interrupted, Progress
from dpaudit.errors import StopAudit
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.stats import game as games
from dpaudit.targets.target import CallableTarget
from tests.specs import audit_of
from tests.validity.conftest import IsAbove

# The mechanism is 0.99-DP and nothing better, just below 1, a value of the grid of bets.
# The claim is weaker, so that no refutation ends an audit.
EPSILON, CLAIMED = 0.99, 2.0
CONFIDENCE, NOMINAL = 0.5, BETTING_SHARE * 0.5
RUNS, PLANTED_RUNS, SAMPLES = 400, 120, 2_000


def randomized_response(bit: int, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 1 / (1 + np.exp(-EPSILON)), bit, 1 - bit)


def spec_of(seed: int) -> AuditSpec:
    return audit_of(
        name="audit",
        target=CallableTarget(function=randomized_response),
        pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
        claim=dpaudit.PureDP(CLAIMED),
        samples=SAMPLES,
        confidence=CONFIDENCE,
        seed=seed,
    )


def stop_at_worst(progress: Progress) -> None:
    if progress.epsilon_lower > EPSILON:
        raise StopAudit


def check() -> None:
    """Nothing but the progress ends the audit."""


def false_bounds() -> Iterator[bool]:
    for seed in range(RUNS):
        result = run_audit(spec_of(seed), stop_at_worst, check)
        if isinstance(result.ending, Interrupted):
            assert result.epsilon_lower > EPSILON
        yield isinstance(result.ending, Interrupted)


def false_bounds_of_the_exact_test() -> Iterator[bool]:
    """Planted: the bound of the exact test, at whatever moment of the certification it is
    largest."""
    for seed in range(PLANTED_RUNS):
        certificate = run_audit(spec_of(seed)).certificates[0]
        guesses = np.array(certificate.fixed.rule.guesses)
        blocks = [one for one in certificate.evidence.blocks if one.stage == "certification"]
        counts = accumulate(block.tally for block in blocks)
        bounds = (games.epsilon_lower(one.game(guesses), 0.0, NOMINAL) for one in counts)
        yield any(bound > EPSILON for bound in bounds)


def test_an_audit_that_is_interrupted_at_the_worst_moment(is_above: IsAbove) -> None:
    assert not is_above(false_bounds(), RUNS, NOMINAL)


def test_the_exact_test_would_not_be_valid_at_the_worst_moment(is_above: IsAbove) -> None:
    assert is_above(false_bounds_of_the_exact_test(), PLANTED_RUNS, NOMINAL)
