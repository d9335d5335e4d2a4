"""The scores that explain some columns of the selection draws best."""

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
from dpaudit.levels.piecewise_logit import probability, softplus
from dpaudit.levels.scores import Scored
from dpaudit.outcomes import Outcomes
from dpaudit.outcomes.tables import Table

# What scores columns together.
SCORING: tuple[Scorer, ...] = (additive, innovations, prefixes, banded_sums, logistic)
# Attacks that are worth fitting to all draws, of those that were fitted to some.
_CLOSER = 2
# Of the search for an offset: nats of one step at most, and when it has been found.
_NEWTON_STEPS, _FARTHEST, _CLOSE = 40, 1.0, 1e-7
# Log-odds that are farther from 0 may be infinite.
_SURE = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A score of the columns of these names. gain: the nats that it explains of held-out draws."""

    names: Sequence[str]
    attack: Scorer
    scored: Scored
    halves: FloatArray
    gain: float


def fits(names: Sequence[str], selection: SelectionDraws, attacks: Iterable[Scorer]) -> list[Fit]:
    """Return the scores of some columns that explain held-out draws best, the best one first."""
    inner = SelectionDraws(only(names, selection.outcomes), selection.is_d1)
    found = [
        Fit(
            names, attack, one.scored, one.scored.halves, gain(one.scored.held_out, selection.is_d1)
        )
        for attack in (attacks if len(names) > 1 else (_alone,))
        for one in attack(inner)
        if isinstance(one, OrderedBins)
        if one.scored is not None and one.scored.halves is not None
    ]
    return sorted(found, key=lambda one: -one.gain)[:_CLOSER]


def only(names: Iterable[str], outcomes: Outcomes) -> Table:
    """Return outcomes of which there is nothing but the columns of these names."""
    return Table(tuple(outcomes.named(names)), outcomes.size)


def _alone(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes by a single column."""
    return [by_score(summed(selection, selection.outcomes.columns), selection)]


def gain(held_out: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return the nats by which held-out scores, moved by one number, explain the inputs better than
    how often each came up does. A draw without a score, NaN, is explained by that alone."""
    usual, scores = np.full(len(is_d1), log_odds(is_d1)), np.clip(held_out, -_SURE, _SURE)
    odds = np.where(np.isnan(scores), usual, scores + offset(scores, is_d1))
    return float(np.sum(softplus(usual) - softplus(odds) + is_d1 * (odds - usual)))


def offset(scores: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return what makes scores log-odds that foretell as many of d1 as there are: some attacks'
    scores have in them how often each input came up, those of others have not."""
    known = ~np.isnan(scores)
    scores, odds = scores[known], log_odds(is_d1[known])
    wanted = len(scores) * float(probability(np.array([odds]))[0])
    found = 0.0
    for _ in range(_NEWTON_STEPS):
        share = probability(scores + found)
        bend = max(1e-9, float(np.sum(share * (1 - share))))
        step = min(_FARTHEST, max(-_FARTHEST, (wanted - float(share.sum())) / bend))
        found += step
        if abs(step) < _CLOSE:
            break
    return found


def log_odds(is_d1: NDArray[np.bool_]) -> float:
    """Return the log-odds of d1 among draws."""
    first = int(np.count_nonzero(is_d1))
    return math.log((first + 0.5) / (len(is_d1) - first + 0.5))
