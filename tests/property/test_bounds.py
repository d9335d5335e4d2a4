"""What holds for every count: ranges, monotonicity, mirrors."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.draws import Tally
from dpaudit.stats.betting import Beliefs, log_wealth, stakes
from dpaudit.stats.game import (
    Game,
    _closed_form_delta_lower,
    epsilon_lower,
    p_value,
)

alphas = st.floats(1e-6, 0.5)
epsilons = st.floats(0, 8)
deltas = st.sampled_from([0.0, 1e-9, 1e-4, 0.01, 0.2, 0.9])
counts = st.integers(0, 150)


@st.composite
def games(draw: st.DrawFn) -> Game:
    correct, wrong, rest = draw(st.tuples(counts, counts, counts))
    abstains = draw(st.booleans())
    draws = correct + wrong + (rest if abstains else 0)
    return Game(correct, wrong, max(draws, 1), draw(st.booleans()), abstains or draws == 0)


@st.composite
def tables(draw: st.DrawFn) -> Tally:
    rows = draw(st.lists(st.tuples(counts, counts), min_size=1, max_size=6))
    return Tally(np.array(rows, dtype=np.int64))


@settings(max_examples=30)
@given(games(), epsilons, deltas, alphas)
def test_a_claim_is_refuted_exactly_when_the_bound_reaches_it(
    game: Game, epsilon: float, delta: float, alpha: float
) -> None:
    """But for the steps of the scan, a sixtieth of a standard deviation."""
    bound = epsilon_lower(game, delta, alpha)
    step = math.sqrt(1 / max(game.correct, 1) + 1 / max(game.wrong, 1)) / 30
    if 0 < epsilon <= bound:
        assert p_value(game, epsilon, delta, alpha) <= alpha * (1 + 1e-6)
    elif p_value(game, epsilon, delta, alpha) <= alpha:
        between = np.linspace(bound, min(epsilon, bound + step), 20)
        near = epsilon <= bound + step
        assert near or max(p_value(game, float(e), delta, alpha) for e in between) > alpha


@given(games(), epsilons, st.sampled_from([1e-4, 0.01, 0.2]), alphas)
def test_one_more_correct_guess_is_more_evidence(
    game: Game, epsilon: float, delta: float, alpha: float
) -> None:
    p = p_value(game, epsilon, delta, alpha)
    if game.abstains and game.correct + game.wrong < game.draws:
        more = Game(game.correct + 1, game.wrong, game.draws, game.two_guesses)
        assert p_value(more, epsilon, delta, alpha) <= p * (1 + 1e-6) + 1e-12


@given(games(), epsilons, alphas)
def test_a_larger_claim_without_delta_is_harder_to_refute(
    game: Game, epsilon: float, alpha: float
) -> None:
    p = [p_value(game, epsilon + more, 0.0, alpha) for more in (0.0, 0.1, 1.0)]
    assert p == sorted(p)


@given(games(), epsilons, alphas)
def test_the_closed_form_never_exceeds_its_own_limit_without_delta(
    game: Game, epsilon: float, alpha: float
) -> None:
    if _closed_form_delta_lower(game, epsilon, alpha) > 0:
        assert p_value(game, epsilon, 0.0, alpha) <= alpha


@settings(max_examples=30)
@given(tables(), st.data(), deltas, alphas)
def test_exchanging_the_inputs_and_the_guesses_changes_no_bound(
    tally: Tally, data: st.DataObject, delta: float, alpha: float
) -> None:
    guess = st.lists(st.integers(-1, 1), min_size=len(tally.counts), max_size=len(tally.counts))
    rule = np.array(data.draw(guess), dtype=np.int64)
    mirrored = Tally(tally.counts[:, ::-1].copy()).game(-rule)
    game = tally.game(rule)
    assert mirrored == game
    assert epsilon_lower(mirrored, delta, alpha) == epsilon_lower(game, delta, alpha)


@given(tables(), st.integers(0, 5), st.data())
def test_merging_levels_of_one_guess_changes_no_game(
    tally: Tally, level: int, data: st.DataObject
) -> None:
    """Levels are bookkeeping: the game depends on the two events alone."""
    guess = st.lists(st.integers(-1, 1), min_size=len(tally.counts), max_size=len(tally.counts))
    rule = np.array(data.draw(guess), dtype=np.int64)
    place = level % len(rule)
    split = np.insert(tally.counts, place, tally.counts[place] // 2, axis=0)
    split[place + 1] -= split[place]
    assert Tally(split).game(np.insert(rule, place, rule[place])) == tally.game(rule)


@given(tables(), tables(), st.floats(0, 3))
def test_log_wealth_adds_up_over_tallies(one: Tally, other: Tally, epsilon: float) -> None:
    levels = len(one.counts)
    if len(other.counts) != levels:
        other = Tally.empty(levels)
    rng = np.random.default_rng(levels)
    beliefs = Beliefs(rng.uniform(0.01, 0.99, (2, levels)), rng.integers(-1, 2, (2, levels)))
    factors = beliefs.log_factors(epsilon, 0.0).reshape(-1, 2 * levels)
    gains = [factors @ tally.counts.reshape(-1) for tally in (one, other, one + other)]
    assert np.allclose(gains[0] + gains[1], gains[2])
    wealth = float(log_wealth(gains[2], stakes(beliefs, 0.0)))
    assert wealth <= gains[2].max() + 1e-9
