"""The event of a run that bets have ended is counted on draws that did not choose it."""

from __future__ import annotations

import numpy as np

from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.auditing.exact_tests import early_rule
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.outcomes import from_raw


def test_an_early_rule_is_counted_on_later_blocks_alone() -> None:
    is_d1 = np.random.default_rng(0).random(100) < 0.5
    draws = SelectionDraws(from_raw(is_d1.astype(float)), is_d1)
    portfolio = learn(draws, Objective(ProfilePoint(1.0, 0.0), 1_000)).portfolio
    sizes = [16, 24, 30, 20, 10]
    # The latest rule that was learned from at most half of the draws is taken, else the first.
    for until, counted in ((40, [30, 20, 10]), (90, [24, 30, 20, 10])):
        rule, tallies = early_rule([(16, portfolio), (until, portfolio)], draws, sizes)
        assert [tally.draws for tally in tallies] == counted
        later = draws.take(slice(100 - sum(counted), None))
        counts = by_arm(rule(later.outcomes), rule.levels, later.is_d1)
        assert np.array_equal(np.sum([tally.counts for tally in tallies], axis=0), counts)
