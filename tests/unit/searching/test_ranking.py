"""Halving: which pairs stay, with how many draws; and inputs that are written alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dpaudit.searching.leak_estimates import Confirming
from dpaudit.searching.proposals import Origin, Proposal
from dpaudit.searching.ranking import Ranking, halved, split
from dpaudit.searching.trials import Contender, Input, Inputs

ENOUGH = 20.0


def contender(number: int, evidence: float, hope: float, origin: Origin = "edge") -> Contender:
    """Return a contender whose evidence grows with its draws."""
    proposal = Proposal(number, -number, str(number), origin, True)
    side = Input(number, number)
    return Contender(proposal, side, Input(-number, -number), number, evidence, hope, hope)


def ranked(
    given: list[Contender], *, of_answers: bool = False, until: int = 1
) -> tuple[list[int], dict[int, list[int]]]:
    """Return the places of contenders, best first, and the draws of all their trials."""
    draws: dict[int, list[int]] = {}

    def tried(one: Contender, size: int, number: int) -> Contender:
        draws.setdefault(one.order, []).append(size)
        per_draw = given[one.order].evidence
        return replace(one, evidence=per_draw * size, draws=2 * size)

    found = halved(
        given,
        tried,
        draws=100,
        enough=ENOUGH,
        is_over=lambda: False,
        of_answers=of_answers,
        with_patterns=of_answers,
        until=until,
    )
    return [one.order for one in found], draws


def test_a_rare_large_leak_is_among_the_best_few() -> None:
    """By evidence alone it would be the last of the first round."""
    frequent = [contender(n, 0.1, 1.5) for n in range(63)]
    rare = contender(63, 0.02, 2.5)
    order, draws = ranked([*frequent, rare], of_answers=True)
    assert draws[63] == [100, 400]
    assert order.index(63) < 8


def test_patterns_stay_for_longer() -> None:
    others = [contender(n, 0.1, 2.0) for n in range(56)]
    patterns = [contender(n, 0.01, 1.0 + n / 1000, "pattern") for n in range(56, 64)]
    _, draws = ranked([*others, *patterns])
    assert all(draws[n] == [100] for n in range(56, 64))
    _, draws = ranked([*others, *patterns], of_answers=True)
    assert [len(draws[n]) for n in range(56, 64)] == [2, 2, 2, 2, 3, 3, 3, 3]


def test_every_contender_is_in_the_list_once() -> None:
    given = [contender(n, 0.001 * n, n % 7, "pattern" if n % 3 else "edge") for n in range(50)]
    for of_answers in (False, True):
        order, _ = ranked(given, of_answers=of_answers)
        assert sorted(order) == list(range(50))


def test_what_is_compared_later_has_no_last_round() -> None:
    given = [contender(n, 0.01, 1.0 + n) for n in range(64)]
    order, draws = ranked(given, of_answers=True, until=8)
    assert {len(one) for one in draws.values()} == {1}
    whole, more = ranked(given, of_answers=True)
    assert max(len(one) for one in more.values()) == 3
    assert sorted(order[:8]) == sorted(n for n in whole if len(more[n]) > 1)
    # A single pair that is left is still tried with all scorers.
    order, draws = ranked(given[:4], of_answers=True, until=8)
    assert draws[order[0]] == [100, 400]


def test_half_of_the_places_are_for_hope() -> None:
    given = [contender(n, 8.0 - n, hope) for n, hope in enumerate([1.0, 1.0, 1.0, 2.0, 1.0, 3.0])]
    best, rest = split(given, 3, by_hope=True)
    assert [one.order for one in best] == [0, 1, 5]
    assert [one.order for one in rest] == [2, 3, 4]
    best, rest = split(given, 3, by_hope=False)
    assert [one.order for one in best] == [0, 1, 2]
    assert [one.order for one in rest] == [3, 4, 5]


def test_arrays_that_differ_where_repr_leaves_out_are_two_inputs() -> None:
    inputs = Inputs(lambda dataset: dataset)
    other = np.zeros(3_000)
    other[1_500] = 1
    first = inputs.of(np.zeros(3_000))
    assert inputs.of(other) is not first
    assert inputs.of(np.zeros(3_000)) is first


class Estimates:
    """Draws that find the given estimates: stands for `Confirming` in a comparison of datasets."""

    def __init__(self, after: Mapping[int, float], draws: int = 10_000) -> None:
        self.relation = SimpleNamespace(is_of_answers=False)
        self.drawing = SimpleNamespace(draws=0)
        self.budget = SimpleNamespace(draws=draws, is_out_of_time=lambda: False)
        self.enough, self._after = ENOUGH, after

    def tried(self, one: Contender, size: int, number: int) -> Contender:
        self.drawing.draws += 2 * size - one.draws
        estimate = self._after[one.order]
        return replace(one, estimate=estimate, hope=estimate, draws=2 * size)

    def is_clear(self, one: Contender) -> bool:
        return one.evidence >= ENOUGH


def compared(given: list[Contender], after: Mapping[int, float], **more: Any) -> list[Contender]:
    confirming = cast(Confirming, Estimates(after, **more))
    return Ranking(confirming).compared(given, 0.0)


def test_datasets_are_compared_by_estimates_from_equal_draws_and_not_by_little_evidence() -> None:
    """The first pair has the most evidence and draws, and the lowest estimate."""
    evidence = (4.0, 2.5, 0.2)
    given = [
        replace(contender(n, each, 0.5), draws=800 if n == 0 else 200)
        for n, each in enumerate(evidence)
    ]
    found = compared(given, {0: 0.69, 1: 0.82, 2: 0.7})
    assert [one.order for one in found] == [1, 2, 0]
    assert len({one.draws for one in found[:2]}) == 1


@pytest.mark.parametrize(("estimate", "first"), [(0.75, 20), (0.6, 0)])
def test_a_pair_at_the_bounds_stays_and_wins_within_the_error(estimate: float, first: int) -> None:
    given = [replace(contender(n, 5.0, 0.8), draws=800, error=0.1) for n in range(20)]
    at_bounds = replace(contender(20, 0.0, 0.1, "bound"), draws=100)
    after = {**dict.fromkeys(range(20), 0.8), 20: estimate}
    found = compared([*given, at_bounds], after, draws=2_000)
    assert found[0].order == first
    assert sorted(one.order for one in found) == list(range(21))
    (same,) = (one for one in found if one.order == 20)
    assert same.draws >= 800


def test_a_pair_at_the_bounds_without_a_leak_is_not_first_where_draws_are_few() -> None:
    """No other pair can get further draws."""
    given = [replace(contender(n, 3.0, 0.8 - n / 10), draws=800 >> n) for n in range(4)]
    at_bounds = replace(contender(4, 0.0, 0.0, "bound"), draws=100)
    found = compared([*given, at_bounds], {0: 0.8, 4: 0.0}, draws=100)
    assert [one.order for one in found] == [0, 4, 1, 2, 3]


def test_a_clear_leak_ranks_above_a_larger_estimate() -> None:
    given = [
        replace(contender(0, 1.0, 0.9), draws=800),
        replace(contender(1, 50.0, 0.8), draws=800),
    ]
    assert compared(given, {0: 0.9, 1: 0.8})[0].order == 1
