"""Choose, from a claim and learning draws, the rules, the single outputs and the witness that the
exact tests use (docs/method.md §4). An exact test counts only draws that were not used to choose
them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from dpaudit.attacks.single_outputs import choose_single_outputs, has_atoms
from dpaudit.certificates.evidence import FrozenRule
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import SelectionDraws, Tally, by_arm
from dpaudit.levels.portfolio import Learned, Portfolio, SingleOutputs
from dpaudit.levels.rule_tables import evidence_of
from dpaudit.stats.betting import h_of
from dpaudit.stats.witness import DivergenceWitness, most_telling_witness

_CONTINUOUS = (
    "outputs hardly ever repeat, so single outputs cannot be counted: the audit tests the "
    "approximate definition, which the probabilistic one implies"
)


def several_points(claim: PrivacyClaim) -> tuple[ProfilePoint, ...]:
    """Return all points (ε, δ) of a claim that is a curve; an empty tuple for a single point."""
    points = tuple(claim.points())
    return points if len(points) > 1 else ()


def frozen_rules(portfolio: Portfolio, *, is_one: bool) -> tuple[FrozenRule, ...]:
    """Return the rules of a portfolio in the form that the exact test takes.

    is_one: whether to return only the main rule, with the whole error probability. So for the
        probabilistic definition of DP, whose exact test counts single outputs.
    """
    rules = [
        FrozenRule(
            rule.role,
            rule.share,
            rule.attack,
            tuple(guesses.tolist()),
            (rule.words(1), rule.words(-1)),
            rule.point,
        )
        for rule, guesses in zip(portfolio.rules, portfolio.all_guesses, strict=True)
    ]
    return (replace(rules[0], share=1.0),) if is_one else tuple(rules)


def strongest_rule(
    portfolio: Portfolio, point: ProfilePoint, draws: int, tally: Tally | None
) -> Portfolio:
    """Return the rule with the most evidence against the claim as a portfolio of its own, for a
    confirmation.

    point: the point that is tested by rules without a point of their own.
    tally: counts of certifying draws by the levels of the portfolio. None: the evidence is
        predicted from `draws` learning draws.
    """
    games = [(*rule.right_and_wrong, h_of(rule.guesses)) for rule in portfolio.rules]
    if tally is not None:
        draws = tally.draws
        played = [tally.game(guesses) for guesses in portfolio.all_guesses]
        games = [(game.correct, game.wrong, game.h) for game in played]
    evidence = [
        float(evidence_of(np.array(right), np.array(wrong), rule.point or point, draws, h))
        for rule, (right, wrong, h) in zip(portfolio.rules, games, strict=True)
    ]
    return portfolio.only(int(np.argmax(evidence)))


def early_rule(
    rules: Sequence[tuple[int, Portfolio]], selection: SelectionDraws, sizes: Iterable[int]
) -> tuple[Portfolio, list[Tally]]:
    """Return (portfolio, tallies): rules learned early, and the tally of each later block by their
    levels. The rules are the latest that were learned from at most half of the draws, or else the
    first.

    rules: (number of draws that they were learned from, portfolio), in the order of learning.
    sizes: number of draws of each block.
    """
    early = [rule for rule in rules if 2 * rule[0] <= selection.size] or rules[:1]
    begin, portfolio = early[-1]
    ends = accumulate(sizes)
    tallies = []
    for start, end in pairwise(end for end in ends if begin <= end <= selection.size):
        later = selection.take(slice(start, end))
        level = portfolio(later.outcomes)
        tallies.append(Tally(by_arm(level, portfolio.levels, later.is_d1)))
    return portfolio, tallies


def telling_witness(
    claim: PrivacyClaim,
    learned_rules: Learned,
    selection: SelectionDraws,
    future_draws: int,
    alpha: float,
) -> DivergenceWitness | None:
    """Return the witness for the exact test of a Rényi divergence (docs/method.md §6), with its
    order and direction. It has the largest predicted bound, relative to what the claim allows.
    Return None if the claim limits no divergence, or no bound above 0 is predicted.

    future_draws: number of draws to certify with.
    alpha: error probability of all exact tests; the witness gets one half of it, rules the other.
    """
    limits = dict(claim.divergences())
    expected = learned_rules.expected_by_joint_level(selection) if limits else None
    if expected is None:
        return None
    return most_telling_witness(expected, limits, future_draws, alpha / 2)


def single_outputs(
    claim: PrivacyClaim, selection: SelectionDraws, point: ProfilePoint
) -> SingleOutputs | None:
    """Return the single outputs to test, for the probabilistic definition of DP. Return None for
    all other definitions, and if outputs do not repeat."""
    if not (claim.counts_single_outputs and has_atoms(selection)):
        return None
    return choose_single_outputs(selection, point)


def not_counted(claim: PrivacyClaim, singles: SingleOutputs | None) -> list[str]:
    """Return a warning if the claim is tested on single outputs, but there are none, since outputs
    do not repeat. Otherwise return an empty list."""
    return [_CONTINUOUS] if claim.counts_single_outputs and singles is None else []
