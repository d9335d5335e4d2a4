"""Halving: which pairs stay, with how many draws; and inputs that are written alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dpaudit.searching.leak_estimates import Confirming
from dpaudit.searching.proposals import Origin, Proposal
from dpaudit.searching.ranking import Ranking, bounds_of, kind_of
from dpaudit.searching.trials import LUCK, Contender, Input, Inputs
from tests.neighbouring import relation

ENOUGH = 20.0
UNIT = relation("list of number in [0, 1]", "add-remove")
ANSWERS = relation("vector of 5 number in [0, 10]", "linf:1")


def contender(
    order: int,
    evidence: float = 0.0,
    hope: float = 0.0,
    *,
    origin: Origin = "random",
    pair: tuple[Any, Any] = ([], [0.5]),
) -> Contender:
    """Return a contender with evidence per draw."""
    proposal = Proposal(*pair, str(order), origin, True)
    sides = Input(order, order), Input(-order - 1, -order)
    return Contender(proposal, *sides, order, evidence, hope, hope)


class Trials:
    """Stands for `Confirming`: evidence grows with draws, and all trials are kept."""

    def __init__(self, given: Sequence[Contender], of: Any = UNIT, draws: int = 50_000) -> None:
        self.relation, self.is_found, self.given = of, False, given
        self.enough = ENOUGH
        self.sizes: dict[int, list[int]] = {}
        self.drawing = SimpleNamespace(draws=0)
        self.budget = SimpleNamespace(
            draws=draws,
            spent=0.0,
            is_out_of_time=lambda: False,
            places=lambda share: max(1, int(share * draws / 130)),
        )

    def tried(self, one: Contender, size: int, number: int) -> Contender:
        self.sizes.setdefault(one.order, []).append(size)
        self.drawing.draws += max(0, 2 * size - one.draws)
        self.budget.spent = self.drawing.draws / self.budget.draws
        evidence = self.given[one.order].evidence * size
        return replace(one, evidence=evidence, draws=2 * size)

    def measured(self, one: Contender, size: int) -> Contender:
        return self.tried(one, size, 1)

    def ranked(self, contenders: Sequence[Contender]) -> list[Contender]:
        return sorted(contenders, key=lambda one: one.rank(ENOUGH), reverse=True)

    def is_clear(self, one: Contender) -> bool:
        return one.evidence >= ENOUGH

    def is_over(self) -> bool:
        return False


def ranking(trials: Trials) -> Ranking:
    return Ranking(cast(Confirming, trials))


MANY = [0.5] * 20
KINDS: dict[tuple[str, ...], Callable[[int], Contender]] = {
    ("bounds", "few"): lambda n: contender(n, pair=([], [1.0])),
    ("bounds", "many"): lambda n: contender(n, pair=(MANY, [*MANY, 0.0])),
    ("inside", "few"): lambda n: contender(n, pair=([0.5], [0.5, 0.3])),
    ("inside", "many"): lambda n: contender(n, pair=(MANY, [*MANY, 0.3])),
    ("edges", "few"): lambda n: contender(n, pair=([], [5e-324]), origin="edge"),
    ("edges", "many"): lambda n: contender(n, pair=(MANY, [*MANY, -0.0]), origin="edge"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_of_the_kind_of_its_difference(kind: tuple[str, ...]) -> None:
    assert kind_of(KINDS[kind](0).proposal, UNIT, bounds_of(UNIT)) == kind


def test_pairs_of_answers_are_patterns_or_others() -> None:
    pair = [0.0] * 5, [1.0] * 5
    pattern = contender(0, pair=pair, origin="pattern").proposal
    random = contender(0, pair=pair).proposal
    found = [kind_of(one, ANSWERS, bounds_of(ANSWERS)) for one in (pattern, random)]
    assert found == [("pattern",), ("other",)]


@pytest.mark.parametrize("weak", KINDS)
def test_one_pair_of_each_kind_is_in_the_last_round_with_as_many_draws(
    weak: tuple[str, ...],
) -> None:
    """Forty pairs of every other kind have more evidence than the three of one kind."""
    given: list[Contender] = []
    for kind, make in KINDS.items():
        for _ in range(3 if kind == weak else 40):
            evidence = 0.0 if kind == weak else 0.01
            given.append(replace(make(len(given)), evidence=evidence))
    trials = Trials(given, draws=100_000)
    ranked = ranking(trials).halved(given, 0.5, to_last=True)
    assert sorted(one.order for one in ranked) == list(range(len(given)))
    last = ranking(trials).last_round(ranked, 0.0)
    most = max(one.draws for one in last)
    bounds = bounds_of(UNIT)
    equal = [kind_of(one.proposal, UNIT, bounds) for one in last if one.draws == most]
    assert sorted(equal) == sorted(KINDS)


def test_a_rare_leak_wins_against_a_pair_that_uses_all_of_the_claim() -> None:
    """Its evidence grows with the draws, although its bound is lower at the end."""
    full = replace(contender(0, 0.0, 0.9), draws=2_000)
    rare = replace(contender(1, 0.004, 0.3, pair=(MANY, [*MANY, 0.3])), draws=2_000)
    last = ranking(Trials([full, rare])).last_round([full, rare], 0.0)
    assert [one.order for one in last] == [1, 0]


def test_evidence_that_may_be_luck_does_not_decide() -> None:
    lucky, better = contender(0, 0.9 * LUCK, 0.5), contender(1, 0.0, 0.8)
    trials = Trials([])
    assert [one.order for one in trials.ranked([lucky, better])] == [1, 0]
    clear = replace(lucky, evidence=1.1 * LUCK)
    assert [one.order for one in trials.ranked([better, clear])] == [0, 1]


def test_of_clear_leaks_the_larger_bound_wins_and_of_equal_ones_the_simpler() -> None:
    pairs = [contender(0, 90.0, 1.0), contender(2, 30.0, 1.2), contender(1, 25.0, 1.2)]
    assert [one.order for one in Trials([]).ranked(pairs)] == [1, 2, 0]


def test_of_nearly_equal_bounds_the_simplest_pair_is_first_unless_evidence_decides() -> None:
    pairs = [contender(n, 0.0, hope, pair=([], [n / 10])) for n, hope in enumerate((0.9, 0.93))]
    pairs[1] = replace(pairs[1], proposal=replace(pairs[1].proposal, origin="edge"))
    assert [one.order for one in ranking(Trials(pairs)).last_round(pairs[::-1], 0.0)] == [0, 1]
    pairs[1] = replace(pairs[1], evidence=0.01)
    assert [one.order for one in ranking(Trials(pairs)).last_round(pairs[::-1], 0.0)] == [1, 0]


def test_rounds_have_fewer_pairs_with_more_draws_within_their_share() -> None:
    given = [contender(n, 0.001 * n, 0.01 * n) for n in range(100)]
    trials = Trials(given)
    ranked = ranking(trials).halved(given, 0.5)
    assert ranked[0].order == 99
    rounds = [len(sizes) for sizes in trials.sizes.values()]
    assert [sum(one >= n for one in rounds) for n in (1, 2, 3, 4)] == [100, 13, 2, 1]
    assert all(sorted(set(sizes)) == sizes for sizes in trials.sizes.values())
    # Each trial of this stand-in draws for two inputs, where pairs share some.
    assert trials.drawing.draws <= 0.5 * 50_000 * 2 / 1.3


def test_patterns_of_answers_stay_whatever_their_evidence() -> None:
    pair = [0.0] * 5, [1.0] * 5
    others = [contender(n, 0.1, pair=pair) for n in range(56)]
    patterns = [contender(n, 0.01, pair=pair, origin="pattern") for n in range(56, 64)]
    trials = Trials([*others, *patterns], ANSWERS)
    ranked = ranking(trials).halved([*others, *patterns], 0.5, to_last=True)
    kinds = [one.proposal.origin for one in ranked[:8]]
    assert kinds.count("pattern") == kinds.count("random") == 4


def test_arrays_that_differ_where_repr_leaves_out_are_two_inputs() -> None:
    inputs = Inputs(lambda dataset: dataset)
    other = np.zeros(3_000)
    other[1_500] = 1
    first = inputs.of(np.zeros(3_000))
    assert inputs.of(other) is not first
    assert inputs.of(np.zeros(3_000)) is first


def test_no_upper_end_is_known_before_the_last_round() -> None:
    assert math.isnan(contender(0).upper)
