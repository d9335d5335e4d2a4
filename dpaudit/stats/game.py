"""The distinguishing game: exact bounds on ε and δ from correct and wrong guesses.

A fair coin picks the input of every draw; a rule fixed before the draws looks at the output and
guesses 1, guesses 2 or abstains. With c = Pr[correct] and w = Pr[wrong],

    (ε, δ)-DP  ⇒  c ≤ e^ε w + h δ,                                         (1, docs/method.md §2)

h = 1 if the rule can make both guesses, ½ if only one.
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
# The p-value is not monotone, so that bounds are scanned for upwards, never bisected: first with
# sums of so many terms, whose p is no smaller, then with all of them.
_QUICK_TERMS = 128
# Steps of a scan, and where it begins, in standard deviations of the bound.
_STEP = 1 / 64
_HEADSTART = 3.0
# Up to so many draws, the last step is taken in quarters.
_COSTLY = 20_000
# A scan stays this, over √draws, behind where it expects the bound: p has jumps, which are up to
# half of its value for tens of draws and hardly any for thousands.
_CAUTION = 15.0
# No bound for ε is sought above.
_LARGEST = 50.0

# From the parameter that is scanned to (ε, hδ).
_Point = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Game:
    """The outcome of the distinguishing game.

    Parameters
    ----------
    correct, wrong : int
        Guesses that were right, and that were not.
    draws : int
        All draws, those without a guess among them.
    two_guesses : bool
        Whether the rule can guess both inputs: a property of the rule, never of the counts.
    abstains : bool, default True
        Whether the rule can decline to guess, likewise.

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
        The level in force, in (0, 1), of which a hundredth pays for the nuisance interval.
    enough : float, default 1
        Above it p is not sought to the end: for those who ask only whether p is at most this.

    Returns
    -------
    float
        p, in [0, 1]; a lower bound of it that is above `enough`, where p is.

    Notes
    -----
    Under the claim Pr[p ≤ u] ≤ u for every u ≥ alpha / 100. Binomial where δ = 0 or the rule never
    abstains, else the score test of `trinomial` (docs/method.md §2).
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
    Valid with probability at least 1 - alpha. In closed form for δ = 0 and for rules that never
    abstain (docs/method.md §2).

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
    return _scan(game, lambda epsilon: (epsilon, game.h * delta), _LARGEST, alpha)


def delta_lower(game: Game, epsilon: float, delta: float, alpha: float) -> float:
    """Return a lower bound for δ at a given ε.

    Parameters
    ----------
    game : Game
        The counts.
    epsilon, delta : float
        The claim: ε ≥ 0 in nats, δ in [0, 1). δ decides how the bound is found.
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
    if delta == 0 or epsilon > _LARGEST:
        return _closed_form_delta_lower(game, epsilon, alpha)
    return _scan(game, lambda point: (epsilon, game.h * point), 1.0, alpha)


def _closed_form_delta_lower(game: Game, epsilon: float, alpha: float) -> float:
    """Return a bound below which guesses that δ excuses leave enough to refute ε at alpha / 2: a
    little weaker than the exact test."""

    def stands(spared: int) -> bool:
        correct = game.correct - spared
        return float(upper_tail(correct, correct + game.wrong, _odds_to_share(epsilon))) > alpha / 2

    spared = bisect_left(range(game.correct), True, key=stands)
    # The largest δ with Pr[Bin(N, hδ) ≥ spared] ≤ alpha / 2: another Clopper-Pearson bound.
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
    begun: tuple[float, float],
    spread: float,
    end: float,
    alpha: float,
) -> float:
    """Return the last x that is refuted before the first that is not. begun: x, and its p, from
    which on to look; where even that is not refuted, it is returned."""
    caution = _CAUTION / math.sqrt(test.draws)
    step, finest = _STEP, _STEP if test.draws > _COSTLY else _STEP / 4
    (start, p), reach = begun, math.inf
    if p > alpha:
        return start
    while step >= finest:
        # A point that was not refuted, beyond, halves the strides that are left.
        stride = max(step, min(_gap(p - test.gamma, alpha - test.gamma) - caution, reach))
        coming = start + stride * spread
        p_coming = test.p_value(*point(coming), alpha) if coming < end else 1.0
        if p_coming <= alpha:
            start, p = coming, p_coming
        elif stride > step:
            reach = stride / 2
        else:
            step /= 2
    return start


def _gap(p: float, alpha: float) -> float:
    """Return how far p is from alpha, in standard deviations; at most that of p = 10⁻⁹."""
    return float(ndtri(alpha) - ndtri(max(p, 1e-9)))


def _normal_bound(test: ScoreTest, point: _Point, end: float, alpha: float) -> tuple[float, float]:
    """Return where the score falls to the normal quantile, and the standard deviation there."""
    quantile, low, high = -float(ndtri(alpha)), 0.0, end
    while high - low > 1e-9 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (middle, high) if test.score(*point(middle)) > quantile else (low, middle)
    apart = 1e-6 * end
    fall = test.score(*point(low)) - test.score(*point(low + apart))
    return low, apart / max(fall, 1e-3 * apart)
