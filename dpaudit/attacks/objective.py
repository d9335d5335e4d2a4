"""The objective: predictions of the bound that a rule will certify on the draws to come.

A rule guesses the input from the level (bin) of an outcome. A candidate is an order of outcomes,
cut into levels, with counts of held-out draws. Two predictions are made from these counts, both
lowered by a penalty for the luck of selection and by the expected loss of the exact test:

* `Objective.promised` ranks candidates. It uses counts made monotone over levels (isotonic
  regression) with a large penalty, or estimates that are shrunk already.
* `Objective.best_rule` picks the cut-offs of one candidate. Where levels are smooth, it uses
  smoothed counts with a small penalty.

`learning.py` and `freezing.py` call `best_of` for the candidate and `Objective.best_rule` for its
cut-offs (docs/method.md §5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, RareOutputs
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.rules import RuleTable, predicted_delta, predicted_epsilon, predicted_growth


@dataclass(frozen=True, slots=True)
class Objective:
    """The quantity to maximise: the bound that a rule will certify on `coming` draws. The bound is
    ε at the δ of `point` or, with `for_delta`, δ at the ε of `point`.

    coming: number of draws to come, on which the rule is tested.
    points: all points of the claim's privacy profile, any of which the rare rule may test; empty:
        only `point`.
    reserve: whether bettors keep part of their stake for rare outputs, which only many draws show.
    counted: whether candidates were fixed before the draws that they are compared by. Then luck can
        only choose cut-offs, and smoothed counts rank candidates, too. Scores are excepted, since a
        score may be no better than a column that it adds up.
    """

    point: ProfilePoint
    coming: int
    for_delta: bool = False
    points: tuple[ProfilePoint, ...] = ()
    reserve: bool = False
    counted: bool = False

    def promised(self, candidate: Candidate) -> FloatArray:
        """Return the predicted bound of every rule of a candidate, to rank candidates by.

        Entry (l, u) is the bound of the rule that guesses d2 below level l and d1 from level u on:
        (levels + 1, levels + 1).
        """
        if self.counted and not candidate.has_score:
            smooth = self._from_smoothed(candidate)
            if smooth is not None:
                return smooth
        bound = self.lowered(candidate.table, candidate.penalty(is_pure=self._is_pure))
        if isinstance(candidate, RareOutputs):
            counts = RuleTable.evened(candidate.held_out)
            return np.minimum(bound, self._from_counts(counts, candidate.count_penalty))
        return bound

    def best_rule(self, candidate: Candidate, *, cautious: bool = False) -> tuple[int, int, float]:
        """Return (l, u, bound) for the best rule of a candidate, which guesses d2 below level l and
        d1 from level u on, and its predicted bound.

        It is the rule with the largest predicted bound. But with δ = 0 a rule that guesses a single
        input is replaced by the best rule that also guesses the other one, unless the two sides
        clearly differ.
        cautious: keep the penalty even if no rule is then predicted to certify anything. Bets need
            the penalty; the exact test has nothing to lose without it.
        """
        bounds = self._from_smoothed(candidate)
        if bounds is None:
            bounds = self.promised(candidate)
        if not cautious and np.max(bounds) <= 0:
            bounds = self.lowered(candidate.table, 0.0)
        low, high = divmod(int(np.argmax(bounds)), bounds.shape[1])
        best = float(bounds[low, high])
        levels = len(bounds) - 1
        is_both = low > 0 and high < levels
        if is_both or low == levels or high == 0 or best <= 0 or not self._is_pure:
            return low, high, best
        # With δ = 0, a rule that guesses one input alone looks better by luck in a third of all
        # audits whose two sides are alike, although guessing both doubles the guesses.
        if low == 0:
            other = 1 + int(np.argmax(bounds[1 : high + 1, high])), high
        else:
            other = low, low + int(np.argmax(bounds[low, low:levels]))
        luck = tuning.PENALTY_POOLED / tuning.PENALTY_COUNTED if candidate.is_pooled else 1.0
        if bounds[other] > 0 and _look_alike(candidate.table, *other, luck):
            return *other, float(bounds[other])
        return low, high, best

    def lowered(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return the predicted bound of every rule of a table, with `penalty` standard errors
        subtracted."""
        if self.for_delta:
            return predicted_delta(table, self.point.epsilon, self.coming, penalty)
        return predicted_epsilon(table, self.point.delta, self.coming, penalty)

    def perfect_bound(self, arms: Sequence[int]) -> float:
        """Return the predicted bound of a rule that is never wrong.

        arms: number of learning draws of d1, and of d2.
        """
        perfect = np.array([[0, arms[1]], [arms[0], 0], [0, 0]], dtype=np.int64)
        return float(np.max(self._from_counts(RuleTable.of(perfect), tuning.PENALTY)))

    def _from_smoothed(self, candidate: Candidate) -> FloatArray | None:
        """Return the predicted bound of every rule from counts smoothed over levels, with a small
        penalty; None where the log-ratios of neighbouring levels need not be similar, or no small
        penalty is valid."""
        if not candidate.is_smooth or self.for_delta:
            return None
        fit = candidate.smoothed
        table = RuleTable.of_smooth(fit.draws, int(candidate.held_out.sum()))
        if fit.follows:
            return self.lowered(table, tuning.PENALTY_POOLED)
        return self.lowered(table, tuning.PENALTY_SMOOTHED) if self._is_pure else None

    def _from_counts(self, table: RuleTable, penalty: float) -> FloatArray:
        return self.lowered(table, penalty + self._is_pure * tuning.PENALTY_WITHOUT_DELTA)

    @property
    def needed(self) -> float:
        """The bound that refutes the claim if it is exceeded: ε or, with `for_delta`, δ."""
        return self.point.delta if self.for_delta else self.point.epsilon

    @property
    def _is_pure(self) -> bool:
        return self.point.delta == 0 and not self.for_delta


def promise(candidate: Candidate, objective: Objective) -> tuple[float, float]:
    """Return two numbers that rank candidates, the second for ties: the largest predicted bound,
    and the largest predicted log wealth of bets against the claim of no privacy loss.

    The bound is multiplied by `tuning.LESS_SIMPLE` for an order of many cells, and by 1 - 2 /
    √draws for a score.
    """
    bound, growth = _largest(candidate, objective)
    worth = bound if candidate.count_penalty <= tuning.PENALTY else tuning.LESS_SIMPLE * bound
    if candidate.has_score:
        worth *= max(0.0, 1 - tuning.DEVIATIONS / np.sqrt(candidate.table.draws))
    # Four digits: a smaller difference is noise, and the simpler scorer wins.
    return (float(f"{max(worth, 0.0):.4g}"), growth)


def best_predicted(candidate: Candidate, objective: Objective) -> float:
    """Return the largest predicted bound over the rules of a candidate; 0 if no bound is
    positive."""
    return max(0.0, float(f"{_largest(candidate, objective)[0]:.4g}"))


def best_of(
    candidates: Sequence[Candidate], objective: Objective, *, cautious: bool = False
) -> Candidate:
    """Return the candidate with the largest promise (see `promise`).

    If the log-odds of this candidate are a multiple of its score, it competes with all such
    candidates that promise at least 85 % as much, and the largest likelihood wins: a promise
    depends on the luck of a few rare outputs, a likelihood on all draws. This second comparison is
    left out if the bound is one for δ.

    cautious: do not fall back on predictions without a penalty where all promises are 0.
    """
    best = max(candidates, key=lambda one: promise(one, objective))
    if not cautious and promise(best, objective)[0] == 0:
        return max(candidates, key=lambda one: np.max(objective.lowered(one.table, 0.0)))
    if objective.for_delta or not best.is_smooth or not best.smoothed.follows:
        return best
    enough = tuning.ABOUT_AS_MUCH * promise(best, objective)[0]
    near = [one for one in candidates if one.is_smooth and promise(one, objective)[0] >= enough]
    following = [one for one in near if one.smoothed.follows]
    return max(following, key=lambda one: one.smoothed.worth)


def refutes(candidate: Candidate, objective: Objective, deviations: float | None = None) -> bool:
    """Return whether a candidate is predicted to refute the claim by a margin.

    deviations: margin in standard errors; None: `tuning.DEVIATIONS`. A candidate with a larger
        penalty that has no counted cells must refute the claim by its penalty.
    """
    deviations = tuning.DEVIATIONS if deviations is None else deviations
    if candidate.is_counted or deviations > candidate.count_penalty:
        return float(np.max(objective.lowered(candidate.table, deviations))) > objective.needed
    return promise(candidate, replace(objective, counted=False))[0] > objective.needed


def _largest(candidate: Candidate, objective: Objective) -> tuple[float, float]:
    if objective not in candidate.promises:
        no_loss = ProfilePoint(0.0, objective.point.delta)
        candidate.promises[objective] = (
            float(np.max(objective.promised(candidate))),
            float(np.max(predicted_growth(candidate.table, no_loss))),
        )
    return candidate.promises[objective]


def _look_alike(table: RuleTable, low: int, high: int, luck: float) -> bool:
    """Return whether guesses of d1 and guesses of d2 are right equally often, by a Bayes factor.

    The first hypothesis is that both log-ratios log(right / wrong) are equal. The second is that
    they differ by a normal number whose standard deviation is half of the larger one.

    low, high: the rule guesses d2 below level `low`, and d1 from level `high` on.
    luck: factor on the standard errors that follow from the counts.
    """
    levels = len(table.correct) - 1
    sides = (low, levels), (0, high)
    ratios = [math.log((table.correct[one] + 0.5) / (table.wrong[one] + 0.5)) for one in sides]
    error = sum(1 / (table.correct[one] + 0.5) + 1 / (table.wrong[one] + 0.5) for one in sides)
    error *= luck**2
    spread = (tuning.SPREAD_OF_DIFFERENCES * max(ratios)) ** 2 / error
    distance = (ratios[0] - ratios[1]) ** 2 / error
    return bool(math.log1p(spread) > distance * spread / (1 + spread))
