"""Tables of all rules of a candidate, and predictions of the bounds that the rules will certify.

Entry (l, u) of a table, (levels + 1, levels + 1), belongs to rule (l, u). `attacks/objective.py`
calls the predictions with counts of learning draws (docs/method.md §5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.level_map import FloatArray, IntArray


def pooled_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pool neighbouring cells into blocks until (first + ½) / (second + ½) rises from block to
    block, where first and second are the counts of a block (isotonic regression). Return, for each
    cell, the total counts of its block: (cells, 2).

    Without the ½ this would be the maximum-likelihood fit of rising shares (Ayer et al. 1955). A
    cell without draws joins a neighbour.
    """
    if len(counts) == 0:
        return np.empty((0, 2))
    starts: list[int] = []
    firsts: list[float] = []
    seconds: list[float] = []
    # Neighbouring cells are merged into blocks. `starts`, `firsts` and `seconds` list, for all
    # blocks but the last, the index of the first cell and the two counts. The variables `start`,
    # `first` and `second` hold the same numbers of the last block, for speed in this inner loop of
    # learning. ½ is added to both counts of a block.
    pairs = iter((counts + 0.5).tolist())
    start, (first, second) = 0, next(pairs)
    for cell, (n1, n2) in enumerate(pairs, 1):
        if first * n2 < n1 * second and first + second > 1 and n1 + n2 > 1:
            starts.append(start)
            firsts.append(first)
            seconds.append(second)
            start, first, second = cell, n1, n2
            continue
        first, second = first + n1 - 0.5, second + n2 - 0.5
        while starts and firsts[-1] * second >= first * seconds[-1]:
            start = starts.pop()
            first, second = first + firsts.pop() - 0.5, second + seconds.pop() - 0.5
    blocks = np.array([[*firsts, first], [*seconds, second]]).T - 0.5
    return np.repeat(blocks, np.diff([*starts, start, len(counts)]), axis=0)


# Probabilities are limited to this number before log-odds are computed: at 1 the log-odds would be
# infinite.
_MAX_PROBABILITY = 1 - 1e-12
# The exact test is expected to certify a bound this many standard errors below the estimate. It is
# a little more than the 2.33 of a one-sided normal 99 % bound, since the exact bound is wider.
_EXACT_TEST_LOSS = 2.4


@dataclass(frozen=True, slots=True, eq=False)
class RuleTable:
    """The expected numbers of right and wrong guesses of every rule of a candidate.

    correct, wrong: (levels + 1, levels + 1).
    h: the factor of δ in c ≤ e^ε w + h δ (docs/method.md (2.1)), where c and w are the
        probabilities of a right and of a wrong guess. It is 1 for a rule that guesses both inputs,
        else ½.
    possible: for each entry, whether l ≤ u, so that the rule exists.
    draws: number of all draws, with or without a guess.
    """

    correct: FloatArray
    wrong: FloatArray
    h: FloatArray
    possible: NDArray[np.bool_]
    draws: int

    @classmethod
    def of(cls, counts: IntArray) -> RuleTable:
        """Return the table from counts by level. Neighbouring levels are pooled first, so that the
        share of d1 rises.

        counts: (levels + 1, 2); the last level, for unseen outcomes, is left out.
        """
        return cls.of_monotone(_monotone(counts[:-1]), int(counts.sum()))

    @classmethod
    def of_balanced(cls, counts: IntArray) -> RuleTable:
        """Return the table as `RuleTable.of` does, but scaled as if both inputs had been drawn
        equally often."""
        ordered = balanced(_monotone(counts[:-1]), counts.sum(axis=0))
        return cls.of_monotone(ordered, int(counts.sum()))

    @classmethod
    def of_monotone(
        cls, ordered: FloatArray, draws: int, variance: FloatArray | None = None
    ) -> RuleTable:
        """Return the table from expected draws by level.

        ordered: (levels, 2), expected draws; the share of d1 rises from level to level.
        draws: number of all draws, unseen outcomes included.
        variance: (levels,), the variance of the expected draws of d1. If given, right guesses are
            lowered, and wrong guesses raised, by `tuning.DEVIATIONS` standard deviations.
        """
        below = np.concatenate([np.zeros((1, 2)), np.cumsum(ordered, axis=0)])
        above = below[-1] - below
        number = np.arange(len(below))
        low, high = number[:, None], number[None, :]
        h = np.where((low > 0) & (high < len(ordered)), 1.0, 0.5)
        correct = below[:, None, 1] + above[None, :, 0]
        wrong = below[:, None, 0] + above[None, :, 1]
        if variance is not None:
            upto = np.concatenate([[0.0], np.cumsum(variance)])
            off = tuning.DEVIATIONS * np.sqrt(upto[:, None] + (upto[-1] - upto)[None, :])
            off = np.minimum(off, correct)
            correct, wrong = correct - off, wrong + off
        return cls(correct, wrong, h, possible=low <= high, draws=draws)


def balanced(draws: FloatArray | IntArray, arms: NDArray[np.integer]) -> FloatArray:
    """Return draws, (levels, 2), scaled as if both inputs had been drawn equally often. Unscaled,
    an input that happens to be drawn more often would look easier to guess."""
    return np.asarray(draws * (arms.sum() / 2 / np.maximum(arms, 1)))


def largest(bounds: FloatArray) -> tuple[int, int]:
    """Return the rule (l, u) with the largest entry in a table; the first one if several are
    equal."""
    low, high = divmod(int(np.argmax(bounds)), bounds.shape[1])
    return low, high


def guesses_of(rule: tuple[int, int], levels: int, unseen: int = 0) -> IntArray:
    """Return the guess of rule (l, u) at every level, (levels,). At the last level it is
    `unseen`."""
    low, high = rule
    guesses = np.zeros(levels, dtype=np.int64)
    guesses[:low] = -1
    guesses[high : levels - 1] = 1
    guesses[levels - 1] = unseen
    return guesses


def predicted_epsilon(
    table: RuleTable, delta: float, future_draws: int, penalty: float
) -> FloatArray:
    """Return the ε that every rule is predicted to certify at `delta` on `future_draws` draws. It
    may be negative, and is -inf for impossible rules.

    First, an upper limit of the guesses that δ excuses is subtracted from the right guesses:
    h · δ · draws, plus z standard errors. The prediction is the log-odds of Wilson's lower bound,
    at z standard errors, on the share of right guesses among the rest. Here z = √(a² + b²):
    a = `penalty` corrects for the luck of selection, and b for the distance between estimate and
    bound in the exact test.
    """
    ratio = table.draws / max(1, future_draws)
    excused = table.h * delta * table.draws
    noise = math.sqrt(penalty**2 + _EXACT_TEST_LOSS**2 * ratio)
    correct = table.correct - excused - noise * np.sqrt(excused)
    return np.where(table.possible, _logit(_wilson_lower(correct, table.wrong, noise)), -np.inf)


def predicted_growth(table: RuleTable, point: ProfilePoint) -> FloatArray:
    """Return the predicted log wealth, in nats, of a bettor on every rule against the claimed
    `point`, after as many draws as in learning. It is -inf for impossible rules."""
    if point.delta == 0:
        claimed = min(1 / (1 + math.exp(-point.epsilon)), _MAX_PROBABILITY)
        guesses = table.correct + table.wrong
        share = np.maximum(_wilson_lower(table.correct, table.wrong, 0.5), claimed)
        growth = guesses * _divergence(share, claimed)
    else:
        odds = math.exp(min(point.epsilon, 300.0))
        spared = table.h * point.delta * table.draws
        excess = table.correct - odds * table.wrong - spared
        variance = table.correct + odds**2 * (table.wrong + 1)
        growth = np.maximum(excess - 0.5 * np.sqrt(variance), 0.0) ** 2 / (2 * variance)
    return np.where(table.possible, growth, -np.inf)


def predicted_delta(
    table: RuleTable, epsilon: float, future_draws: int, penalty: float
) -> FloatArray:
    """Return the δ that every rule is predicted to certify at `epsilon` on `future_draws` draws. It
    may be negative, and is -inf for impossible rules.

    The prediction is lowered by √(a² + b²) standard errors, as in `predicted_epsilon`.
    """
    odds = math.exp(min(epsilon, 300.0))
    noise = math.sqrt(penalty**2 + _EXACT_TEST_LOSS**2 * table.draws / max(1, future_draws))
    # By luck, fewer guesses may be wrong in the learning draws than in the draws to come. So
    # `missed`, an upper bound of a Poisson count, is added to the number of wrong guesses.
    missed = noise**2 / 2 + noise * np.sqrt(table.wrong + noise**2 / 4)
    error = np.sqrt(noise**2 * table.correct + (odds * missed) ** 2)
    lower = table.correct - odds * table.wrong - error
    return np.where(table.possible, lower / (table.h * table.draws), -np.inf)


def evidence_of(
    correct: FloatArray, wrong: FloatArray, point: ProfilePoint, draws: int, h: float
) -> FloatArray:
    """Return the evidence of guesses against a claimed point (ε, δ), in nats; 0 if there is none.

    It is the number of guesses times the Kullback-Leibler divergence of two shares: the share of
    right guesses, from e^ε / (1 + e^ε), the largest share that the claim allows.

    correct, wrong: numbers of right and wrong guesses.
    draws: number of all draws, with or without a guess.
    h: factor of δ in `RuleTable`; h · δ · draws right guesses are subtracted first, since δ excuses
        them (docs/method.md §2).
    """
    excused = h * point.delta * draws
    left = np.maximum(np.asarray(correct, dtype=float) - excused, 1e-9)
    claimed = min(1 / (1 + math.exp(-point.epsilon)), _MAX_PROBABILITY)
    share = np.maximum(left / (left + wrong), claimed)
    return np.asarray((left + wrong) * _divergence(share, claimed))


def never_abstaining(table: RuleTable) -> FloatArray:
    """Return `table.correct`, but -inf for every rule that abstains at some level: for all except
    l = u."""
    return np.where(np.eye(len(table.correct), dtype=bool), table.correct, -np.inf)


def even_rule(table: RuleTable) -> tuple[int, float]:
    """Return (l, right guesses) of the rule (l, l) with the most right guesses, among those that
    guess each input at a quarter of the draws or more. If there is none, it is the rule that
    guesses both inputs most equally often, and the second number is negative."""
    guesses = table.correct + table.wrong
    of_d1 = guesses[0]
    rarer = np.minimum(of_d1, guesses[0, 0] - of_d1)
    correct = np.diagonal(table.correct)
    is_even = 4 * rarer >= guesses[0, 0]
    values = np.where(is_even, correct, rarer - guesses[0, 0])
    low = int(np.argmax(values))
    return low, float(values[low])


def _monotone(ordered: IntArray) -> FloatArray:
    """Return draws, (levels, 2), after the share of d1 was made monotone over levels."""
    pooled = pooled_counts(ordered)
    masses = ordered.sum(axis=1, keepdims=True)
    return np.asarray(masses * pooled / np.maximum(1.0, pooled.sum(axis=1, keepdims=True)))


def _wilson_lower(correct: FloatArray, wrong: FloatArray, z: float) -> FloatArray:
    """Return Wilson's lower bound on the share of right guesses, at z standard errors."""
    total = np.maximum(correct + wrong, 1e-9)
    share = np.clip(correct / total, 0.0, 1.0)
    spread = z * np.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    lower = (share + z**2 / (2 * total) - spread) / (1 + z**2 / total)
    return np.where(correct > 0, lower, 0.0)


def _logit(share: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - np.log1p(-np.minimum(share, _MAX_PROBABILITY)))


def _divergence(share: FloatArray, claimed: float) -> FloatArray:
    """Return the Kullback-Leibler divergence, in nats; share is in [claimed, 1)."""
    share = np.minimum(share, _MAX_PROBABILITY)
    right = share * np.log(share / claimed)
    return np.asarray(right + (1 - share) * (np.log1p(-share) - math.log1p(-claimed)))
