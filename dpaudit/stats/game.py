"""The distinguishing game: exact bounds on ε and δ from right and wrong guesses.

A fair coin picks the input, d1 or d2, of every draw, and a rule, fixed before the draws, guesses it
or abstains:

    (ε, δ)-DP  ⇒  c ≤ e^ε w + h δ.                                           (docs/method.md (2.1))
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import ndtri

from dpaudit.stats.binomial import clopper_pearson_lower, right_share, upper_tail

if TYPE_CHECKING:
    from dpaudit.stats.trinomial import ScoreTest

# Share of alpha that is spent on a confidence interval for w. w is a nuisance parameter: the test
# depends on it, although only ε and δ are of interest (Berger & Boos 1994).
_NUISANCE_SHARE = 0.01
# A scan for a bound on ε or δ computes p-values at rising ε or δ until one exceeds alpha.
# (Bisection fails, since the p-value is not monotone.) Number of terms of the sums in a first,
# quick scan: fewer terms make p-values larger, so that this scan stops early. A second scan, with
# more terms, starts where the first one stops.
_QUICK_TERMS = 128
# A scan for a bound on ε or δ raises the bound in steps. Length of the smallest step, in standard
# deviations of the bound, if there are more than `_COSTLY_DRAWS` draws. With fewer draws, the
# smallest step is a quarter of this length.
_STEP = 1 / 64
# A scan for a bound on ε or δ starts below the expected bound, at a distance of this many standard
# deviations of the bound.
_START_DISTANCE = 3.0
# With more than this number of draws, p-values are slow to compute, and the smallest step of a scan
# is _STEP. With at most this number, it is _STEP / 4.
_COSTLY_DRAWS = 20_000
# A scan raises a bound in steps. A long step aims at the expected bound, but ends _STEP_MARGIN /
# √draws standard deviations before it, since it must not pass the point where the p-value exceeds
# alpha, and the p-value jumps: with tens of draws by up to half of its value, with thousands by
# little.
_STEP_MARGIN = 15.0
# Largest lower bound for ε that is returned, in nats.
_MAX_EPSILON = 50.0

# Type of functions from a number x to a claim (ε, hδ), where h is 1 if the rule can guess both
# inputs, else ½. A scan for a bound on ε or δ increases x and tests each claim.
_Point = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Game:
    """Counts of right and wrong guesses in the distinguishing game. Raise ValueError for impossible
    counts.

    draws: number of all draws, with and without a guess.
    two_guesses: whether the rule can guess both d1 and d2, even if it did not in these draws.
    abstains: whether the rule can abstain, even if it did not in these draws.
    """

    correct: int
    wrong: int
    draws: int
    two_guesses: bool
    abstains: bool = True

    def __post_init__(self) -> None:
        if min(self.correct, self.wrong) < 0 or self.correct + self.wrong > self.draws:
            raise ValueError(f"impossible counts: {self}")
        if not self.abstains and self.correct + self.wrong != self.draws:
            raise ValueError(f"a rule that never abstains guesses on every draw: {self}")

    @property
    def h(self) -> float:
        """The factor h of the rule: 1 if it can guess both inputs, else ½."""
        return 1.0 if self.two_guesses else 0.5


def p_value(game: Game, epsilon: float, delta: float, alpha: float, enough: float = 1.0) -> float:
    """Return the p-value p of the claim. Under the claim Pr[p ≤ u] ≤ u for every u ≥ alpha / 100.
    The test is a binomial test if δ = 0 or the rule never abstains; otherwise it is the score test
    of `trinomial` (docs/method.md §2).

    alpha: level of the test. The score test spends a hundredth of it on its confidence interval for
        w.
    enough: once p is known to exceed this number, stop and return some number above it.
    """
    spared = game.h * delta
    if spared and game.abstains:
        return _score_test(game, alpha).p_value(epsilon, spared, enough)
    pure = right_share(epsilon)
    share = min(1.0, pure + spared * (1 - pure))
    return float(upper_tail(game.correct, game.correct + game.wrong, share))


def epsilon_lower(game: Game, delta: float, alpha: float) -> float:
    """Return a lower bound for ε at δ: the smallest ε ≥ 0 that `p_value` does not refute at alpha.
    If δ = 0 or the rule never abstains, the bound has a closed form (docs/method.md (2.2) and
    (2.3)).

    >>> round(epsilon_lower(Game(750, 250, 1000, two_guesses=True), 0.0, 0.01), 3)
    0.928
    """
    guesses = game.correct + game.wrong
    if guesses == 0:
        return 0.0
    if delta == 0 or not game.abstains:
        share, spared = clopper_pearson_lower(game.correct, guesses, alpha), game.h * delta
        # The ε for which share = e^ε (1 - share) + hδ, where `share` is the probability of a right
        # guess and `spared` is hδ, from docs/method.md (2.2) and (2.3).
        return max(0.0, math.log((share - spared) / (1 - share))) if share > spared else 0.0
    return _scan(game, lambda epsilon: (epsilon, game.h * delta), _MAX_EPSILON, alpha)


def delta_lower(game: Game, epsilon: float, delta: float, alpha: float) -> float:
    """Return a lower bound for δ at ε, in [0, 1]. It is the smallest δ such that `p_value` does not
    refute (ε, δ) at alpha.

    delta: the claimed δ. If it is 0, or if ε > 50, the bound is computed by a closed form, which is
        slightly smaller (docs/method.md §2). It has no other influence.
    """
    if game.correct == 0:
        return 0.0
    if not game.abstains:
        share = clopper_pearson_lower(game.correct, game.draws, alpha)
        odds = math.exp(-epsilon)
        # Solves (e^ε + hδ) / (1 + e^ε) ≥ share for hδ. Both sides are divided by e^ε, which may be
        # too large for a float.
        excess = share * (1 + odds) - 1
        return min(1.0, excess / odds / game.h) if excess > 0 else 0.0
    if delta == 0 or epsilon > _MAX_EPSILON:
        return _closed_form_delta_lower(game, epsilon, alpha)
    return _scan(game, lambda point: (epsilon, game.h * point), 1.0, alpha)


def _closed_form_delta_lower(game: Game, epsilon: float, alpha: float) -> float:
    """Return a lower bound for δ in closed form, slightly below that of the exact test."""
    # Let k be the smallest number of correct guesses that must be removed from the counts so that
    # they no longer refute (ε, 0)-DP at alpha / 2. Then δ must account for at least k draws, and a
    # Clopper-Pearson bound at alpha / 2 turns k into a bound for δ (docs/method.md §2).

    def stands(spared: int) -> bool:
        correct = game.correct - spared
        return float(upper_tail(correct, correct + game.wrong, right_share(epsilon))) > alpha / 2

    spared = bisect_left(range(game.correct), True, key=stands)
    # δ excuses a share hδ of the draws, where h is 1 if the rule can guess both inputs, else ½.
    # Return the largest δ with Pr[Bin(draws, hδ) ≥ spared] ≤ alpha / 2.
    return min(1.0, clopper_pearson_lower(spared, game.draws, alpha / 2) / game.h)


def _score_test(game: Game, alpha: float, terms: int | None = None) -> ScoreTest:
    # Imported here, since claims with δ = 0 do not need it.
    from dpaudit.stats.trinomial import MAX_TERMS, ScoreTest

    counts = game.correct, game.wrong, game.draws
    return ScoreTest(*counts, _NUISANCE_SHARE * alpha, MAX_TERMS if terms is None else terms)


def _scan(game: Game, point: _Point, end: float, alpha: float) -> float:
    """Return inf{x ≥ 0 : p(x) > alpha}, at most `end`, rounded down to a step of the scan."""
    # Here x is ε or δ, and p(x) is the p-value of the claim `point(x)`.
    quick = _score_test(game, alpha, _QUICK_TERMS)
    anchor, spread = _normal_bound(quick, point, end, alpha)
    start = max(0.0, anchor - _START_DISTANCE * spread)
    p = quick.p_value(*point(start), alpha)
    if p > alpha and start > 0:
        start, p = 0.0, quick.p_value(*point(0.0), alpha)
    start = _climb(quick, point, (start, p), spread, end, alpha)
    exact = _score_test(game, alpha)
    p = exact.p_value(*point(start), alpha)
    return _climb(exact, point, (start, p), spread, end, alpha)


def _climb(
    test: ScoreTest,
    point: _Point,
    begin: tuple[float, float],
    spread: float,
    end: float,
    alpha: float,
) -> float:
    """Return the last x with p(x) ≤ alpha, reached by steps that get smaller."""
    # The unit of the steps is `spread`, the standard deviation of the bound. p counts as 1 for
    # every x ≥ end.
    caution = _STEP_MARGIN / math.sqrt(test.draws)
    step, finest = _STEP, _STEP if test.draws > _COSTLY_DRAWS else _STEP / 4
    (start, p), reach = begin, math.inf
    if p > alpha:
        return start
    while step >= finest:
        # `gap` estimates the step, in standard deviations of the bound, that would raise p to
        # alpha; a p below 10⁻⁹ counts as 10⁻⁹. If a step longer than `step` went too far, to p >
        # alpha, `reach` limits later steps to half of its length.
        gap = float(ndtri(alpha - test.gamma) - ndtri(max(p - test.gamma, 1e-9)))
        stride = max(step, min(gap - caution, reach))
        candidate = start + stride * spread
        p_candidate = test.p_value(*point(candidate), alpha) if candidate < end else 1.0
        if p_candidate <= alpha:
            start, p = candidate, p_candidate
        elif stride > step:
            reach = stride / 2
        else:
            step /= 2
    return start


def _normal_bound(test: ScoreTest, point: _Point, end: float, alpha: float) -> tuple[float, float]:
    """Return (x, standard deviation of x): a bound by a normal approximation of the score."""
    # At x the score of the claim `point(x)` equals the upper alpha quantile of a standard normal.
    # The standard deviation is 1 over the slope of the score at x.
    quantile, low, high = -float(ndtri(alpha)), 0.0, end
    while high - low > 1e-9 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (middle, high) if test.score(*point(middle)) > quantile else (low, middle)
    apart = 1e-6 * end
    fall = test.score(*point(low)) - test.score(*point(low + apart))
    return low, apart / max(fall, 1e-3 * apart)
