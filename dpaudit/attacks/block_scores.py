"""Fits of several scorers to some columns, and how well each fit explains held-out draws.

`independent_blocks.py` (outputs with several releases) and `by_output_type.py` (outputs of several
types) divide outcomes into parts and call `fits` for each part. A score explains draws well if the
log-likelihood of their inputs, given the score, is large.
"""

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

# Scorers that are tried for a part with several columns.
SCORING: tuple[Scorer, ...] = (additive, innovations, prefixes, banded_sums, logistic)
# Number of scorers that are fitted to all draws, after a comparison on some of the draws.
_CLOSER = 2
# Newton's method for the offset: number of steps, longest step, and a step small enough to end
# with, in nats.
_NEWTON_STEPS, _FARTHEST, _CLOSE = 40, 1.0, 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A score of some columns.

    names: names of the columns.
    attack: the scorer that made the score.
    scored: the score of every draw.
    halves: (2, draws), the scores by fits to two halves of the draws.
    gain: log-likelihood of the inputs of held-out draws given the score, minus that given only the
        frequency of each input, in nats.
    """

    names: Sequence[str]
    attack: Scorer
    scored: Scored
    halves: FloatArray
    gain: float


def fits(names: Sequence[str], selection: SelectionDraws, attacks: Iterable[Scorer]) -> list[Fit]:
    """Return the at most two scores of some columns that explain held-out draws best, the better
    score first.

    names: names of the columns.
    attacks: the scorers to try. For a single column, its log-ratios are used instead.
    """
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
    """Return outcomes reduced to the columns with these names."""
    return Table(tuple(outcomes.named(names)), outcomes.size)


def _alone(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes by the log-ratios of a single column."""
    return [by_score(summed(selection, selection.outcomes.columns), selection)]


def gain(held_out: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return the log-likelihood of the inputs given held-out scores plus a constant, minus that
    given only the frequency of each input, in nats. A draw without a score (NaN) adds 0."""
    usual, scores = (
        np.full(len(is_d1), log_odds(is_d1)),
        np.clip(held_out, -LARGEST_SCORE, LARGEST_SCORE),
    )
    odds = np.where(np.isnan(scores), usual, scores + offset(scores, is_d1))
    return float(np.sum(softplus(usual) - softplus(odds) + is_d1 * (odds - usual)))


def offset(scores: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return the constant to add to scores, so that they are log-odds of d1 that predict as many
    draws of d1 as observed. (Some scorers include the frequency of the inputs in the score, others
    do not.)"""
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
    """Return the log-odds of d1, smoothed by adding ½ to both numbers of draws."""
    first = int(np.count_nonzero(is_d1))
    return math.log((first + 0.5) / (len(is_d1) - first + 0.5))
