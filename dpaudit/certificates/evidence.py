"""From evidence to the numbers of a certificate: here, and nowhere else (docs/method.md §4).

An audit, `dpaudit bound` and the recheck of a file all derive their numbers by `numbers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    Setting,
    Words,
    atoms_test,
    game_test,
    pair_test,
)
from dpaudit.certificates.replay import beliefs_of, replay, tally
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.stats.binomial import clopper_pearson_upper
from dpaudit.stats.thinning import TOSSED_AGAIN
from dpaudit.stats.witness import Witness, divergence_lower, p_value
from dpaudit.tally import Tally

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

    point: the inequality that is tested.  alpha: the pair's error probability.  confidence: of the
    intervals that are shown.
    blocks: all draws, in order; those of `stage` are for the exact test, by `method`.
    rounds: what was bet on; none where nothing was.
    guesses: the rule of the exact test, by level; words: its events, for d1 and for d2.
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
    guesses: tuple[int, ...]
    words: Words = (None, None)
    rounds: tuple[Round, ...] = ()
    accused: Accused = ()
    thinned: bool = False
    limited: tuple[Witness, float] | None = None
    unseen: tuple[int, int] | None = None
    ranges: bool = False

    @property
    def betting_share(self) -> float:
        """The share of alpha that betting spends."""
        return 0.0 if self.stage == "recorded" else BETTING_SHARE

    @property
    def fixed_share(self) -> float:
        """The share of alpha that the exact test spends, or each of two, where there are two."""
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
    fixed, divergence = fixed_test(evidence), _divergence_test(evidence)
    tests: list[FixedTest | DivergenceTest] = [fixed]
    tests += [] if divergence is None else [divergence]
    p_values = [1.0, *(one.p_value / evidence.fixed_share for one in tests)]
    log_wealth, epsilon_betting = 0.0, 0.0
    is_refuted = any(one.p_value <= one.alpha for one in tests)
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
        "epsilon_lower": max(epsilon_betting, fixed.epsilon_lower),
        "delta_lower": fixed.delta_lower,
        "p_value": min(p_values),
        "fixed": fixed,
        "divergence": divergence,
        "unseen": _unseen(evidence),
    }


def certificate(
    evidence: Evidence, followed: Wealth | None = None, *, attack: str, **about: Any
) -> Certificate:
    """Return the certificate of evidence, with its numbers.

    followed: as of `numbers`.  attack: what found the event.  about: further fields.
    """
    return Certificate(
        **numbers(evidence, followed),
        point=evidence.point,
        attack="single outputs" if evidence.method == "probabilistic" else attack,
        rounds=evidence.rounds,
        blocks=evidence.blocks,
        guesses=evidence.guesses,
        **about,
    )


def fixed_test(evidence: Evidence) -> FixedTest:
    """Return the exact test of evidence."""
    total, alpha = _counted(evidence), evidence.fixed_share * evidence.alpha
    setting = Setting(evidence.stage, evidence.point, alpha, evidence.confidence)
    if evidence.method == "probabilistic":
        return atoms_test(setting, evidence.accused, total.arms)
    test = pair_test if evidence.method == "clopper-pearson" else game_test
    return test(setting, total, np.array(evidence.guesses, dtype=np.int64), evidence.words)


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
    return sum(counts, Tally.empty(len(evidence.guesses)))


def _bets(evidence: Evidence, followed: Wealth | None) -> Wealth:
    # The bound reaches beyond the claim only when the claim is refuted.
    if followed is not None and not followed.refuted:
        return followed
    beliefs = list(map(beliefs_of, evidence.rounds))
    alpha = evidence.betting_share * evidence.alpha
    return replay(evidence.point, alpha, beliefs, evidence.blocks)
