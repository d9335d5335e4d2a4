"""The objective: the bound that a rule is predicted to certify on the draws to come.

`Objective.bounds` predicts it for every rule of a candidate, and lowers it by the expected loss of
the exact test and by a penalty. If the candidate is one of many that were fitted to the same draws,
the penalty is large, and the prediction uses counts after isotonic regression over levels. If the
candidate was fixed before and its levels are smooth, the penalty is small, and the prediction uses
smoothed counts. `best_of` picks the candidate, `plainest` replaces it by one with simpler events
that is as good, and `Objective.best_rule` picks the cut-offs (docs/method.md §5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import MAX_LISTED_ITEMS
from dpaudit.levels.rule_tables import (
    RuleTable,
    even_rule,
    guesses_of,
    largest,
    predicted_delta,
    predicted_epsilon,
    predicted_growth,
)
from dpaudit.levels.shrinkage import ExpectedDraws


@dataclass(frozen=True, slots=True)
class Objective:
    """The quantity to maximise: the bound that a rule will certify, on ε at the δ of `point` or, if
    the claim has several points or bounds a distance, on δ at the ε of `point`.

    points: for a claim that is a curve, the points from which the rare rule chooses the one to
        test; if empty, the rare rule tests `point`.
    reserve: whether bettors keep part of their wealth for later bets on rare outputs.
    fixed_before: whether the candidates were fixed before the counted draws, so that luck can
        affect only the cut-offs. Candidates with a score keep the penalty of selection, since a
        score may be no better than one of its columns.
    for_distance: whether the claim bounds the total variation distance, so that its ε is 0.
    """

    point: ProfilePoint
    future_draws: int
    points: tuple[ProfilePoint, ...] = ()
    reserve: bool = False
    fixed_before: bool = False
    for_distance: bool = False

    @property
    def for_delta(self) -> bool:
        """Whether the bound is for δ, as for all claims of several points."""
        return bool(self.points) or self.for_distance

    @property
    def rare_bets(self) -> int:
        """Number of rules on which the wealth kept for rare outputs is bet: 0 if none is kept, 1 if
        δ = 0, and 2 equal rules if δ > 0."""
        return self.reserve * (1 if self.point.delta == 0 else 2)

    @property
    def needed(self) -> float:
        """The claimed value that the bound must exceed to refute: δ if the bound is for δ, else
        ε."""
        return self.point.delta if self.for_delta else self.point.epsilon

    @property
    def _is_pure(self) -> bool:
        return self.point.delta == 0 and not self.for_delta

    def bounds(
        self,
        candidate: Candidate,
        *,
        fixed_before: bool | None = None,
        least: float = 0.0,
        further: float = 0.0,
    ) -> FloatArray:
        """Return the predicted bound of every rule (l, u) of a candidate: (levels + 1, levels + 1).

        fixed_before: used in place of the attribute `fixed_before`; None: the attribute is used.
        least: the least penalty, in standard errors.
        further: standard errors by which the bounds are lowered in addition to the penalty.
        """
        if fixed_before is None:
            fixed_before = self.fixed_before and not candidate.has_score
        penalty = self._penalty_of_smoothed(candidate) if fixed_before else None
        if penalty is not None:
            tables = [(candidate.table_of_smoothed, penalty)]
        else:
            of_counts = candidate.penalty_of_counts(is_pure=self._is_pure)
            tables = [(candidate.table_of_counts, of_counts)]
            if candidate.estimate is not None:
                estimate = (candidate.table, _penalty_of(candidate.estimate))
                # The margins of an estimate of rare outputs may be too small for many cells of few
                # draws each, so that the prediction from their counts is an upper limit.
                tables = [estimate, *tables] if candidate.is_rare else [estimate]
        bounds = [
            self.predicted_bounds(table, max(penalty, least) + further) for table, penalty in tables
        ]
        return np.asarray(np.minimum.reduce(bounds))

    def best_rule(self, candidate: Candidate) -> tuple[int, int, float]:
        """Return (l, u, bound): the best rule of a candidate, and its predicted bound.

        If no bound is positive, the rule is chosen by bounds without a penalty, since nothing can
        be lost. For a distance, it is the `even_rule`: an event chosen by luck may be so rare that
        no distance would show in it. If δ = 0, a rule that guesses only one input is replaced by
        the best rule that adds guesses of the other input, unless the added guesses would clearly
        be right less often.
        """
        bounds = self.bounds(candidate, fixed_before=True)
        if np.max(bounds) <= 0 and self.for_distance:
            low, _ = even_rule(candidate.table)
            return low, low, 0.0
        if np.max(bounds) <= 0:
            bounds = self.predicted_bounds(candidate.table, 0.0)
        low, high = largest(bounds)
        best = float(bounds[low, high])
        levels = len(bounds) - 1
        is_both = low > 0 and high < levels
        if is_both or low == levels or high == 0 or best <= 0 or not self._is_pure:
            return low, high, best
        # If both inputs are equally easy to guess, the two-sided rule is better, since it makes
        # twice as many guesses. Yet in a third of such audits, the one-sided rule has the larger
        # predicted bound, by luck.
        if low == 0:
            two_sided = 1 + int(np.argmax(bounds[1 : high + 1, high])), high
        else:
            two_sided = low, low + int(np.argmax(bounds[low, low:levels]))
        # If one fit gives the estimates of all levels, the log-odds of both guesses share much of
        # their error, in the ratio of the two penalties.
        is_one_fit = candidate.estimate is not None and candidate.estimate.is_one_fit
        luck = tuning.PENALTY_ONE_FIT / tuning.PENALTY_SHRUNK if is_one_fit else 1.0
        if bounds[two_sided] > 0 and _look_alike(candidate.table, *two_sided, luck):
            return *two_sided, float(bounds[two_sided])
        return low, high, best

    def predicted_bounds(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return the predicted bound of every rule of a table, lowered by `penalty` standard
        errors."""
        if self.for_delta:
            return predicted_delta(table, self.point.epsilon, self.future_draws, penalty)
        return predicted_epsilon(table, self.point.delta, self.future_draws, penalty)

    def perfect_bound(self, arms: Sequence[int]) -> float:
        """Return the predicted bound of a rule that guesses the input of every draw right: an upper
        limit for all rules. `arms` are the numbers of draws of d1 and d2."""
        perfect = np.array([[0, arms[1]], [arms[0], 0], [0, 0]], dtype=np.int64)
        penalty = tuning.PENALTY + self._is_pure * tuning.PENALTY_WITHOUT_DELTA
        return float(np.max(self.predicted_bounds(RuleTable.of(perfect), penalty)))

    def _penalty_of_smoothed(self, candidate: Candidate) -> float | None:
        """Return the penalty of bounds from smoothed counts; None if these are not used."""
        if not candidate.is_smooth or self.for_delta:
            return None
        if candidate.smoothed.follows_score:
            return tuning.PENALTY_ONE_FIT
        return tuning.PENALTY_SMOOTHED if self._is_pure else None


def _penalty_of(estimate: ExpectedDraws) -> float:
    if estimate.variance is not None:  # `RuleTable.of_monotone` lowers right guesses instead
        return 0.0
    return tuning.PENALTY_ONE_FIT if estimate.is_one_fit else tuning.PENALTY_SHRUNK


def rank_key(candidate: Candidate, objective: Objective) -> tuple[float, float]:
    """Return the key by which candidates are ranked: (bound, growth). `bound` is the largest
    predicted bound after a discount. `growth` decides between equal bounds: the largest predicted
    log wealth against the claim ε = 0.

    The bound is multiplied by 0.9 (`tuning.MANY_CELLS_FACTOR`) if the candidate orders many cells
    by counts that are not shrunk, and by 1 - 2 / √draws if levels are bins of a score.
    """
    bound, growth = _largest_predictions(candidate, objective)
    if candidate.has_many_cells:
        bound *= tuning.MANY_CELLS_FACTOR
    if candidate.has_score:
        bound *= max(0.0, 1 - tuning.DEVIATIONS / np.sqrt(candidate.table.draws))
    # Rounded to four digits, since a smaller difference is noise.
    return (float(f"{max(bound, 0.0):.4g}"), growth)


def best_predicted(candidate: Candidate, objective: Objective) -> float:
    """Return the largest predicted bound over the rules of a candidate; 0 if none is positive."""
    return max(0.0, float(f"{_largest_predictions(candidate, objective)[0]:.4g}"))


def best_of(candidates: Sequence[Candidate], objective: Objective) -> Candidate:
    """Return the candidate with the largest `rank_key`; among equal keys, the first candidate.

    There are two exceptions. If no predicted bound is positive, predictions without the penalty are
    ranked; for a distance, right guesses of the `even_rule` are. If the bound is for ε and the
    smoothed log-odds of the winner follow a score, the candidates for which this is so and whose
    bounds are at least 85 % of the winner's are compared by likelihood. A bound depends on the luck
    of a few rare outputs, a likelihood on all draws.
    """
    winner = max(candidates, key=lambda candidate: rank_key(candidate, objective))
    if rank_key(winner, objective)[0] == 0:
        if objective.for_distance:
            return max(candidates, key=lambda candidate: even_rule(candidate.table)[1])
        return max(
            candidates,
            key=lambda candidate: np.max(objective.predicted_bounds(candidate.table, 0.0)),
        )
    if objective.for_delta or not winner.is_smooth or not winner.smoothed.follows_score:
        return winner
    enough = tuning.NEARLY_EQUAL_SHARE * rank_key(winner, objective)[0]
    near = [
        candidate
        for candidate in candidates
        if candidate.is_smooth and rank_key(candidate, objective)[0] >= enough
    ]
    following = [candidate for candidate in near if candidate.smoothed.follows_score]
    return max(following, key=lambda candidate: candidate.smoothed.log_likelihood)


def plainest(winner: Candidate, candidates: Sequence[Candidate], objective: Objective) -> Candidate:
    """Return the candidate with the simplest events, by `plainness`, among those whose predicted
    bound is within a standard error of the winner's. Return the winner if none of them has simpler
    events.

    A candidate that is not predicted to refute the claim does not replace one that is. A winner
    with a `plainness` below 3 is never replaced, since with few draws a standard error may be half
    of its bound.
    """
    bound = best_predicted(winner, objective)
    if bound == 0 or len(candidates) == 1 or plainness(winner, objective) < 3:
        return winner
    least = float(np.max(objective.bounds(winner, further=1.0)))
    if bound > objective.needed:
        least = max(least, math.nextafter(objective.needed, math.inf))
    near = [candidate for candidate in candidates if best_predicted(candidate, objective) >= least]
    near.sort(key=lambda candidate: -best_predicted(candidate, objective))
    return min([winner, *near], key=lambda candidate: plainness(candidate, objective))


def plainness(candidate: Candidate, objective: Objective) -> int:
    """Return how complex the events of a candidate's best rule are, by the more complex one: 0 for
    a single value of the output or of one coordinate; 1 for an interval of one coordinate; 2 for a
    few values or intervals, or for the agreement of two entries; 3 for many of them, or for an
    event of several coordinates, such as a score."""
    if candidate.has_score:
        return 3
    rule = largest(objective.bounds(candidate))
    guesses, level = guesses_of(rule, len(candidate.counts)), candidate.level_map()
    events = [level.alternatives(guesses == guess) for guess in (1, -1)]
    if any(event is None or sum(event) > MAX_LISTED_ITEMS for event in events):
        return 3
    return max(2 if sum(event) > 1 else event[1] for event in events if event)


def refutes(candidate: Candidate, objective: Objective, deviations: float | None = None) -> bool:
    """Return whether a candidate is predicted to refute the claim, after the penalty of selection,
    which is raised to `deviations` standard errors if it is smaller. None stands for
    `tuning.DEVIATIONS`."""
    least = tuning.DEVIATIONS if deviations is None else deviations
    bounds = objective.bounds(candidate, fixed_before=False, least=least)
    return float(np.max(bounds)) > objective.needed


def _largest_predictions(candidate: Candidate, objective: Objective) -> tuple[float, float]:
    """Return (largest predicted bound, largest predicted log wealth of bets against ε = 0)."""
    if objective not in candidate.predictions:
        no_loss = ProfilePoint(0.0, objective.point.delta)
        candidate.predictions[objective] = (
            float(np.max(objective.bounds(candidate))),
            float(np.max(predicted_growth(candidate.table, no_loss))),
        )
    return candidate.predictions[objective]


def _look_alike(table: RuleTable, low: int, high: int, luck: float) -> bool:
    """Return whether guesses of d1 and of d2 seem to be right equally often."""
    # This is so if the Bayes factor favours the hypothesis of equal log(right / wrong) over a
    # normal difference whose standard deviation is half of the larger value.
    levels = len(table.correct) - 1
    sides = (low, levels), (0, high)
    ratios = [math.log((table.correct[side] + 0.5) / (table.wrong[side] + 0.5)) for side in sides]
    error = sum(1 / (table.correct[side] + 0.5) + 1 / (table.wrong[side] + 0.5) for side in sides)
    error *= luck**2
    spread = (tuning.SPREAD_OF_DIFFERENCES * max(ratios)) ** 2 / error
    distance = (ratios[0] - ratios[1]) ** 2 / error
    return bool(math.log1p(spread) > distance * spread / (1 + spread))
