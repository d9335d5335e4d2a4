"""What a test would have detected, against simulated and exact power."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from dpaudit.stats import probabilistic
from dpaudit.stats.binomial import pair_epsilon_lower, upper_tail
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.power import (
    MIN_SEEN,
    POWER,
    detectable_distance,
    detectable_epsilon,
    detectable_epsilon_pair,
    detectable_rare,
    draws_to_refute,
)
from dpaudit.stats.probabilistic import violating_mass


def share(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def exact_power(guesses: int, epsilon: float, truth: float, alpha: float) -> float:
    """Return the probability that a game with this number of guesses refutes ε at alpha."""
    counts = np.arange(guesses + 1)
    games = [Game(int(c), guesses - int(c), guesses, two_guesses=True) for c in counts]
    p_values = np.array([p_value(game, epsilon, 0.0, alpha, enough=alpha) for game in games])
    return float(binom.pmf(counts, guesses, share(truth))[p_values <= alpha].sum())


@pytest.mark.parametrize(
    ("guesses", "epsilon", "alpha"), [(20, 0.0, 0.1), (20, 1.0, 0.1), (300, 1.0, 0.01)]
)
def test_the_detectable_epsilon_is_refuted_with_probability_0_9(
    guesses: int, epsilon: float, alpha: float
) -> None:
    smallest = detectable_epsilon(guesses, epsilon, alpha)
    assert smallest > epsilon
    assert exact_power(guesses, epsilon, smallest + 1e-9, alpha) >= POWER
    assert exact_power(guesses, epsilon, smallest - 0.01, alpha) < POWER


def test_too_few_guesses_detect_nothing() -> None:
    assert detectable_epsilon(0, 1.0, 0.05) == math.inf
    assert detectable_epsilon(3, 1.0, 0.01) == math.inf
    assert detectable_epsilon(50, 1.0, 0.01, draws=10_000, spared=0.05) == math.inf


def largest_share_of_right_guesses(by_input: tuple[int, int], draws: int, epsilon: float) -> float:
    """Return the largest Pr[right] / Pr[guess], by linear programming over the laws P and Q on
    three outputs: guess d1, guess d2, none. Each has its mean probability, and its ratio is at most
    e^ε."""
    shares = [*(one / draws for one in by_input), 1 - sum(by_input) / draws]
    # Variables: P and Q at each output. Rows of `limits`: P ≤ e^ε Q and Q ≤ e^ε P.
    limits = [
        [(i == own) - math.exp(epsilon) * (i == other) for i in range(6)]
        for k in range(3)
        for own, other in ((k, k + 3), (k + 3, k))
    ]
    means = [[(i % 3 == k) / 2 for i in range(6)] for k in range(3)]
    found = linprog(
        [-0.5, 0, 0, 0, -0.5, 0],
        A_ub=limits,
        b_ub=[0.0] * 6,
        A_eq=[*means, [1, 1, 1, 0, 0, 0]],
        b_eq=[*shares, 1.0],
        bounds=(0, 1),
    )
    assert found.fun is not None
    return float(-found.fun / sum(shares[:2]))


@pytest.mark.parametrize("by_input", [(300, 700), (600, 0), (200, 300), (500, 500)])
def test_an_event_with_most_of_the_draws_detects_less(
    by_input: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.stats.power._HALF_MARGIN", 0.0)
    draws, guesses, epsilon, alpha = 1_000, sum(by_input), 0.3, 0.05
    smallest = detectable_epsilon(guesses, epsilon, alpha, draws=draws, by_input=by_input)
    counts = np.arange(guesses + 1)
    refuted = upper_tail(counts, guesses, share(epsilon)) <= alpha
    for truth, is_enough in ((smallest + 1e-6, True), (smallest - 0.01, False)):
        right = largest_share_of_right_guesses(by_input, draws, truth)
        assert (binom.pmf(counts, guesses, right)[refuted].sum() >= POWER) == is_enough
    if max(by_input) <= draws / 2:
        assert smallest == detectable_epsilon(guesses, epsilon, alpha)


def test_an_event_with_nearly_all_draws_detects_nothing() -> None:
    assert detectable_epsilon(1_000, 1.0, 0.01, draws=1_000, by_input=(996, 4)) == math.inf
    assert detectable_epsilon(1_000, 1.0, 0.01, draws=1_000, by_input=(1_000, 0)) == math.inf


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 8.0])
def test_an_event_with_half_of_the_draws_but_for_luck_detects_as_much(epsilon: float) -> None:
    """The output of randomised response is the guess, so each guess has half of the draws."""
    draws = 60_000
    least = detectable_epsilon(draws, epsilon, 0.0075)
    assert math.isfinite(least)
    for errors in (-3.0, 0.0, 1.0, 2.99):
        d1 = round(draws / 2 + errors * math.sqrt(draws) / 2)
        both = d1, draws - d1
        assert detectable_epsilon(draws, epsilon, 0.0075, draws=draws, by_input=both) == least


@pytest.mark.parametrize(("delta", "two_guesses"), [(0.05, True), (0.05, False), (0.002, True)])
def test_with_delta_the_detectable_epsilon_has_at_least_its_power(
    delta: float, two_guesses: bool
) -> None:
    """Simulated: reveal with probability δ, else guess half of the time with the odds of ε₁."""
    draws, epsilon, alpha = 2_000, 1.0, 0.01
    spared = delta if two_guesses else delta / 2
    # the observed number of guesses is that of the true ε₁, found by iteration
    smallest = detectable_epsilon(
        round(draws * (0.5 + 0.5 * spared)), epsilon, alpha, draws=draws, spared=spared
    )
    rng = np.random.default_rng(3)

    def power(truth: float) -> float:
        guess = 0.5 * (1 - spared)
        chances = [spared + guess * share(truth), guess * (1 - share(truth)), 1 - spared - guess]
        tables = rng.multinomial(draws, chances, size=60)
        games = [Game(int(c), int(w), draws, two_guesses) for c, w, _ in tables]
        p_values = [p_value(one, epsilon, delta, alpha, enough=alpha) for one in games]
        return float(np.mean(np.array(p_values) <= alpha))

    assert power(smallest) >= POWER - 0.12  # three sd of the simulation
    assert power((smallest + 2 * epsilon) / 3) < POWER


def test_the_pair_of_bounds_has_its_stated_power() -> None:
    draws, epsilon, delta, alpha = 5_000, 1.0, 0.01, 0.01
    behind = 0.15
    smallest = detectable_epsilon_pair(
        2_000, draws, round(draws * behind), draws, epsilon, delta, alpha
    )
    rng = np.random.default_rng(11)

    def power(truth: float) -> float:
        counts = rng.binomial(draws, math.exp(truth) * behind + delta, 2_000)
        others = rng.binomial(draws, behind, 2_000)
        bounds = [
            pair_epsilon_lower(int(c), draws, int(o), draws, delta, alpha)
            for c, o in zip(counts, others, strict=True)
        ]
        return float(np.mean(np.array(bounds) >= epsilon))

    assert power(smallest) >= POWER - 0.03
    assert power(0.75 * smallest + 0.25 * epsilon) < POWER


def test_the_detectable_epsilon_of_atoms_is_that_of_their_test() -> None:
    draws, delta, alpha = 20_000, 0.05, 0.02
    counts, others = np.array([4_000, 900]), np.array([1_500, 300])
    smallest = probabilistic.detectable_epsilon(counts, others, draws, 1.0, delta, alpha)
    total = int((counts + others)[0])
    own = round(total * share(smallest))
    certified = violating_mass(np.array([own]), np.array([total - own]), draws, 1.0, alpha)
    assert certified.delta_lower > delta
    assert 1.0 < smallest < 1.5


def test_atoms_too_light_to_outweigh_delta_detect_nothing() -> None:
    none = np.array([], dtype=np.int64)
    assert probabilistic.detectable_epsilon(none, none, 1_000, 1.0, 0.0, 0.05) == math.inf
    light = np.array([50]), np.array([10])
    assert probabilistic.detectable_epsilon(*light, 10_000, 1.0, 0.05, 0.05) == math.inf


@functools.cache
def refutes(right: int, draws: int, epsilon: float, delta: float, alpha: float) -> bool:
    """Return whether `right` guesses of one input, all correct, refute a claim: by the binomial
    tail for δ = 0, by the game for δ > 0."""
    if delta == 0:
        return bool(binom.sf(right - 1, right, share(epsilon)) <= alpha)
    return p_value(Game(right, 0, draws, two_guesses=False), epsilon, delta, alpha, alpha) <= alpha


def power_of_rare(
    p: float, learning: int, certifying: int, epsilon: float, delta: float, alpha: float
) -> float:
    """Probability that an output of d1 alone, of probability p, comes twice while learning, and
    then often enough to refute: a sum over all numbers of draws of d1 in each part."""
    first = np.arange(learning + 1)
    seen = sum(
        binom.pmf(d1, learning, 0.5) * binom.sf(MIN_SEEN - 1, d1, p) for d1 in first.tolist()
    )
    counts = np.arange(certifying + 1)
    refuting = np.array([refutes(int(c), certifying, epsilon, delta, alpha) for c in counts])
    later = sum(
        binom.pmf(d1, certifying, 0.5) * binom.pmf(counts, d1, p)[refuting].sum()
        for d1 in counts.tolist()
    )
    return float(seen * later)


@pytest.mark.parametrize(("learning", "certifying", "epsilon", "delta", "alpha"), [
    (50, 350, 1.0, 0.0, 6e-4),
    (50, 350, 0.0, 0.0, 6e-4),
    (40, 280, 0.5, 0.02, 6e-4),
    (60, 240, 1.0, 0.1, 0.01),
    (20, 300, 0.1, 0.0, 6e-3),  # few draws to learn from
])  # fmt: skip
def test_the_detectable_rare_output_has_power_0_9(
    learning: int, certifying: int, epsilon: float, delta: float, alpha: float
) -> None:
    setting = learning, certifying, epsilon, delta, alpha
    smallest = detectable_rare(*setting)
    assert 0 < smallest < 1
    assert power_of_rare(smallest, *setting) >= POWER
    # It is rounded up to three digits.
    assert power_of_rare(smallest * 0.985, *setting) < POWER


@pytest.mark.parametrize("setting", [
    (0, 87_500, 1.0, 0.0, 6e-4),  # nothing is learned
    (12_500, 0, 1.0, 0.0, 6e-4),  # nothing is certified
    (12_500, 20, 1.0, 0.0, 6e-4),  # 24 right guesses refute
    (12_500, 87_500, 1e9, 0.0, 6e-4),
    (12_500, 87_500, 1.0, 1.0, 6e-4),
])  # fmt: skip
def test_no_rare_output_is_detectable_with_too_few_draws(
    setting: tuple[int, int, float, float, float],
) -> None:
    assert detectable_rare(*setting) == math.inf


def test_the_smallest_number_of_draws_is_exact() -> None:
    needed = int(draws_to_refute(1.0, 0.0, 6e-4))
    assert needed == 24
    assert refutes(needed, 100, 1.0, 0.0, 6e-4)
    assert not refutes(needed - 1, 100, 1.0, 0.0, 6e-4)
    # Half of the draws are of d1, hence twice the number, and more for the variation of coins.
    assert detectable_rare(100, 2 * needed, 1.0, 0.0, 6e-4) == math.inf
    assert detectable_rare(100, 3 * needed, 1.0, 0.0, 6e-4) < 1


@pytest.mark.parametrize("two_guesses", [True, False])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_detectable_distance_is_refuted_with_probability_0_9(
    two_guesses: bool, delta: float
) -> None:
    draws, guesses, alpha, h = 400, 300, 0.01, 1.0 if two_guesses else 0.5
    counts = np.arange(guesses + 1)
    games = [Game(int(right), guesses - int(right), draws, two_guesses) for right in counts]
    refuting = [p_value(game, 0.0, delta, alpha, enough=alpha) <= alpha for game in games]

    def power(distance: float) -> float:
        right = 0.5 + h * distance * draws / guesses / 2
        return float(binom.pmf(counts, guesses, right)[refuting].sum())

    smallest = detectable_distance(guesses, draws, delta, alpha, two_guesses=two_guesses)
    assert delta < smallest < 1
    assert power(smallest + 1e-9) >= POWER > power(smallest - 0.02)


def test_too_few_guesses_detect_no_distance() -> None:
    assert detectable_distance(0, 100, 0.0, 0.01, two_guesses=True) == math.inf
    assert detectable_distance(6, 100, 0.0, 0.01, two_guesses=True) == math.inf
    assert detectable_distance(30, 30, 0.9, 0.01, two_guesses=False) == math.inf
