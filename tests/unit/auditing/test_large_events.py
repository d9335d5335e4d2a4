"""An audit whose rule makes the same guess at nearly all draws says that it had no power."""

from __future__ import annotations

import math

from dpaudit.auditing.underpowered import event_could_not
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.records import EventCount
from dpaudit.composed import replace
from tests.cli.made_results import CERTIFICATE, FIXED

INTERVALS = (0.0, 1.0), (0.0, 1.0)
NEARLY_ALL = EventCount("output < 1", "d1", 498, 498, 500, 500, *INTERVALS)
REST = EventCount("output ≥ 1", "d2", 2, 2, 500, 500, *INTERVALS)
FEW = EventCount("output ≥ 1", "d1", 2, 1, 500, 500, *INTERVALS)


def powerless(*events: EventCount) -> Certificate:
    right = sum(one.count_d1 if one.guess == "d1" else one.count_d2 for one in events)
    every = sum(one.count_d1 + one.count_d2 for one in events)
    fixed = replace(
        FIXED,
        events=events,
        correct=right,
        wrong=every - right,
        two_guesses=len(events) == 2,
        detectable_epsilon=math.inf,
    )
    return replace(CERTIFICATE, fixed=fixed)


def test_the_largest_share_of_right_guesses_is_named() -> None:
    for events in ((NEARLY_ALL, REST), (NEARLY_ALL,)):
        reason = event_could_not(powerless(*events))
        assert reason is not None
        assert "99.6 %" in reason  # of 1,000 draws
        assert "62.2 %" in reason  # allowed by ε = 0.5


def test_few_draws_are_the_reason_where_the_event_is_rare() -> None:
    reason = event_could_not(powerless(FEW))
    assert reason is not None
    assert reason.startswith("3 draws")


def test_an_event_with_power_has_no_reason() -> None:
    assert event_could_not(CERTIFICATE) is None
