from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import known_laws as laws
from benchmarks import peer_suite
from benchmarks.efficiency import Watched
from benchmarks.oracle import Oracle, RatioLaw, Rule, information_limit
from benchmarks.specimens import WRONG, Specimen, specimens
from dpaudit.stats.binomial import clopper_pearson_lower
from dpaudit.stats.game import Game, epsilon_lower
from mechanisms.truth import truth_of

ALPHA = 0.01
RUNS = 200
FloatArray = NDArray[np.float64]


@functools.cache
def every() -> dict[str, Specimen]:
    """Return the specimens by name. Their laws take seconds to compute."""
    return {one.name: one for one in specimens()}


def randomized_response_law(epsilon: float) -> RatioLaw:
    truth = 1 / (1 + math.exp(-epsilon))
    return RatioLaw.of_pmfs({0: truth, 1: 1 - truth}, {0: 1 - truth, 1: truth})


def revealing_law(epsilon: float, delta: float) -> RatioLaw:
    return RatioLaw.of_pmfs(*(laws.revealing_pmf(one, epsilon, delta) for one in (0, 1)))


def simulated(chances: Sequence[float], draws: int, rng: np.random.Generator) -> FloatArray:
    """Bounds of RUNS games. chances: of a correct guess, of a wrong one."""
    rest = max(0.0, 1 - sum(chances))
    counts = rng.multinomial(draws, [*chances, rest], size=RUNS)
    games = [Game(int(c), int(w), draws, two_guesses=True) for c, w, _ in counts]
    return np.array([epsilon_lower(game, 0.0, ALPHA) for game in games])


def five_errors(bounds: FloatArray) -> float:
    return 5 * float(bounds.std()) / math.sqrt(len(bounds))


@pytest.mark.parametrize(("epsilon", "draws"), [(1.0, 1_000), (1.0, 20_000), (0.3, 5_000)])
def test_bound_on_randomized_response_is_that_of_a_simulation(epsilon: float, draws: int) -> None:
    truth = 1 / (1 + math.exp(-epsilon))
    bounds = simulated((truth, 1 - truth), draws, np.random.default_rng(1))
    expected = Oracle(randomized_response_law(epsilon), ALPHA).bound(draws)
    assert expected == pytest.approx(float(bounds.mean()), abs=five_errors(bounds))


@pytest.mark.parametrize(("epsilon", "draws"), [(1.0, 1_000), (1.0, 20_000), (4.0, 3_000)])
def test_bound_on_laplace_is_that_of_a_simulation(epsilon: float, draws: int) -> None:
    """The best thresholds are simulated too: one somewhere at or above 0, and its mirror."""
    rng, best = np.random.default_rng(2), np.zeros(1)
    for threshold in np.linspace(0, 0.4, 9):
        # Of d1, by symmetry: right below the threshold, wrong above its mirror 1 - threshold.
        right = 1 - math.exp(-epsilon * threshold) / 2
        wrong = math.exp(-epsilon * (1 - threshold)) / 2
        best = max(best, simulated((right, wrong), draws, rng), key=np.mean)
    expected = Oracle(laws.laplace_law(epsilon), ALPHA).bound(draws)
    assert expected == pytest.approx(float(best.mean()), abs=five_errors(best))


def test_bound_with_delta_is_the_closed_form_where_the_best_rule_never_abstains() -> None:
    epsilon, delta, draws = 1.0, 0.05, 10_000
    right = delta + (1 - delta) / (1 + math.exp(-epsilon))
    share = clopper_pearson_lower(round(draws * right), draws, ALPHA)
    expected = math.log((share - delta) / (1 - share))
    bound = Oracle(revealing_law(epsilon, delta), ALPHA, delta).bound(draws)
    assert bound == pytest.approx(expected, abs=1e-3)


def test_luck_is_nothing_where_guesses_are_as_expected() -> None:
    oracle = Oracle(randomized_response_law(1.0), ALPHA)
    rule = oracle.rule(10_000)
    correct = round(10_000 * rule.correct)
    assert oracle.luck(rule, correct, 10_000 - correct, 10_000) == pytest.approx(0, abs=1e-3)
    assert oracle.luck(rule, correct + 100, 9_900 - correct, 10_000) > 0.04


@pytest.mark.parametrize(
    "oracle",
    [Oracle(laws.laplace_law(1.0), ALPHA), Oracle(revealing_law(1.0, 0.05), ALPHA, 0.05)],
    ids=["pure", "approximate"],
)
def test_draws_for_is_the_inverse_of_the_bound(oracle: Oracle) -> None:
    # Whole counts make the bound with δ > 0 a stair.
    assert oracle.draws_for(oracle.bound(60), 80) == pytest.approx(60, rel=0.04)


@pytest.mark.parametrize("claimed", [0.5, 0.75, 0.99])
def test_information_limit_on_randomized_response_is_the_closed_form(claimed: float) -> None:
    true, most = (1 / (1 + math.exp(-one)) for one in (1.0, claimed))
    divergence = true * math.log(true / most) + (1 - true) * math.log((1 - true) / (1 - most))
    found = information_limit(randomized_response_law(1.0), claimed, 0.002)
    assert found == pytest.approx(math.log(500) / divergence, rel=1e-6)


def test_information_limit_is_that_of_the_documented_table() -> None:
    """docs/method.md §4: 38, 337, 1,859 and 7,137 draws at α = 0.01."""
    cases = [(2.0, 0.5), (1.5, 1.0), (1.2, 1.0), (1.1, 1.0)]
    found = [information_limit(laws.laplace_law(true), claim, 0.01) for true, claim in cases]
    assert [round(one) for one in found] == [38, 337, 1859, 7137]


@pytest.mark.parametrize("at", [0.0, 0.3, 0.9])
def test_laplace_profile(at: float) -> None:
    assert laws.laplace_law(1.0).delta(at) == pytest.approx(-math.expm1((at - 1) / 2), abs=1e-7)


def function(one: Specimen) -> Callable[..., Any]:
    return one.mechanism.func if isinstance(one.mechanism, partial) else one.mechanism


def params(one: Specimen) -> dict[str, Any]:
    return one.mechanism.keywords if isinstance(one.mechanism, partial) else {}


@pytest.mark.parametrize("name", ["Gaussian", f"Gaussian{WRONG}", "Laplace, ε = 4"])
def test_profile_is_the_stated_one(name: str) -> None:
    one = every()[name]
    for at in (0.5, 2.0, 3.5):
        stated = truth_of(function(one)).profile(one.d1, one.d2, at, **params(one))
        assert one.law.delta(at) == pytest.approx(stated, rel=1e-5)


def test_true_epsilon_is_the_stated_one() -> None:
    pure = [one for one in every().values() if one.delta == 0]
    stated = [one for one in pure if hasattr(function(one), "truth")]
    assert len(stated) > 5
    for one in stated:
        truth = truth_of(function(one)).epsilon(one.d1, one.d2, **params(one))
        assert one.epsilon == pytest.approx(truth, rel=1e-7), one.name


def test_correct_specimens_claim_their_truth_and_wrong_ones_less() -> None:
    for name, one in every().items():
        claimed = one.epsilon if one.claimed is None else one.claimed
        if name.endswith(WRONG):
            assert claimed < 0.6 * one.epsilon, name
        else:
            assert claimed == pytest.approx(one.epsilon, rel=1e-6), name


def test_law_and_log_ratios_agree_with_draws() -> None:
    for one in (*every().values(), *peer_suite.specimens()):
        check_law(one)


def check_law(one: Specimen) -> None:
    """Check Pr[log-ratio ≥ t] and Pr[log-ratio < t] of both inputs, at the thresholds of an
    oracle."""
    rng, size = np.random.default_rng(3), 5_000
    drawn = [one.log_ratio(one.mechanism(d, size=size, rng=rng)) for d in (one.d1, one.d2)]
    for draws in (1_000,):
        rule = Oracle(one.law, ALPHA).rule(draws)
        behind = [float((ratios < rule.low).mean()) for ratios in drawn]
        ahead = [float((ratios >= rule.high).mean()) for ratios in drawn]
        correct, wrong = (ahead[0] + behind[1]) / 2, (ahead[1] + behind[0]) / 2
        assert near(correct, rule.correct, 2 * size), one.name
        assert near(wrong, rule.wrong, 2 * size), one.name


def near(found: float, exact: float, size: int) -> bool:
    """Within five standard errors, and one draw."""
    return abs(found - exact) < 5 * math.sqrt(exact * (1 - exact) / size) + 1.01 / size


def test_watched_mechanism_counts_what_the_oracle_guesses_on_the_last_draws() -> None:
    one, rng = every()["randomized response"], np.random.default_rng(0)
    watched = Watched(one, Rule(0.0, 0.0, 0.75, 0.25))
    watched(0, size=50, rng=rng)
    right = int((watched(0, size=100, rng=rng) == 0).sum())
    right += int((watched(1, size=200, rng=rng) == 1).sum())
    assert watched.last(300) == (right, 300 - right)
    assert watched.seconds >= 0
    with pytest.raises(RuntimeError, match="the last 250 draws do not begin with a call"):
        watched.last(250)
