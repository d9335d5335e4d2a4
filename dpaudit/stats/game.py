"""The distinguishing game: exact bounds on ε and δ from correct and wrong guesses.

A fair coin picks the input of every draw; a rule fixed before the draws looks at the output and
guesses 1, guesses 2 or abstains. With c = Pr[correct] and w = Pr[wrong],

    (ε, δ)-DP  ⇒  c ≤ e^ε w + h δ,                                         (1, docs/method.md §2)

h = 1 if the rule can guess both inputs, h = ½ if it can guess only one of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import ndtri

from dpaudit.stats.binomial import clopper_pearson_lower, upper_tail
from dpaudit.stats.trinomial import TERMS, ScoreTest

# Berger-Boos: the share of alpha spent on the interval for the nuisance parameter w.
_NUISANCE_SHARE = 0.01
# The p-value is not monotone in ε and δ, so that bounds are found by a scan upwards, not by
# bisection. The first scan uses sums of this many terms, whose p is no smaller than the exact one.
_QUICK_TERMS = 128
# Step of a scan, and its start below the expected bound, in standard deviations of the bound.
_STEP = 1 / 64
_HEADSTART = 3.0
# Up to this many draws, the last step is refined to a quarter.
_COSTLY_DRAWS = 20_000
# A stride ends _CAUTION / √draws standard deviations before the expected bound, since p jumps: by
# up to half of its value with tens of draws, by little with thousands.
_CAUTION = 15.0
# Lower bounds for ε are at most this, in nats.
_LARGEST_EPSILON = 50.0

# Maps the scanned parameter to (ε, hδ).
_Point = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Game:
    """The outcome of the distinguishing game.

    Parameters
    ----------
    correct, wrong : int
        Numbers of right and of wrong guesses.
    draws : int
        Number of all draws, with and without a guess.
    two_guesses : bool
        Whether the rule can guess both inputs: a property of the rule, not of the counts.
    abstains : bool, default True
        Whether the rule can decline to guess: a property of the rule, too.

    Raises
    ------
    ValueError
        For impossible counts.
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
        """The factor of δ in (1)."""
        return 1.0 if self.two_guesses else 0.5


def p_value(game: Game, epsilon: float, delta: float, alpha: float, enough: float = 1.0) -> float:
    """Return the p-value of the claim (ε, δ).

    Parameters
    ----------
    game : Game
        The counts.
    epsilon, delta : float
        The claim: ε ≥ 0 in nats, δ in [0, 1).
    alpha : float
        Level of the test, in (0, 1). A hundredth of it pays for the nuisance interval.
    enough : float, default 1
        Stop as soon as p is known to exceed this, for callers that only compare p with it.

    Returns
    -------
    float
        p, in [0, 1]. If p > enough, possibly a lower bound of p that is also above `enough`.

    Notes
    -----
    Under the claim Pr[p ≤ u] ≤ u for every u ≥ alpha / 100. A binomial test if δ = 0 or the rule
    never abstains, else the score test of `trinomial` (docs/method.md §2).
    """
    spared = game.h * delta
    if spared and game.abstains:
        return _score_test(game, alpha).p_value(epsilon, spared, enough)
    pure = _odds_to_share(epsilon)
    share = min(1.0, pure + spared * (1 - pure))
    return float(upper_tail(game.correct, game.correct + game.wrong, share))


def epsilon_lower(game: Game, delta: float, alpha: float) -> float:
    """Return a lower bound for ε at a given δ.

    Parameters
    ----------
    game : Game
        The counts.
    delta, alpha : float
        δ, in [0, 1); the error probability, in (0, 1).

    Returns
    -------
    float
        inf{ε : p(ε) > alpha}, at least 0, rounded down.

    Notes
    -----
    Valid with probability at least 1 - alpha. In closed form if δ = 0 or the rule never abstains
    (docs/method.md §2).

    Examples
    --------
    >>> round(epsilon_lower(Game(750, 250, 1000, two_guesses=True), 0.0, 0.01), 3)
    0.928
    """
    guesses = game.correct + game.wrong
    if guesses == 0:
        return 0.0
    if delta == 0 or not game.abstains:
        share, spared = clopper_pearson_lower(game.correct, guesses, alpha), game.h * delta
        # The inverse of t = (e^ε + hδ) / (1 + e^ε).
        return max(0.0, math.log((share - spared) / (1 - share))) if share > spared else 0.0
    return _scan(game, lambda epsilon: (epsilon, game.h * delta), _LARGEST_EPSILON, alpha)


def delta_lower(game: Game, epsilon: float, delta: float, alpha: float) -> float:
    """Return a lower bound for δ at a given ε.

    Parameters
    ----------
    game : Game
        The counts.
    epsilon, delta : float
        The claim: ε ≥ 0 in nats, δ in [0, 1). δ only selects the method: δ = 0 or δ > 0.
    alpha : float
        The error probability, in (0, 1).

    Returns
    -------
    float
        A bound in [0, 1], rounded down.

    Notes
    -----
    Valid with probability at least 1 - alpha. For a claim with δ > 0 the exact test inverted,
    inf{δ : p(ε, δ) > alpha}; for δ = 0 in closed form (docs/method.md §2).
    """
    if game.correct == 0:
        return 0.0
    if not game.abstains:
        share = clopper_pearson_lower(game.correct, game.draws, alpha)
        odds = math.exp(-epsilon)
        # hδ ≥ t (1 + e^ε) - e^ε, all divided by e^ε, which may not fit in a float
        excess = share * (1 + odds) - 1
        return min(1.0, excess / odds / game.h) if excess > 0 else 0.0
    if delta == 0 or epsilon > _LARGEST_EPSILON:
        return _closed_form_delta_lower(game, epsilon, alpha)
    return _scan(game, lambda point: (epsilon, game.h * point), 1.0, alpha)


def _closed_form_delta_lower(game: Game, epsilon: float, alpha: float) -> float:
    """Return a lower bound for δ, a little weaker than that of the exact test.

    If δ excuses fewer correct guesses than `spared`, the others refute ε at alpha / 2; a
    Clopper-Pearson bound at alpha / 2 turns this number into a δ (docs/method.md §2).
    """

    def stands(spared: int) -> bool:
        correct = game.correct - spared
        return float(upper_tail(correct, correct + game.wrong, _odds_to_share(epsilon))) > alpha / 2

    spared = bisect_left(range(game.correct), True, key=stands)
    # The largest δ with Pr[Bin(N, hδ) ≥ spared] ≤ alpha / 2.
    return min(1.0, clopper_pearson_lower(spared, game.draws, alpha / 2) / game.h)


def _odds_to_share(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def _score_test(game: Game, alpha: float, terms: int = TERMS) -> ScoreTest:
    return ScoreTest(game.correct, game.wrong, game.draws, _NUISANCE_SHARE * alpha, terms)


def _scan(game: Game, point: _Point, end: float, alpha: float) -> float:
    """Return inf{x ≥ 0 : p(x) > alpha}, below `end`, rounded down to the steps of the scan."""
    quick = _score_test(game, alpha, _QUICK_TERMS)
    anchor, spread = _normal_bound(quick, point, end, alpha)
    start = max(0.0, anchor - _HEADSTART * spread)
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
    """Return the last x that is refuted before the first that is not.

    begin: x at which the scan starts, and its p; returned if it is not refuted itself.
    """
    caution = _CAUTION / math.sqrt(test.draws)
    step, finest = _STEP, _STEP if test.draws > _COSTLY_DRAWS else _STEP / 4
    (start, p), reach = begin, math.inf
    if p > alpha:
        return start
    while step >= finest:
        # After a stride to a point that is not refuted, strides are at most half as long.
        stride = max(step, min(_gap(p - test.gamma, alpha - test.gamma) - caution, reach))
        candidate = start + stride * spread
        p_candidate = test.p_value(*point(candidate), alpha) if candidate < end else 1.0
        if p_candidate <= alpha:
            start, p = candidate, p_candidate
        elif stride > step:
            reach = stride / 2
        else:
            step /= 2
    return start


def _gap(p: float, alpha: float) -> float:
    """Return the distance of p from alpha in normal quantiles; p below 10⁻⁹ counts as 10⁻⁹."""
    return float(ndtri(alpha) - ndtri(max(p, 1e-9)))


def _normal_bound(test: ScoreTest, point: _Point, end: float, alpha: float) -> tuple[float, float]:
    """Return x where the score equals the normal quantile of alpha, and the standard deviation of x
    there."""
    quantile, low, high = -float(ndtri(alpha)), 0.0, end
    while high - low > 1e-9 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (middle, high) if test.score(*point(middle)) > quantile else (low, middle)
    apart = 1e-6 * end
    fall = test.score(*point(low)) - test.score(*point(low + apart))
    return low, apart / max(fall, 1e-3 * apart)
