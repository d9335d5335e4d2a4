"""Runs that bets alone end, for mechanisms whose draws are slow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, PureDP, RenyiDP, Verdict, audit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.evidence import DrawLimits
from dpaudit.reports.json import document, entry, read_document
from dpaudit.stats.binomial import clopper_pearson_interval
from tests.specs import replace


def mean(data: list[float], rng: np.random.Generator) -> float:
    """Is not private: the scale of the noise depends on the number of records."""
    return sum(data) / len(data) + float(rng.laplace(scale=20 / len(data)))


def leaks(mechanism: Any = mean, seed: int = 0, **options: Any) -> AuditResult:
    options = {"samples": 20_000, "confidence": 0.95, "stop": "bets", **options}
    claim = options.pop("claim", PureDP(0.1))
    return audit(mechanism, [0.0], [0.0, 1.0], claim, seed=seed, **options)


@pytest.fixture(scope="module")
def refuted() -> AuditResult:
    return leaks()


def test_bets_end_the_run_without_a_confirmation(refuted: AuditResult) -> None:
    one = refuted.certificates[0]
    assert refuted.verdict is Verdict.VIOLATION
    assert one.ended_by_bets
    assert one.draws == one.evidence.refuted_after
    assert one.draws < 1_000
    assert {block.stage for block in one.evidence.blocks} == {"learning"}
    assert one.alpha_betting == pytest.approx(0.9 * 0.05)
    assert one.wealth * one.alpha_betting >= 1
    assert one.epsilon_lower == one.epsilon_betting >= 0.1
    assert one.p_value == pytest.approx(1 / (0.9 * one.wealth))


def test_the_event_has_counts_on_draws_made_after_it_was_chosen(refuted: AuditResult) -> None:
    one = refuted.certificates[0]
    fixed = one.fixed
    assert 0 < fixed.draws < one.draws
    assert fixed.draws >= one.draws // 2
    for event in fixed.events:
        assert event.draws_d1 + event.draws_d2 == fixed.draws
        for count, draws, interval in (
            (event.count_d1, event.draws_d1, event.interval_d1),
            (event.count_d2, event.draws_d2, event.interval_d2),
        ):
            assert interval == pytest.approx(clopper_pearson_interval(count, draws, 0.05))


def test_the_record_can_be_read_and_recomputed(refuted: AuditResult) -> None:
    (again,) = read_document(document([entry(refuted)], 1)).results
    assert again.certificates == refuted.certificates
    assert recheck(again) == []


@pytest.mark.parametrize(
    "forged",
    [
        {"wealth": 1e6},
        {"alpha_betting": 0.01},
        {"epsilon_betting": 3.0},
    ],
)
def test_a_forged_record_is_noticed(refuted: AuditResult, forged: dict[str, Any]) -> None:
    certificate = replace(refuted.certificates[0], **forged)
    ending = replace(refuted.ending, certificates=(certificate,))
    assert recheck(replace(refuted, ending=ending)) != []


def test_a_run_ends_with_the_bet_that_refutes(refuted: AuditResult) -> None:
    for after in (18, None):
        with pytest.raises(ValueError, match="planned"):
            replace(refuted.certificates[0], refuted_after=after)


def test_a_forged_mode_is_noticed(refuted: AuditResult) -> None:
    with pytest.raises(ValueError, match="bets from the first draws"):
        replace(refuted.certificates[0], limits=DrawLimits(ends_by_bets=False))


def test_without_a_refutation_the_exact_test_has_a_tenth() -> None:
    result = leaks(claim=PureDP(3.0), samples=600)
    one = result.certificates[0]
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert one.draws == 600
    assert one.fixed.alpha / one.fixed.rule.share == pytest.approx(0.1 * 0.05)
    assert recheck(result) == []


def test_bets_are_the_same_for_workers() -> None:
    whole, shared = (
        leaks(seed=1, claim=PureDP(0.5), samples=200, **options) for options in ({}, {"workers": 2})
    )
    assert shared.certificates[0].evidence.blocks == whole.certificates[0].evidence.blocks
    assert shared.certificates[0].evidence.rounds == whole.certificates[0].evidence.rounds


def normal(data: list[float], rng: np.random.Generator) -> float:
    return len(data) + float(rng.normal())


def test_bets_on_a_divergence_end_a_run() -> None:
    result = leaks(normal, seed=1, claim=RenyiDP(2.0, 0.6), confidence=0.99)
    one = result.certificates[0]
    bets = one.divergence_bets
    assert result.verdict is Verdict.VIOLATION
    assert one.ended_by_bets
    assert one.draws < 5_800
    assert bets is not None
    assert bets.wealth * bets.alpha >= 1
    assert bets.alpha == one.alpha_betting == pytest.approx(0.9 * 0.01 / 2)
    assert recheck(result) == []
    first, *others = one.evidence.divergence_bets or ()
    forged = replace(one.evidence, divergence_bets=(replace(first, share=0.9), *others))
    certificate = replace(one, evidence=forged)
    assert recheck(replace(result, ending=replace(result.ending, certificates=(certificate,))))
