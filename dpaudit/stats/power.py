"""The power of the tests: the smallest ε, or the smallest probability, that a test detects.

Reports of audits that find no violation, and `dpaudit plan`, show these numbers (docs/method.md
§8).
"""

from __future__ import annotations

import math
from bisect import bisect_left

from scipy.special import betainc, betaincinv, ndtri

from dpaudit.stats.binomial import pair_epsilon_lower, right_share, upper_tail
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.p_values import bisect_interval

# Probability with which an audit refutes a claim if the true ε is the smallest detectable ε.
POWER = 0.9
# The rare rule guesses an input at an output only if at least this number of learning draws of this
# input, and no learning draw of the other input, gave the output (docs/method.md §5).
MIN_SEEN = 2
# An event counts as one with more than half of the probability only if its number of draws exceeds
# half of all draws by this many standard errors. With a large leak, nearly all draws of one input
# are in the event, about half of all draws, so their number often exceeds half by chance.
_HALF_MARGIN = 3.0


def detectable_epsilon(
    guesses: int,
    epsilon: float,
    alpha: float,
    *,
    draws: int = 0,
    spared: float = 0.0,
    by_input: tuple[int, int] | None = None,
    power: float = POWER,
) -> float:
    """Return the smallest true ε₁ > ε at which a number of guesses refutes the claimed ε with
    probability `power`. It is inf if even right guesses alone do not refute. At ε₁ every guess is
    taken to be right with probability e^ε₁ / (1 + e^ε₁) (docs/method.md §8).

    guesses: number of draws whose input is guessed, taken as fixed.
    draws: number of all draws; needed with `spared` and `by_input`.
    spared: hδ. An upper limit of the number of guesses that δ excuses is subtracted from `guesses`,
        and the rest is tested as for δ = 0.
    by_input: (guesses of d1, guesses of d2). If given, right guesses exceed wrong guesses by at
        most tanh(ε₁ / 2) times `telling_share` for each guess, since an event that is nearly
        certain tells little. None: they are not limited.

    >>> round(detectable_epsilon(1000, 1.0, 0.01), 2)
    1.27
    """
    excused = 0
    if spared:
        excused = math.ceil(
            draws * spared - float(ndtri(alpha / 100)) * math.sqrt(draws * spared * (1 - spared))
        )
    trials, claimed = guesses - excused, right_share(epsilon)

    def refuted(correct: int) -> bool:
        return float(upper_tail(correct, trials, claimed)) <= alpha

    critical = 1 + bisect_left(range(1, trials + 1), True, key=refuted)
    if critical > trials:
        return math.inf
    share = float(betaincinv(critical, trials - critical + 1, power))
    telling = 1.0 if by_input is None else telling_share(by_input, draws)
    if telling < 1:
        excess = 2 * share - 1
        return 2 * math.atanh(excess / telling) if excess < telling else math.inf
    return math.log(share / (1 - share)) if share < 1 else math.inf


def detectable_distance(
    guesses: int,
    draws: int,
    delta: float,
    alpha: float,
    *,
    two_guesses: bool,
    power: float = POWER,
) -> float:
    """Return the smallest total variation distance d > δ at which guesses refute (0, δ)-DP with
    probability `power`; inf if they could not even if all were right. A rule that guesses on a
    share g of the draws shows d if its guesses are right with probability ½ + h d / (2 g), with
    the h of docs/method.md (2.1).

    guesses: number of draws whose input is guessed; counts as fixed, not random.
    draws: number of all draws.

    >>> round(detectable_distance(1000, 1000, 0.0, 0.01, two_guesses=True), 3)
    0.115
    """

    def refuted(correct: int) -> bool:
        game = Game(correct, guesses - correct, draws, two_guesses, guesses < draws)
        return p_value(game, 0.0, delta, alpha, alpha) <= alpha

    critical = 1 + bisect_left(range(1, guesses + 1), True, key=refuted)
    if critical > guesses:
        return math.inf
    share = float(betaincinv(critical, guesses - critical + 1, power))
    distance = (2 * share - 1) * guesses / draws / (1.0 if two_guesses else 0.5)
    return distance if distance <= 1 else math.inf


def telling_share(by_input: tuple[int, int], draws: int) -> float:
    """Return a factor in [0, 1] that limits how many guesses can be right: at a true ε₁, right
    guesses exceed wrong guesses by at most this factor times tanh(ε₁ / 2) for each guess. It is 1
    unless one input is guessed in clearly more than half of the draws.

    by_input: (guesses of d1, guesses of d2).

    An event with most of the probability cannot be much more probable under one input than under
    the other, since the probability outside of it limits the difference (docs/method.md §8).

    >>> telling_share((300, 300), 1000), round(telling_share((9960, 40), 10_000), 3)
    (1.0, 0.038)
    """
    # If d1 is guessed in half of the draws on average, the number n of these guesses has a standard
    # error of √draws / 2, so that n - (draws - n) has a standard error of √draws. An n that exceeds
    # half of the draws by up to `_HALF_MARGIN` standard errors may be due to chance.
    spare = _HALF_MARGIN * math.sqrt(draws)
    telling = sum(min(guesses, draws - guesses + spare) for guesses in by_input)
    return telling / max(1, sum(by_input))


def detectable_rare(
    learning: int,
    certifying: int,
    epsilon: float,
    delta: float,
    alpha: float,
    *,
    power: float = POWER,
) -> float:
    """Return the smallest probability p of an output, which only one input gives, at which this
    output refutes the claim with probability at least `power`. It is rounded up to three digits,
    and inf if there is none.

    The output must occur at least `MIN_SEEN` times among the `learning` draws, and then at least m
    times among the `certifying` draws. Here m is the smallest number of guesses, all right, that
    refutes the claim at alpha (docs/method.md (8.1)).

    >>> detectable_rare(12_500, 87_500, 1.0, 0.0, 0.0006)
    0.000746
    """
    needed = _right_to_refute(certifying, epsilon, delta, alpha)
    if needed > certifying:
        return math.inf

    def is_caught(p: float) -> bool:
        # p / 2, since a fair coin picks the input of every draw, and only one input gives the
        # output.
        seen_chance = _at_least(MIN_SEEN, learning, p / 2)
        return seen_chance * _at_least(needed, certifying, p / 2) >= power

    if not is_caught(1.0):
        return math.inf
    smallest = math.exp(bisect_interval(lambda log_p: is_caught(math.exp(log_p)), -60.0, 0.0)[1])
    digits = 2 - math.floor(math.log10(smallest))
    return min(1.0, round(math.ceil(smallest * 10.0**digits) / 10.0**digits, digits))


def _at_least(successes: int, trials: int, p: float) -> float:
    """Return Pr[Bin(trials, p) ≥ successes] for successes ≥ 1."""
    # `betainc` is used, since SciPy's `bdtrc` accepts at most 2³¹ trials.
    return float(betainc(successes, trials - successes + 1, p)) if successes <= trials else 0.0


def _right_to_refute(draws: int, epsilon: float, delta: float, alpha: float) -> int:
    """Return how many right guesses, all of one input, refute the claim; draws + 1 if none do."""
    if delta == 0:
        needed = draws_to_refute(epsilon, 0.0, alpha)
        return draws + 1 if needed > draws else int(needed)

    def refutes(right: int) -> bool:
        game = Game(right, 0, draws, two_guesses=False)
        return p_value(game, epsilon, delta, alpha, alpha) <= alpha

    return 1 + bisect_left(range(1, draws + 1), True, key=refutes)


def draws_to_refute(epsilon: float, delta: float, alpha: float) -> float:
    """Return the smallest number of draws that refutes the claim at alpha if the input of every
    draw is guessed right. It is inf for δ ≥ 1, since every mechanism satisfies this claim.

    Under the claim a rule that never abstains is right with probability at most
    q = (e^ε + δ) / (1 + e^ε), so that m right guesses have p-value q^m.
    """
    wrong = (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))  # least Pr[wrong guess]
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
    """Return the smallest true ε₁ > ε at which `pair_epsilon_lower` refutes the claim with
    probability `power`; inf if there is none. The counts are as in `pair_epsilon_lower`.

    The event is taken to have probability q = other / other_draws under the other input, with 1 in
    place of `other` if it is 0, and e^ε₁ q + δ under the first. The counts are taken to be normal
    (docs/method.md §8).
    """
    q = max(other, 1) / max(other_draws, 1)

    def refuted(larger: float) -> bool:
        p = math.exp(min(larger, 700.0)) * q + delta
        if p >= 1:
            return False
        low, high = _unlucky_counts(p, draws, q, other_draws, power)
        return pair_epsilon_lower(low, draws, high, other_draws, delta, alpha) >= epsilon

    candidates = (epsilon + 0.01 * 1.02**i for i in range(400))
    return next((larger for larger in candidates if refuted(larger)), math.inf)


def _unlucky_counts(
    p: float, draws: int, q: float, other_draws: int, power: float
) -> tuple[int, int]:
    """Return the counts of the event at which the estimate of log(P/Q) is unluckily small."""
    spread = (1 - p) / (draws * p), (1 - q) / (other_draws * q)
    step = float(ndtri(power)) / math.sqrt(max(sum(spread), 1e-300))
    low = math.floor(draws * p * (1 - step * spread[0]))
    high = math.ceil(other_draws * q * (1 + step * spread[1]))
    return max(0, low), min(other_draws, high)
