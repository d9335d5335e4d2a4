"""False alarms of a bisection: an event is counted in other draws than it was learned from."""

from __future__ import annotations

import random

import pytest

from dpaudit.auditing.ledger import LEARNING
from dpaudit.claims import PureDP
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.releases import bisecting
from dpaudit.targets.target import CallableTarget
from tests.specs import audit_of
from tests.validity.conftest import IsAbove

RUNS, LEVEL, DRAWS = 120, 0.2, 400


def same(x: int) -> float:
    """Return one of 400 values, whatever the input is: a claim of ε = 0 holds."""
    return float(random.randrange(400))


def refuted(seed: int) -> bool:
    spec = audit_of(
        name="same",
        target=CallableTarget(function=same),
        pairs=(NeighbouringPair(0, 1),),
        claim=PureDP(0.0),
        samples=DRAWS,
        seed=seed,
    )
    test = bisecting.count(spec, bisecting.freeze(spec), LEVEL)
    return test.p_value <= LEVEL


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisecting, "LEARNED", DRAWS)


def test_a_release_that_keeps_the_claim_is_refuted_no_more_often_than_nominal(
    is_above: IsAbove,
) -> None:
    assert not is_above(map(refuted, range(RUNS)), RUNS, LEVEL)


def test_an_event_that_is_counted_in_its_own_draws_is_noticed(
    is_above: IsAbove, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisecting, "CERTIFYING", LEARNING)
    assert is_above(map(refuted, range(RUNS)), RUNS, LEVEL)
