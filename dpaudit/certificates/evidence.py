"""From evidence to the numbers of a certificate: here, and nowhere else (docs/method.md §4).

An audit, `dpaudit bound` and the recheck of a file all derive their numbers by `numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.certificates.certificate import (
    Block,
    Certificate,
    DivergenceTest,
    FixedStage,
    FixedTest,
    Method,
    Round,
    Unseen,
)
from dpaudit.certificates.fixed_test import (
    Accused,
    FrozenRule,
    Setting,
    atoms_test,
    game_test,
    pair_test,
)
from dpaudit.certificates.replay import beliefs_of, replay, tally
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.levels.portfolio import RARE_SHARE
from dpaudit.stats.binomial import TOSSED_AGAIN, clopper_pearson_upper
from dpaudit.stats.power import POWER, detectable_rare
from dpaudit.stats.witness import Witness, divergence_lower, p_value

# How a pair's error probability is shared out: betting, the exact test at the planned end, and the
# one on a confirmation block after an early stop. They add up to 1, so that the union bound holds
# whichever of the two exact tests a run comes to.
BETTING_SHARE = 0.2
CERTIFICATION_SHARE = 0.75
CONFIRMATION_SHARE = 0.05

# Beyond this the exponential would be infinite.
_LARGEST_LOG = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the numbers of one pair follow from.

    point: the inequality that is bet against, and tested by each rule without a point of its own.
    points: all that the claim implies, where it is a curve.
    alpha: the pair's error probability.  confidence: of the intervals that are shown.
    blocks: all draws, in order; those of `stage` are for the exact test, by `method`.
    rounds: what was bet on; none where nothing was.
    rules: the portfolio of the exact test, the main rule first; their shares add up to 1.
    accused: single outputs with their counts, for the probabilistic definition.
    thinned: whether the draws of the exact test are a random part of fixed numbers of draws.
    limited: a witness of a Rényi divergence, and the most that the claim allows it to be; half of
    what the exact test may spend of alpha is then spent on it.
    unseen: of the draws of the exact test, those that have anything that was not seen before.
    ranges: whether that is, somewhere, a number beyond all others.
    """

    point: ProfilePoint
    alpha: float
    confidence: float
    blocks: tuple[Block, ...]
    stage: FixedStage
    method: Method
    rules: tuple[FrozenRule, ...]
    rounds: tuple[Round, ...] = ()
    accused: Accused = ()
    thinned: bool = False
    limited: tuple[Witness, float] | None = None
    unseen: tuple[int, int] | None = None
    ranges: bool = False
    points: tuple[ProfilePoint, ...] = ()

    @property
    def betting_share(self) -> float:
        """The share of alpha that betting spends."""
        return 0.0 if self.stage == "recorded" else BETTING_SHARE

    @property
    def fixed_share(self) -> float:
        """The share of alpha that the exact test spends, or each of two, where there are two: of
        the events of all rules, and of a divergence."""
        if self.stage == "recorded":
            share = 1 - TOSSED_AGAIN if self.thinned else 1.0
        else:
            share = CERTIFICATION_SHARE if self.stage == "certification" else CONFIRMATION_SHARE
        return share if self.limited is None else share / 2


def numbers(evidence: Evidence, followed: Wealth | None = None) -> dict[str, Any]:
    """Return the fields of a `Certificate` that follow from evidence.

    followed: the wealth as it was followed while drawing, to spare working it out again.
    Raises ValueError for beliefs that nobody may bet on.
    """
    tests, divergence = fixed_tests(evidence), _divergence_test(evidence)
    fixed = _shown(tests)
    point = fixed.point or evidence.point
    # Bounds for ε hold at the δ of a point, and those for δ at its ε.
    alike = [one for one in tests if (one.point or evidence.point) == point]
    p_values = [1.0, *(one.p_value / (evidence.fixed_share * one.share) for one in tests)]
    if divergence is not None:
        p_values.append(divergence.p_value / evidence.fixed_share)
    log_wealth, epsilon_betting = 0.0, 0.0
    is_refuted = any(one.refutes for one in tests)
    is_refuted |= divergence is not None and divergence.p_value <= divergence.alpha
    if evidence.betting_share:
        bets = _bets(evidence, followed)
        log_wealth, epsilon_betting = bets.log_largest, bets.epsilon_lower
        p_values.append(math.exp(-max(0.0, log_wealth)) / evidence.betting_share)
        is_refuted |= bets.refuted
    return {
        "refuted": is_refuted,
        "draws": sum(block.draws for block in evidence.blocks),
        "alpha": evidence.alpha,
        "alpha_betting": evidence.betting_share * evidence.alpha,
        "wealth": math.exp(min(log_wealth, _LARGEST_LOG)),
        "epsilon_betting": epsilon_betting,
        "epsilon_lower": max(
            epsilon_betting if point == evidence.point else 0.0,
            *(one.epsilon_lower for one in alike),
        ),
        "delta_lower": max(one.delta_lower for one in alike),
        "p_value": min(p_values),
        "fixed": fixed,
        "others": tuple(one for one in tests if one is not fixed),
        "divergence": divergence,
        "unseen": _unseen(evidence),
        "detectable_rare": _detectable_rare(evidence),
        "point": point,
        "bet_against": None if point == evidence.point else evidence.point,
    }


def certificate(evidence: Evidence, followed: Wealth | None = None, **about: Any) -> Certificate:
    """Return the certificate of evidence, with its numbers.

    followed: as of `numbers`.  about: further fields.
    """
    return Certificate(
        **numbers(evidence, followed),
        rounds=evidence.rounds,
        blocks=evidence.blocks,
        **about,
    )


def fixed_tests(evidence: Evidence) -> tuple[FixedTest, ...]:
    """Return the exact test of every rule, each at its own share, all on the same tally.

    The rules and their shares were fixed before these draws, so that a union bound over the rules
    holds: the chance that any of them refutes a claim that holds is at most `fixed_share · alpha`.
    """
    total = _counted(evidence)
    test = pair_test if evidence.method == "clopper-pearson" else game_test
    tests = []
    for rule in evidence.rules:
        alpha = evidence.fixed_share * rule.share * evidence.alpha
        point = rule.point or evidence.point
        setting = Setting(evidence.stage, point, alpha, evidence.confidence)
        if evidence.method == "probabilistic":
            return (atoms_test(setting, evidence.accused, total.arms, rule),)
        tests.append(test(setting, total, rule))
    return tuple(tests)


def _shown(tests: tuple[FixedTest, ...]) -> FixedTest:
    """Return the test to show, one that refutes if any does: that with the best bound or, where
    rules test different points, whose bounds do not compare, with the smallest p-value."""
    if not any(one.refutes for one in tests):
        tests = tuple(one for one in tests if one.point is None) or tests
    if len({one.point for one in tests}) > 1:
        return min(tests, key=lambda one: (not one.refutes, one.p_value / one.share))
    return max(tests, key=lambda one: (one.refutes, one.epsilon_lower, one.delta_lower))


def _detectable_rare(evidence: Evidence) -> float | None:
    """Return the smallest probability of an output of one input alone that would have been
    refuted; None where the exact test was of another kind."""
    if evidence.stage == "confirmation" or evidence.method != "game":
        return None
    learned = sum(block.draws for block in evidence.blocks if block.stage == "learning")
    certified = sum(block.draws for block in evidence.blocks if block.stage == evidence.stage)
    alpha = RARE_SHARE * evidence.fixed_share * evidence.alpha
    points = evidence.points or (evidence.point,)
    return detectable_rare_of_any(points, learned, certified, alpha)


def detectable_rare_of_any(
    points: Sequence[ProfilePoint],
    learned: int,
    certified: int,
    alpha: float,
    *,
    power: float = POWER,
) -> float:
    """Return `detectable_rare` for the point that an output of one input alone refutes best.

    points: of the claim's profile.
    learned, certified: draws to learn from and draws of the exact test.
    alpha: the error probability of the rare rule.
    """
    point = min(points, key=lambda one: _rare_to_refute(one, certified, alpha))
    return detectable_rare(learned, certified, point.epsilon, point.delta, alpha, power=power)


def _rare_to_refute(point: ProfilePoint, draws: int, alpha: float) -> float:
    """Return about how many outputs of one input alone refute a point, for comparing points."""
    excused = point.delta * draws / 2
    needed = -math.log(alpha) / max(math.log1p(math.exp(-point.epsilon)), 1e-300)
    return excused + math.sqrt(excused * -2 * math.log(alpha)) + needed


def hidden_delta(new: tuple[int, int], arms: tuple[int, int], alpha: float) -> float:
    """Return the largest δ that outputs can hide which came up so often, by input, valid at
    1 - alpha: the larger one of two upper bounds of their probability.

    It says how far an audit reaches and refutes nothing, so that it may have all of alpha.
    """
    bounds = (
        clopper_pearson_upper(count, draws, alpha / 2) if draws else 1.0
        for count, draws in zip(new, arms, strict=True)
    )
    return max(bounds)


def _divergence_test(evidence: Evidence) -> DivergenceTest | None:
    if evidence.limited is None:
        return None
    witness, allowed = evidence.limited
    counts, alpha = _counted(evidence).counts, evidence.fixed_share * evidence.alpha
    lower, p = divergence_lower(witness, counts, alpha), p_value(witness, counts, allowed)
    # Each is rounded to its own safe side; where one of them refutes the claim, so does the other.
    if lower > allowed:
        p = min(p, alpha)
    elif p <= alpha:
        lower = math.nextafter(allowed, math.inf)
    return DivergenceTest(witness=witness, alpha=alpha, allowed=allowed, lower=lower, p_value=p)


def _unseen(evidence: Evidence) -> Unseen | None:
    if evidence.unseen is None:
        return None
    arms = _counted(evidence).arms
    delta = hidden_delta(evidence.unseen, arms, evidence.alpha)
    return Unseen(*evidence.unseen, delta, evidence.ranges)


def _counted(evidence: Evidence) -> Tally:
    """Return the draws of the exact test."""
    counts = (tally(block) for block in evidence.blocks if block.stage == evidence.stage)
    return sum(counts, Tally.empty(len(evidence.rules[0].guesses)))


def _bets(evidence: Evidence, followed: Wealth | None) -> Wealth:
    # The bound reaches beyond the claim only when the claim is refuted.
    if followed is not None and not followed.refuted:
        return followed
    beliefs = list(map(beliefs_of, evidence.rounds))
    alpha = evidence.betting_share * evidence.alpha
    return replay(evidence.point, alpha, beliefs, evidence.blocks)
