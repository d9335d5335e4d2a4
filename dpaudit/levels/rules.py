"""Rules and witnesses, and predictions of the bounds that they will certify.

A candidate orders outcomes into levels (bins). A rule guesses d2 below level l and d1 from level u
on, l ≤ u, and abstains between. All pairs (l, u) are tabled together: entry (l, u) of a table is
about one rule. `attacks/objective.py` calls the predictions with counts of learning draws.

The witness of a Rényi divergence is a function of the outcome that certifies a lower bound on the
divergence between the outputs on d1 and on d2. It is the log-ratio of the levels among selection
draws, capped on both sides: without a cap, the mean of exp(a · witness) at order a would depend on
a few draws. `auditing/` calls `most_telling_witness` before it certifies (docs/method.md §6).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.limits import TINY
from dpaudit.stats.witness import Witness, best_stakes, divergence_lower


def pooled_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return isotonic counts: neighbouring cells are pooled until (first + ½) / (second + ½) rises.

    counts: (cells, 2). In the result each cell has the counts of its pooled block, and a cell
        without draws joins a neighbour. Without the ½ the shares would be the maximum-likelihood
        fit under a rising order (Ayer et al. 1955); with the ½ smoothed log-ratios rise, too.
    """
    if len(counts) == 0:
        return np.empty((0, 2))
    starts: list[int] = []
    firsts: list[float] = []
    seconds: list[float] = []
    # The learner's inner loop: the last block is held in variables, with ½ added to both counts.
    pairs = iter((counts + 0.5).tolist())
    start, (first, second) = 0, next(pairs)
    for cell, (ahead, behind) in enumerate(pairs, 1):
        if first * behind < ahead * second and first + second > 1 and ahead + behind > 1:
            starts.append(start)
            firsts.append(first)
            seconds.append(second)
            start, first, second = cell, ahead, behind
            continue
        first, second = first + ahead - 0.5, second + behind - 0.5
        while starts and firsts[-1] * second >= first * seconds[-1]:
            start = starts.pop()
            first, second = first + firsts.pop() - 0.5, second + seconds.pop() - 0.5
    blocks = np.array([[*firsts, first], [*seconds, second]]).T - 0.5
    return np.repeat(blocks, np.diff([*starts, start, len(counts)]), axis=0)


# Largest probability whose log-odds are computed.
_NEARLY_1 = 1 - 1e-12
# Standard errors that the exact bound is expected to lose on the draws to come: a little more than
# the 2.33 of a one-sided 99 % bound.
_LOSS_TO_COME = 2.4


@dataclass(frozen=True, slots=True, eq=False)
class RuleTable:
    """Expected right and wrong guesses of every rule.

    correct, wrong: (levels + 1, levels + 1), expected right and wrong guesses of the rule that
        guesses d2 below level l (row) and d1 from level u (column) on.
    h: by rule, the factor h of δ: 1 for a rule with both guesses, ½ for a rule with one
        (docs/method.md §2).
    valid: by rule, whether l ≤ u.
    draws: number of draws that the guesses are out of.
    """

    correct: FloatArray
    wrong: FloatArray
    h: FloatArray
    valid: NDArray[np.bool_]
    draws: int

    @classmethod
    def of(cls, held_out: IntArray) -> RuleTable:
        """Return the table of counts by level and input after isotonic smoothing.

        held_out: (levels + 1, 2); the last level is for unseen outcomes and has no place in the
            order.
        """
        return cls.of_smooth(_risen(held_out[:-1]), int(held_out.sum()))

    @classmethod
    def evened(cls, held_out: IntArray) -> RuleTable:
        """Return the table of `RuleTable.of`, scaled as if both inputs had been drawn equally
        often."""
        ordered = evened(_risen(held_out[:-1]), held_out.sum(axis=0))
        return cls.of_smooth(ordered, int(held_out.sum()))

    @classmethod
    def of_smooth(
        cls, ordered: FloatArray, draws: int, variance: FloatArray | None = None
    ) -> RuleTable:
        """Return the table of counts whose share of d1 rises from level to level.

        ordered: (levels, 2), by level and input.
        draws: number of all draws, unseen outcomes included.
        variance: (levels,), variance of the expected draws of d1 by level. If given, right guesses
            are lowered, and wrong guesses raised, by `tuning.DEVIATIONS` standard deviations.
        """
        below = np.concatenate([np.zeros((1, 2)), np.cumsum(ordered, axis=0)])
        above = below[-1] - below
        place = np.arange(len(below))
        low, high = place[:, None], place[None, :]
        h = np.where((low > 0) & (high < len(ordered)), 1.0, 0.5)
        correct = below[:, None, 1] + above[None, :, 0]
        wrong = below[:, None, 0] + above[None, :, 1]
        if variance is not None:
            upto = np.concatenate([[0.0], np.cumsum(variance)])
            off = tuning.DEVIATIONS * np.sqrt(upto[:, None] + (upto[-1] - upto)[None, :])
            off = np.minimum(off, correct)
            correct, wrong = correct - off, wrong + off
        return cls(
            correct=correct,
            wrong=wrong,
            h=h,
            valid=low <= high,
            draws=draws,
        )

    def guesses(self, place: int, levels: int, unseen: int = 0) -> IntArray:
        """Return the guess of one rule at every level: (levels,), 1 for d1, -1 for d2, 0 for none.

        place: flat index of the rule in the table.
        levels: number of levels, the last one for unseen outcomes included.
        unseen: the guess at the last level.
        """
        low, high = divmod(place, self.correct.shape[1])
        rule = np.zeros(levels, dtype=np.int64)
        rule[:low] = -1
        rule[high : levels - 1] = 1
        rule[levels - 1] = unseen
        return rule


def evened(draws: FloatArray | IntArray, arms: NDArray[np.integer]) -> FloatArray:
    """Return draws by level and input, scaled as if both inputs had been drawn equally often. This
    is expected of later draws; without it, luck in the coin would favour guesses on one input.

    arms: (2,), number of all draws of d1 and of d2.
    """
    return np.asarray(draws * (arms.sum() / 2 / np.maximum(arms, 1)))


def predicted_epsilon(table: RuleTable, delta: float, coming: int, penalty: float) -> FloatArray:
    """Return the ε that every rule is predicted to certify at δ on `coming` draws: (levels + 1,
    levels + 1). It may be negative, and is -inf for invalid rules.

    The prediction is Wilson's lower bound on the share of right guesses, in log-odds. Guesses that
    δ excuses are subtracted first.
    penalty: standard errors subtracted for the luck of selection; the errors of certification are
        added in quadrature.
    """
    ratio = table.draws / max(1, coming)
    excused = table.h * delta * table.draws
    noise = math.sqrt(penalty**2 + _LOSS_TO_COME**2 * ratio)
    correct = table.correct - excused - noise * np.sqrt(excused)
    return np.where(table.valid, _logit(_wilson_lower(correct, table.wrong, noise)), -np.inf)


def predicted_growth(table: RuleTable, point: ProfilePoint) -> FloatArray:
    """Return the predicted log wealth (nats) of bets on every rule, after as many draws as were
    learned from: (levels + 1, levels + 1).

    point: the (ε, δ) that is bet against.
    """
    if point.delta == 0:
        claimed = min(1 / (1 + math.exp(-point.epsilon)), _NEARLY_1)
        guesses = table.correct + table.wrong
        share = np.maximum(_wilson_lower(table.correct, table.wrong, 0.5), claimed)
        growth = guesses * _divergence(share, claimed)
    else:
        odds = math.exp(min(point.epsilon, 300.0))
        spared = table.h * point.delta * table.draws
        excess = table.correct - odds * table.wrong - spared
        variance = table.correct + odds**2 * (table.wrong + 1)
        growth = np.maximum(excess - 0.5 * np.sqrt(variance), 0.0) ** 2 / (2 * variance)
    return np.where(table.valid, growth, -np.inf)


def predicted_delta(table: RuleTable, epsilon: float, coming: int, penalty: float) -> FloatArray:
    """Return the δ at ε that every rule is predicted to certify on `coming` draws: (levels + 1,
    levels + 1). It may be negative. `penalty` and errors are as in `predicted_epsilon`."""
    odds = math.exp(min(epsilon, 300.0))
    noise = math.sqrt(penalty**2 + _LOSS_TO_COME**2 * table.draws / max(1, coming))
    # Fewer guesses may be wrong here than on the draws to come: an upper bound of Poisson counts.
    missed = noise**2 / 2 + noise * np.sqrt(table.wrong + noise**2 / 4)
    error = np.sqrt(noise**2 * table.correct + (odds * missed) ** 2)
    lower = table.correct - odds * table.wrong - error
    return np.where(table.valid, lower / (table.h * table.draws), -np.inf)


def evidence_of(
    correct: FloatArray, wrong: FloatArray, point: ProfilePoint, draws: int, h: float
) -> FloatArray:
    """Return the evidence (nats) of guesses against a claimed point (ε, δ).

    It is the number of guesses times the Kullback-Leibler divergence of the share of right guesses
    from e^ε / (1 + e^ε), the largest share under the claim; 0 below that share.
    correct, wrong: numbers of right and wrong guesses.
    draws: number of draws that the guesses are out of.
    h: factor of δ; h · δ · draws right guesses are excused and subtracted first (docs/method.md
        §2).
    """
    excused = h * point.delta * draws
    left = np.maximum(np.asarray(correct, dtype=float) - excused, 1e-9)
    claimed = min(1 / (1 + math.exp(-point.epsilon)), _NEARLY_1)
    share = np.maximum(left / (left + wrong), claimed)
    return np.asarray((left + wrong) * _divergence(share, claimed))


def never_abstaining(table: RuleTable) -> FloatArray:
    """Return the right guesses of the rules that guess at every level (l = u); -inf for other
    rules."""
    return np.where(np.eye(len(table.correct), dtype=bool), table.correct, -np.inf)


def _risen(ordered: IntArray) -> FloatArray:
    """Return counts by level and input with the share of d1 made monotone; the draws of a level
    stay."""
    pooled = pooled_counts(ordered)
    masses = ordered.sum(axis=1, keepdims=True)
    return np.asarray(masses * pooled / np.maximum(1.0, pooled.sum(axis=1, keepdims=True)))


def _wilson_lower(correct: FloatArray, wrong: FloatArray, z: float) -> FloatArray:
    """Return Wilson's lower bound on the share of right guesses, z standard errors below; 0 if no
    guess is right."""
    total = np.maximum(correct + wrong, 1e-9)
    share = np.clip(correct / total, 0.0, 1.0)
    spread = z * np.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    lower = (share + z**2 / (2 * total) - spread) / (1 + z**2 / total)
    return np.where(correct > 0, lower, 0.0)


def _logit(share: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - np.log1p(-np.minimum(share, _NEARLY_1)))


def _divergence(share: FloatArray, claimed: float) -> FloatArray:
    """Return the Kullback-Leibler divergence, in nats, of a Bernoulli law with probability `share`
    from a Bernoulli law with probability `claimed`; share is in [claimed, 1)."""
    share = np.minimum(share, _NEARLY_1)
    right = share * np.log(share / claimed)
    return np.asarray(right + (1 - share) * (np.log1p(-share) - math.log1p(-claimed)))


# Caps on the absolute log-ratio that are tried.
_CAPS = np.geomspace(0.1, 8.0, 20)


def most_telling_witness(
    expected: FloatArray, limits: Mapping[float, float], coming: float, alpha: float
) -> Witness | None:
    """Return the witness with the largest predicted ratio of certified divergence to allowed
    divergence; None if no witness is predicted to certify a divergence above 0.

    expected: (levels, 2), expected draws by level and input, out of all learning draws.
    limits: allowed divergence for each order.
    coming: number of draws to certify with.
    alpha: error probability of the certified bound.
    """
    laws = np.maximum(expected, TINY)
    laws = laws / laws.sum(axis=0)
    result = sorted(_every(laws, limits, coming / 2, alpha), key=lambda one: -one[0])
    best, most = None, 0.0
    # The best three by a formula for small stakes are computed exactly.
    for _, order, sign, values, stakes in result[:3]:
        witness = Witness(order, sign > 0, tuple(values.tolist()), stakes)
        lower = divergence_lower(witness, laws * coming / 2, alpha)
        if lower / max(limits[witness.order], TINY) > most:
            best, most = witness, lower / max(limits[witness.order], TINY)
    return best


def _every(
    laws: FloatArray, limits: Mapping[float, float], each: float, alpha: float
) -> Iterator[tuple[float, float, int, FloatArray, tuple[float, float]]]:
    """Yield one tuple for each witness that is predicted to certify a positive divergence:
    predicted ratio of certified to allowed divergence, order, direction (1 or -1), values by level,
    and stakes.

    laws: (levels, 2), probability of each level on d1 and on d2.
    each: number of draws of each input to certify with.
    """
    log_ratio = np.log(laws[:, 0] / laws[:, 1])
    for order, allowed in limits.items():
        for sign, both in ((1, laws), (-1, laws[:, ::-1])):
            # The exponential of order times cap is finite.
            for cap in _CAPS[order * _CAPS < 200.0]:
                values = np.clip(sign * log_ratio, -cap, cap)
                stakes, predicted = best_stakes(order, values, both, each, alpha)
                if predicted > 0:
                    yield predicted / max(allowed, TINY), order, sign, values, stakes
