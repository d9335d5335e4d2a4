"""Correct mechanisms, as engineers write them, have no cause."""

from __future__ import annotations

import pytest

from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.trace import trace_pair

from .correct import CORRECT


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_mechanism_has_no_cause(name: str) -> None:
    one = CORRECT[name]
    for d1, d2 in one.pairs:
        for first, second in ((d1, d2), (d2, d1)):
            found = trace_pair(CallableTarget(function=one.run), first, second, one.claim, seeds=2)
            assert not found.causes, found.causes
