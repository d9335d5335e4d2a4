"""An audit that could not have failed, whatever the mechanism does, says so."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import foreseen, too_few
from dpaudit.certificates.result import Verdict
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP, RenyiDP, TotalVariation
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.power import draws_to_refute
from dpaudit.targets.target import CallableTarget

CONFIDENCES = (0.9, 0.99, 0.9999)


def identity(x: Any) -> Any:
    return x


def spec_of(claim: PrivacyClaim, samples: int, **more: Any) -> AuditSpec:
    pairs = more.pop("pairs", ((0, 1),))
    return AuditSpec(
        name="identity",
        target=CallableTarget(function=identity),
        pairs=tuple(NeighbouringPair(d1, d2, None, f"{d1}, {d2}") for d1, d2 in pairs),
        claim=claim,
        samples=samples,
        **more,
    )


@pytest.mark.parametrize("alpha", [0.1, 0.0075, 1e-6])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0), (1, 0), (6, 0), (1, 0.1), (0, 0.5), (4, 0.01)]
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


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("claim", [PureDP(8.0), ApproximateDP(8.0, 0.1), TotalVariation(0.999)])
def test_it_is_said_just_below_the_fewest_draws(claim: PrivacyClaim, confidence: float) -> None:
    """And a mechanism that hides nothing is refuted with twice as many."""
    low, high = 1_000, 10**8
    assert too_few(spec_of(claim, low, confidence=confidence), low) is not None
    while high - low > 1:
        middle = (low + high) // 2
        spec = spec_of(claim, middle, confidence=confidence)
        low, high = (low, middle) if too_few(spec, middle) is None else (middle, high)
    reason = too_few(spec_of(claim, low, confidence=confidence), low)
    assert reason is not None
    assert f"at least {high:,} could" in reason
    result = dpaudit.audit(identity, 0, 1, claim, samples=2 * high, confidence=confidence)
    assert result.verdict is Verdict.VIOLATION
    assert result.underpowered is None


def test_a_noiseless_count_with_too_few_draws_is_not_green() -> None:
    result = dpaudit.audit(len, [1], [], PureDP(12.0), samples=5_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.underpowered is not None
    assert "5,000 draws cannot refute ε = 12 even if every draw tells d1 and d2 apart" in (
        result.underpowered
    )
    allowed = dpaudit.audit(len, [1], [], PureDP(12.0), samples=5_000, allow_underpowered=True)
    assert allowed.underpowered is None
    assert any("cannot refute ε = 12" in text for text in allowed.warnings)


def test_equal_inputs() -> None:
    equal = spec_of(PureDP(1.0), 5_000, pairs=((1, 1),))
    assert "d1 and d2 are equal" in (foreseen(equal) or "")
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
    assert "no number of draws could" in result.underpowered


def test_recorded_draws_and_guesses() -> None:
    few = dpaudit.bound([0] * 1_000, [1] * 1_000, PureDP(9.0))
    assert few.underpowered is not None
    assert "recorded outputs kept for the exact test cannot refute ε = 9" in (few.underpowered)
    assert dpaudit.bound([0] * 1_000, [1] * 1_000, PureDP(3.0)).underpowered is None
    guessed = dpaudit.bound_guesses(100, 20, 20, PureDP(4.0))
    assert guessed.underpowered is not None
    assert "20 guesses cannot refute ε = 4" in guessed.underpowered
    assert dpaudit.bound_guesses(100, 20, 10, PureDP(1.0)).underpowered is None


def test_claims_that_no_draws_can_refute() -> None:
    assert draws_to_refute(700.0, 0.9999, 0.0075) == math.inf
    result = dpaudit.audit(identity, 0, 1, ApproximateDP(720.0, 0.999999), samples=1_000)
    assert "no number of draws could" in str(result.underpowered)


def test_equal_and_yet_not_the_same() -> None:
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((0.0, -0.0),))) is None
    assert foreseen(spec_of(PureDP(1.0), 5_000, pairs=((1, True),))) is None
