"""Scores of some columns, and how well each explains held-out draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive, summed
from dpaudit.attacks.banded import banded_sums
from dpaudit.attacks.prefixes import prefixes
from dpaudit.attacks.weighted_sums import logistic
from dpaudit.attacks.whitened import innovations
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import OrderedBins, Scorer, by_score
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import LARGEST_SCORE
from dpaudit.levels.piecewise_logit import probability, softplus
from dpaudit.levels.scores import Scored
from dpaudit.outcomes import Outcomes
from dpaudit.outcomes.tables import Table

# Scorers of several columns.
SCORING: tuple[Scorer, ...] = (additive, innovations, prefixes, banded_sums, logistic)
# Scorers, at most, that are fitted to all draws after a comparison on some.
_CLOSER = 2
# Newton steps to the offset; nats of one step, at most; and of the last step.
_NEWTON_STEPS, _FARTHEST, _CLOSE = 40, 1.0, 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A score of some columns.

    names: names of the columns.
    gain: nats by which the score explains held-out inputs better than their frequency does.
    """

    names: Sequence[str]
    attack: Scorer
    scored: Scored
    halves: FloatArray
    gain: float


def fits(names: Sequence[str], selection: SelectionDraws, attacks: Iterable[Scorer]) -> list[Fit]:
    """Return the two scores of some columns that explain held-out draws best, the best one
    first."""
    inner = SelectionDraws(only(names, selection.outcomes), selection.is_d1)
    result = [
        Fit(
            names, attack, one.scored, one.scored.halves, gain(one.scored.held_out, selection.is_d1)
        )
        for attack in (attacks if len(names) > 1 else (_alone,))
        for one in attack(inner)
        if isinstance(one, OrderedBins)
        if one.scored is not None and one.scored.halves is not None
    ]
    return sorted(result, key=lambda one: -one.gain)[:_CLOSER]


def only(names: Iterable[str], outcomes: Outcomes) -> Table:
    """Return outcomes reduced to the columns of these names."""
    return Table(tuple(outcomes.named(names)), outcomes.size)


def _alone(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes by a single column."""
    return [by_score(summed(selection, selection.outcomes.columns), selection)]


def gain(held_out: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return the nats by which held-out scores plus a constant explain the inputs better than
    the frequency of each input does. A draw without a score (NaN) is explained by the frequency."""
    usual, scores = (
        np.full(len(is_d1), log_odds(is_d1)),
        np.clip(held_out, -LARGEST_SCORE, LARGEST_SCORE),
    )
    odds = np.where(np.isnan(scores), usual, scores + offset(scores, is_d1))
    return float(np.sum(softplus(usual) - softplus(odds) + is_d1 * (odds - usual)))


def offset(scores: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return the constant that makes scores log-odds that predict the observed number of draws
    of d1. (The scores of some scorers contain the frequency of the inputs, those of others do
    not.)"""
    known = ~np.isnan(scores)
    scores, odds = scores[known], log_odds(is_d1[known])
    wanted = len(scores) * float(probability(np.array([odds]))[0])
    result = 0.0
    for _ in range(_NEWTON_STEPS):
        share = probability(scores + result)
        bend = max(1e-9, float(np.sum(share * (1 - share))))
        step = min(_FARTHEST, max(-_FARTHEST, (wanted - float(share.sum())) / bend))
        result += step
        if abs(step) < _CLOSE:
            break
    return result


def log_odds(is_d1: NDArray[np.bool_]) -> float:
    """Return the log-odds of d1 among draws."""
    first = int(np.count_nonzero(is_d1))
    return math.log((first + 0.5) / (len(is_d1) - first + 0.5))
