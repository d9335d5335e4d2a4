"""Audits of recorded outputs: the split, the method, and the record in the result."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.attacks.trees import NAME as TREES
from dpaudit.auditing.canaries import audit_guesses
from dpaudit.auditing.recheck import recheck
from dpaudit.auditing.recorded import (
    RecordedAudit,
    audit_recorded,
    read_outcomes,
    separate_samples,
)
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import (
    ApproximateDP,
    ComputationalDP,
    GaussianDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
)
from dpaudit.errors import UsageError
from dpaudit.reports.text import render
from dpaudit.stats.binomial import TOSSED_AGAIN
from dpaudit.stats.one_run import Guesses
from tests.forging import with_certificates
from tests.result_files import from_json, to_json
from tests.specs import replace

ROOT = Path(__file__).parents[3]
NAMES: dict[str, Any] = {"name": "n", "source": "s", "pair": "p"}


def laplace(d1: int = 2_000, d2: int = 2_000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.laplace(size=d1), 1 + rng.laplace(size=d2)


def bits(share: float, size: int = 3_000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.random(size) < share, rng.random(size) >= share


def one(result: AuditResult) -> Certificate:
    (certificate,) = result.certificates
    return certificate


def said(result: AuditResult) -> str:
    return " ".join(render(result, verbose=1).split())


@pytest.mark.parametrize(
    ("claim", "sizes"),
    [
        (PureDP(0.5), (2_000, 2_000)),
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


def test_single_outputs_are_certified_for_the_probabilistic_definition() -> None:
    result = dpaudit.bound(*bits(0.8), ProbabilisticDP(1.0, 0.1))
    assert one(result).fixed.method == "probabilistic"
    assert result.verdict is Verdict.VIOLATION
    assert recheck(result) == []


def test_a_claim_that_holds_is_not_refuted() -> None:
    result = dpaudit.bound(*laplace(), PureDP(1.0))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert " in 9 of 10 runs" in said(result)


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
    assert "fair coins" in said(result)
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
    assert " separate Clopper–Pearson" in said(result)


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
    assert " a fair coin" in said(result)
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
    for d1, d2, code in (
        ([1.0] * 40, [1.0] * 40, "recording-too-small"),
        ([1.0] * 5_000, [1.0] * 20, "recording-too-small"),
        (empty, empty, "nothing-computed"),
        (np.stack([empty, empty], axis=1), np.stack([empty, empty], axis=1), "nothing-computed"),
        ([object()] * 900, [1.0] * 900, "recording-invalid"),
    ):
        with pytest.raises(UsageError) as error:
            dpaudit.bound(d1, d2, PureDP(1.0))
        assert error.value.code == code
    with pytest.raises(UsageError) as error:
        dpaudit.bound(np.ones((900, 2)), np.zeros((900, 2)), PureDP(1.0), scores=True)
    assert error.value.code == "recording-invalid"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"confidence": 1.0}, "option-invalid"),
        ({"seed": -1}, "option-invalid"),
        ({"claim": ComputationalDP(1.0, 0.0, lambda x: 1)}, "options-conflict"),
    ],
)
def test_options_that_are_refused(given: dict[str, Any], code: str) -> None:
    outcomes, is_d1, place = separate_samples(*laplace(), "d1, d2")
    settings: dict[str, Any] = {"claim": PureDP(1.0), **NAMES, **given}
    with pytest.raises(UsageError) as error:
        RecordedAudit(outcomes=outcomes, is_d1=is_d1, place=place, **settings)
    assert error.value.code == code


def vectors() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.laplace(size=(4_000, 5)), rng.laplace(size=(4_000, 5)) + 0.3


def test_what_was_tried_and_how_the_score_fell_are_kept() -> None:
    result = dpaudit.bound(*vectors(), PureDP(1.0))
    scores, attack = one(result).scores, one(result).fixed.rule.attack
    assert attack in {"sum over coordinates", "logistic regression"}
    assert scores is not None
    assert np.sum(scores.counts) == one(result).evidence.blocks[0].draws
    assert {name for name, _ in scores.columns} == {f"output[{i}]" for i in range(5)}
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]
    assert f"predicted bound: {attack} 0." in said(result)
    assert f"not tried: {TREES} (no two columns " in said(result)


def test_of_scores_only_thresholds_were_tried() -> None:
    certificate = one(dpaudit.bound(*laplace(), PureDP(1.0), scores=True))
    assert {tried.attack for tried in certificate.attacks} == {"threshold, falling"}
    assert certificate.scores is None


def test_scikit_learn_is_among_the_versions_only_where_it_may_have_been_used() -> None:
    assert "scikit-learn" not in dpaudit.bound(*laplace(), PureDP(1.0)).versions
    result = dpaudit.bound(*vectors(), PureDP(1.0))
    assert result.versions["scikit-learn"] == metadata.version("scikit-learn")


def test_the_version_is_read_without_an_import() -> None:
    script = """
import sys
import numpy as np
import dpaudit
rng = np.random.default_rng(0)
result = dpaudit.bound(rng.random((4_000, 3)), rng.random((4_000, 3)), dpaudit.PureDP(1.0))
assert "scikit-learn" in result.versions
assert "sklearn" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=120)


def test_without_scikit_learn_its_version_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert "scikit-learn" not in dpaudit.bound(*vectors(), PureDP(1.0)).versions


def test_a_constant_output_shows_nothing() -> None:
    result = dpaudit.bound([7.0] * 900, [7.0] * 900, PureDP(0.0))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert recheck(result) == []


@pytest.mark.parametrize(
    "change",
    [
        {"p_value": 1e-9},
        {"epsilon_lower": 3.0},
        {"alpha_betting": 0.002},
        {"wealth": 50.0},
    ],
)
def test_a_changed_record_is_found(change: dict[str, Any]) -> None:
    result = dpaudit.bound(*laplace(), PureDP(1.0))
    changed = with_certificates(result, replace(one(result), **change))
    assert recheck(changed) != []


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproximateDP(0.5, 1e-4), GaussianDP(0.1)])
def test_guesses_can_be_rechecked_and_read_back(claim: PrivacyClaim) -> None:
    result = dpaudit.bound_guesses(1_000, 200, 160, claim)
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]
    (certificate,) = result.by_pair
    assert isinstance(certificate, OneRunCertificate)
    tests = (replace(certificate.leading, correct=170),)
    changed = with_certificates(result, replace(certificate, tests=tests))
    assert recheck(changed) != []


def test_guesses_say_what_they_assume() -> None:
    found = said(dpaudit.bound_guesses(1_000, 100, 75, ApproximateDP(1.0, 1e-4)))
    assert "75 of 100 guesses were right" in found
    assert " a fair coin " in found
    assert " in 9 of 10 runs" in found
    refuted = said(dpaudit.bound_guesses(1_000, 100, 95, PureDP(1.0)))
    assert refuted.startswith("VIOLATION")


@pytest.mark.parametrize(
    "claim", [ProbabilisticDP(1.0, 0.1), ComputationalDP(1.0, 0.0, lambda x: 1)]
)
def test_claims_that_guesses_say_nothing_about(claim: PrivacyClaim) -> None:
    with pytest.raises(UsageError) as error:
        audit_guesses([Guesses(10, 5, 5)], claim)
    assert error.value.code == "guesses-cannot-test-claim"


def test_impossible_guesses() -> None:
    with pytest.raises(UsageError) as error:
        dpaudit.bound_guesses(10, 20, 5, PureDP(1.0))
    assert error.value.code == "option-invalid"
