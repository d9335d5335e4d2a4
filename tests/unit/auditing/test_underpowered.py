"""An audit that could not have failed, whatever the mechanism does, says so."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import (
    draws_for_rare,
    event_could_not,
    foreseen,
    misses_rare,
    saw_nothing,
    too_few,
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
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.power import draws_to_refute
from dpaudit.targets.target import CallableTarget
from tests.cli.made_results import CERTIFICATE, FIXED
from tests.raising import code
from tests.specs import audit_of, replace


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
    ("epsilon", "delta", "alpha"), [(0, 0, 0.1), (6, 0, 1e-6), (4, 0.01, 0.0075)]
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
    assert draws_to_refute(1.0, 1.0, alpha) == draws_to_refute(700.0, 0.9999, alpha) == math.inf


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
    result = dpaudit.audit(identity, 0, 1, claim, samples=2 * high, confidence=confidence)
    assert result.verdict is Verdict.VIOLATION
    assert result.underpowered is None


def test_a_noiseless_count_with_too_few_draws_is_not_green() -> None:
    result = dpaudit.audit(len, [1], [], PureDP(12.0), samples=5_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.underpowered is not None
    allowed = dpaudit.audit(len, [1], [], PureDP(12.0), samples=5_000, allow_underpowered=True)
    assert allowed.underpowered is None
    assert len(allowed.warnings) == 1


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


def test_recorded_draws_and_guesses() -> None:
    few = dpaudit.bound([0] * 1_000, [1] * 1_000, PureDP(9.0))
    assert few.underpowered is not None
    assert dpaudit.bound([0] * 1_000, [1] * 1_000, PureDP(3.0)).underpowered is None
    guessed = dpaudit.bound_guesses(100, 20, 20, PureDP(4.0))
    assert guessed.underpowered is not None
    assert dpaudit.bound_guesses(100, 20, 10, PureDP(1.0)).underpowered is None


def test_equal_and_yet_not_the_same() -> None:
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((0.0, -0.0),))) is None
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((1, True),))) is None


def laplace(x: float, size: int, rng: Any) -> Any:
    return x + rng.laplace(size=size)


def certificate_of(mechanism: Any, claim: PrivacyClaim, **more: Any) -> Certificate:
    given: dict[str, Any] = {"samples": 10_000, "no_trace": True, **more}
    return dpaudit.audit(mechanism, 0, 1, claim, **given).certificates[0]


def test_pairs_share_the_error_probability_of_rare_outputs() -> None:
    alone = certificate_of(laplace, PureDP(1.0))
    shared = replace(alone, fixed=replace(alone.fixed, alpha=alone.fixed.alpha / 3))
    points = PureDP(1.0).points()
    draws, more = (draws_for_rare(certificate, 0.001, points) for certificate in (alone, shared))
    assert draws is not None
    assert more is not None
    assert 1.05 * draws < more < 1.5 * draws


def test_a_claim_whose_delta_allows_rare_outputs_is_never_refuted_by_them() -> None:
    claim = ApproximateDP(1.0, 0.01)
    certificate, points = certificate_of(laplace, claim), claim.points()
    assert draws_for_rare(certificate, 0.01, points) is None
    assert draws_for_rare(certificate, 0.005, points) is None
    assert draws_for_rare(certificate, 0.02, points) is not None
    assert misses_rare([certificate], 0.01, points) is not None


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
    assert code(spec_of, claim, 10_000, require_rare=0.01, **more) == "options-conflict"


def test_an_audit_that_refutes_a_mechanism_without_noise_is_not_underpowered() -> None:
    """The event of a correct mechanism may have too few draws, where a leak would be refuted."""
    common: dict[str, Any] = {"samples": 100, "no_trace": True}
    passed = dpaudit.audit(laplace, 0, 1, PureDP(2.0), **common)
    assert event_could_not(passed.certificates[0]) is not None
    assert passed.underpowered is None
    leak = dpaudit.audit(lambda data: data, 0, 1, PureDP(2.0), **common)
    assert leak.verdict is Verdict.VIOLATION


def test_an_event_of_all_draws_shows_no_distance() -> None:
    result = dpaudit.parity(lambda x: 7, lambda x: 7, [0], samples=1_000)
    assert "100 %" in str(event_could_not(result.certificates[0]))


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
    assert (saw_nothing(certificate) is not None) is is_blind
    able = replace(certificate, fixed=replace(fixed, detectable_epsilon=1.5))
    assert saw_nothing(able) is None
    unread = replace(able, evidence=replace(able.evidence, new_texts=True))
    assert (saw_nothing(unread) is not None) is is_blind
    assert saw_nothing(replace(unread, refuted=True)) is None
    assert saw_nothing(replace(certificate, refuted=True)) is None
    assert saw_nothing(replace(certificate, unseen=None)) is None
