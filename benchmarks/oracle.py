"""The best that any audit can do where the law of the log-ratio is known.

The oracle knows log dP/dQ of every output. It guesses d1 above one threshold on it, d2 below
another, abstains between them, and spends every draw on the same exact bound as an audit
(docs/method.md §2). No other player of that game does better, by the lemma of Neyman and Pearson.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from dpaudit.stats.game import Game, epsilon_lower

FloatArray = NDArray[np.float64]
Density = Callable[[FloatArray], FloatArray]

# δ(ε) is a sum that rounds, and may be constant from the true ε on.
_ROUNDING = 1e-9
# Log-ratios that agree to this number of decimals count as equal.
_DECIMALS = 9
# Cells between two kinks of a density.
_FINE = 20_000
# Thresholds to choose from, and tails that they reach into, as shares of the draws.
_CUTS, _SMALLEST = 256, 1e-8
# Pairs of thresholds that a quick bound picks for the exact one.
_CHOSEN, _CHOSEN_BY_SCORE = 64, 2
# With more wrong guesses than this one more or less hardly matters.
_MANY_WRONG = 200
_LARGEST = 60.0
# Stands for an infinite log-ratio where it is compared with thresholds.
CERTAIN = 1e3
# Draws are found to half a percent.
_PRECISION = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class RatioLaw:
    """The law of the log-ratio log P(s)/Q(s) of an output s.

    ratios: (cells,), rising, the outer ones perhaps infinite. masses: (cells, 2), the probability
    of each under P (d1) and Q (d2); both columns add up to 1.
    """

    ratios: FloatArray
    masses: FloatArray

    @classmethod
    def of(cls, masses: FloatArray) -> RatioLaw:
        """Return the law of outputs, or of small cells of them, from their (cells, 2) masses."""
        masses = masses[masses.sum(axis=1) > 0] / masses.sum(axis=0)
        with np.errstate(divide="ignore"):
            ratios = np.round(np.log(masses[:, 0]) - np.log(masses[:, 1]), _DECIMALS)
        ratios, place = np.unique(ratios, return_inverse=True)
        both = [np.bincount(place, weights=masses[:, arm]) for arm in (0, 1)]
        return cls(ratios, np.stack(both, axis=1))

    @classmethod
    def of_pmfs(cls, p: Mapping[Any, float], q: Mapping[Any, float]) -> RatioLaw:
        """Return the law for discrete outputs."""
        return cls.of(np.array([[p.get(atom, 0.0), q.get(atom, 0.0)] for atom in {**p, **q}]))

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the smallest ε with which the pair is (ε, δ)-indistinguishable; may be inf."""
        if delta == 0:
            return float(np.abs(self.ratios).max())
        delta *= 1 + _ROUNDING
        if self.delta(_LARGEST) > delta:
            return math.inf
        low, high = 0.0, _LARGEST
        while high - low > 1e-10:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), the larger one of both directions."""
        ahead = self.masses - math.exp(epsilon) * self.masses[:, ::-1]
        return float(np.maximum(ahead, 0.0).sum(axis=0).max())

    def growth(self, claimed: float) -> float:
        """Return E kl(π ‖ clip π), what a draw adds to the log wealth of the best bet on it."""
        total = self.masses.sum(axis=1)
        posterior = self.masses / total[:, None]
        most = 1 / (1 + math.exp(-claimed))
        allowed = np.clip(posterior, 1 - most, most)
        with np.errstate(divide="ignore"):
            gain = np.where(posterior > 0, posterior * np.log(posterior / allowed), 0.0)
        return float(total @ gain.sum(axis=1)) / 2


def masses_between(edges: Sequence[float], p: Density, q: Density) -> FloatArray:
    """Return the masses of small cells of a number, (cells, 2), by the midpoint rule.

    edges: in rising order; the densities have kinks at these only.
    """
    pieces = [np.linspace(low, high, _FINE + 1) for low, high in pairwise(edges)]
    points = np.concatenate([(piece[1:] + piece[:-1]) / 2 for piece in pieces])
    widths = np.concatenate([np.diff(piece) for piece in pieces])
    return np.stack([p(points) * widths, q(points) * widths], axis=1)


def of_sum(one: RatioLaw, times: int, step: float) -> RatioLaw:
    """Return the law of several independent outputs, whose log-ratios add up.

    The log-ratios of one output must be finite multiples of `step`.
    """
    place = np.rint((one.ratios - one.ratios[0]) / step).astype(np.int64)
    masses = []
    for arm in (0, 1):
        single = np.bincount(place, weights=one.masses[:, arm])
        total = np.ones(1)
        for _ in range(times):
            total = np.convolve(total, single)
        masses.append(total)
    return RatioLaw.of(np.stack(masses, axis=1))


def information_limit(law: RatioLaw, claimed: float, alpha: float) -> float:
    """Return log(1/α)/D: no bet on single draws refutes a pure claim sooner (docs/method.md §4).

    inf when the claim is true.
    """
    if claimed >= law.epsilon() * (1 - _ROUNDING):
        return math.inf
    return math.log(1 / alpha) / law.growth(claimed)


@dataclass(frozen=True, slots=True)
class Rule:
    """Guesses d2 where the log-ratio is below `low`, d1 where it is at least `high`, which may be
    infinite. correct, wrong: the probabilities of such guesses."""

    low: float
    high: float
    correct: float
    wrong: float


@dataclass(frozen=True)
class Oracle:
    """Bounds for ε at `delta`, one-sided at 1 - alpha, from draws with a coin-flipped input each.

    The counts of the game are put at their expectations.
    """

    law: RatioLaw
    alpha: float
    delta: float = 0.0

    def bound(self, draws: float) -> float:
        """Return the expected bound on `draws` draws with the best pair of thresholds."""
        return max(0.0, self._best(draws)[0])

    def rule(self, draws: float) -> Rule:
        """Return the best pair of thresholds for a number of draws."""
        return self._rules.rule(self._best(draws)[1], self.law)

    def luck(self, rule: Rule, correct: int, wrong: int, draws: int) -> float:
        """Return how much more a rule's guesses give for a bound than those to be expected."""
        two_guesses = math.isfinite(rule.low) and math.isfinite(rule.high)
        bound = partial(self._of_guesses, draws, two_guesses, rule.low < rule.high)
        return bound(correct, wrong) - bound(draws * rule.correct, draws * rule.wrong)

    def allowed(
        self, guesses: NDArray[np.integer], correct: float, wrong: float, draws: int
    ) -> float:
        """Return the bound to expect of a rule that makes some guesses, 1, -1 or 0, and makes them
        right and wrong with these probabilities."""
        # The last one is for outcomes that learning never saw.
        two_guesses, abstains = {1, -1} <= set(guesses.tolist()), bool((guesses[:-1] == 0).any())
        counts = draws * correct, draws * wrong
        return max(0.0, self._of_guesses(draws, two_guesses, abstains, *counts))

    def _of_guesses(
        self, draws: int, two_guesses: bool, abstains: bool, correct: float, wrong: float
    ) -> float:
        """Return the bound that follows from numbers of guesses, which may be expectations."""
        if self.delta == 0:
            return float(_pure_bound(correct, wrong, self.alpha))
        made = round(wrong)
        right = round(correct) if abstains else draws - made
        return epsilon_lower(
            Game(right, made, draws, two_guesses, abstains), self.delta, self.alpha
        )

    def draws_for(self, bound: float, most: float) -> float:
        """Return the draws it needs for a bound; at most `most`, even if these do not suffice."""
        low, high = 0.0, math.log(most)
        if self.bound(most) <= bound:
            return most
        while high - low > _PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if self.bound(math.exp(middle)) >= bound else (middle, high)
        return math.exp(high)

    @cached_property
    def _rules(self) -> _Rules:
        return _Rules.of(self.law)

    def _best(self, draws: float) -> tuple[float, int]:
        """Return the best bound, and the place of its rule."""
        return self._pure(draws) if self.delta == 0 else self._approximate(draws)

    def _pure(self, draws: float) -> tuple[float, int]:
        rules = self._rules
        quick = _wilson(draws * rules.correct, draws * rules.wrong, -float(ndtri(self.alpha)))
        some = _largest(quick, _CHOSEN)
        correct, wrong = draws * rules.correct[some], draws * rules.wrong[some]
        bounds = _pure_bound(correct, wrong, self.alpha)
        best = int(np.argmax(bounds))
        return float(bounds[best]), int(some[best])

    def _approximate(self, draws: float) -> tuple[float, int]:
        """With δ > 0 the exact bound takes a while, and is asked of a few pairs only."""
        rules, z = self._rules, -float(ndtri(self.alpha))
        excused = draws * rules.h * self.delta
        spared = np.maximum(draws * rules.correct - excused - z * np.sqrt(excused), 0.0)
        quick = _wilson(spared, draws * rules.wrong, z)
        score = rules.score_bound(draws, self.delta, z)
        always = np.where(rules.abstains, -np.inf, score)
        some = {
            int(place)
            for values, count in ((quick, _CHOSEN_BY_SCORE), (score, _CHOSEN_BY_SCORE), (always, 1))
            for place in _largest(values, count)
        }
        return max((self._exact(place, draws), place) for place in some)

    def _exact(self, place: int, draws: float) -> float:
        """Return the bound of one pair, interpolated between whole numbers of wrong guesses."""
        rules, size = self._rules, max(1, round(draws))
        wrong = float(size * rules.wrong[place])
        if wrong > _MANY_WRONG:
            return self._of_counts(place, size, round(wrong))
        low, part = math.floor(wrong), wrong - math.floor(wrong)
        bounds = [self._of_counts(place, size, low + more) for more in (0, 1)]
        return (1 - part) * bounds[0] + part * bounds[1]

    def _of_counts(self, place: int, size: int, wrong: int) -> float:
        rules = self._rules
        abstains = bool(rules.abstains[place])
        correct = round(size * float(rules.correct[place])) if abstains else size - wrong
        if min(correct, size - correct - wrong) < 0:
            return 0.0
        game = Game(correct, wrong, size, bool(rules.h[place] == 1), abstains)
        return epsilon_lower(game, self.delta, self.alpha)


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """Every pair of thresholds: the cells of the law that they lie before, Pr[correct], Pr[wrong],
    h, and whether it abstains at all."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    correct: FloatArray
    wrong: FloatArray
    h: FloatArray
    abstains: NDArray[np.bool_]

    @classmethod
    def of(cls, law: RatioLaw) -> _Rules:
        below = np.concatenate([np.zeros((1, 2)), np.cumsum(law.masses, axis=0)])
        above = np.concatenate([np.cumsum(law.masses[::-1], axis=0)[::-1], np.zeros((1, 2))])
        low, high = np.meshgrid(*[_cuts(law)] * 2, indexing="ij")
        low, high = low[low <= high], high[low <= high]
        some = (low > 0) | (high < len(law.ratios))
        low, high = low[some], high[some]
        return cls(
            low,
            high,
            correct=(below[low, 1] + above[high, 0]) / 2,
            wrong=(below[low, 0] + above[high, 1]) / 2,
            h=np.where((low > 0) & (high < len(law.ratios)), 1.0, 0.5),
            abstains=low < high,
        )

    def rule(self, place: int, law: RatioLaw) -> Rule:
        """Return the rule at a place; its thresholds lie halfway between cells."""
        finite = np.clip(law.ratios, -CERTAIN, CERTAIN)
        between = np.concatenate([[-np.inf], (finite[1:] + finite[:-1]) / 2, [np.inf]])
        low, high = (float(between[cell[place]]) for cell in (self.low, self.high))
        return Rule(low, high, float(self.correct[place]), float(self.wrong[place]))

    def score_bound(self, draws: float, delta: float, z: float) -> FloatArray:
        """Return, by rule, the ε at which the score of (1) is z (normal approximation)."""
        low, high = np.zeros(len(self.correct)), np.full(len(self.correct), _LARGEST)
        for _ in range(40):
            middle = (low + high) / 2
            ratio = np.exp(middle)
            mean = self.correct - ratio * self.wrong - self.h * delta
            variance = self.correct + ratio**2 * (self.wrong + 1 / draws) - mean**2
            holds = mean * math.sqrt(draws) > z * np.sqrt(np.maximum(variance, 0.0))
            low, high = np.where(holds, middle, low), np.where(holds, high, middle)
        return low


def _cuts(law: RatioLaw) -> NDArray[np.int64]:
    """Return places to cut the cells at: all if there are few, else quantiles, finer in tails."""
    cells = len(law.ratios)
    if cells <= _CUTS:
        return np.arange(cells + 1)
    share = np.cumsum(law.masses.sum(axis=1)) / 2
    tail = np.geomspace(_SMALLEST, 0.05, _CUTS // 3)
    wanted = np.concatenate([tail, np.linspace(0.05, 0.95, _CUTS // 3), 1 - tail])
    place = np.searchsorted(share, wanted)
    # A heavy cell is cut on both of its sides.
    every = np.concatenate([[0, cells], place, place + 1])
    return np.unique(np.minimum(every, cells))


def _pure_bound(correct: ArrayLike, wrong: ArrayLike, alpha: float) -> FloatArray:
    """Return logit(CP_lower), without the cut at 0; counts may be expectations."""
    share = betaincinv(np.maximum(correct, 1e-9), np.add(wrong, 1), alpha)
    return np.asarray(np.log(np.maximum(share, 1e-300)) - np.log1p(-share))


def _wilson(correct: FloatArray, wrong: FloatArray, z: float) -> FloatArray:
    """Return the logit of Wilson's lower bound for the share of correct guesses."""
    total = np.maximum(correct + wrong, 1e-9)
    share = correct / total
    spread = z * np.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    lower = np.maximum((share + z**2 / (2 * total) - spread) / (1 + z**2 / total), 1e-300)
    return np.asarray(np.log(lower) - np.log1p(-np.minimum(lower, 1 - 1e-15)))


def _largest(values: FloatArray, count: int) -> NDArray[np.intp]:
    count = min(count, len(values))
    return np.argpartition(-values, count - 1)[:count]
