"""An audit that could not have failed, whatever the mechanism does, says so."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import (
    draws_for_rare,
    draws_needed,
    event_could_not,
    event_share,
    foreseen,
    misses_rare,
    most_powerful,
    saw_nothing,
    too_few,
    too_weak,
)
from dpaudit.certificates.certificate import Certificate, EventCount, Unseen
from dpaudit.certificates.result import Verdict
from dpaudit.claims import (
    ApproximateDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TotalVariation,
)
from dpaudit.errors import UsageError
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.power import draws_to_refute
from dpaudit.targets.target import CallableTarget
from tests.cli.made_results import CERTIFICATE, FIXED
from tests.specs import audit_of, replace

PURE = PureDP(1.0).points()


def identity(x: Any) -> Any:
    return x


def spec_of(claim: PrivacyClaim, samples: int, **more: Any) -> AuditSpec:
    pairs = more.pop("pairs", ((0, 1),))
    return audit_of(
        name="identity",
        target=CallableTarget(function=identity),
        pairs=tuple(NeighbouringPair(d1, d2, None, f"{d1}, {d2}") for d1, d2 in pairs),
        claim=claim,
        samples=samples,
        **more,
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "alpha"),
    [
        (0, 0, 0.1),
        (1, 0, 0.0075),
        (6, 0, 1e-6),
        (1, 0.1, 0.1),
        (0, 0.5, 1e-6),
        (4, 0.01, 0.0075),
    ],
)
def test_the_fewest_draws_are_those_of_the_exact_test(
    epsilon: float, delta: float, alpha: float
) -> None:
    fewest = draws_to_refute(epsilon, delta, alpha)
    assert isinstance(fewest, int)

    def p(draws: int) -> float:
        perfect = Game(draws, 0, draws, two_guesses=True, abstains=False)
        return p_value(perfect, epsilon, delta, alpha)

    assert p(fewest) <= alpha
    assert fewest == 1 or p(fewest - 1) > alpha


def test_a_claim_that_everything_meets() -> None:
    assert draws_to_refute(1.0, 1.0, 0.01) == math.inf


@pytest.mark.parametrize(
    ("claim", "confidence"),
    [(PureDP(6.0), 0.9), (ApproximateDP(6.0, 0.1), 0.99), (TotalVariation(0.99), 0.9999)],
)
def test_the_fewest_draws_are_exact(claim: PrivacyClaim, confidence: float) -> None:
    """And a mechanism that hides nothing is refuted with twice as many."""
    low, high = 100, 10**8
    alpha = 1 - confidence
    assert too_few(claim, alpha, low) is not None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if too_few(claim, alpha, middle) is None else (middle, high)
    reason = too_few(claim, alpha, low)
    assert reason is not None
    assert f"at least {high:,} could" in reason
    result = dpaudit.audit(identity, 0, 1, claim, samples=2 * high, confidence=confidence)
    assert result.verdict is Verdict.VIOLATION
    assert result.underpowered is None


def test_a_noiseless_count_with_too_few_draws_is_not_green() -> None:
    result = dpaudit.audit(len, [1], [], PureDP(12.0), samples=5_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.underpowered is not None
    assert result.underpowered.startswith("5,000 draws ")
    assert " refute ε = 12 " in result.underpowered
    allowed = dpaudit.audit(len, [1], [], PureDP(12.0), samples=5_000, allow_underpowered=True)
    assert allowed.underpowered is None
    assert any(" refute ε = 12 " in text for text in allowed.warnings)


def test_equal_inputs() -> None:
    equal = spec_of(PureDP(1.0), 5_000, pairs=((1, 1),))
    assert foreseen(equal) == EQUAL_INPUTS
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((1, 1), (0, 1)))) is None


def test_pairs_share_the_error_probability() -> None:
    alone = spec_of(PureDP(5.0), 1_000)
    shared = spec_of(PureDP(5.0), 1_000, pairs=tuple((0, place) for place in range(1, 40)))
    assert foreseen(alone) is None
    assert foreseen(shared) is not None


def test_of_a_curve_the_easiest_point_counts() -> None:
    assert foreseen(spec_of(RenyiDP(2.0, 3.0), 5_000)) is None
    assert foreseen(spec_of(RenyiDP(2.0, 30.0), 5_000)) is not None


def test_draws_that_the_clock_plans_are_judged_afterwards() -> None:
    spec = spec_of(PureDP(40.0), 1_000_000, time=0.2)
    assert foreseen(spec) is None
    result = dpaudit.audit(identity, 0, 1, PureDP(40.0), time=0.2)
    assert result.underpowered is not None
    assert "no number of " in result.underpowered


def test_recorded_draws_and_guesses() -> None:
    few = dpaudit.bound([0] * 1_000, [1] * 1_000, PureDP(9.0))
    assert few.underpowered is not None
    assert " refute ε = 9" in few.underpowered
    assert dpaudit.bound([0] * 1_000, [1] * 1_000, PureDP(3.0)).underpowered is None
    guessed = dpaudit.bound_guesses(100, 20, 20, PureDP(4.0))
    assert guessed.underpowered is not None
    assert "20 guesses cannot refute ε = 4" in guessed.underpowered
    assert dpaudit.bound_guesses(100, 20, 10, PureDP(1.0)).underpowered is None


def test_claims_that_no_draws_can_refute() -> None:
    assert draws_to_refute(700.0, 0.9999, 0.0075) == math.inf
    result = dpaudit.audit(identity, 0, 1, ApproximateDP(720.0, 0.999999), samples=1_000)
    assert "no number of " in str(result.underpowered)


def test_equal_and_yet_not_the_same() -> None:
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((0.0, -0.0),))) is None
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((1, True),))) is None


def laplace(x: float, size: int, rng: Any) -> Any:
    return x + rng.laplace(size=size)


def blind(x: float, size: int, rng: Any) -> Any:
    return rng.normal(size=size)


def certificate_of(mechanism: Any, claim: PrivacyClaim, **more: Any) -> Certificate:
    given: dict[str, Any] = {"samples": 10_000, "no_trace": True, **more}
    return dpaudit.audit(mechanism, 0, 1, claim, **given).certificates[0]


def test_pairs_share_the_error_probability_of_rare_outputs() -> None:
    alone = certificate_of(laplace, PureDP(1.0))
    of_three = replace(alone, fixed=replace(alone.fixed, alpha=alone.fixed.alpha / 3))
    one, several = (draws_for_rare(each, 0.001, PURE) for each in (alone, of_three))
    assert one is not None
    assert several is not None
    assert 1.05 * one < several < 1.5 * one


def test_a_rule_of_any_kind_has_the_same_draws_for_rare_outputs() -> None:
    """The rules share the error probability of the exact test."""
    certificate = certificate_of(laplace, PureDP(1.0))
    whole = certificate.fixed.alpha / certificate.fixed.rule.share
    rare = replace(certificate.fixed, kind="rare", share=0.08, alpha=0.08 * whole)
    assert draws_for_rare(replace(certificate, fixed=rare), 0.001, PURE) == draws_for_rare(
        certificate, 0.001, PURE
    )


def test_a_claim_whose_delta_allows_rare_outputs_is_never_refuted_by_them() -> None:
    claim = ApproximateDP(1.0, 0.01)
    certificate, points = certificate_of(laplace, claim), claim.points()
    assert draws_for_rare(certificate, 0.01, points) is None
    assert draws_for_rare(certificate, 0.005, points) is None
    assert draws_for_rare(certificate, 0.02, points) is not None
    reason = misses_rare([certificate], 0.01, points)
    assert reason is not None
    assert "no number of " in reason


def test_the_pair_that_needs_most_is_named() -> None:
    good = certificate_of(laplace, PureDP(1.0))
    bad = replace(good, pair="d1 = 7, d2 = 8", detectable_rare=math.inf)
    assert good.detectable_rare is not None
    assert misses_rare([good], good.detectable_rare, PURE) is None
    both = misses_rare([good, bad], good.detectable_rare, PURE)
    assert both is not None
    assert "d1 = 7, d2 = 8" in both
    unknown = misses_rare([replace(good, detectable_rare=None)], 0.5, PURE)
    assert unknown is not None


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        (PureDP(1.0), {"allow_underpowered": True}),
        (PureDP(1.0), {"bound": "clopper-pearson"}),
        (ProbabilisticDP(1.0, 0.01), {}),
        (ApproximateDP(1.0, 0.1), {}),
    ],
)
def test_rare_outputs_that_no_audit_could_require(claim: PrivacyClaim, more: Any) -> None:
    with pytest.raises(UsageError) as error:
        spec_of(claim, 10_000, require_rare=0.01, **more)
    assert error.value.code == "options-conflict"


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


def test_a_lack_of_power_names_the_draws_that_the_plan_has() -> None:
    certificate = certificate_of(laplace, PureDP(1.0), samples=3_000)
    test = most_powerful(certificate)
    needed = draws_needed(certificate, 0.9 * event_share(test), 1.1, 0.9)
    assert needed is not None
    assert needed > 3_000
    reason = too_weak([certificate], 1.1)
    assert reason is not None
    assert f"samples={needed:_}" in reason
    unknown = too_weak([certificate], 1.1, is_forecast=False)
    assert unknown is not None
    assert "samples=" not in unknown
    hopeless = too_weak([replace(powerless(NEARLY_ALL), refuted=False)], 1.1)
    assert hopeless is not None
    assert "samples=" not in hopeless


def test_an_audit_that_refutes_a_mechanism_without_noise_is_not_underpowered() -> None:
    """The event of a correct mechanism may have too few draws, where a leak would be refuted."""
    common: dict[str, Any] = {"samples": 100, "no_trace": True}
    passed = dpaudit.audit(laplace, 0, 1, PureDP(2.0), **common)
    assert event_could_not(passed.certificates[0]) is not None
    assert passed.underpowered is None
    leak = dpaudit.audit(lambda data: data, 0, 1, PureDP(2.0), **common)
    assert leak.verdict is Verdict.VIOLATION


ALWAYS_D1 = replace(
    FIXED,
    correct=500,
    wrong=500,
    detectable_epsilon=math.inf,
    events=(EventCount("any output", "d1", 500, 500, 500, 500, (0.9, 1.0), (0.9, 1.0)),),
)


@pytest.mark.parametrize(
    ("guesses", "new", "is_blind"),
    [(1_000, 1_000, True), (0, 500, True), (400, 1_000, True), (0, 499, False), (400, 499, False)],
)
def test_an_event_without_power_among_new_outputs_saw_nothing(
    guesses: int, new: int, is_blind: bool
) -> None:
    count = replace(ALWAYS_D1.events[0], count_d1=guesses // 2, count_d2=guesses - guesses // 2)
    right, wrong = count.count_d1, count.count_d2
    fixed = replace(ALWAYS_D1, correct=right, wrong=wrong, events=(count,))
    certificate = replace(
        CERTIFICATE, refuted=False, epsilon_lower=0.0, recording=None, fixed=fixed
    )
    certificate = replace(certificate, unseen=Unseen(new // 2, new - new // 2, 1.0, ranges=True))
    message = saw_nothing(certificate)
    assert (message is not None) is is_blind
    if message is not None:
        assert "--post-process" in message
        assert message.startswith("1,000 test draws cannot refute ")
        assert f"{new:,} of them" in message
    able = replace(certificate, fixed=replace(fixed, detectable_epsilon=1.5))
    assert saw_nothing(able) is None
    unread = replace(able, evidence=replace(able.evidence, new_texts=True))
    assert (saw_nothing(unread) is not None) is is_blind
    assert saw_nothing(replace(unread, refuted=True)) is None
    assert saw_nothing(replace(certificate, refuted=True)) is None
    assert saw_nothing(replace(certificate, unseen=None)) is None
