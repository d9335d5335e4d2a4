"""Compute the numbers of a certificate from evidence: the counts and the bettors' beliefs for one
pair of inputs. An audit, `dpaudit bound` and the check of a file of results all compute bounds and
p-values with `numbers` (docs/method.md §4)."""

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

# Share of a pair's error probability that is spent on betting. The rest is spent on an exact test:
# `CERTIFICATION_SHARE` at the planned end of the run, and `CONFIRMATION_SHARE` after an early stop.
# The three shares add up to 1, so by a union bound the total error probability is kept.
BETTING_SHARE = 0.2
# Share of a pair's error probability for the exact test at the planned end of the run. If the run
# ends early, `CONFIRMATION_SHARE` is used instead.
CERTIFICATION_SHARE = 0.75
# Share of a pair's error probability for the exact test on a confirmation block. This test replaces
# the one at the planned end if the run stops early.
CONFIRMATION_SHARE = 0.05
# Share of a pair's error probability for betting, in a run that ends as soon as bets refute the
# claim. The exact test at the planned end has the rest.
EARLY_BETTING_SHARE = 0.9

# Larger logs of wealth are reported as this number, since exp(710) overflows a float.
_MAX_LOG = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The counts and settings from which the numbers of one pair of inputs follow.

    point: point (ε, δ) of the claim that the bets are made against. The exact test of a rule that
        has no point of its own is made at this point, too.
    alpha: error probability of the pair.
    confidence: confidence of the intervals that reports show.
    blocks: counts of all draws, in the order of the draws.
    stage: stage (purpose) of the blocks on which the exact test is made, such as "certification" at
        the planned end of the run, or "confirmation" after an early stop.
    method: method of the exact test.
    rules: rules of the exact test, the main rule first; their shares of the error probability add
        up to 1.
    rounds: beliefs of the bettors; empty if nothing is bet.
    accused: single outputs to test, with their counts, for the probabilistic definition of DP;
        empty for other definitions.
    thinned: whether the exact test uses only a random part of recorded outputs, because the number
        of outputs of each input was fixed beforehand.
    limited: (witness of a Rényi divergence, largest divergence that the claim allows), or None if
        no divergence is tested. If it is tested, it gets half of the exact test's error
        probability.
    unseen: number of draws of d1 and of d2 in the exact test whose outputs are new (see `Unseen`);
        None if they were not counted.
    ranges: whether the outputs have a column of numbers that almost never repeat, as in `Unseen`.
    points: all points of the claim, if it has several.
    ends_by_bets: whether a refutation by bets ends the run.
    divergence_bets: bets of all witnesses against a divergence, with half of the error probability
        of betting; None if there are no such bets.
    limits: maps the order of a Rényi divergence to the largest divergence that the claim allows, in
        nats.
    illustration: if bets ended the run, counts of an event on draws made after the event was
        chosen; if it was interrupted, counts of no draws; else None. The counts have three levels:
        guess d1, guess d2, no guess. The draws are a part of the draws of `blocks`, which counts
        them by other levels.
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
    ends_by_bets: bool = False
    divergence_bets: tuple[DivergenceBet, ...] | None = None
    limits: Mapping[float, float] = field(default_factory=dict)
    illustration: Tally | None = None

    @property
    def betting_share(self) -> float:
        """Return the share of `alpha`, the pair's error probability, that betting has."""
        if self.stage == "recorded":
            return 0.0
        share = EARLY_BETTING_SHARE if self.ends_by_bets else BETTING_SHARE
        return share if self.divergence_bets is None else share / 2

    @property
    def fixed_share(self) -> float:
        """Return the share of `alpha` that all rules of the exact test have together. If a
        divergence is tested, its test has a further share of the same size."""
        if self.stage == "recorded":
            share = 1 - TOSSED_AGAIN if self.thinned else 1.0
        elif self.ends_by_bets:
            share = 1 - EARLY_BETTING_SHARE
        else:
            share = CERTIFICATION_SHARE if self.stage == "certification" else CONFIRMATION_SHARE
        return share if self.limited is None else share / 2


def numbers(evidence: Evidence, followed: Wealth | None = None) -> dict[str, Any]:
    """Return the fields of a `Certificate` that follow from evidence, by name.

    followed: the bettors' wealth, if it was already computed during the draws; None: compute it
        here.

    Raises ValueError if recorded beliefs of bettors are not probabilities, or recorded guesses not
    -1, 0 or 1.
    """
    tests = fixed_tests(evidence)
    fixed, limited = _shown(tests), evidence.limited
    divergence = None if limited is None else _divergence_test(evidence, *limited)
    point = fixed.point or evidence.point
    # Use only bounds of rules that were tested at the same point: other bounds hold at another δ or
    # ε.
    comparable = [test for test in tests if (test.point or evidence.point) == point]
    p_values = [1.0, *(test.p_value / (evidence.fixed_share * test.share) for test in tests)]
    if divergence is not None:
        p_values.append(divergence.p_value / evidence.fixed_share)
    log_betting, epsilon_betting = 0.0, 0.0
    is_refuted = any(test.refutes for test in tests)
    is_refuted |= divergence is not None and divergence.p_value <= divergence.alpha
    if evidence.betting_share:
        wealth = _bet_all(evidence, followed)
        log_betting, epsilon_betting = wealth.log_largest, wealth.epsilon_lower
        p_values.append(math.exp(-max(0.0, log_betting)) / evidence.betting_share)
        is_refuted |= wealth.refuted
    witnesses = None
    if evidence.divergence_bets is not None:
        witnesses = _divergence_bets(evidence, evidence.divergence_bets)
        p_values.append(1 / (max(1.0, witnesses.wealth) * evidence.betting_share))
        is_refuted |= witnesses.wealth * witnesses.alpha >= 1
    return {
        "refuted": is_refuted,
        "draws": sum(block.draws for block in evidence.blocks),
        "alpha": evidence.alpha,
        "alpha_betting": evidence.betting_share * evidence.alpha,
        "wealth": math.exp(min(log_betting, _MAX_LOG)),
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
        "unseen": None if evidence.unseen is None else _unseen(evidence, evidence.unseen),
        "detectable_rare": _detectable_rare(evidence),
        "point": point,
        "bet_against": None if point == evidence.point else evidence.point,
    }


def certificate(evidence: Evidence, followed: Wealth | None = None, **about: Any) -> Certificate:
    """Return the certificate whose numbers follow from the evidence.

    followed: the bettors' wealth, if it was already computed during the draws, else None.
    about: fields of `Certificate` that do not follow from evidence, by name.
    """
    return composed(
        Certificate,
        **numbers(evidence, followed),
        rounds=evidence.rounds,
        blocks=evidence.blocks,
        **about,
    )


def fixed_tests(evidence: Evidence) -> tuple[FixedTest, ...]:
    """Return the exact test of each rule on the same counts. Each rule has its own share of the
    error probability. Rules and shares were fixed before these draws, so a union bound holds: if
    the claim is true, the probability that any rule refutes it is at most `fixed_share` · alpha."""
    if evidence.illustration is not None:
        alpha = evidence.fixed_share * evidence.alpha
        setting = Setting(evidence.stage, evidence.point, alpha, evidence.confidence)
        return (illustrated(setting, evidence.illustration, evidence.rules[0]),)
    total = _exact_test_tally(evidence)
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
    """Return the test that reports show, out of the exact tests of all rules.

    If some tests refute the claim, return one of these. If none does, return a test at the point
    (ε, δ) of the claim against which the audit bets (a test with `point` None), if there is one;
    otherwise any test may be returned.

    Of several possible tests, return the test with the largest lower bound for ε. Exception: bounds
    at different points of the claim cannot be compared. If tests are at different points, return
    the test with the smallest p-value / `share`, where `share` is its share of the error
    probability.
    """
    if not any(test.refutes for test in tests):
        tests = tuple(test for test in tests if test.point is None) or tests
    if len({test.point for test in tests}) > 1:
        return min(tests, key=lambda test: (not test.refutes, test.p_value / test.share))
    return max(tests, key=lambda test: (test.refutes, test.epsilon_lower, test.delta_lower))


def _detectable_rare(evidence: Evidence) -> float | None:
    """Return `ExactTests.detectable_rare` for outputs that only one input can give: the smallest
    probability of such an output at which the audit would have refuted the claim with probability
    0.9. Return None if the exact test could not have found such an output."""
    if evidence.stage in ("confirmation", "betting", "interrupted") or evidence.method != "game":
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
    """Return the smallest probability of an output, possible on one input only, at which the claim
    is refuted with probability `power`.

    points: points (ε, δ) of the claim. The result is for the point that the fewest draws of such an
        output refute.
    learned: number of draws to learn from.
    certified: number of draws of the exact test.
    alpha: error probability of the rule for such outputs.
    power: probability of the refutation.
    """
    point = min(points, key=lambda point: _rare_to_refute(point, certified, alpha))
    return detectable_rare(learned, certified, point.epsilon, point.delta, alpha, power=power)


def _rare_to_refute(point: ProfilePoint, draws: int, alpha: float) -> float:
    """Return approximately how many draws of an output that only one input gives refute the claim
    at a point (ε, δ).

    Callers only compare this number between points, to find the point that such an output refutes
    most easily.

    draws: number of draws of both inputs in the exact test.
    alpha: error probability.
    """
    excused = point.delta * draws / 2
    needed = -math.log(alpha) / max(math.log1p(math.exp(-point.epsilon)), 1e-300)
    return excused + math.sqrt(excused * -2 * math.log(alpha)) + needed


def hidden_delta(new: tuple[int, int], arms: tuple[int, int], alpha: float) -> float:
    """Return the largest δ of a leak that could be hidden in new outputs, valid with probability
    1 - alpha.

    An output is new if no draw to learn from resembled it (`Unseen`). The result is the larger of
    the upper bounds for the probability of new outputs under d1 and under d2. It refutes no claim,
    so it does not use up the error probability of the tests.

    new: number of draws of d1 and of d2 with new outputs.
    arms: number of all draws of d1 and of d2.
    """
    bounds = (
        clopper_pearson_upper(count, draws, alpha / 2) if draws else 1.0
        for count, draws in zip(new, arms, strict=True)
    )
    return max(bounds)


def _divergence_test(evidence: Evidence, witness: Witness, allowed: float) -> DivergenceTest:
    counts, alpha = _exact_test_tally(evidence).counts, evidence.fixed_share * evidence.alpha
    lower, p = divergence_lower(witness, counts, alpha), p_value(witness, counts, allowed)
    # The lower bound and the p-value are rounded separately, so one of them may refute the claim
    # when the other does not. Then change the other, so that both refute it.
    if lower > allowed:
        p = min(p, alpha)
    elif p <= alpha:
        lower = math.nextafter(allowed, math.inf)
    return DivergenceTest(witness=witness, alpha=alpha, allowed=allowed, lower=lower, p_value=p)


def _divergence_bets(evidence: Evidence, bets: tuple[DivergenceBet, ...]) -> DivergenceBets:
    alpha = evidence.betting_share * evidence.alpha
    log_mixed = mixed_log_wealth(bets, evidence.limits)
    return DivergenceBets(alpha, math.exp(min(log_mixed, _MAX_LOG)), bets)


def mixed_log_wealth(bets: Sequence[DivergenceBet], limits: Mapping[float, float]) -> float:
    """Return the log of the wealth of all witnesses together, rounded down. A witness is a function
    of the output by which bets are made against a claimed limit of a Rényi divergence.

    First, the wealth of each witness is minimised over all means that the claim allows; then the
    minima are averaged, each with the share of the initial wealth of its witness as weight. If the
    claim is true, each minimum has expectation at most 1, even if earlier draws chose the witness,
    and so has their average (docs/method.md §6).

    bets: the bets and the share of each witness. If the shares add up to less than 1, the rest of
        the wealth is not bet.
    limits: maps the order of a Rényi divergence to the largest divergence that the claim allows.

    Raises ValueError for shares that add up to more than 1.
    """
    idle = 1 - math.fsum(bet.share for bet in bets)
    if idle < -1e-9 or any(bet.share <= 0 for bet in bets):
        raise ValueError("the shares of all witnesses add up to more than 1")
    logs = [math.log(idle)] if idle > 0 else []
    for bet in bets:
        counts, allowed = np.array(bet.counts, dtype=np.int64), limits[bet.witness.order]
        logs.append(math.log(bet.share) + log_wealth(bet.witness, counts, allowed))
    return float(np.logaddexp.reduce(logs)) if logs else 0.0


def _unseen(evidence: Evidence, new: tuple[int, int]) -> Unseen:
    delta = hidden_delta(new, _exact_test_tally(evidence).arms, evidence.alpha)
    return Unseen(*new, delta, evidence.ranges)


def _exact_test_tally(evidence: Evidence) -> Tally:
    """Return the counts of all draws of the exact test, summed over its blocks."""
    counts = (tally(block) for block in evidence.blocks if block.stage == evidence.stage)
    return sum(counts, Tally.empty(len(evidence.rules[0].guesses)))


def _bet_all(evidence: Evidence, followed: Wealth | None) -> Wealth:
    # `followed`, the wealth computed while the audit ran, covers only ε up to the claimed ε. If it
    # refutes the claim, compute the wealth for larger ε, too: the lower bound for ε is then above
    # the claimed ε.
    if followed is not None and not followed.refuted:
        return followed
    beliefs = list(map(beliefs_of, evidence.rounds))
    alpha = evidence.betting_share * evidence.alpha
    return replay(evidence.point, alpha, beliefs, evidence.blocks)
