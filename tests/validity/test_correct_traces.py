"""Correct mechanisms, as engineers write them, have no cause."""

from __future__ import annotations

import pytest

from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import trace_pair

from .correct import CORRECT


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_mechanism_has_no_cause(name: str) -> None:
    one = CORRECT[name]
    for d1, d2 in one.pairs:
        # The same runs, judged the other way round: of one seed they are enough.
        for first, second, seeds in ((d1, d2, 2), (d2, d1, 1)):
            target = CallableTarget(function=one.run)
            found = trace_pair(target, first, second, one.claim, seeds=seeds)
            assert not found.causes, found.causes


def test_a_coin_for_an_item_that_is_picked_at_random_is_no_cause() -> None:
    one = CORRECT["permute_and_flip"]
    target = CallableTarget(function=one.run)
    d1, d2 = one.pairs[0]
    found = trace_pair(target, d1, d2, one.claim, seeds=3)
    assert "data-dependent-choice" in {each.kind for each in found.findings}
    assert not found.causes
