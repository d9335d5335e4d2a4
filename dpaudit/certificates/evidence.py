"""Compute the numbers of a certificate from evidence: the tallies and beliefs of one pair of
inputs.

An audit, `dpaudit bound` and the recheck of a result file all compute their bounds and p-values by
`numbers` (docs/method.md §4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.fixed_test import (
    Accused,
    FrozenRule,
    Setting,
    atoms_test,
    game_test,
    illustrated,
    pair_test,
)
from dpaudit.certificates.records import (
    Block,
    DivergenceBet,
    DivergenceBets,
    DivergenceTest,
    FixedStage,
    FixedTest,
    Method,
    Round,
    Unseen,
)
from dpaudit.certificates.wealth import Wealth, beliefs_of, replay, tally
from dpaudit.claims import ProfilePoint
from dpaudit.composed import composed
from dpaudit.draws import Tally
from dpaudit.levels.portfolio import RARE_SHARE
from dpaudit.stats.binomial import TOSSED_AGAIN, clopper_pearson_upper
from dpaudit.stats.power import POWER, detectable_rare
from dpaudit.stats.witness import Witness, divergence_lower, log_wealth, p_value

# Shares of a pair's error probability: betting, the exact test at the planned end, and the exact
# test on a confirmation block after an early stop. They add up to 1, so that a union bound holds
# for whichever of the two exact tests is carried out.
BETTING_SHARE = 0.2
CERTIFICATION_SHARE = 0.75
CONFIRMATION_SHARE = 0.05
# In a run that bets alone may end: share of the error probability that betting spends. The exact
# test at the planned end has the rest.
EARLY_BETTING_SHARE = 0.9

# Largest log of the wealth that is shown; its exponential fits in a float.
_LARGEST_LOG = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The counts and settings from which the numbers of one pair follow.

    point: point of the claim that is bet against, and tested by each rule without its own point.
    points: all points of the claim, if it has several.
    alpha: error probability of the pair. confidence: confidence of the intervals in reports.
    blocks: tallies of all draws, in order. stage: stage of the blocks of the exact test.
    method: method of the exact test.
    rounds: beliefs that were bet on; empty without betting.
    rules: rules of the exact test, the main rule first; their shares add up to 1.
    accused: single outputs with their counts, for the probabilistic definition.
    thinned: whether the draws of the exact test are a random part of fixed numbers of draws.
    limited: witness of a Rényi divergence, and the largest divergence that the claim allows, if
    the divergence is tested; it then gets half of the exact test's error probability.
    unseen: number of draws of d1 and of d2 in the exact test with new outputs (see `Unseen`); None
    if they were not counted. ranges: as in `Unseen`.
    by_bets: whether bets alone may end the run.
    divergence_bets: bets of all witnesses against a divergence, with half of the error probability
    of betting; None if no such bets were made. limits: the largest divergence that the claim
    allows, in nats, by order.
    illustration: counts of an event that was chosen before these draws, which are not recorded as
    blocks, if bets ended the run. Its levels: a guess of d1, a guess of d2, none.
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
    by_bets: bool = False
    divergence_bets: tuple[DivergenceBet, ...] | None = None
    limits: Mapping[float, float] = field(default_factory=dict)
    illustration: Tally | None = None

    @property
    def betting_share(self) -> float:
        """The share of alpha that betting spends."""
        if self.stage == "recorded":
            return 0.0
        share = EARLY_BETTING_SHARE if self.by_bets else BETTING_SHARE
        return share if self.divergence_bets is None else share / 2

    @property
    def fixed_share(self) -> float:
        """The share of alpha that all rules spend together; a test of a divergence spends an equal
        share."""
        if self.stage == "recorded":
            share = 1 - TOSSED_AGAIN if self.thinned else 1.0
        elif self.by_bets:
            share = 1 - EARLY_BETTING_SHARE
        else:
            share = CERTIFICATION_SHARE if self.stage == "certification" else CONFIRMATION_SHARE
        return share if self.limited is None else share / 2


def numbers(evidence: Evidence, followed: Wealth | None = None) -> dict[str, Any]:
    """Return the fields of a `Certificate` that follow from evidence.

    followed: the bettors' wealth, if it was computed while drawing, which saves computing it again.

    Raises ValueError for recorded beliefs of bettors that are no probabilities or guesses.
    """
    tests, divergence = fixed_tests(evidence), _divergence_test(evidence)
    fixed = _shown(tests)
    point = fixed.point or evidence.point
    # Bounds of rules that test other points are left out, since they hold at another δ or ε.
    comparable = [test for test in tests if (test.point or evidence.point) == point]
    p_values = [1.0, *(test.p_value / (evidence.fixed_share * test.share) for test in tests)]
    if divergence is not None:
        p_values.append(divergence.p_value / evidence.fixed_share)
    log_betting, epsilon_betting = 0.0, 0.0
    is_refuted = any(test.refutes for test in tests)
    is_refuted |= divergence is not None and divergence.p_value <= divergence.alpha
    if evidence.betting_share:
        bets = _bets(evidence, followed)
        log_betting, epsilon_betting = bets.log_largest, bets.epsilon_lower
        p_values.append(math.exp(-max(0.0, log_betting)) / evidence.betting_share)
        is_refuted |= bets.refuted
    witnesses = _divergence_bets(evidence)
    if witnesses is not None:
        p_values.append(1 / (max(1.0, witnesses.wealth) * evidence.betting_share))
        is_refuted |= witnesses.wealth * witnesses.alpha >= 1
    return {
        "refuted": is_refuted,
        "draws": sum(block.draws for block in evidence.blocks),
        "alpha": evidence.alpha,
        "alpha_betting": evidence.betting_share * evidence.alpha,
        "wealth": math.exp(min(log_betting, _LARGEST_LOG)),
        "epsilon_betting": epsilon_betting,
        "epsilon_lower": max(
            epsilon_betting if point == evidence.point else 0.0,
            *(test.epsilon_lower for test in comparable),
        ),
        "delta_lower": max(test.delta_lower for test in comparable),
        "p_value": min(p_values),
        "fixed": fixed,
        "others": tuple(test for test in tests if test is not fixed),
        "divergence": divergence,
        "divergence_bets": witnesses,
        "unseen": _unseen(evidence),
        "detectable_rare": _detectable_rare(evidence),
        "point": point,
        "bet_against": None if point == evidence.point else evidence.point,
    }


def certificate(evidence: Evidence, followed: Wealth | None = None, **about: Any) -> Certificate:
    """Return the certificate whose numbers follow from the evidence.

    followed: as in `numbers`.
    about: the fields of `Certificate` that do not follow from evidence.
    """
    return composed(
        Certificate,
        **numbers(evidence, followed),
        rounds=evidence.rounds,
        blocks=evidence.blocks,
        **about,
    )


def fixed_tests(evidence: Evidence) -> tuple[FixedTest, ...]:
    """Return the exact test of every rule, each with its own share, all on the same tally.

    Rules and shares were fixed before these draws. So a union bound holds: the probability that any
    rule refutes a claim that holds is at most `fixed_share` · alpha.
    """
    if evidence.illustration is not None:
        alpha = evidence.fixed_share * evidence.alpha
        setting = Setting(evidence.stage, evidence.point, alpha, evidence.confidence)
        return (illustrated(setting, evidence.illustration, evidence.rules[0]),)
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
    """Return the test to show in reports.

    Tests that refute come first, then the largest bound. Bounds at different points of the claim do
    not compare; then the smallest p-value, divided by the share, comes first. If no test refutes,
    tests of the point that was bet against are preferred.
    """
    if not any(test.refutes for test in tests):
        tests = tuple(test for test in tests if test.point is None) or tests
    if len({test.point for test in tests}) > 1:
        return min(tests, key=lambda test: (not test.refutes, test.p_value / test.share))
    return max(tests, key=lambda test: (test.refutes, test.epsilon_lower, test.delta_lower))


def _detectable_rare(evidence: Evidence) -> float | None:
    """Return the smallest probability of an output of only one input that the audit would have
    detected (`ExactTests.detectable_rare`). Return None if the exact test cannot have found such an
    output."""
    if evidence.stage in ("confirmation", "betting") or evidence.method != "game":
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
    """Return the smallest detectable probability of an output that only one input gives.

    It is computed at the point of the claim that such an output refutes with the fewest draws.
    points: points of the claim.
    learned, certified: number of draws to learn from, and number of draws of the exact test.
    alpha: error probability of the rule for such outputs.
    """
    point = min(points, key=lambda point: _rare_to_refute(point, certified, alpha))
    return detectable_rare(learned, certified, point.epsilon, point.delta, alpha, power=power)


def _rare_to_refute(point: ProfilePoint, draws: int, alpha: float) -> float:
    """Return about how many outputs that only one input gives refute a point of the claim.

    The number is only used to compare points.
    """
    excused = point.delta * draws / 2
    needed = -math.log(alpha) / max(math.log1p(math.exp(-point.epsilon)), 1e-300)
    return excused + math.sqrt(excused * -2 * math.log(alpha)) + needed


def hidden_delta(new: tuple[int, int], arms: tuple[int, int], alpha: float) -> float:
    """Return the largest δ that outputs new to the exact test can hide, valid with probability 1 -
    alpha.

    An output is new if no learning draw gave one like it (`Unseen`). The result is the larger of
    two upper bounds of the probability of new outputs, one for each input. It refutes nothing, and
    so takes nothing of the error probability of the tests.

    new: number of draws of d1 and of d2 with new outputs.  arms: number of all draws of d1 and of
        d2.
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
    # Bound and p-value are rounded separately. If one of them refutes the claim, the other one is
    # moved so that it refutes the claim, too.
    if lower > allowed:
        p = min(p, alpha)
    elif p <= alpha:
        lower = math.nextafter(allowed, math.inf)
    return DivergenceTest(witness=witness, alpha=alpha, allowed=allowed, lower=lower, p_value=p)


def _divergence_bets(evidence: Evidence) -> DivergenceBets | None:
    bets, alpha = evidence.divergence_bets, evidence.betting_share * evidence.alpha
    if bets is None:
        return None
    log_mixed = mixed_log_wealth(bets, evidence.limits)
    return DivergenceBets(alpha, math.exp(min(log_mixed, _LARGEST_LOG)), bets)


def mixed_log_wealth(bets: Sequence[DivergenceBet], limits: Mapping[float, float]) -> float:
    """Return the log of the wealth of all witnesses together, rounded down.

    The wealth of a witness is the infimum over all means that the claim allows. Infima are taken
    before the witnesses are mixed: each is at most a wealth of expectation 1, for any witness that
    earlier draws chose, and so is their mean (docs/method.md §6).

    bets: the bets of each witness. limits: allowed divergence by order. Raises ValueError for
    shares that add up to more than 1.
    """
    idle = 1 - math.fsum(bet.share for bet in bets)
    if idle < -1e-9 or any(bet.share <= 0 for bet in bets):
        raise ValueError("the shares of all witnesses add up to more than 1")
    logs = [math.log(idle)] if idle > 0 else []
    for bet in bets:
        counts, allowed = np.array(bet.counts, dtype=np.int64), limits[bet.witness.order]
        logs.append(math.log(bet.share) + log_wealth(bet.witness, counts, allowed))
    return float(np.logaddexp.reduce(logs)) if logs else 0.0


def _unseen(evidence: Evidence) -> Unseen | None:
    if evidence.unseen is None:
        return None
    arms = _counted(evidence).arms
    delta = hidden_delta(evidence.unseen, arms, evidence.alpha)
    return Unseen(*evidence.unseen, delta, evidence.ranges)


def _counted(evidence: Evidence) -> Tally:
    """Return the tally of all draws of the exact test."""
    counts = (tally(block) for block in evidence.blocks if block.stage == evidence.stage)
    return sum(counts, Tally.empty(len(evidence.rules[0].guesses)))


def _bets(evidence: Evidence, followed: Wealth | None) -> Wealth:
    # `followed` lacks values of ε above the claim, which matter only if the claim is refuted.
    if followed is not None and not followed.refuted:
        return followed
    beliefs = list(map(beliefs_of, evidence.rounds))
    alpha = evidence.betting_share * evidence.alpha
    return replay(evidence.point, alpha, beliefs, evidence.blocks)
