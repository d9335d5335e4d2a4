"""Whole audits of the planted leaks and of their correct counterparts.

Seeds are fixed. With random seeds, this file would fail for correct code with a probability of at
most `FAILURE_PROBABILITY`: audits that must find nothing share it equally, by their confidence.
"""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.import_path import resolve
from mechanisms.neighbours.planted import PLANTED, Planted
from tests.unit.mechanisms.test_neighbours import five

FAILURE_PROBABILITY = 1e-3
AUDITS = 7 * len(PLANTED)  # that must find nothing: of six pairs, and of a harmless one

each = pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)


def audited(planted: Planted, path: str, d1: Any, d2: Any, samples: int) -> AuditResult:
    claim = dpaudit.ApproximateDP(planted.epsilon, planted.delta)
    pure = dpaudit.PureDP(planted.epsilon)
    return dpaudit.audit(
        resolve(path),
        d1,
        d2,
        claim if planted.delta else pure,
        params=planted.params,
        samples=samples,
        confidence=1 - FAILURE_PROBABILITY / AUDITS,
        seed=11,
        no_trace=True,  # what a trace says of them is in test_causes.py
    )


@each
def test_the_broken_one_is_refuted_on_its_witness_only(planted: Planted) -> None:
    """By 200,000 draws at most, most of them by some thousand."""
    refuted = audited(planted, planted.broken, planted.d1, planted.d2, 200_000)
    assert refuted.verdict is Verdict.VIOLATION
    harmless = audited(planted, planted.broken, *planted.harmless, samples=5_000)
    assert harmless.verdict is Verdict.NO_VIOLATION_FOUND


@each
def test_the_correct_one_is_not_refuted(planted: Planted) -> None:
    pairs = [(planted.d1, planted.d2), *five(planted)]
    assert len(pairs) == 6
    for d1, d2 in pairs:
        result = audited(planted, planted.correct, d1, d2, samples=2_000)
        assert result.verdict is Verdict.NO_VIOLATION_FOUND
