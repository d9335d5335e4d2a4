"""Mechanisms that meet their claim exactly, as laws of levels, and a learner that believes them.

Their outputs are drawn as tallies, which is the same law as drawing outputs one by one and putting
them into levels, and a thousand times faster. Irrelevant detail splits outputs into levels of the
same log-ratio: a learner that takes noise for signal has something to fall for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import Tally
from dpaudit.stats.betting import Beliefs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DETAILS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Mechanism:
    """Probabilities of every level, (levels, 2), d1 first; it is (epsilon, delta)-DP, tightly."""

    name: str
    table: FloatArray
    epsilon: float
    delta: float = 0.0

    def tally(self, draws: int, rng: np.random.Generator) -> Tally:
        """Draw outputs, a fair coin picking the input of each."""
        return Tally(self._draw(draws, rng))

    def looks(
        self, draws: int, looks: int, rng: np.random.Generator, *, sorted_by_arm: bool = False
    ) -> IntArray:
        """Return counts (looks, levels, 2) of equal parts of a block.

        sorted_by_arm: all draws of d1 come before those of d2, as no block may be looked at.
        """
        size = draws // looks
        if not sorted_by_arm:
            return np.stack([self._draw(size, rng) for _ in range(looks)])
        ahead = int(rng.binomial(size * looks, 0.5))
        arms = [min(size, max(0, ahead - size * look)) for look in range(looks)]
        return np.stack([self._draw_arms(d1, size - d1, rng) for d1 in arms])

    def _draw(self, draws: int, rng: np.random.Generator) -> IntArray:
        first = int(rng.binomial(draws, 0.5))
        return self._draw_arms(first, draws - first, rng)

    def _draw_arms(self, first: int, second: int, rng: np.random.Generator) -> IntArray:
        both = [rng.multinomial(n, self.table[:, arm]) for arm, n in enumerate((first, second))]
        return np.column_stack(both).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What selection draws suggest: beliefs for betting, a rule for the exact test, log-ratios."""

    beliefs: Beliefs
    rule: IntArray
    log_ratios: FloatArray


def learn(selection: Tally, mechanism: Mechanism) -> Learned:
    """Learn from selection draws as an audit does: nothing here knows the law.

    The rule has the best estimate of ε, less half a standard deviation, of several cut-offs.
    """
    ratios = _log_ratios(selection.counts, 0.5)
    cuts = [(ratios > cut).astype(np.int64) - (ratios < -cut) for cut in (0.0, 0.4, 0.8, 1.2)]
    rules = np.stack([*cuts, np.maximum(cuts[1], 0), np.minimum(cuts[1], 0)])
    promises = [_promise(selection, rule, mechanism.delta) for rule in rules]
    shrunk = np.stack([ratios, _log_ratios(selection.counts, 5.0)])
    beliefs = Beliefs(1 / (1 + np.exp(-shrunk)), rules)
    return Learned(beliefs, rules[int(np.argmax(promises))], ratios)


def _log_ratios(counts: IntArray, prior: float) -> FloatArray:
    return np.asarray(np.log((counts[:, 0] + prior) / (counts[:, 1] + prior)), dtype=float)


def _promise(selection: Tally, rule: IntArray, delta: float) -> float:
    game = selection.game(rule)
    correct = game.correct - game.h * delta * game.draws
    if correct <= 0:
        return -math.inf
    spread = math.sqrt(game.correct / correct**2 + 1 / (game.wrong + 1))
    return math.log(correct / (game.wrong + 1)) - 0.5 * spread


def _detailed(table: FloatArray, weight: FloatArray) -> FloatArray:
    """Split every level into `DETAILS` that have the same ratio."""
    return np.repeat(table, DETAILS, axis=0) * np.tile(weight, len(table))[:, None]


def _laplace(epsilon: float, cells: int = 24) -> Mechanism:
    """Return x + Laplace(1/ε), inputs 0 and 1: outputs up to 0 and from 1 on have ratio e^±ε."""
    edges = np.concatenate([[-3.0, -1.0, 0.0], np.linspace(0, 1, cells)[1:], [2.0, 4.0]])

    def below(x: FloatArray) -> FloatArray:
        tail = 0.5 * np.exp(-epsilon * np.abs(x))
        return np.where(x < 0, tail, 1 - tail)

    reached = np.column_stack([below(edges), below(edges - 1)])
    table = np.diff(np.concatenate([[[0, 0]], reached, [[1, 1]]]), axis=0)
    return Mechanism("Laplace", table / table.sum(axis=0), epsilon)


def _randomized_response(epsilon: float) -> FloatArray:
    truth = 1 / (1 + math.exp(-epsilon))
    answers = np.array([[truth, 1 - truth], [1 - truth, truth]])
    return _detailed(answers, np.full(DETAILS, 1 / DETAILS))


def _revealing(epsilon: float, delta: float) -> Mechanism:
    """Say the input with probability δ, else randomise it: the extreme point of (ε, δ)-DP."""
    table = np.concatenate([delta * np.eye(2), (1 - delta) * _randomized_response(epsilon)])
    return Mechanism("reveal or randomise", table, epsilon, delta)


def _exposed(epsilon: float, delta: float) -> Mechanism:
    """An atom that only d1 gives, of probability δ; all others have exactly the ratio e^±ε."""
    rest = 1 - delta
    # Σ P = 1 - δ and Σ Q = 1 with ratios e^ε (share a of Q) and e^-ε fix a.
    share = (rest - math.exp(-epsilon)) / (math.exp(epsilon) - math.exp(-epsilon))
    answers = np.array(
        [[share * math.exp(epsilon), share], [(1 - share) * math.exp(-epsilon), 1 - share]]
    )
    table = np.concatenate([[[delta, 0.0]], _detailed(answers, np.full(DETAILS, 1 / DETAILS))])
    return Mechanism("atom of probability δ", table, epsilon, delta)


LAPLACE = _laplace(1.0)
DETAILED_LAPLACE = Mechanism(
    "Laplace, in detail", _detailed(LAPLACE.table, np.full(DETAILS, 1 / DETAILS)), 1.0
)
RANDOMIZED_RESPONSE = Mechanism("randomised response", _randomized_response(1.0), 1.0)
REVEALING = _revealing(1.0, 0.05)
# Enough answers that some are given by one input alone.
REVEALING_IN_DETAIL = Mechanism(
    "reveal or randomise, in detail", _detailed(REVEALING.table, np.full(DETAILS, 1 / DETAILS)),
    REVEALING.epsilon, REVEALING.delta,
)  # fmt: skip
EXPOSED = _exposed(1.0, 0.03)
