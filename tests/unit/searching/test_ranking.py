"""Halving: which pairs stay, with how many draws; and inputs that are written alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpaudit.searching.proposals import Origin, Proposal
from dpaudit.searching.ranking import halved, split
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
