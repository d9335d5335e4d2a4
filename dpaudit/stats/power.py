"""What a test of given size would have detected, and the fewest draws that can refute (§8)."""

from __future__ import annotations

import math
from bisect import bisect_left

from scipy.special import betainc, betaincinv, ndtri

from dpaudit.stats.binomial import pair_epsilon_lower, upper_tail
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.p_values import bisect_interval

POWER = 0.9
# A rare rule guesses outputs that one input gave at least this often while learning.
LEAST_SEEN = 2


def detectable_epsilon(
    guesses: int,
    epsilon: float,
    alpha: float,
    *,
    draws: int = 0,
    spared: float = 0.0,
    power: float = POWER,
) -> float:
    """Return the smallest ε₁ > ε that the game refutes with probability `power`.

    Parameters
    ----------
    guesses : int
        Guesses made; the event's share of the draws is taken as it was seen.
    epsilon, alpha : float
        The claimed ε ≥ 0, in nats; the error probability, in (0, 1).
    draws : int, default 0
        All draws, to which `spared` applies.
    spared : float, default 0
        hδ. Guesses that the δ of the claim excuses are set aside before the pure test, as the
        closed-form bound does.
    power : float, default 0.9
        In (0, 1).

    Returns
    -------
    float
        ε₁, rounded up; inf when no ε₁ would be refuted.

    Notes
    -----
    docs/method.md §8.

    Examples
    --------
    >>> round(detectable_epsilon(1000, 1.0, 0.01), 2)
    1.27
    """
    excused = 0
    if spared:
        excused = math.ceil(
            draws * spared - float(ndtri(alpha / 100)) * math.sqrt(draws * spared * (1 - spared))
        )
    trials, claimed = guesses - excused, 1 / (1 + math.exp(-epsilon))

    def refuted(correct: int) -> bool:
        return float(upper_tail(correct, trials, claimed)) <= alpha

    critical = 1 + bisect_left(range(1, trials + 1), True, key=refuted)
    if critical > trials:
        return math.inf
    share = float(betaincinv(critical, trials - critical + 1, power))
    return math.log(share / (1 - share)) if share < 1 else math.inf


def detectable_rare(
    learning: int,
    certifying: int,
    epsilon: float,
    delta: float,
    alpha: float,
    *,
    power: float = POWER,
) -> float:
    """Return the smallest probability of an output of one input alone that is refuted.

    Parameters
    ----------
    learning, certifying : int
        Draws to learn from and draws of the exact test, of both inputs.
    epsilon, delta, alpha : float
        The claim: ε ≥ 0 in nats, δ in [0, 1); the error probability of the rare rule, in (0, 1).
    power : float, default 0.9
        In (0, 1).

    Returns
    -------
    float
        p in (0, 1], rounded up to three digits: one input gives the output with probability p, the
        other never, and the claim is refuted with probability at least `power`; inf when no p is.

    Notes
    -----
    The output has to come up `LEAST_SEEN` times while learning, and then as often among the draws
    of the test as refutes the claim when every guess is right (docs/method.md §8).

    Examples
    --------
    >>> detectable_rare(12_500, 87_500, 1.0, 0.0, 0.0006)
    0.000746
    """
    needed = _right_to_refute(certifying, epsilon, delta, alpha)
    if needed > certifying:
        return math.inf

    def is_caught(p: float) -> bool:
        # A fair coin picks the input of every draw.
        seen = _at_least(LEAST_SEEN, learning, p / 2)
        return seen * _at_least(needed, certifying, p / 2) >= power

    if not is_caught(1.0):
        return math.inf
    found = math.exp(bisect_interval(lambda log_p: is_caught(math.exp(log_p)), -60.0, 0.0)[1])
    digits = 2 - math.floor(math.log10(found))
    return min(1.0, round(math.ceil(found * 10.0**digits) / 10.0**digits, digits))


def _at_least(successes: int, trials: int, p: float) -> float:
    """Return the probability of at least `successes` successes, a number of at least 1."""
    # SciPy's bdtrc takes no more than 2³¹ trials.
    return float(betainc(successes, trials - successes + 1, p)) if successes <= trials else 0.0


def _right_to_refute(draws: int, epsilon: float, delta: float, alpha: float) -> int:
    """Return the fewest guesses of one input that refute a claim when all of them are right; more
    than `draws` when none do."""
    if delta == 0:
        needed = draws_to_refute(epsilon, 0.0, alpha)
        return draws + 1 if needed > draws else int(needed)

    def refutes(right: int) -> bool:
        game = Game(right, 0, draws, two_guesses=False)
        return p_value(game, epsilon, delta, alpha, alpha) <= alpha

    return 1 + bisect_left(range(1, draws + 1), True, key=refutes)


def draws_to_refute(epsilon: float, delta: float, alpha: float) -> float:
    """Return the fewest draws that can refute (ε, δ) at all: all of them guessed right.

    Parameters
    ----------
    epsilon, delta, alpha : float
        The claim: ε ≥ 0 in nats, δ at least 0; the error probability, in (0, 1).

    Returns
    -------
    float
        A whole number of draws; inf for a claim that everything meets (δ ≥ 1).

    Notes
    -----
    Under the claim a rule that never abstains is right with probability at most
    (e^ε + δ) / (1 + e^ε), so that m right guesses have p = ((e^ε + δ) / (1 + e^ε))^m.
    """
    wrong = (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))  # the least probability of an error
    if wrong <= 0:
        return math.inf
    fewest = math.log(alpha) / math.log1p(-wrong)
    return math.ceil(fewest) if math.isfinite(fewest) else math.inf


def detectable_epsilon_pair(
    count: int,
    draws: int,
    other: int,
    other_draws: int,
    epsilon: float,
    delta: float,
    alpha: float,
    *,
    power: float = POWER,
) -> float:
    """Return the smallest ε₁ > ε that the pair of bounds refutes with probability `power`.

    Parameters
    ----------
    count, draws, other, other_draws : int
        As of `pair_epsilon_lower`; the event's share of the other input is taken as it was seen.
    epsilon, delta, alpha : float
        The claim: ε ≥ 0 in nats, δ in [0, 1); the error probability, in (0, 1).
    power : float, default 0.9
        In (0, 1).

    Returns
    -------
    float
        ε₁, rounded up; inf when there is none.

    Notes
    -----
    Normal approximation of the counts (docs/method.md §8).
    """
    behind = max(other, 1) / max(other_draws, 1)

    def refuted(larger: float) -> bool:
        ahead = math.exp(min(larger, 700.0)) * behind + delta
        if ahead >= 1:
            return False
        low, high = _unlucky_counts(ahead, draws, behind, other_draws, power)
        return pair_epsilon_lower(low, draws, high, other_draws, delta, alpha) >= epsilon

    steps = (epsilon + 0.01 * 1.02**i for i in range(400))
    return next((one for one in steps if refuted(one)), math.inf)


def _unlucky_counts(
    ahead: float, draws: int, behind: float, other_draws: int, power: float
) -> tuple[int, int]:
    """Return the counts of a run whose estimated log-ratio is at its lower 1 - power quantile."""
    spread = (1 - ahead) / (draws * ahead), (1 - behind) / (other_draws * behind)
    step = float(ndtri(power)) / math.sqrt(max(sum(spread), 1e-300))
    low = math.floor(draws * ahead * (1 - step * spread[0]))
    high = math.ceil(other_draws * behind * (1 + step * spread[1]))
    return max(0, low), min(other_draws, high)
