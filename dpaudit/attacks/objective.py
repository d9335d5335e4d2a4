"""What an order promises: the bound to expect on draws to come, and the growth of bets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.rules import RuleTable, predicted_delta, predicted_epsilon, predicted_growth


@dataclass(frozen=True, slots=True)
class Objective:
    """What a rule is chosen for: the largest certified ε at the point's δ or, with `for_delta`, the
    largest δ at its ε, on `coming` draws.

    points: all points of the claim, which a rare rule may be for; none: `point` alone.
    reserve: a stake is kept for late bets, on what only many draws show: for what is rare.
    counted: orders were fixed before the draws that they are compared by, so that luck has no more
    than the cut-offs to choose; a score may still be no better than one column that it adds up.
    """

    point: ProfilePoint
    coming: int
    for_delta: bool = False
    points: tuple[ProfilePoint, ...] = ()
    reserve: bool = False
    counted: bool = False

    def chosen_by(self, candidate: Candidate) -> FloatArray:
        """Return what every rule of a candidate is predicted to certify, to choose one of them."""
        ramped = self._ramped(candidate)
        return self.promised(candidate) if ramped is None else ramped

    def _ramped(self, candidate: Candidate) -> FloatArray | None:
        """Return the same by counts that ramps have smoothed, which leave little room for luck;
        None where there are none."""
        if not candidate.is_smooth or self.for_delta:
            return None
        fit = candidate.smoothed
        table = RuleTable.of_smooth(fit.draws, int(candidate.held_out.sum()))
        if fit.follows:
            return self.lowered(table, tuning.PENALTY_FOLLOWING)
        return self.lowered(table, tuning.PENALTY_RAMPED) if self._is_pure else None

    def best_rule(self, candidate: Candidate, *, boldly: bool = True) -> tuple[int, int, float]:
        """Return where the best rule of a candidate begins to abstain, where it ends, and what it
        is predicted to certify.

        Where no rule is predicted to certify anything, the exact test has nothing to lose, and the
        prediction is not lowered; bets have (`boldly`). Where a rule that guesses one input alone
        does best by luck, one that guesses the other input as well has twice the guesses: so it is
        chosen, unless the two sides are too far apart to be alike.
        """
        bounds = self.chosen_by(candidate)
        if boldly and np.max(bounds) <= 0:
            bounds = self.lowered(candidate.table, 0.0)
        low, high = divmod(int(np.argmax(bounds)), bounds.shape[1])
        best = float(bounds[low, high])
        levels = len(bounds) - 1
        is_both = low > 0 and high < levels
        if is_both or low == levels or high == 0 or best <= 0 or not self._is_pure:
            return low, high, best
        if low == 0:
            other = 1 + int(np.argmax(bounds[1 : high + 1, high])), high
        else:
            other = low, low + int(np.argmax(bounds[low, low:levels]))
        luck = _penalty_of_cells(candidate) / tuning.PENALTY_COUNTED
        if bounds[other] > 0 and _look_alike(candidate.table, *other, luck):
            return *other, float(bounds[other])
        return low, high, best

    def promised(self, candidate: Candidate) -> FloatArray:
        """Return what every rule is predicted to certify, to compare candidates by."""
        if self.counted and candidate.scored is None:
            ramped = self._ramped(candidate)
            if ramped is not None:
                return ramped
        if candidate.shrunk is None:
            return self.predicted(candidate.table, candidate.penalty)
        if candidate.fine is not None or candidate.is_foretold:
            return self.lowered(candidate.table, _penalty_of_cells(candidate))
        bound = self.lowered(candidate.table, 0.0)
        if candidate.penalty == 0:
            return bound
        # What few cells of a few draws each say together is not sure enough.
        counted = RuleTable.evened(candidate.held_out)
        return np.minimum(bound, self.predicted(counted, candidate.penalty))

    def predicted(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return what every rule is predicted to certify, lowered by a penalty."""
        return self.lowered(table, penalty + self._is_pure * tuning.PENALTY_WITHOUT_DELTA)

    def lowered(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return what every rule is predicted to certify, lowered by `penalty` standard errors."""
        if self.for_delta:
            return predicted_delta(table, self.point.epsilon, self.coming, penalty)
        return predicted_epsilon(table, self.point.delta, self.coming, penalty)

    @property
    def _is_pure(self) -> bool:
        return self.point.delta == 0 and not self.for_delta


def _penalty_of_cells(candidate: Candidate) -> float:
    """Return the standard errors that a prediction from counted cells is lowered by."""
    return tuning.PENALTY_FORETOLD if candidate.is_foretold else tuning.PENALTY_COUNTED


def _look_alike(table: RuleTable, low: int, high: int, luck: float) -> bool:
    """Return whether the guesses of the two inputs may well be right as often as each other: that
    they are is as likely beforehand as that their log-ratios differ by about half of the larger one
    (the Bayes factor of two normal laws).

    luck: how large errors are, as a share of those that the draws have by themselves.
    """
    levels = len(table.correct) - 1
    sides = (low, levels), (0, high)
    ratios = [math.log((table.correct[one] + 0.5) / (table.wrong[one] + 0.5)) for one in sides]
    error = sum(1 / (table.correct[one] + 0.5) + 1 / (table.wrong[one] + 0.5) for one in sides)
    error *= luck**2
    spread = (max(ratios) / 2) ** 2 / error
    apart = (ratios[0] - ratios[1]) ** 2 / error
    return bool(math.log1p(spread) > apart * spread / (1 + spread))


def promise(candidate: Candidate, aim: Objective) -> tuple[float, float]:
    """Return the best predicted bound, then the best predicted growth against no privacy loss."""
    bound, growth = _promised(candidate, aim)
    worth = bound if candidate.penalty <= tuning.PENALTY else tuning.LESS_SIMPLE * bound
    if candidate.scored is not None:
        worth *= max(0.0, 1 - tuning.LUCK / np.sqrt(candidate.table.draws))
    # Differences in the last places are noise, and let the simpler attack win.
    return (float(f"{max(worth, 0.0):.4g}"), growth)


def best_predicted(candidate: Candidate, aim: Objective) -> float:
    """Return the best predicted bound."""
    return max(0.0, float(f"{_promised(candidate, aim)[0]:.4g}"))


def _promised(candidate: Candidate, aim: Objective) -> tuple[float, float]:
    """Return the largest bound, and the largest growth against no privacy loss, that any rule is
    predicted to have."""
    if aim not in candidate.promises:
        no_loss = ProfilePoint(0.0, aim.point.delta)
        candidate.promises[aim] = (
            float(np.max(aim.promised(candidate))),
            float(np.max(predicted_growth(candidate.table, no_loss))),
        )
    return candidate.promises[aim]


def unlowered(candidate: Candidate, aim: Objective) -> float:
    """Return the largest bound that any rule is predicted to certify without any penalty."""
    return float(np.max(aim.lowered(candidate.table, 0.0)))


def best_of(candidates: list[Candidate], aim: Objective, *, boldly: bool = True) -> Candidate:
    """Return the candidate that promises most; of those that promise about as much, and whose
    log-ratios go along with what they order by, the one that explains the draws best: that tells
    how good an order is, where the promise depends on the luck of a few rare outputs.

    boldly: as of `Objective.best_rule`.
    """
    best = max(candidates, key=lambda one: promise(one, aim))
    if boldly and promise(best, aim)[0] == 0:
        return max(candidates, key=lambda one: unlowered(one, aim))
    if aim.for_delta or not best.is_smooth or not best.smoothed.follows:
        return best
    enough = tuning.ABOUT_AS_MUCH * promise(best, aim)[0]
    near = [one for one in candidates if one.is_smooth and promise(one, aim)[0] >= enough]
    following = [one for one in near if one.smoothed.follows]
    return max(following, key=lambda one: one.smoothed.worth)


def surely_refutes(
    candidate: Candidate, aim: Objective, deviations: float = tuning.DEVIATIONS
) -> bool:
    """Return whether an order promises to refute the claim, not by luck alone, but by so many
    standard errors; by those of its penalty, if these are more and it is none of cells."""
    is_counted = candidate.fine is not None or candidate.is_foretold
    if not is_counted and deviations <= candidate.penalty:
        return promise(candidate, replace(aim, counted=False))[0] > aim.point.epsilon
    bound = aim.lowered(candidate.table, deviations)
    return float(np.max(bound)) > aim.point.epsilon
