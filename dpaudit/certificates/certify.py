"""Compute a certificate from the evidence about one pair of inputs (docs/method.md §4): for an
audit, for `dpaudit bound`, and to check a file of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpaudit.certificates.certificate import (
    Certificate,
    DivergenceBets,
    DivergenceTest,
    EpsilonInterval,
    FixedTest,
    Unseen,
)
from dpaudit.certificates.evidence import DivergenceBet, Evidence
from dpaudit.certificates.rule_bounds import Setting, atoms_test, game_test, illustrated, pair_test
from dpaudit.certificates.wealth import Wealth, replay
from dpaudit.claims import ProfilePoint
from dpaudit.levels.portfolio import RARE_SHARE
from dpaudit.stats.binomial import clopper_pearson_upper, epsilon_interval
from dpaudit.stats.power import POWER, detectable_rare
from dpaudit.stats.witness import DivergenceWitness, divergence_lower, log_wealth, p_value

# Larger logs of wealth are reported as this number, since exp(710) overflows a float.
_MAX_LOG = 700.0


def certify(evidence: Evidence, followed: Wealth | None = None) -> Certificate:
    """Return the certificate for some evidence, with all numbers that follow from it. Other fields,
    such as warnings, are left empty.

    If the claim holds, `refuted` is true with probability at most `evidence.alpha`. Betting, the
    exact test of each rule, and the test of a witness each have a share of this probability; the
    shares add up to 1.

    followed: the bettors' wealth, if it was computed during the draws; None: it is computed here.
    """
    tests = fixed_tests(evidence)
    fixed, witness = _shown(tests, is_distance=evidence.point.epsilon == 0), evidence.witness
    divergence = None if witness is None else _divergence_test(evidence, witness)
    point = fixed.rule.point or evidence.point
    # Bounds at another point of the claim hold at another δ or ε.
    comparable = [test for test in tests if (test.rule.point or evidence.point) == point]
    p_values = [1.0, *(test.p_value / (evidence.fixed_share * test.rule.share) for test in tests)]
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
    return Certificate(
        evidence=evidence,
        point=point,
        refuted=is_refuted,
        alpha=evidence.alpha,
        epsilon_lower=max(
            epsilon_betting if point == evidence.point else 0.0,
            *(test.epsilon_lower for test in comparable),
        ),
        delta_lower=max(test.delta_lower for test in comparable),
        p_value=min(p_values),
        draws=evidence.draws,
        alpha_betting=evidence.betting_share * evidence.alpha,
        wealth=math.exp(min(log_betting, _MAX_LOG)),
        epsilon_betting=epsilon_betting,
        bet_against=None if point == evidence.point else evidence.point,
        divergence_bets=witnesses,
        fixed=fixed,
        others=tuple(test for test in tests if test is not fixed),
        divergence=divergence,
        interval=_interval(evidence),
        unseen=None if evidence.unseen is None else _unseen(evidence, evidence.unseen),
        detectable_rare=_detectable_rare(evidence),
    )


def _interval(evidence: Evidence) -> EpsilonInterval | None:
    if evidence.declared is None:
        return None
    counts = [(d1, d2) for _, d1, d2 in evidence.declared]
    return EpsilonInterval(*epsilon_interval(counts, evidence.alpha))


def fixed_tests(evidence: Evidence) -> tuple[FixedTest, ...]:
    """Return the exact tests of all rules, on the same counts. If the claim is true, the
    probability that at least one rule refutes it is at most `fixed_share` · alpha, by a union
    bound, since rules and shares were fixed before these draws."""
    if evidence.illustration is not None:
        alpha = evidence.fixed_share * evidence.alpha
        setting = Setting(evidence.stage, evidence.point, alpha, evidence.confidence)
        return (illustrated(setting, evidence.illustration, evidence.rules[0]),)
    total = evidence.total
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


def _shown(tests: tuple[FixedTest, ...], *, is_distance: bool) -> FixedTest:
    """Return the test that reports show, out of the exact tests of all rules."""
    # Bounds at different points of the claim cannot be compared, so that tests at different points
    # are compared by p-value / share of the error probability.
    if not any(test.refutes for test in tests):
        tests = tuple(test for test in tests if test.rule.point is None) or tests
    if len({test.rule.point for test in tests}) > 1:
        return min(tests, key=lambda test: (not test.refutes, test.p_value / test.rule.share))
    if is_distance:
        return max(tests, key=lambda test: (test.refutes, test.delta_lower))
    return max(tests, key=lambda test: (test.refutes, test.epsilon_lower, test.delta_lower))


def _detectable_rare(evidence: Evidence) -> float | None:
    """Return `Certificate.detectable_rare`; None if the exact test has no rule for such outputs."""
    if evidence.stage in ("confirmation", "betting", "interrupted") or evidence.method != "game":
        return None
    alpha = RARE_SHARE * evidence.fixed_share * evidence.alpha
    points = evidence.points or (evidence.point,)
    return detectable_rare_of_any(points, evidence.learning_draws, evidence.total.draws, alpha)


def detectable_rare_of_any(
    points: Sequence[ProfilePoint],
    learning_draws: int,
    certified: int,
    alpha: float,
    *,
    power: float = POWER,
) -> float:
    """Return the smallest probability of a rare output at which the claim is refuted with
    probability `power`. A rare output is one that only one input can give. Of `points`, the one is
    used that the output refutes with the fewest draws.

    learning_draws, certified: number of learning draws, and of draws of the exact test.
    alpha: error probability of the rule for such outputs.
    """
    point = min(points, key=lambda point: _rare_to_refute(point, certified, alpha))
    return detectable_rare(
        learning_draws, certified, point.epsilon, point.delta, alpha, power=power
    )


def _rare_to_refute(point: ProfilePoint, draws: int, alpha: float) -> float:
    """Return about how many draws of an output that only one input gives refute the claim."""
    excused = point.delta * draws / 2
    needed = -math.log(alpha) / max(math.log1p(math.exp(-point.epsilon)), 1e-300)
    return excused + math.sqrt(excused * -2 * math.log(alpha)) + needed


def hidden_delta(new: tuple[int, int], arms: tuple[int, int], alpha: float) -> float:
    """Return an upper bound for the δ of a leak that is hidden in new outputs, valid with
    probability 1 - alpha. It is the larger of the upper bounds for the probability of a new output
    on d1 and on d2. It refutes no claim, so it does not use up the error probability of the tests.

    new: number of draws of d1 and of d2 with new outputs.
    arms: number of all draws of d1 and of d2.
    """
    bounds = (
        clopper_pearson_upper(count, draws, alpha / 2) if draws else 1.0
        for count, draws in zip(new, arms, strict=True)
    )
    return max(bounds)


def _divergence_test(evidence: Evidence, witness: DivergenceWitness) -> DivergenceTest:
    allowed = dict(evidence.divergences)[witness.order]
    counts, alpha = evidence.total.counts, evidence.fixed_share * evidence.alpha
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
    log_mixed = mixed_log_wealth(bets, dict(evidence.divergences))
    return DivergenceBets(alpha, math.exp(min(log_mixed, _MAX_LOG)))


def mixed_log_wealth(bets: Sequence[DivergenceBet], limits: Mapping[float, float]) -> float:
    """Return the log of the wealth of all witnesses together, rounded down. Wealth that has no
    share is not bet. Raise ValueError if shares add up to more than 1.

    The wealth of each witness is minimised over all means that the claim allows. Then the minima
    are averaged, with the shares as weights. If the claim is true, each minimum has expectation at
    most 1, even if earlier draws chose the witness, and so has their average (docs/method.md §6).

    limits: maps the order of a Rényi divergence to the largest divergence that the claim allows.
    """
    idle = 1 - math.fsum(bet.share for bet in bets)
    if idle < -1e-9 or any(bet.share <= 0 for bet in bets):
        raise ValueError("the shares of all witnesses add up to more than 1")
    logs = [math.log(idle)] if idle > 0 else []
    for bet in bets:
        allowed = limits[bet.witness.order]
        logs.append(math.log(bet.share) + log_wealth(bet.witness, bet.tally.counts, allowed))
    return float(np.logaddexp.reduce(logs)) if logs else 0.0


def _unseen(evidence: Evidence, new: tuple[int, int]) -> Unseen:
    delta = hidden_delta(new, evidence.total.arms, evidence.alpha)
    return Unseen(*new, delta, evidence.ranges)


def _bet_all(evidence: Evidence, followed: Wealth | None) -> Wealth:
    # `followed`, the wealth computed while the audit ran, covers only ε up to the claimed ε. If it
    # refutes the claim, compute the wealth for larger ε, too: the lower bound for ε is then above
    # the claimed ε.
    if followed is not None and not followed.refuted:
        return followed
    alpha = evidence.betting_share * evidence.alpha
    return replay(evidence.point, alpha, evidence.rounds, evidence.blocks)
