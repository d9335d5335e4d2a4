"""Halving: which pairs stay, with how many draws; and inputs that are written alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dpaudit.searching.leak_estimates import Confirming
from dpaudit.searching.proposals import Origin, Proposal
from dpaudit.searching.ranking import Ranking, bounds_of, kind_of
from dpaudit.searching.trials import Contender, Input, Inputs
from tests.neighbouring import relation

ENOUGH = 20.0
UNIT = relation("list of number in [0, 1]", "add-remove")


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


def test_arrays_that_differ_where_repr_leaves_out_are_two_inputs() -> None:
    inputs = Inputs(lambda dataset: dataset)
    other = np.zeros(3_000)
    other[1_500] = 1
    first = inputs.of(np.zeros(3_000))
    assert inputs.of(other) is not first
    assert inputs.of(np.zeros(3_000)) is first
