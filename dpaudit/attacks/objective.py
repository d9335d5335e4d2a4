"""The objective: the bound that a rule is predicted to certify on the draws to come.

The bound is a lower bound on ε at the δ of the tested point or, if the claim is a curve, on δ at
its ε. It is predicted from the counts of a candidate, which is an order of outcomes, cut into
levels. Every prediction is lowered by a penalty for the luck of selection and by the expected loss
of the exact test. There are two predictions:

* `Objective.ranking_bounds` ranks candidates. It uses counts made monotone over levels (isotonic
  regression) with a large penalty, or estimates that are shrunk already.
* `Objective.best_rule` picks the cut-offs of one candidate. Where levels are smooth, it uses
  smoothed counts with a small penalty; elsewhere the first prediction.

`best_of` picks the candidate, and `plainest` a plainer one that is as good. `learning.py` calls
them and defines the words that are used here; the mathematics is in docs/method.md §5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, RareOutputs
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import MAX_LISTED_ITEMS
from dpaudit.levels.rule_tables import (
    RuleTable,
    guesses_of,
    largest,
    predicted_delta,
    predicted_epsilon,
    predicted_growth,
)


@dataclass(frozen=True, slots=True)
class Objective:
    """The quantity to maximise: the bound that a rule will certify on `coming` draws. The bound is
    ε at the δ of `point` or, if the claim has several points, δ at the ε of `point`.

    coming: number of draws to come, on which the rule is tested.
    points: the points (ε, δ) of a claim with several, from which the rare rule may choose the point
        that it tests; if empty, it tests `point`.
    reserve: whether bettors keep part of their wealth for later bets on rare outputs, which are
        seen only after many draws.
    fixed_before: whether candidates are compared by draws that came after the candidates were
        fixed, as in learning from counted draws. Luck can then affect only the choice of cut-offs.
        So candidates are ranked by their smoothed counts, with a small penalty for luck. Exception:
        candidates with a score keep the large penalty, since a score may be no better than one of
        the columns from which it is computed.
    quick: whether to skip the work that only the final rules are worth. The rules of a refit are
        quick, since the next refit replaces them. The rules of the last fit are not, unless bets
        have refuted the claim before the sample buffer was full. Quick rules have no fallback: if
        no predicted bound is positive, other rules are chosen by predictions without a penalty,
        since the exact test has nothing to lose, but a bet on noise loses wealth. From draws in
        memory, quick rules are also made without users' scorers (below 1,000 draws), without tables
        of rare outputs, without trees if a refutation is near, and without refinement
        (`skips_refinement`).
    """

    point: ProfilePoint
    coming: int
    points: tuple[ProfilePoint, ...] = ()
    reserve: bool = False
    fixed_before: bool = False
    # This field is excluded from comparison, since predicted bounds do not depend on it: candidates
    # cache their predictions by objective, and two objectives that differ only in `quick` share the
    # cached predictions.
    quick: bool = field(default=False, compare=False)

    @property
    def for_delta(self) -> bool:
        """Whether the bound is for δ, as for all claims of several points."""
        return bool(self.points)

    @property
    def rare_bets(self) -> int:
        """Number of rules that bet the wealth that is kept for rare outputs. If δ > 0, there are
        two equal rules, which share it."""
        return self.reserve * (1 if self.point.delta == 0 else 2)

    @property
    def skips_refinement(self) -> bool:
        """Whether `rules.choose_rules` leaves levels as they are and makes no "other" rule (a rule
        of a second candidate): for quick rules from draws in memory. Quick rules from counted draws
        are refined, since bets use them for more draws.
        """
        return self.quick and not self.fixed_before

    def ranking_bounds(self, candidate: Candidate, further: float = 0.0) -> FloatArray:
        """Return the predicted bounds by which candidates (orders of outcomes) are ranked: (levels
        + 1, levels + 1). Entry (l, u) is the bound of the rule that guesses d2 below level l and d1
        from level u on.

        further: standard errors by which the bounds are lowered beyond the penalty.
        """
        if self.fixed_before and not candidate.has_score:
            smooth = self._smoothed_bounds(candidate, further)
            if smooth is not None:
                return smooth
        penalty = candidate.penalty(is_pure=self._is_pure) + further
        bounds = self.predicted_bounds(candidate.table, penalty)
        if isinstance(candidate, RareOutputs):
            counts = RuleTable.of_balanced(candidate.counts)
            by_count = self._bounds_of_counts(counts, candidate.count_penalty + further)
            return np.minimum(bounds, by_count)
        return bounds

    def best_rule(self, candidate: Candidate) -> tuple[int, int, float]:
        """Return (l, u, bound): the best rule of a candidate (order of outcomes), which guesses d2
        below level l and d1 from level u on, and its predicted bound.

        The best rule has the largest predicted bound. If no bound is positive, and the rule is not
        `quick`, the bounds are predicted again without the penalty for the luck of selection. With
        δ = 0, if the best rule guesses only one input, it is replaced by the best rule that adds
        guesses of the other input, unless the guesses of one input would clearly be right more
        often than the guesses of the other input.
        """
        bounds = self._smoothed_bounds(candidate)
        if bounds is None:
            bounds = self.ranking_bounds(candidate)
        if not self.quick and np.max(bounds) <= 0:
            bounds = self.predicted_bounds(candidate.table, 0.0)
        low, high = largest(bounds)
        best = float(bounds[low, high])
        levels = len(bounds) - 1
        is_both = low > 0 and high < levels
        if is_both or low == levels or high == 0 or best <= 0 or not self._is_pure:
            return low, high, best
        # The best rule guesses a single input: d1 if `low` is 0, else d2. Extend it to a two-sided
        # rule, which also guesses the other input. If both inputs are equally easy to guess, the
        # two-sided rule is better, since it makes twice as many guesses. Yet in a third of such
        # audits, the one-sided rule has the larger predicted bound, by luck.
        if low == 0:
            other = 1 + int(np.argmax(bounds[1 : high + 1, high])), high
        else:
            other = low, low + int(np.argmax(bounds[low, low:levels]))
        # Guesses of d1 and guesses of d2 are compared by log(right / wrong). `luck` is a factor on
        # the standard error of the difference of these two numbers. It is below 1 if one fit gives
        # the estimates of all levels (groups of outcomes): the two numbers then share much of their
        # error. The factor is the ratio of two penalties, of such a fit and of shrunk estimates.
        luck = tuning.PENALTY_ONE_FIT / tuning.PENALTY_SHRUNK if candidate.is_one_fit else 1.0
        if bounds[other] > 0 and _look_alike(candidate.table, *other, luck):
            return *other, float(bounds[other])
        return low, high, best

    def predicted_bounds(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return the predicted bound of every rule of a table. Learning chooses the rule with the
        largest predicted bound.

        penalty: number of standard errors by which each bound is lowered, since the best of many
            rules owes a part of its bound to luck.
        """
        if self.for_delta:
            return predicted_delta(table, self.point.epsilon, self.coming, penalty)
        return predicted_epsilon(table, self.point.delta, self.coming, penalty)

    def perfect_bound(self, arms: Sequence[int]) -> float:
        """Return the bound that a rule without a wrong guess is predicted to certify: an upper
        limit for all rules.

        arms: number of learning draws of d1, and of d2.
        """
        perfect = np.array([[0, arms[1]], [arms[0], 0], [0, 0]], dtype=np.int64)
        return float(np.max(self._bounds_of_counts(RuleTable.of(perfect), tuning.PENALTY)))

    def _smoothed_bounds(self, candidate: Candidate, further: float = 0.0) -> FloatArray | None:
        """Return the predicted bound of every rule from counts smoothed over levels (groups of
        outcomes), lowered by a small penalty. Return None in three cases: the log-ratios of
        neighbouring levels need not be similar, the bound is for δ, or δ > 0 and the smoothed
        log-odds are not monotone in a score."""
        if not candidate.is_smooth or self.for_delta:
            return None
        fit = candidate.smoothed
        table = RuleTable.of_monotone(fit.draws, int(candidate.counts.sum()))
        if fit.follows_score:
            return self.predicted_bounds(table, tuning.PENALTY_ONE_FIT + further)
        if not self._is_pure:
            return None
        return self.predicted_bounds(table, tuning.PENALTY_SMOOTHED + further)

    def _bounds_of_counts(self, table: RuleTable, penalty: float) -> FloatArray:
        return self.predicted_bounds(table, penalty + self._is_pure * tuning.PENALTY_WITHOUT_DELTA)

    @property
    def needed(self) -> float:
        """The number that the bound must exceed to refute the claim: the claimed ε or, if
        the bound is for δ (`for_delta`), the claimed δ.
        """
        return self.point.delta if self.for_delta else self.point.epsilon

    @property
    def _is_pure(self) -> bool:
        return self.point.delta == 0 and not self.for_delta


def rank_key(candidate: Candidate, objective: Objective) -> tuple[float, float]:
    """Return the rank of a candidate (order of outcomes) as (bound, growth). `bound` is its largest
    predicted bound after a discount. `growth` decides between equal bounds: it is the largest
    predicted log wealth of bets against the claim ε = 0.

    Discount: the bound is multiplied by 0.9 (`tuning.MANY_CELLS_FACTOR`) if the candidate orders
    many cells (groups of outcomes) by counts that are not shrunk, and by 1 - 2 / √draws if it
    orders outcomes by a score, a number computed from several columns.
    """
    bound, growth = _largest_predictions(candidate, objective)
    worth = tuning.MANY_CELLS_FACTOR * bound if candidate.has_many_cells else bound
    if candidate.has_score:
        worth *= max(0.0, 1 - tuning.DEVIATIONS / np.sqrt(candidate.table.draws))
    # Rounded to four digits, since a smaller difference is noise.
    return (float(f"{max(worth, 0.0):.4g}"), growth)


def best_predicted(candidate: Candidate, objective: Objective) -> float:
    """Return the largest predicted bound over the rules of a candidate (order of outcomes); 0 if no
    bound is positive."""
    return max(0.0, float(f"{_largest_predictions(candidate, objective)[0]:.4g}"))


def best_of(candidates: Sequence[Candidate], objective: Objective) -> Candidate:
    """Return the candidate with the largest `rank_key`; among equal keys, the first candidate.

    If no predicted bound is positive, and the rule is not quick (`objective.quick`), candidates are
    ranked by their predictions without the penalty. If the log-odds of the winner follow a score
    and the bound is for ε, there is a second comparison: among all candidates whose log-odds follow
    a score and that have at least 85 % of the winner's bound (after the discount of `rank_key`),
    the candidate with the largest likelihood wins. The reason: a bound depends on the luck of a few
    rare outputs, a likelihood on all draws.
    """
    winner = max(candidates, key=lambda one: rank_key(one, objective))
    if not objective.quick and rank_key(winner, objective)[0] == 0:
        return max(candidates, key=lambda one: np.max(objective.predicted_bounds(one.table, 0.0)))
    if objective.for_delta or not winner.is_smooth or not winner.smoothed.follows_score:
        return winner
    enough = tuning.NEARLY_EQUAL_SHARE * rank_key(winner, objective)[0]
    near = [one for one in candidates if one.is_smooth and rank_key(one, objective)[0] >= enough]
    following = [one for one in near if one.smoothed.follows_score]
    return max(following, key=lambda one: one.smoothed.log_likelihood)


def plainest(winner: Candidate, candidates: Sequence[Candidate], objective: Objective) -> Candidate:
    """Return the candidate with the plainest events whose predicted bound is within a standard
    error of the winner's; the winner if none of them is plainer.

    A candidate that is not predicted to refute the claim does not replace one that is. A winner
    with plain events is not replaced, since of few draws a standard error may be half of them.
    """
    bound = best_predicted(winner, objective)
    if bound == 0 or len(candidates) == 1 or plainness(winner, objective) < 3:
        return winner
    least = float(np.max(objective.ranking_bounds(winner, 1.0)))
    if bound > objective.needed:
        least = max(least, math.nextafter(objective.needed, math.inf))
    near = [one for one in candidates if best_predicted(one, objective) >= least]
    near.sort(key=lambda one: -best_predicted(one, objective))
    return min([winner, *near], key=lambda one: plainness(one, objective))


def plainness(candidate: Candidate, objective: Objective) -> int:
    """Return how plain the events of a candidate's best rule are, 0 for the plainest: each event is
    0 a value of the output or of one coordinate; 1 an interval of one coordinate; 2 a few of these,
    or the agreement of two entries; 3 many of these, or about several coordinates, as of a score.
    """
    if candidate.has_score:
        return 3
    rule = largest(objective.ranking_bounds(candidate))
    guesses, level = guesses_of(rule, len(candidate.counts)), candidate.level_map()
    events = [level.alternatives(guesses == guess) for guess in (1, -1)]
    if any(event is None or sum(event) > MAX_LISTED_ITEMS for event in events):
        return 3
    return max(2 if sum(event) > 1 else event[1] for event in events if event)


def refutes(candidate: Candidate, objective: Objective, deviations: float | None = None) -> bool:
    """Return whether a candidate (order of outcomes) is predicted to refute the claim: whether its
    largest predicted bound, lowered by a margin, exceeds the claim.

    deviations: margin in standard errors; None: `tuning.DEVIATIONS`. If the log-ratios of the
        candidate are not shrunk, the margin is at least the penalty by which its bounds are lowered
        for ranking.
    """
    deviations = tuning.DEVIATIONS if deviations is None else deviations
    if candidate.is_shrunk or deviations > candidate.count_penalty:
        bounds = objective.predicted_bounds(candidate.table, deviations)
        return float(np.max(bounds)) > objective.needed
    return rank_key(candidate, replace(objective, fixed_before=False))[0] > objective.needed


def _largest_predictions(candidate: Candidate, objective: Objective) -> tuple[float, float]:
    """Return (bound, growth), both the largest value over all rules of a candidate (order of
    outcomes). A rule guesses d2 for the outcomes below one place in the order, and d1 above another
    place. `bound` is a predicted bound, `growth` the predicted log wealth of bets against the claim
    ε = 0.
    """
    if objective not in candidate.predictions:
        no_loss = ProfilePoint(0.0, objective.point.delta)
        candidate.predictions[objective] = (
            float(np.max(objective.ranking_bounds(candidate))),
            float(np.max(predicted_growth(candidate.table, no_loss))),
        )
    return candidate.predictions[objective]


def _look_alike(table: RuleTable, low: int, high: int, luck: float) -> bool:
    """Return whether a rule's guesses of d1 and of d2 seem to be right equally often: whether the
    Bayes factor favours the first of two hypotheses.

    The first hypothesis is that log(right / wrong) is the same for guesses of d1 and of d2. The
    second hypothesis is that the two values differ by a normal number with mean 0, whose standard
    deviation is half of the larger value.

    low, high: the rule guesses d2 below level `low`, and d1 from level `high` on.
    luck: factor that multiplies the standard errors computed from the counts.
    """
    levels = len(table.correct) - 1
    sides = (low, levels), (0, high)
    ratios = [math.log((table.correct[one] + 0.5) / (table.wrong[one] + 0.5)) for one in sides]
    error = sum(1 / (table.correct[one] + 0.5) + 1 / (table.wrong[one] + 0.5) for one in sides)
    error *= luck**2
    spread = (tuning.SPREAD_OF_DIFFERENCES * max(ratios)) ** 2 / error
    distance = (ratios[0] - ratios[1]) ** 2 / error
    return bool(math.log1p(spread) > distance * spread / (1 + spread))
