"""Audits of recorded outputs: the split, the method, and the record in the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.recheck import recheck
from dpaudit.auditing.recorded_outputs import (
    RecordedAudit,
    audit_recorded,
    read_outcomes,
    separate_samples,
)
from dpaudit.auditing.single_run import audit_guesses
from dpaudit.certificates.canary_certificate import OneRunCertificate
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import (
    ApproximateDP,
    ComputationalDP,
    GaussianDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
)
from dpaudit.stats.binomial import TOSSED_AGAIN
from dpaudit.stats.one_run import Guesses
from tests.forging import with_certificates
from tests.raising import code
from tests.result_files import from_json, to_json
from tests.specs import replace

NAMES: dict[str, Any] = {"name": "n", "source": "s", "pair": "p"}


def laplace(d1: int = 2_000, d2: int = 2_000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.laplace(size=d1), 1 + rng.laplace(size=d2)


def one(result: AuditResult) -> Certificate:
    (certificate,) = result.certificates
    return certificate


@pytest.mark.parametrize(
    ("claim", "sizes"),
    [
        (ApproximateDP(0.5, 1e-3), (400, 10_000)),
        (GaussianDP(0.4), (2_000, 2_000)),
        (ProbabilisticDP(0.5, 0.01), (2_000, 2_000)),
        (ComputationalDP(0.5, 0.0), (400, 10_000)),
    ],
)
def test_a_result_can_be_rechecked_and_read_back(
    claim: PrivacyClaim, sizes: tuple[int, int]
) -> None:
    result = dpaudit.bound(*laplace(*sizes), claim)
    assert result.verdict is Verdict.VIOLATION
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]
    recording = one(result).evidence.recording
    assert recording is not None
    assert (recording.draws_d1, recording.draws_d2) == sizes
    assert result.draws <= sum(sizes)


def test_a_claim_that_holds_is_not_refuted() -> None:
    result = dpaudit.bound(*laplace(), PureDP(1.0))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


def test_the_whole_error_probability_goes_to_the_tests_of_all_rules() -> None:
    for tossed, alpha in ((False, (1 - TOSSED_AGAIN) * 0.1), (True, 0.1)):
        found = one(dpaudit.bound(*laplace(), PureDP(1.0), confidence=0.9, coin_flipped=tossed))
        assert sum(test.rule.share for test in found.rules) == pytest.approx(1.0)
        assert [test.alpha for test in found.rules] == pytest.approx(
            [test.rule.share * alpha for test in found.rules]
        )


def test_fixed_arms_give_a_warning_and_are_thinned() -> None:
    result = dpaudit.bound(*laplace(), PureDP(1.0))
    assert one(result).fixed.method == "game"
    assert len(one(result).warnings) == 1
    d1, d2 = (
        sum(counts) for counts in zip(*one(result).evidence.blocks[-1].tally.counts, strict=True)
    )
    assert d1 != d2  # tossed for
    assert d1 + d2 < 4_000 * 2 / 3


def test_tossed_arms_are_all_used() -> None:
    result = dpaudit.bound(*laplace(2_010, 1_990), PureDP(1.0), coin_flipped=True)
    assert result.draws == 4_000
    assert result.certificates[0].warnings == ()


def test_much_more_of_one_input_goes_to_the_textbook_bound() -> None:
    result = dpaudit.bound(*laplace(500, 100_000), PureDP(0.5))
    assert one(result).fixed.method == "clopper-pearson"
    assert sum(test.alpha for test in one(result).rules) == pytest.approx(0.01)


@pytest.mark.parametrize("bound", ["game", "clopper-pearson"])
def test_the_bound_can_be_asked_for(bound: Any) -> None:
    assert one(dpaudit.bound(*laplace(), PureDP(1.0), bound=bound)).fixed.method == bound


def test_arms_that_no_coins_picked_are_taken_as_fixed() -> None:
    d1, d2 = laplace()
    outcomes, is_d1 = np.concatenate([d1, d2]), np.repeat([True, False], 2_000)
    audit = RecordedAudit(
        outcomes=read_outcomes(outcomes),
        is_d1=is_d1,
        claim=PureDP(1.0),
        coin_flipped=True,
        **NAMES,
    )
    result = audit_recorded(audit)
    recording = one(result).evidence.recording
    assert recording is not None
    assert not recording.coin_flipped


def test_the_seed_decides_the_split() -> None:
    draws = laplace()
    first, again, other = (dpaudit.bound(*draws, PureDP(1.0), seed=seed) for seed in (1, 1, 2))
    assert replace(first, seconds=0) == replace(again, seconds=0)
    assert first.certificates != other.certificates


def test_the_split_does_not_look_at_the_outcomes() -> None:
    first, second = (one(dpaudit.bound(*laplace(seed=s), PureDP(1.0))) for s in (1, 2))
    sums = [
        [sum(arm) for arm in zip(*c.evidence.blocks[-1].tally.counts, strict=True)]
        for c in (first, second)
    ]
    assert sums[0] == sums[1]


def test_scores_are_cut_by_thresholds_only() -> None:
    """The inputs alternate along the line: an interval separates them, a threshold does not."""
    rng = np.random.default_rng(0)
    d1, d2 = (rng.integers(0, 8, 4_000) + shift + rng.random(4_000) / 2 for shift in (0, 0.5))
    free, scores = (dpaudit.bound(d1, d2, PureDP(0.5), scores=flag) for flag in (False, True))
    assert free.epsilon_lower > scores.epsilon_lower + 1
    assert one(scores).fixed.rule.attack.startswith("threshold")


def test_outputs_that_cannot_be_audited() -> None:
    empty = np.full(900, np.nan)
    for d1, d2, expected in (
        ([1.0] * 40, [1.0] * 40, "recording-too-small"),
        ([1.0] * 5_000, [1.0] * 20, "recording-too-small"),
        (empty, empty, "nothing-computed"),
        (np.stack([empty, empty], axis=1), np.stack([empty, empty], axis=1), "nothing-computed"),
        ([object()] * 900, [1.0] * 900, "recording-invalid"),
    ):
        assert code(dpaudit.bound, d1, d2, PureDP(1.0)) == expected
    vectors = np.ones((900, 2)), np.zeros((900, 2))
    assert code(dpaudit.bound, *vectors, PureDP(1.0), scores=True) == "recording-invalid"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"confidence": 1.0}, "option-invalid"),
        ({"seed": -1}, "option-invalid"),
        ({"bound": "wilson"}, "option-invalid"),
        ({"claim": ComputationalDP(1.0, 0.0, lambda x: 1)}, "options-conflict"),
    ],
)
def test_options_that_are_refused(option: dict[str, Any], expected: str) -> None:
    outcomes, is_d1, place = separate_samples(*laplace(), "d1, d2")
    settings: dict[str, Any] = {"claim": PureDP(1.0), **NAMES, **option}
    settings.update(outcomes=outcomes, is_d1=is_d1, positions=place)
    assert code(RecordedAudit, **settings) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"p_value": 1e-9},
        {"epsilon_lower": 3.0},
        {"wealth": 50.0},
    ],
)
def test_a_changed_record_is_found(change: dict[str, Any]) -> None:
    result = dpaudit.bound(*laplace(), PureDP(1.0))
    changed = with_certificates(result, replace(one(result), **change))
    assert recheck(changed) != []


@pytest.mark.parametrize("claim", [ApproximateDP(0.5, 1e-4), GaussianDP(0.1)])
def test_guesses_can_be_rechecked_and_read_back(claim: PrivacyClaim) -> None:
    result = dpaudit.bound_guesses(1_000, 200, 160, claim)
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]
    (certificate,) = result.by_pair
    assert isinstance(certificate, OneRunCertificate)
    tests = (replace(certificate.leading, correct=170),)
    changed = with_certificates(result, replace(certificate, tests=tests))
    assert recheck(changed) != []


@pytest.mark.parametrize(
    "claim", [ProbabilisticDP(1.0, 0.1), ComputationalDP(1.0, 0.0, lambda x: 1)]
)
def test_claims_that_guesses_say_nothing_about(claim: PrivacyClaim) -> None:
    assert code(audit_guesses, [Guesses(10, 5, 5)], claim) == "guesses-cannot-test-claim"


def test_impossible_guesses() -> None:
    assert code(dpaudit.bound_guesses, 10, 20, 5, PureDP(1.0)) == "option-invalid"
