"""The benchmark of false alarms, small: valid procedures pass its check, invalid twins fail it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks import whole_audits
from benchmarks.false_alarms import CASES, Case, Outcome, Run, audit
from benchmarks.whole_audits import Setting
from dpaudit.attacks import weighted_sums
from dpaudit.attacks.weighted_sums import mean_differences
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.outcomes import from_raw
from dpaudit.stats.game import p_value

from .deciding import Rule, interval, lies_below

NOMINAL, SEED = 0.1, 20_240
Interval = Callable[[int, int], tuple[float, float]]
IsAbove = Callable[[Iterable[bool], int, float], bool]

VALID = [case for case in CASES if case.valid]
# The others need all of the 20,000 runs of the benchmark to be told from a valid procedure.
PLAIN = [
    case
    for case in CASES
    if not case.valid
    and case.name
    not in {
        "α not split: betting and fixed bound",
        "atoms certified on selection draws",
    }
]


# Numbers of runs with which the twins of these cases are found with a probability of 0.999 or more.
# The twins refute with these rates: cells by their counts 0.24, bold bets 0.31, two guesses for one
# 0.36, batches 0.55 and 0.27, pairs 0.78, bands 0.96, sequences by entry 0.7, texts 0.64, parts
# 0.49, outputs by kind 0.59, rare outputs 0.42, a portfolio with frequent cells 0.39, and witnesses
# 1. By the binomial law, a rate of 0.31 takes 194 runs, 0.42 93, 0.49 68, 0.55 50, and 0.7 30.
RUNS = {
    "cells": 400,
    "bold bets": 200,
    "fixed bound, reveal": 300,
    "h = ½": 300,
    "certified on selection draws": 300,
    "batch of 12, ": 80,
    "batch of 12 by bets": 300,
    "best of 16": 60,
    "witness": 40,
    "sequences of bands": 60,
    "sequences": 40,
    "contents of texts": 50,
    "independent parts": 80,
    "outputs of each kind": 300,
    "rare outputs": 100,
    "portfolio with frequent cells": 200,
}


def runs_of(case: Case) -> int:
    """Return how many runs a case is given: many, where nothing is known of it."""
    known = (runs for words, runs in RUNS.items() if case.name.startswith(words))
    return next(known, 1_000 if case.valid else 1_500)


def alarms(case: Case) -> Iterator[bool]:
    """Yield whether a case refutes, run after run."""
    return alarms_of(case.run, stream=CASES.index(case))


def alarms_of(run: Run, stream: int = 1) -> Iterator[bool]:
    rng = np.random.default_rng([SEED, stream])
    while True:
        yield run(NOMINAL, rng)


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_a_valid_procedure_does_not_exceed_its_level(case: Case, is_above: IsAbove) -> None:
    assert not is_above(alarms(case), runs_of(case), NOMINAL)


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_its_invalid_twin_is_caught_by_the_same_check(case: Case, is_above: IsAbove) -> None:
    assert is_above(alarms(case), runs_of(case), NOMINAL)


# Number of whole audits, which are slow: each kind of bound is tried above, and 24 detect a
# false-alarm rate of 0.7. (A rule certified on its own learning draws refutes with rate 0.95.)
FEW = 24
# A long vector takes seconds an audit; below, a short one is taken for long. Trees learn the same
# with --stop never, which is tried with randomised response.
QUICK = [
    one
    for one in whole_audits.SETTINGS
    if "long vector" not in one.name and one.name != "agreeing signs, trees, --stop never"
]


@pytest.mark.parametrize("setting", QUICK, ids=lambda setting: setting.name)
def test_a_whole_audit_of_a_true_claim_does_not_exceed_its_level(
    setting: Setting, is_above: IsAbove
) -> None:
    # A third of the draws is enough for trees to be taken, and a quarter for every audit to learn
    # by counting, which keeps 250 draws.
    most = 4 if "trees" in setting.name else 2
    smaller = replace(setting, scale=min(setting.scale, most))
    assert not is_above(alarms_of(audit(smaller)), FEW, NOMINAL)


@pytest.mark.parametrize("name", ["Laplace", "reveal or randomise"])
def test_a_whole_audit_of_a_claim_too_strong_is_caught_by_the_same_check(
    name: str, is_above: IsAbove
) -> None:
    (setting,) = (one for one in QUICK if one.name == name)
    claim = ApproximateDP(0.6, whole_audits.DELTA) if "reveal" in name else PureDP(0.6)
    assert is_above(alarms_of(audit(replace(setting, claim=claim))), FEW, NOMINAL)


def test_a_whole_audit_by_the_difference_of_means_does_not_exceed_its_level(
    monkeypatch: pytest.MonkeyPatch, is_above: IsAbove
) -> None:
    monkeypatch.setattr(weighted_sums, "MAX_FEATURES", 4)
    monkeypatch.setattr(whole_audits, "LONG", 6)
    (setting,) = (one for one in whole_audits.SETTINGS if "long vector" in one.name)
    assert not is_above(alarms_of(audit(setting)), FEW, NOMINAL)


@pytest.mark.parametrize(
    ("count", "last", "asked"), [(15, 0, 40), (16, 0, 16), (15, 1, 14), (1, 0, 18), (0, 0, 14)]
)
def test_a_rate_is_above_if_all_runs_say_so_and_not_after_a_few_that_make_it_unlikely(
    count: int, last: int, asked: int, share: Interval, is_above: IsAbove
) -> None:
    """last: whether the alarms come last; asked: after how many runs it is decided."""
    every = [False] * (40 - count) + [True] * count
    played = iter(every if last else every[::-1])
    assert is_above(played, 40, NOMINAL) is (share(count, 40)[0] > NOMINAL) is (count == 16)
    assert len(list(played)) == 40 - asked


@pytest.mark.parametrize("last", [False, True])
def test_a_rate_is_below_exactly_if_all_runs_say_so(last: bool) -> None:
    for count in range(21):
        every = [False] * (20 - count) + [True] * count
        played = iter(every if last else every[::-1])
        assert lies_below(played, 20, 0.9) is (interval(count, 20)[1] < 0.9) is (count < 10)
        assert last or count < 10 or len(list(played)) == 10


@pytest.mark.parametrize("runs", [FEW, 40, 300, 1_000])
def test_what_fewer_runs_cost_is_no_power(runs: int) -> None:
    """Exactly, for every rate: sum over all outcomes of the runs."""
    rates = np.linspace(0.02, 0.98, 97)
    rule = Rule(runs, NOMINAL)
    # By rate and number of alarms, the probability that runs have come so far.
    going, above, asked = np.zeros((97, rule.least + 1)), np.zeros(97), np.zeros(97)
    going[:, 0] = 1.0
    for run in range(1, runs + 1):
        asked += going.sum(axis=1)
        going[:, 1:] = going[:, 1:] * (1 - rates)[:, None] + going[:, :-1] * rates[:, None]
        going[:, 0] *= 1 - rates
        few = 0
        while few <= run and rule.verdict(few, run) is False:
            few += 1
        going[:, :few] = 0.0
        if rule.verdict(rule.least, run):
            above += going[:, rule.least]
            going[:, rule.least] = 0.0
    power_of_all = binom.sf(rule.least - 1, runs, rates)
    assert not going.any()
    assert (above <= power_of_all + 1e-9).all()
    assert (above >= power_of_all - 5e-4).all()
    # Of a rate that is half of nominal, most runs are spared.
    assert asked[np.isclose(rates, NOMINAL / 2)] < runs / 2


@pytest.mark.parametrize("fresh", [True, False])
def test_a_long_vector_is_refuted_on_the_draws_it_was_learned_from_and_not_on_fresh_ones(
    fresh: bool, share: Interval
) -> None:
    runs, rng = 10, np.random.default_rng([SEED, 2])
    # What 400 draws say of 520 weights is mostly noise, and looks like far more than μ = 1.
    point = GaussianDP(1.0).point()

    def drawn() -> SelectionDraws:
        is_d1 = rng.random(400) < 0.5
        numbers = whole_audits.spread_out(0, 400, rng, norm=1.0)
        numbers[is_d1] = whole_audits.spread_out(1, int(is_d1.sum()), rng, norm=1.0)
        return SelectionDraws(from_raw(numbers), is_d1)

    refuted = 0
    for _ in range(runs):
        seen = drawn()
        (candidate,) = mean_differences(seen)
        level = candidate.level_map()
        guesses = np.where(np.arange(level.levels) < level.levels // 2, -1, 1)
        certifying = drawn() if fresh else seen
        places = level(certifying.outcomes) * 2 + ~certifying.is_d1
        counts = np.bincount(places, minlength=2 * level.levels).reshape(-1, 2)
        p = p_value(Tally(counts).game(guesses), point.epsilon, point.delta, NOMINAL)
        refuted += p <= NOMINAL
    low, _ = share(refuted, runs)
    assert (low <= NOMINAL) is fresh


def test_betting_and_the_fixed_bound_are_each_tried_on_every_tight_mechanism() -> None:
    names = {case.name for case in VALID}
    for mechanism in ("Laplace", "randomised response", "reveal or randomise"):
        assert {f"fixed bound, {mechanism}", f"betting, {mechanism}"} <= names


def test_the_check_is_a_two_sided_interval_above_nominal() -> None:
    valid, invalid = VALID[0], PLAIN[0]
    outcomes = [
        Outcome(case, 1_000, count, NOMINAL) for case in (valid, invalid) for count in (100, 150)
    ]
    assert [one.is_above for one in outcomes] == [False, True, False, True]
    assert [one.is_as_it_should_be for one in outcomes] == [True, False, False, True]
