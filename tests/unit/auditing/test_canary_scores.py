"""From scores to guesses: which canaries are guessed, and which coins are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproximateDP, GaussianDP, PureDP
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.canary_certificate import CanaryScores, OneRunCertificate
from dpaudit.certificates.result import CanaryGuesses
from dpaudit.claims import PrivacyClaim
from dpaudit.reports.json import document, entry, read_document
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.one_run_tradeoff import independent_bounds, independent_mu_lower, mu_lower
from tests.raising import code

CANARIES = dpaudit.Canaries(2_000, seed=4)
COINS = CANARIES.included
CLAIM = GaussianDP(0.3)
LEAKING = COINS + np.random.default_rng(5).normal(size=2_000)


def one_run(
    *, coins: Any = COINS, scores: Any = LEAKING, claim: PrivacyClaim = CLAIM, **more: Any
) -> OneRunCertificate:
    (certificate,) = dpaudit.bound_canaries(coins, scores, claim, **more).by_pair
    assert isinstance(certificate, OneRunCertificate)
    return certificate


def scores_of(certificate: OneRunCertificate) -> CanaryScores:
    assert certificate.scores is not None
    return certificate.scores


def test_the_highest_and_the_lowest_scores_are_guessed() -> None:
    order = np.argsort(-LEAKING)
    highest, lowest = COINS[order], ~COINS[order[::-1]]
    both, inside = one_run(guesses=301), one_run(guesses=301, sides="in")
    assert (both.canaries, both.leading.guesses) == (2_000, 301)
    assert [test.share for test in both.tests + inside.tests] == [1.0, 1.0]
    assert both.leading.correct == highest[:151].sum() + lowest[:150].sum()
    assert inside.leading.correct == highest[:301].sum()
    assert both.mu_lower == mu_lower(Guesses(2_000, 301, both.leading.correct), both.alpha)


def test_mu_at_least_does_not_depend_on_the_claim() -> None:
    bounds = {one_run(claim=GaussianDP(mu)).mu_lower for mu in (0.1, 0.9, 3.0)}
    assert len(bounds) == 1


@pytest.mark.parametrize("claim", [ApproximateDP(0.5, 1e-5), GaussianDP(0.3)])
def test_two_fixed_numbers_of_guesses_share_alpha(claim: PrivacyClaim) -> None:
    both = one_run(claim=claim)
    assert [(test.guesses, test.share) for test in both.tests] == [(200, 0.8), (2_000, 0.2)]
    parts = [
        one_run(claim=claim, guesses=test.guesses, confidence=1 - test.share * both.alpha)
        for test in both.tests
    ]
    assert [test.correct for test in both.tests] == [part.leading.correct for part in parts]
    assert [test.p_value for test in both.tests] == [part.p_value for part in parts]
    assert both.p_value == min(parts[0].p_value / 0.8, parts[1].p_value / 0.2)
    assert both.leading.p_value == both.p_value * both.leading.share
    assert both.epsilon_lower == pytest.approx(max(part.epsilon_lower for part in parts))
    assert both.delta_lower == pytest.approx(max(part.delta_lower for part in parts))
    assert both.detectable_epsilon == pytest.approx(min(p.detectable_epsilon for p in parts))
    # The bound is where the p-value of both is alpha.
    at: PrivacyClaim = ApproximateDP(both.epsilon_lower, claim.point().delta)
    if both.mu_lower is not None:
        assert both.mu_lower == pytest.approx(max(part.mu_lower or 0 for part in parts))
        at = GaussianDP(both.mu_lower)
    p = one_run(claim=at).p_value
    assert p == pytest.approx(both.alpha, rel=1e-6)


def test_independent_canaries_have_fixed_numbers_of_wrong_guesses() -> None:
    certificate, highest = one_run(independent_canaries=True), np.sort(LEAKING[~COINS])[::-1]
    assert [test.share for test in certificate.tests] == [0.8, 0.2]
    assert [test.guesses - test.correct for test in certificate.tests] == [40, 0]
    for test, wrong in zip(certificate.tests, (40, 0), strict=True):
        assert test.correct == (LEAKING[COINS] > highest[wrong]).sum()
    assert certificate.mu_lower == max(
        independent_mu_lower(
            Guesses(2_000, test.guesses, test.correct), test.share * certificate.alpha
        )
        for test in certificate.tests
    )
    assert one_run(independent_canaries=True, seed=9) == certificate
    ties = one_run(scores=np.zeros(2_000), independent_canaries=True)
    assert [(test.guesses, test.correct) for test in ties.tests] == [(40, 0), (0, 0)]


def test_independent_canaries_show_a_large_epsilon() -> None:
    claim = ApproximateDP(4.0, 1e-3)
    certificate = one_run(scores=COINS.astype(float), independent_canaries=True, claim=claim)
    bounds = [
        independent_bounds(
            Guesses(2_000, test.guesses, test.correct), 4.0, 1e-3, test.share * certificate.alpha
        )
        for test in certificate.tests
    ]
    assert (certificate.epsilon_lower, certificate.delta_lower) == tuple(
        map(max, zip(*bounds, strict=True))
    )
    assert certificate.refuted
    assert certificate.epsilon_lower > 4.5


def test_independent_canaries_are_too_few_if_even_the_best_scores_refute_nothing() -> None:
    rng, verdicts = np.random.default_rng(0), set()
    for size in (80, 120, 180, 270, 400, 600):
        coins = rng.permutation(np.arange(size) % 2 == 0)
        result = dpaudit.bound_canaries(
            coins, coins.astype(float), PureDP(3.0), independent_canaries=True
        )
        verdicts.add(result.verdict)
        assert (result.verdict is dpaudit.Verdict.VIOLATION) == (result.underpowered is None), size
    assert len(verdicts) == 2


def test_equal_scores_do_not_follow_the_order_of_the_rows() -> None:
    """A file that is sorted by its coins would otherwise give only right guesses."""
    coins = np.arange(2_000) < 1_000
    certificate = one_run(coins=coins, scores=np.zeros(2_000), guesses=500)
    assert 180 < certificate.leading.correct < 320
    assert len(certificate.warnings) == 1


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        (PureDP(0.1), {}),
        (ApproximateDP(0.1, 1e-5), {"guesses": 200}),
        (GaussianDP(0.1), {"independent_canaries": True}),
    ],
)
def test_a_result_survives_its_file_and_is_rechecked(
    claim: PrivacyClaim, more: dict[str, Any]
) -> None:
    result = dpaudit.bound_canaries(COINS, LEAKING, claim, **more)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    (read,) = read_document(document([entry(result)], 1)).results
    assert read == result
    assert recheck(read) == []


def test_the_summary_of_the_scores() -> None:
    from scipy.stats import mannwhitneyu

    inside, outside = LEAKING[COINS], LEAKING[~COINS]
    scores = scores_of(one_run(guesses=100))
    statistic = mannwhitneyu(inside, outside).statistic
    assert scores.auroc == pytest.approx(statistic / (len(inside) * len(outside)), rel=1e-12)
    assert np.sum(scores.histogram, axis=0).tolist() == [len(inside), len(outside)]
    assert (scores.digest, scores.included) == (CANARIES.digest, len(inside))
    for rate in scores.rates:
        threshold = np.sort(outside)[::-1][int(rate.false_positives * len(outside))]
        assert rate.above == (inside > threshold).sum()
        assert rate.lower < rate.above / len(inside) < rate.upper
        assert rate.fewest <= rate.above <= rate.most
    assert scores.roc[0][0] == 0
    assert scores.roc[-1] == (1, 1)
    assert (np.diff(scores.roc, axis=0) >= 0).all()


@pytest.mark.parametrize(
    ("coins", "warnings"),
    [
        (np.random.default_rng(0).random(2_000) < 0.55, 1),
        (np.sort(COINS), 1),
        (np.arange(2_000) % 6 < 3, 1),
        (COINS, 0),
    ],
)
def test_coins_that_are_not_fair_or_not_independent(coins: Any, warnings: int) -> None:
    coins = coins.copy()
    coins[-1] = ~coins[-1]  # a period would be refused
    assert len(one_run(coins=coins).warnings) == warnings


@pytest.mark.parametrize(
    ("coins", "scores", "more"),
    [
        (np.ones(50, bool), np.arange(50.0), {}),
        (np.random.default_rng(0).random(2_000) < 0.6, LEAKING, {}),
        (np.tile(COINS[:500], 2), np.arange(1_000.0), {}),
        (COINS, LEAKING[:-1], {}),
        (COINS, np.where(np.arange(2_000) == 7, np.nan, LEAKING), {}),
        (COINS, LEAKING, {"guesses": 2_001}),
        (COINS + 1, LEAKING, {}),
        ([], [], {}),
    ],
)
def test_coins_and_scores_of_no_run_are_refused(
    coins: Any, scores: Any, more: dict[str, Any]
) -> None:
    assert code(dpaudit.bound_canaries, coins, scores, PureDP(1.0), **more) == "canaries-invalid"


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"guesses": 1.5}, "option-invalid"),
        ({"sides": "in"}, "options-conflict"),
        ({"guesses": 5, "independent_canaries": True}, "options-conflict"),
        ({"sides": "out"}, "option-invalid"),
        ({"claim": 1.0}, "option-invalid"),
    ],
)
def test_impossible_settings_are_refused(more: dict[str, Any], wanted: str) -> None:
    given = {"claim": PureDP(1.0), **more}
    assert code(dpaudit.bound_canaries, COINS, LEAKING, **given) == wanted


def test_few_canaries_are_underpowered() -> None:
    coins = np.arange(8) % 2 == 0
    result = dpaudit.bound_canaries(coins, coins.astype(float), PureDP(1.0))
    assert result.underpowered is not None
    assert result.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND


@pytest.mark.parametrize(
    ("changes", "of_scores"),
    [
        ({"mu_lower": 0.9}, {}),
        ({"p_value": 1e-9}, {}),
        ({"canaries": 1_999}, {}),
        ({}, {"included": 1_200}),
        ({}, {"histogram": ()}),
    ],
)
def test_a_changed_number_is_found(changes: dict[str, Any], of_scores: dict[str, Any]) -> None:
    result = dpaudit.bound_canaries(COINS, LEAKING, CLAIM)
    (one,) = result.by_pair
    assert isinstance(one, OneRunCertificate)
    changed = replace(one, **changes, scores=replace(scores_of(one), **of_scores))
    assert recheck(replace(result, ending=CanaryGuesses((changed,))))
    assert not recheck(result)


@pytest.mark.parametrize("more", [{"guesses": 200}, {"independent_canaries": True}])
@pytest.mark.parametrize("change", [{"guesses": 5}, {"correct": 0}, {"share": 0.5}])
def test_a_changed_test_is_found(more: dict[str, Any], change: dict[str, Any]) -> None:
    result = dpaudit.bound_canaries(COINS, LEAKING, CLAIM, **more)
    (one,) = result.by_pair
    assert isinstance(one, OneRunCertificate)
    changed = (replace(one.tests[0], **change), *one.tests[1:])
    assert recheck(replace(result, ending=CanaryGuesses((replace(one, tests=changed),))))
