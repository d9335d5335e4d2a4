"""A record that is cut short, or whose blocks do not follow the schedule, fails its recheck."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.recheck import _evidence, recheck
from dpaudit.certificates import wealth
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import numbers
from dpaudit.certificates.records import Schedule
from dpaudit.certificates.result import AuditResult
from dpaudit.composed import replace
from mechanisms import laplace
from tests.forging import with_certificates
from tests.result_files import from_json, to_json


@functools.cache
def audited(mechanism: Any = laplace.laplace, epsilon: float = 1.0, **more: Any) -> AuditResult:
    given = {**({} if "time" in more else {"samples": 5_000}), **more}
    return dpaudit.audit(mechanism, 0.0, 1.0, dpaudit.PureDP(epsilon), **given)


def recomputed(result: AuditResult, one: Certificate) -> AuditResult:
    """Return a forged result, all of whose numbers follow from its blocks."""
    return with_certificates(result, replace(one, **numbers(_evidence(result, one))))


def cut(result: AuditResult, blocks: int, **more: Any) -> AuditResult:
    (one,) = result.certificates
    return recomputed(result, replace(one, blocks=one.blocks[:-blocks], **more))


def schedule_of(result: AuditResult) -> Schedule:
    schedule = result.certificates[0].schedule
    assert schedule is not None
    return schedule


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "samples", "full"),
    [
        (laplace.laplace, 1.0, 150, False),
        (laplace.laplace, 1.0, 1_000, True),
        (laplace.laplace, 0.9, 20_000, False),
        (laplace.wrong_density, 0.5, 150, True),
        (laplace.wrong_density, 0.5, 1_000, False),
        (laplace.wrong_density, 0.5, 20_000, True),
    ],
)
def test_honest_records_follow_the_schedule(
    mechanism: Any, epsilon: float, samples: int, full: bool
) -> None:
    assert recheck(audited(mechanism, epsilon, samples=samples, full=full)) == []


@pytest.mark.parametrize(("samples", "epsilon"), [(3_999, 1.0), (4_000, 1.0), (10_000, 0.0)])
def test_half_is_learned_from_where_nothing_shows(epsilon: float, samples: int) -> None:
    """The inputs differ little; a claim of ε = 0 may still be refuted."""
    result = dpaudit.audit(laplace.laplace, 0.0, 0.05, dpaudit.PureDP(epsilon), samples=samples)
    (one,) = result.certificates
    kept = sum(block.draws for block in one.blocks if block.stage == "learning")
    stops = one.fixed.stage == "confirmation"
    assert stops or kept == (samples // 2 if samples >= 4_000 else samples // 4)
    assert recheck(result) == []


def test_another_part_than_an_eighth_or_half_fails() -> None:
    result = dpaudit.audit(laplace.laplace, 0.0, 0.05, dpaudit.PureDP(1.0), samples=5_000)
    (one,) = result.certificates
    last = max(n for n, block in enumerate(one.blocks) if block.stage == "learning")
    blocks = (*one.blocks[:last], *one.blocks[last + 1 :])
    found = " ".join(recheck(recomputed(result, replace(one, blocks=blocks))))
    assert "to learn from" in found


def test_a_result_without_detectable_rare_outputs_fails() -> None:
    result = dpaudit.audit(laplace.laplace, 0.0, 0.05, dpaudit.PureDP(1.0), samples=5_000)
    (one,) = result.certificates
    assert one.detectable_rare is not None
    for rare in (None, one.detectable_rare / 2, math.inf):
        changed = with_certificates(result, replace(one, detectable_rare=rare))
        found = [finding for read in from_json(to_json([changed])) for finding in recheck(read)]
        assert len(found) == 1
        assert "detectable_rare" in found[0]


def test_bettors_that_change_during_the_run_fail() -> None:
    result = audited()
    (one,) = result.certificates
    assert len(one.rounds) > 2
    *before, last = one.rounds
    rounds = (*before, replace(last, rules=last.rules[:-1]))
    found = " ".join(recheck(recomputed(result, replace(one, rounds=rounds))))
    assert "bettors" in found


def test_a_curve_settles_its_point_first() -> None:
    claim = dpaudit.GaussianDP(2.0)
    result = dpaudit.audit(laplace.laplace, 0.0, 1.0, claim, samples=5_000)
    assert recheck(result) == []


def test_time_that_plans_the_draws() -> None:
    assert recheck(audited(time=0.3)) == []


def test_a_forgery_without_changes_passes() -> None:
    """Else the findings below would show nothing."""
    result = audited()
    assert recheck(recomputed(result, result.certificates[0])) == []


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_a_record_that_was_cut_short(blocks: int) -> None:
    found = " ".join(recheck(cut(audited(), blocks)))
    assert "of the certification" in found
    assert "the planned end" in found


def test_a_smaller_budget_that_would_have_frozen_sooner() -> None:
    result = audited()
    left = sum(block.draws for block in result.certificates[0].blocks[:-8])
    assert left < 4_000
    found = " ".join(recheck(cut(result, 8, budget=left)))
    assert "to learn from" in found


def test_what_only_a_rerun_shows() -> None:
    """A smaller budget with the same freeze: cut so, a record is that of a shorter run."""
    result = audited()
    left = sum(block.draws for block in result.certificates[0].blocks[:-2])
    assert recheck(cut(result, 2, budget=left)) == []


def test_a_run_that_went_on_after_its_refutation() -> None:
    result = audited(laplace.wrong_density, 0.5, full=True)
    (one,) = result.certificates
    stopping = replace(schedule_of(result), full=False)
    found = recheck(recomputed(result, replace(one, schedule=stopping)))
    assert any("after a refutation" in text for text in found)


def test_a_confirmation_of_another_size() -> None:
    result = audited(laplace.wrong_density, 0.5)
    assert result.certificates[0].fixed.stage == "confirmation"
    found = " ".join(recheck(cut(result, 1)))
    assert "of the confirmation" in found


def test_a_confirmation_of_a_chosen_size_fails() -> None:
    result = audited(laplace.wrong_density, 0.5)
    (one,) = result.certificates
    changed = replace(schedule_of(result), confirming=7)
    found = recheck(recomputed(result, replace(one, schedule=changed)))
    assert any("a confirmation, at least" in text for text in found)


def test_an_additional_fit_fails() -> None:
    result = audited(samples=5_000)
    (one,) = result.certificates
    final = len(one.rounds) - 1
    blocks = [
        replace(block, round=final + 1) if block.stage == "certification" else block
        for block in one.blocks
    ]
    last = max(place for place, block in enumerate(blocks) if block.stage == "learning")
    blocks[last] = replace(blocks[last], round=final)
    again = (*one.rounds[:final], one.rounds[final - 1], one.rounds[final])
    found = recheck(recomputed(result, replace(one, rounds=again, blocks=tuple(blocks))))
    assert any("rounds of" in text for text in found)


def test_a_refutation_at_another_block() -> None:
    result = audited(laplace.wrong_density, 0.5, full=True)
    (one,) = result.certificates
    assert one.refuted_after is not None
    later = replace(one, refuted_after=one.draws)
    found = " ".join(recheck(with_certificates(result, later)))
    assert "to the refutation" in found


@pytest.mark.parametrize(("claimed", "together"), [(0.0, 1), (0.25, 5), (0.9, 1_000), (1.0, 5)])
def test_the_bound_of_betting_is_the_same_however_many_values_are_followed_at_once(
    claimed: float, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = audited(epsilon=claimed)
    (one,) = result.certificates
    monkeypatch.setattr(wealth, "_VALUES_PER_PASS", together)
    found = numbers(_evidence(result, one))
    assert (found["epsilon_betting"], found["wealth"]) == (one.epsilon_betting, one.wealth)
    assert one.epsilon_betting > 0
