"""The time left that an audit shows is within its time limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit.auditing.time_left import Journal, TimeLeft
from dpaudit.certificates.result import Progress
from dpaudit.claims import PureDP
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import CallableTarget
from tests.specs import audit_of

SPEC = audit_of(
    name="abs",
    target=CallableTarget(function=abs),
    pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
    claim=PureDP(1.0),
    time=10.0,
)


class Clock(Journal):
    def __init__(self, seconds: float) -> None:
        super().__init__(SPEC)
        self.seconds = seconds

    def now(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("elapsed", "draws", "target", "remaining"),
    [
        (2.0, 1, None, 8),  # one slow call: 99 more such calls would take 198 s
        (4.0, 100, 1_000_000, 6),  # the speed so far is lower than the planned speed
        (4.0, 100, 150, 2),  # few draws confirm a refutation
        (20.0, 50, None, 20),  # 100 draws are made, whatever the limit
        (20.0, 200, 1_000, 0),
    ],
)
def test_the_time_left(elapsed: float, draws: int, target: int | None, remaining: float) -> None:
    moments: list[Progress] = []
    ledger: Any = SimpleNamespace(
        spent=draws,
        target=target,
        largest_wealth=1.0,
        wealth=SimpleNamespace(epsilon_lower=0.0),
        needed=500.0,
    )
    clock = Clock(0.0)
    time_left = TimeLeft(clock, moments.append)
    time_left.plan(ledger, 10.0)
    clock.seconds = elapsed
    time_left.show(ledger)
    assert moments[0].remaining == pytest.approx(remaining)
