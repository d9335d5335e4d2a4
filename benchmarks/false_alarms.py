"""How often correct mechanisms are refuted: `python -m benchmarks.false_alarms`.

Every case draws, learns and tests many times over on a mechanism that meets its claim exactly.
Valid procedures may refute it no more often than nominal. Their planted-invalid twins, each of
which breaks one rule of docs/method.md, must be caught by the same check: the check would be worth
nothing if they passed. Exits with 0 when all cases end as they should.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import repeat
from typing import cast
from unittest.mock import patch

import numpy as np

from benchmarks.early_bets import LAWS, VECTOR, by_sums, refutes
from benchmarks.tight_mechanisms import (
    DETAILED_LAPLACE,
    EXPOSED,
    LAPLACE,
    RANDOMIZED_RESPONSE,
    REVEALING,
    REVEALING_IN_DETAIL,
    FloatArray,
    IntArray,
    Learned,
    Mechanism,
    learn,
)
from benchmarks.whole_audits import (
    BATCH,
    EPSILON,
    SETTINGS,
    Draw,
    Setting,
    false_alarm,
    false_alarm_of_any,
    rare_at_the_claim,
)
from dpaudit.attacks import agreements, blocks
from dpaudit.attacks.learning import learn as learn_orders
from dpaudit.attacks.learning import relearn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.prefixes import banded, prefixes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.scorers import SCORERS
from dpaudit.attacks.single_columns import one_dimensional
from dpaudit.attacks.whitened import innovations
from dpaudit.auditing import counted_learning
from dpaudit.auditing.counted_learning import CountedLearning, RareStore
from dpaudit.certificates.certify import fixed_tests, hidden_delta
from dpaudit.certificates.evidence import (
    BETTING_SHARE,
    CERTIFICATION_SHARE,
    CONFIRMATION_SHARE,
    Block,
    DrawLimits,
    Evidence,
    FrozenRule,
    RuleKind,
)
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally, by_arm
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, CellOrder, Scorer
from dpaudit.levels.level_map import GroupedLevels, LevelMap, by_input
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import from_raw
from dpaudit.sampling.sampler import rare
from dpaudit.stats.betting import log_wealth, stakes
from dpaudit.stats.binomial import clopper_pearson_interval, pair_delta_lower
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.p_values import holm
from dpaudit.stats.probabilistic import violating_mass
from dpaudit.stats.witness import most_telling_witness
from dpaudit.stats.witness import p_value as witness_p_value

SELECTION, CERTIFICATION, LOOKS = 400, 1_200, 24
# The two-sided interval of a rate that may not lie above nominal.
INTERVAL = 0.999
# Of costly cases, one run in this number is played.
COSTLY = 10

# Many outputs, of which most are rare: of any number of draws, some are not among them.
RARE: FloatArray = 1 / np.arange(1, 2_001)
RARE /= RARE.sum()
MANY = 4_000
FEW = 1_000
# A claim under which some values come from one input alone in some tens of draws.
LARGE_EPSILON = 4.0
# With fewer kept draws, sequences are not refitted.
COUNTED = 10_000

# Audits of a batch that have one error probability together.
SIZE = 12

# Pairs of inputs that a search picks the best one of.
PAIRS = 16

# Draws added to every level before its log-ratio is taken.
PRIOR: FloatArray = np.full(2, 0.25)

# What maps an outcome to its cell: tallies have no outcomes.
_CELLS = cast(LevelMap, None)

Run = Callable[[float, np.random.Generator], bool]


@dataclass(frozen=True, slots=True)
class Case:
    """One procedure on one mechanism; `run` draws, learns, tests, and says whether it refuted.

    costly: a run takes some 15 ms, so that fewer are played than of the others.
    """

    name: str
    valid: bool
    run: Run
    costly: bool = False

    def runs(self, asked: int) -> int:
        """Return how many runs are played of those that are asked for."""
        return -(-asked // COSTLY) if self.costly else asked


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often a case refuted, and whether that is as it should be."""

    case: Case
    runs: int
    alarms: int
    nominal: float

    @property
    def interval(self) -> tuple[float, float]:
        return clopper_pearson_interval(self.alarms, self.runs, 1 - INTERVAL)

    @property
    def is_above(self) -> bool:
        """Whether the interval of the rate lies above nominal."""
        return self.interval[0] > self.nominal

    @property
    def is_as_it_should_be(self) -> bool:
        return self.is_above is not self.case.valid


def fixed(
    mechanism: Mechanism, *, fresh: bool = True, change: Callable[[Game], Game] | None = None
) -> Run:
    """Return the exact test of the game, its rule learned from selection draws.

    fresh: certify on draws of their own, as one must; change: what a twin does to the game.
    """

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = mechanism.tally(SELECTION, rng)
        rule = learn(selection, mechanism).rule
        tally = mechanism.tally(CERTIFICATION, rng) if fresh else selection
        game = tally.game(rule)
        return refuted(change(game) if change else game, mechanism, alpha)

    return run


def betting(mechanism: Mechanism, *, sorted_by_arm: bool = False) -> Run:
    """Return the test by betting: two rounds of learning, many looks in each.

    sorted_by_arm: look inside a block that has all draws of d1 before those of d2, as one must not.
    """

    def run(alpha: float, rng: np.random.Generator) -> bool:
        seen = mechanism.tally(SELECTION, rng)
        gains, largest = np.zeros(1), 0.0
        for draws in (CERTIFICATION // 3, CERTIFICATION):
            learned = learn(seen, mechanism)
            looks = mechanism.looks(draws, LOOKS, rng, sorted_by_arm=sorted_by_arm)
            path = gains + np.cumsum(_gains(learned, mechanism, looks), axis=0)
            shares = stakes(learned.beliefs, mechanism.delta)
            largest = max(largest, float(log_wealth(path, shares).max()))
            gains, seen = path[-1], seen + Tally(looks.sum(axis=0))
        return largest >= -math.log(alpha)

    return run


def pair(mechanism: Mechanism) -> Run:
    """Return the test by pairs of Clopper-Pearson bounds, alpha shared by the two events."""

    def run(alpha: float, rng: np.random.Generator) -> bool:
        rule = learn(mechanism.tally(SELECTION, rng), mechanism).rule
        tally = mechanism.tally(CERTIFICATION, rng)
        (right_1, wrong_1), (wrong_2, right_2) = tally.event(rule > 0), tally.event(rule < 0)
        d1, d2 = tally.arms
        events = (right_1, d1, wrong_1, d2), (right_2, d2, wrong_2, d1)
        return any(
            pair_delta_lower(*one, mechanism.epsilon, alpha / 2) > mechanism.delta for one in events
        )

    return run


def atoms(mechanism: Mechanism, *, fresh: bool = True) -> Run:
    """Return the test of the probabilistic definition on the atoms that look violating most."""

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = mechanism.tally(SELECTION, rng)
        chosen = np.argsort(-learn(selection, mechanism).log_ratios)[:2]
        tally = mechanism.tally(CERTIFICATION, rng) if fresh else selection
        counts, others = tally.counts[chosen].T
        mass = violating_mass(counts, others, tally.arms[0], mechanism.epsilon, alpha)
        return mass.delta_lower > mechanism.delta

    return run


def counted(mechanism: Mechanism, *, fresh: bool = True) -> Run:
    """Return the exact test of cells that were put in order after draws that were only counted.

    fresh: certify on draws of their own, as one must: not on those that the counters had counted.
    """
    point = ProfilePoint(mechanism.epsilon, mechanism.delta)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = mechanism.tally(SELECTION, rng)
        order = CellOrder(_CELLS, np.append(selection.counts, [[0, 0]], axis=0)).candidate("cells")
        learned = relearn([order], Objective(point, CERTIFICATION))
        level = cast(GroupedLevels, learned.portfolio.level)
        rule = learned.portfolio.guesses[level.group][:-1]
        tally = mechanism.tally(CERTIFICATION, rng) if fresh else selection
        return refuted(tally.game(rule), mechanism, alpha)

    return run


def boldly(mechanism: Mechanism, *, fresh: bool = True) -> Run:
    """Return the test by betting after draws that were counted, in which some cells came up for one
    input alone.

    fresh: bet on draws of their own, as one must: not on those that showed these cells.
    """
    point = ProfilePoint(mechanism.epsilon, mechanism.delta)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = _outcomes(mechanism.tally(CERTIFICATION, rng))
        aim = Objective(point, CERTIFICATION, reserve=True)
        table = RareTable.of(selection, 10)
        learned = relearn(one_dimensional(selection), aim, [table])
        draws = _outcomes(mechanism.tally(CERTIFICATION, rng)) if fresh else selection
        rule = learned.portfolio
        counts = by_arm(rule(draws.outcomes), rule.levels, draws.is_d1)
        factors = learned.beliefs.log_factors(point.epsilon, point.delta)
        gains = np.einsum("bla,la->b", factors, counts)
        wealth = log_wealth(gains, stakes(learned.beliefs, point.delta))
        return float(wealth) >= -math.log(alpha)

    return run


def _outcomes(tally: Tally) -> SelectionDraws:
    """Return draws that were tallied, each with its level as the output."""
    levels = np.repeat(np.arange(len(tally.counts)), tally.counts.sum(axis=1))
    is_d1 = np.concatenate([np.repeat([True, False], both) for both in tally.counts])
    return SelectionDraws(from_raw(levels.astype(np.float64)), is_d1)


def portfolio(
    output: Draw = rare_at_the_claim, epsilon: float = EPSILON, *, fresh: bool = True
) -> Run:
    """Return the exact tests of a portfolio on outputs each of which is at the claim.

    fresh: certify on draws of their own, as one must: not on those that chose the rules.
    """
    point = ProfilePoint(epsilon, 0.0)

    def draw(size: int, rng: np.random.Generator) -> SelectionDraws:
        is_d1 = rng.random(size) < 0.5
        numbers = np.where(is_d1, *(output(one, size, rng) for one in (1, 0)))
        return SelectionDraws(from_raw(numbers), is_d1)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = draw(FEW, rng)
        learned = learn_orders(selection, Objective(point, MANY), (one_dimensional,))
        rules = learned.portfolio
        draws = draw(MANY, rng) if fresh else selection
        tally = Tally(by_arm(rules(draws.outcomes), rules.levels, draws.is_d1))
        return any(
            p_value(tally.game(guesses), epsilon, 0.0, rule.share * alpha) <= rule.share * alpha
            for rule, guesses in zip(rules.rules, rules.all_guesses, strict=True)
        )

    return run


def frequent_at_the_claim(dataset: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Return one of 40 values, each of which is e^ε times as likely for one of the inputs. With
    this ε, most values come from one input alone in the draws that rules are learned from."""
    truthful = rng.random(size) < 1 / (1 + math.exp(-LARGE_EPSILON))
    value = np.where(truthful, dataset, 1 - dataset)
    return np.asarray(2.0 * rng.integers(20, size=size) + value)


def three_rules(*, split: bool = True) -> Run:
    """Return the exact tests of three rules about different outputs, all of them at the claim.

    split: test each rule at its own share of alpha, as one must: not each at all of it.
    """
    truth = 1 / (1 + math.exp(-EPSILON))
    both = np.array([[truth, 1 - truth], [1 - truth, truth]]) / 3
    mechanism = Mechanism("three answers", np.concatenate([both] * 3), EPSILON)
    kinds: tuple[RuleKind, ...] = ("main", "rare", "other")
    shares = (1 - RARE_SHARE - OTHER_SHARE, RARE_SHARE, OTHER_SHARE) if split else (1.0,) * 3
    rules = tuple(
        FrozenRule(kind, share, "", (0,) * 2 * place + (1, -1) + (0,) * (4 - 2 * place))
        for place, (kind, share) in enumerate(zip(kinds, shares, strict=True))
    )

    # Evidence refuses shares that exceed 1, so the twin makes each test from evidence of its own.
    portfolios = (rules,) if split else tuple((replace(rule, kind="main"),) for rule in rules)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        learned = Block("learning", None, Tally.empty(1))
        counted = Block("certification", None, mechanism.tally(MANY, rng))
        return any(
            test.refutes
            for portfolio in portfolios
            for test in fixed_tests(
                Evidence(
                    point=ProfilePoint(EPSILON, 0.0),
                    alpha=alpha / CERTIFICATION_SHARE,
                    confidence=1 - alpha,
                    budget=MANY,
                    limits=DrawLimits(),
                    blocks=(learned, counted),
                    stage="certification",
                    method="game",
                    rules=portfolio,
                )
            )
        )

    return run


def divergence(mechanism: Mechanism, order: float, *, fresh: bool = True) -> Run:
    """Return the test of a Rényi divergence, its witness learned from selection draws.

    fresh: certify on draws of their own, as one must: not on those that the witness, its cap and
    what is staked on it were chosen by.
    """
    first, second = mechanism.table.T
    truth = math.log(np.sum(first**order * second ** (1 - order))) / (order - 1)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = mechanism.tally(SELECTION, rng)
        draws = CERTIFICATION if fresh else SELECTION
        seen = selection.counts + PRIOR
        witness = most_telling_witness(seen, {order: truth}, draws, alpha)
        if witness is None:
            return False
        tally = mechanism.tally(CERTIFICATION, rng) if fresh else selection
        return witness_p_value(witness, tally.counts, truth) <= alpha

    return run


def unseen(*, fresh: bool = True) -> Run:
    """Return whether outputs that selection never had are likelier than the bound of the δ that
    they can hide.

    fresh: count them on draws of their own, as one must: not on those that had to have them.
    """

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection, tally = (rng.multinomial(size, RARE, size=2) for size in (SELECTION, MANY))
        is_new = (selection == 0).all(axis=0)
        counted = tally if fresh else selection
        d1, d2 = counted[:, is_new].sum(axis=1).tolist()
        bound = hidden_delta((d1, d2), (int(counted[0].sum()), int(counted[1].sum())), alpha)
        return float(RARE[is_new].sum()) > bound

    return run


def learned_by(
    attack: Scorer | tuple[Scorer, ...],
    draw: Callable[[np.random.Generator], SelectionDraws],
    *,
    fresh: bool = True,
) -> Run:
    """Return the exact test of what one or more attacks learn from outputs whose law is the same
    for both inputs.

    fresh: certify on draws of their own, as one must: not on those that it learned from.
    """
    nothing = ProfilePoint(0.0, 0.0)
    attacks = attack if isinstance(attack, tuple) else (attack,)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        selection = draw(rng)
        learned = learn_orders(selection, Objective(nothing, MANY), attacks)
        draws = draw(rng) if fresh else selection
        rule = learned.portfolio
        tally = Tally(by_arm(rule(draws.outcomes), rule.levels, draws.is_d1))
        return p_value(tally.game(rule.guesses), 0.0, 0.0, alpha, enough=alpha) <= alpha

    return run


def narrowed(*, fresh: bool = True) -> Run:
    """Return the exact test of rare outputs that tell nothing of their inputs, of which there were
    too many to keep, so that the filter that lets them through was narrowed.

    fresh: certify on draws of their own, as one must: not on those that the filter was narrowed by.
    """
    aim = Objective(ProfilePoint(0.0, 0.0), MANY)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        seen = [_tails(rng) for _ in range(4)]
        with patch.object(counted_learning, "MAX_KEPT_DRAWS", 256):
            store = RareStore(RareFilter.of(seen[0]), seen[0])
            first = RareTable(store.rare_filter, store.pool_kept(), store.arms).order()
            counts = CountedLearning(seen[0], relearn(first, aim))
            for one in seen[1:]:
                counts.rare.add(rare(counts.rare.rare_filter, one.outcomes, one.is_d1))
                counts.make_room(3 * FEW, 3 * FEW, aim)
        orders, _ = counts.candidates()
        rule = relearn(orders[-1:], aim).portfolio
        tallies = [
            Tally(by_arm(rule(one.outcomes), rule.levels, one.is_d1))
            for one in ([_tails(rng) for _ in seen] if fresh else seen)
        ]
        game = sum(tallies[1:], tallies[0]).game(rule.guesses)
        return p_value(game, 0.0, 0.0, alpha, enough=alpha) <= alpha

    return run


def by_entry(*, fresh: bool = True) -> Run:
    """Return the exact test of sequences that tell nothing of their inputs, with scores refitted to
    draws that were counted entry by entry.

    fresh: certify on draws of their own, as one must: not on those that were counted.
    """
    aim = Objective(ProfilePoint(0.0, 0.0), MANY)

    def run(alpha: float, rng: np.random.Generator) -> bool:
        seen = [_flags(rng) for _ in range(4)]
        orders = prefixes(seen[0])
        for one in seen[1:]:
            orders = [
                order.add(by_input(order.counter, one.outcomes, one.is_d1)) for order in orders
            ]
        rule = relearn(orders, aim).portfolio
        tallies = [
            Tally(by_arm(rule(one.outcomes), rule.levels, one.is_d1))
            for one in ([_flags(rng) for _ in seen] if fresh else seen)
        ]
        game = sum(tallies, Tally.empty(rule.levels)).game(rule.guesses)
        return p_value(game, 0.0, 0.0, alpha, enough=alpha) <= alpha

    return run


def _flags(rng: np.random.Generator) -> SelectionDraws:
    """Draw whether answers of a sparse vector are above its threshold, up to the third one."""
    noisy = rng.laplace(0.0, 4.0, (COUNTED, 20))
    above = (noisy >= rng.laplace(3.0, 2.0, (COUNTED, 1))).astype(np.int64)
    flags = np.where(np.cumsum(above, axis=1) - above < 3, above, -1)
    return SelectionDraws(from_raw(flags), rng.random(COUNTED) < 0.5)


def _tails(rng: np.random.Generator) -> SelectionDraws:
    """Draw columns of numbers, one output in ten of which is rare at first."""
    return SelectionDraws(from_raw(rng.normal(size=(FEW, 5))), rng.random(FEW) < 0.5)


def _answers(rng: np.random.Generator) -> SelectionDraws:
    """Draw noisy answers of a sparse vector up to the first one above its noisy threshold."""
    noisy = rng.laplace(0.0, 4.0, (MANY, 6))
    above = noisy >= rng.laplace(0.0, 2.0, (MANY, 1))
    is_after = np.cumsum(above, axis=1) > above
    shown = np.where(above & ~is_after, noisy, np.where(is_after, -2_000.0, -1_000.0))
    return SelectionDraws(from_raw(shown), rng.random(MANY) < 0.5)


def _three_bits(rng: np.random.Generator) -> SelectionDraws:
    """Draw vectors of three fair bits, which have eight values."""
    return SelectionDraws(from_raw(rng.integers(0, 2, (FEW, 3))), rng.random(FEW) < 0.5)


def _labels(rng: np.random.Generator) -> SelectionDraws:
    """Draw vectors of eight fair labels out of three."""
    return SelectionDraws(from_raw(rng.integers(0, 3, (FEW, 8))), rng.random(FEW) < 0.5)


def _all_agreements(selection: SelectionDraws) -> Sequence[Candidate]:
    """Score the agreement of pairs of entries, also of those that seem to tell nothing."""
    with patch.object(agreements, "PAIR_TEST_ALPHA", math.inf):
        return agreements.agreements(selection)


def _texts(rng: np.random.Generator) -> SelectionDraws:
    """Draw texts with numbers, in a sentence or in JSON, and texts without any."""
    kinds, numbers = rng.integers(0, 3, FEW).tolist(), rng.laplace(size=(FEW, 2)).tolist()
    texts = [
        ("none", f"{x:.6f} of {y:.6f} rows", f'{{"count": {x}, "id": "{y}"}}')[kind]
        for kind, (x, y) in zip(kinds, numbers, strict=True)
    ]
    return SelectionDraws(from_raw(texts), rng.random(FEW) < 0.5)


def _side_by_side(rng: np.random.Generator) -> SelectionDraws:
    """Draw two walks side by side."""
    walks = [np.cumsum(rng.laplace(0.0, 1.0, (FEW, 6)), axis=1) for _ in range(4)]
    return SelectionDraws(from_raw(np.concatenate(walks, axis=1)), rng.random(FEW) < 0.5)


def _with_gaps(rng: np.random.Generator) -> SelectionDraws:
    """Draw walks, or None, or the last place alone."""
    walks = np.cumsum(rng.laplace(0.0, 1.0, (FEW, 4)), axis=1)
    short, gap = rng.random((2, FEW)) < [[0.4], [0.02]]
    every = [one[-1:] if end else one for one, end in zip(walks.tolist(), short, strict=True)]
    drawn = [None if is_gap else one for one, is_gap in zip(every, gap, strict=True)]
    return SelectionDraws(from_raw(drawn), rng.random(FEW) < 0.5)


def _all_kinds(selection: SelectionDraws) -> Sequence[Candidate]:
    """Score each kind of outputs by itself, in one way, those that seem to tell nothing as well."""
    every = patch.object(tuning, "GAIN_OF_BLOCK", -math.inf)
    with every, patch.multiple(blocks, MIN_DRAWS_SLOW=0, SCORING=(innovations,)):
        return blocks.kinds(selection)


def _all_parts(selection: SelectionDraws) -> Sequence[Candidate]:
    """Add up all parts, of few draws and those that seem to tell nothing as well: of equal inputs
    all do."""
    every = patch.object(tuning, "GAIN_OF_BLOCK", -math.inf)
    with every, patch.multiple(blocks, MANY_DRAWS=FEW):
        return blocks.parts(selection)


def family(
    mechanism: Mechanism,
    *,
    by_bets: bool = False,
    stops_at_its_share: bool = True,
    corrected: bool = True,
) -> Run:
    """Return a batch of `SIZE` audits with one error probability together.

    by_bets: nothing but bets, which spend all of it: few runs then show whether stops are right.
    stops_at_its_share: an audit that stops early does so at its share, as it must: not at the level
    of all, to be a violation whatever Holm's procedure says.  corrected: there is that procedure.
    """

    def run(alpha: float, rng: np.random.Generator) -> bool:
        stop = alpha / SIZE if stops_at_its_share else alpha
        ended = [_stopping(mechanism, stop, rng, by_bets=by_bets) for _ in range(SIZE)]
        p_values = [p for p, _ in ended]
        if not corrected:
            return min(p_values) <= alpha
        has_stopped = not stops_at_its_share and any(stopped for _, stopped in ended)
        return has_stopped or bool(holm(p_values, alpha).any())

    return run


def _stopping(
    mechanism: Mechanism, stop: float, rng: np.random.Generator, *, by_bets: bool
) -> tuple[float, bool]:
    """Return the p-value of an audit that bets, and ends where bets refute at a level; and whether
    it did so. The exact test is that of a confirmation, or of the planned end."""
    learned = learn(mechanism.tally(SELECTION, rng), mechanism)
    looks = mechanism.looks(CERTIFICATION, LOOKS, rng)
    path = np.cumsum(_gains(learned, mechanism, looks), axis=0)
    wealth = np.maximum.accumulate(log_wealth(path, stakes(learned.beliefs, mechanism.delta)))
    share = 1.0 if by_bets else BETTING_SHARE
    refuting = np.flatnonzero(wealth >= -math.log(share * stop))
    has_stopped = len(refuting) > 0
    by_wealth = math.exp(-float(wealth[refuting[0] if has_stopped else -1])) / share
    if by_bets:
        return by_wealth, has_stopped
    share = CONFIRMATION_SHARE if has_stopped else CERTIFICATION_SHARE
    counted = mechanism.tally(CERTIFICATION, rng) if has_stopped else Tally(looks.sum(axis=0))
    exact = p_value(counted.game(learned.rule), mechanism.epsilon, mechanism.delta, share * stop)
    return min(by_wealth, exact / share), has_stopped


def audit(setting: Setting) -> Run:
    """Return a whole audit, from a seed that is drawn."""
    return lambda alpha, rng: false_alarm(setting, alpha, int(rng.integers(2**31)))


def batch(*, corrected: bool = True) -> Run:
    """Return a batch of whole audits that have one error probability together."""

    def run(alpha: float, rng: np.random.Generator) -> bool:
        seeds = rng.integers(2**31, size=len(BATCH)).tolist()
        return false_alarm_of_any(alpha, seeds, corrected=corrected)

    return run


def searched(mechanism: Mechanism, *, fresh: bool = True) -> Run:
    """Return the exact test of the pair, of several that leak equally much, which a search found to
    leak most. fresh: certify it on other draws than those that chose it, as one must."""

    def run(alpha: float, rng: np.random.Generator) -> bool:
        rules = [learn(mechanism.tally(SELECTION, rng), mechanism).rule for _ in range(PAIRS)]
        games = [mechanism.tally(CERTIFICATION, rng).game(rule) for rule in rules]
        levels = [p_value(one, mechanism.epsilon, mechanism.delta, alpha) for one in games]
        best = int(np.argmin(levels))
        game = mechanism.tally(CERTIFICATION, rng).game(rules[best]) if fresh else games[best]
        return refuted(game, mechanism, alpha)

    return run


def either(*runs: Run) -> Run:
    """Return the twin that refutes when one of several tests does, each at the full alpha."""
    return lambda alpha, rng: any(run(alpha, rng) for run in runs)


@cache
def refuted(game: Game, mechanism: Mechanism, alpha: float) -> bool:
    """Return whether the exact test refutes; equal counts come up again and again."""
    return p_value(game, mechanism.epsilon, mechanism.delta, alpha, enough=alpha) <= alpha


def _gains(learned: Learned, mechanism: Mechanism, looks: IntArray) -> FloatArray:
    """Return every bettor's log gain in each part: (looks, bettors)."""
    factors = learned.beliefs.log_factors(mechanism.epsilon, mechanism.delta)
    gains = looks.reshape(len(looks), -1) @ factors.reshape(len(factors), -1).T
    return np.asarray(gains, dtype=float)


def _half(game: Game) -> Game:
    """Take a rule with two guesses for one with one."""
    return replace(game, two_guesses=False)


TIGHT = (LAPLACE, RANDOMIZED_RESPONSE, REVEALING)
CASES = (
    *(Case(f"fixed bound, {one.name}", True, fixed(one)) for one in TIGHT),
    *(Case(f"betting, {one.name}", True, betting(one)) for one in TIGHT),
    Case("Clopper-Pearson pair, randomised response", True, pair(RANDOMIZED_RESPONSE)),
    Case("Clopper-Pearson pair, reveal or randomise", True, pair(REVEALING)),
    Case("atoms (PDP), atom of probability δ", True, atoms(EXPOSED)),
    Case("cells by their counts, randomised response", True, counted(RANDOMIZED_RESPONSE)),
    Case("cells by their counts, reveal or randomise", True, counted(REVEALING)),
    Case(
        "cells certified on the draws they were counted on",
        False,
        counted(RANDOMIZED_RESPONSE, fresh=False),
    ),
    Case("certified on selection draws", False, fixed(RANDOMIZED_RESPONSE, fresh=False)),
    Case("certified on selection draws, δ > 0", False, fixed(REVEALING, fresh=False)),
    Case("atoms certified on selection draws", False, atoms(EXPOSED, fresh=False)),
    Case("h = ½ for two guesses", False, fixed(REVEALING, change=_half)),
    Case(
        "α not split: betting and fixed bound",
        False,
        either(betting(RANDOMIZED_RESPONSE), fixed(RANDOMIZED_RESPONSE)),
    ),
    Case("α not split: two fixed bounds", False, either(*[fixed(RANDOMIZED_RESPONSE)] * 2)),
    Case("what was never seen hides more than its bound", True, unseen()),
    Case("what was never seen, counted on selection draws", False, unseen(fresh=False)),
    Case("looks inside a block sorted by arm", False, betting(LAPLACE, sorted_by_arm=True)),
    Case("witness of D_2, Laplace", True, divergence(DETAILED_LAPLACE, 2.0), costly=True),
    Case(
        "witness of D_4, randomised response",
        True,
        divergence(RANDOMIZED_RESPONSE, 4.0),
        costly=True,
    ),
    Case(
        "witness chosen on its own draws",
        False,
        divergence(DETAILED_LAPLACE, 2.0, fresh=False),
        costly=True,
    ),
    Case("batch of 12, Holm's procedure", True, family(RANDOMIZED_RESPONSE), costly=True),
    Case(
        "batch of 12 by bets, Holm's procedure",
        True,
        family(RANDOMIZED_RESPONSE, by_bets=True),
        costly=True,
    ),
    Case(
        "batch of 12, each at its own level",
        False,
        family(RANDOMIZED_RESPONSE, corrected=False),
        costly=True,
    ),
    Case(
        "batch of 12 by bets, stops at the level of all",
        False,
        family(RANDOMIZED_RESPONSE, by_bets=True, stops_at_its_share=False),
        costly=True,
    ),
    Case("best of 16 pairs, Laplace", True, searched(LAPLACE), costly=True),
    Case("best of 16 pairs, randomised response", True, searched(RANDOMIZED_RESPONSE), costly=True),
    Case(
        "best of 16 pairs, certified on the draws that chose it",
        False,
        searched(RANDOMIZED_RESPONSE, fresh=False),
        costly=True,
    ),
    Case(
        "bold bets on rare cells, reveal or randomise",
        True,
        boldly(REVEALING_IN_DETAIL),
        costly=True,
    ),
    Case(
        "bold bets on the draws that showed the cells",
        False,
        boldly(REVEALING_IN_DETAIL, fresh=False),
        costly=True,
    ),
    Case("portfolio with rare cells at the claim", True, portfolio(), costly=True),
    Case(
        "portfolio, certified on the draws that chose its rules",
        False,
        portfolio(fresh=False),
        costly=True,
    ),
    Case("three rules, each at its share of α", True, three_rules(), costly=True),
    Case("α not split: three rules", False, three_rules(split=False), costly=True),
    Case("sequences of bands, equal inputs", True, learned_by(banded, _answers), costly=True),
    Case(
        "sequences of bands, certified on the draws they were learned from",
        False,
        learned_by(banded, _answers, fresh=False),
        costly=True,
    ),
    Case("few values, equal inputs", True, learned_by(SCORERS, _three_bits), costly=True),
    Case(
        "few values, certified on the draws they were learned from",
        False,
        learned_by(SCORERS, _three_bits, fresh=False),
        costly=True,
    ),
    Case("contents of texts, equal inputs", True, learned_by(SCORERS, _texts), costly=True),
    Case(
        "contents of texts, certified on the draws they were learned from",
        False,
        learned_by(SCORERS, _texts, fresh=False),
        costly=True,
    ),
    Case(
        "agreements of entries, equal inputs",
        True,
        learned_by(_all_agreements, _labels),
        costly=True,
    ),
    Case(
        "agreements of entries, certified on the draws they were learned from",
        False,
        learned_by(_all_agreements, _labels, fresh=False),
        costly=True,
    ),
    Case(
        "independent parts, equal inputs", True, learned_by(_all_parts, _side_by_side), costly=True
    ),
    Case(
        "independent parts, certified on the draws they were learned from",
        False,
        learned_by(_all_parts, _side_by_side, fresh=False),
        costly=True,
    ),
    Case(
        "outputs of each kind, equal inputs", True, learned_by(_all_kinds, _with_gaps), costly=True
    ),
    Case(
        "outputs of each kind, certified on the draws they were learned from",
        False,
        learned_by(_all_kinds, _with_gaps, fresh=False),
        costly=True,
    ),
    Case("rare outputs of a narrowed filter, equal inputs", True, narrowed(), costly=True),
    Case(
        "rare outputs, certified on the draws that narrowed the filter",
        False,
        narrowed(fresh=False),
        costly=True,
    ),
    Case("sequences counted by entry, equal inputs", True, by_entry(), costly=True),
    Case(
        "sequences certified on the draws that were counted by entry",
        False,
        by_entry(fresh=False),
        costly=True,
    ),
    Case(
        "portfolio with frequent cells at the claim",
        True,
        portfolio(frequent_at_the_claim, LARGE_EPSILON),
        costly=True,
    ),
    Case(
        "portfolio with frequent cells, certified on the draws that chose its rules",
        False,
        portfolio(frequent_at_the_claim, LARGE_EPSILON, fresh=False),
        costly=True,
    ),
)


AUDITS = tuple(Case(f"whole audit, {one.name}", True, audit(one)) for one in SETTINGS)
BATCHES = (
    Case("whole batch of 4, Holm's procedure", True, batch()),
    Case("whole batch of 4, each by its own p-value", False, batch(corrected=False)),
)


def play(case: Case, runs: int, nominal: float, seed: np.random.SeedSequence) -> int:
    """Return the number of runs that refuted the true claim; costly cases run less often."""
    rng = np.random.default_rng(seed)
    return sum(case.run(nominal, rng) for _ in range(case.runs(runs)))


def _play(index: int, runs: int, nominal: float, seed: np.random.SeedSequence) -> int:
    """Play a case by its number, since what it runs cannot be sent to another process."""
    return play((CASES + AUDITS + BATCHES + EARLY_BETS)[index], runs, nominal, seed)


def play_all(
    runs: int, nominal: float, seed: int, *, workers: int = 1, cases: Sequence[Case] = CASES
) -> Iterator[Outcome]:
    """Yield the outcome of every case in turn; in processes, each case with streams of its own."""
    seeds = np.random.SeedSequence(seed).spawn(len(cases))
    alarms: Iterator[int]
    with ExitStack() as stack:
        if workers == 1:
            alarms = map(play, cases, repeat(runs), repeat(nominal), seeds)
        else:
            pool = stack.enter_context(ProcessPoolExecutor(workers))
            known = [(CASES + AUDITS + BATCHES + EARLY_BETS).index(case) for case in cases]
            alarms = pool.map(_play, known, repeat(runs), repeat(nominal), seeds)
        for case, refuted_in in zip(cases, alarms, strict=True):
            yield Outcome(case, case.runs(runs), refuted_in, nominal)


def heading(cases: Sequence[Case]) -> str:
    """Return the line above those of the outcomes."""
    columns = f"{'runs':>6} {'alarms':>6} {'rate':>6}  99.9 % interval"
    return f"{'case':{_width(cases)}}  {columns}"


def line(one: Outcome, cases: Sequence[Case]) -> str:
    """Return one outcome as a line of text."""
    low, high = one.interval
    return (
        f"{one.case.name:{_width(cases)}}  {one.runs:6} {one.alarms:6} {one.alarms / one.runs:6.4f}"
        f"  [{low:.4f}, {high:.4f}]  {_verdict(one)}"
    )


def _width(cases: Sequence[Case]) -> int:
    return max(len(one.name) for one in cases)


def _verdict(outcome: Outcome) -> str:
    said = "above nominal" if outcome.is_above else "not above nominal"
    kind = "valid" if outcome.case.valid else "planted invalid"
    return f"{kind}, {said}: {'as it should be' if outcome.is_as_it_should_be else 'WRONG'}"


# Runs that bets alone end, each with all its runs.
EARLY_BETS = (
    *(Case(f"early bets: {law.name}", True, partial(refutes, law)) for law in LAWS),
    Case(
        "early bets on the draws that were learned from",
        False,
        partial(refutes, LAWS[0], ahead=True),
    ),
    Case("early bets by a weighted sum of a vector", True, partial(refutes, VECTOR, fit=by_sums)),
    Case(
        "early bets on vectors that the weighted sum was fitted to",
        False,
        partial(refutes, VECTOR, fit=by_sums, ahead=True),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--nominal", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--end-to-end",
        type=int,
        metavar="AUDITS",
        help="this many whole audits of each mechanism, instead of single tests",
    )
    parser.add_argument(
        "--early-bets",
        type=int,
        metavar="RUNS",
        help="this many runs that bets alone end, of each mechanism, instead of single tests",
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="cases with TEXT in their name")
    given = parser.parse_args(arguments)
    start = time.perf_counter()
    whole = AUDITS + BATCHES
    cases, runs = (whole, given.end_to_end) if given.end_to_end else (CASES, given.runs)
    if given.early_bets:
        cases, runs = EARLY_BETS, given.early_bets
    cases = tuple(one for one in cases if given.only in one.name)
    if not cases:
        parser.error(f"no case has {given.only!r} in its name")
    print(f"nominal {given.nominal:g}, seed {given.seed}\n{heading(cases)}")
    right = True
    # Each as soon as it is known: whole audits take long, and a run that is cut short keeps them.
    for one in play_all(runs, given.nominal, given.seed, workers=given.workers, cases=cases):
        print(line(one, cases), flush=True)
        right &= one.is_as_it_should_be
    print(f"{time.perf_counter() - start:.0f} s")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
