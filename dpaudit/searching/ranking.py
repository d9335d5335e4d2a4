"""Rounds of trials, which put pairs in order: many are halved, and the last few compared.

A contender is a proposed pair with the outcome of its latest trial.

Estimates from few draws mislead. So all pairs get few draws, the best eighth of them four times
these, and so on (successive halving, Jamieson & Talwalkar 2016): each round costs half of the one
before. docs/method.md says why the audit of the winner is valid nevertheless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from dpaudit.searching.confirming import MOST_ALONE, Confirming
from dpaudit.searching.trials import BARELY, FEWEST, MOST, Contender

# One of this number of pairs stays after a round.
KEPT = 8
# Growth of the draws from one round to the next.
GROWTH = 4
# Pairs of the last rounds, of which the best half stays, until one is left or, of answers, a few.
FINALISTS = 8
# Part of the budget that is spent after these rounds; the rest is for shrinking.
_LAST = 0.95
# Most draws of either input in these rounds.
_MOST_LAST = 64_000
# Of this number of pairs with the most draws, the simplest is first ...
_LAST_TWO = 2
# ... if its bound is at least this part of the best one.
_ABOUT_AS_MUCH = 0.95
# Origins of the proposals that get a place before others.
_FIRST = ("trace", "extreme", "pattern")


class Ranking:
    """Puts contenders in order, best first, by trials."""

    def __init__(self, confirming: Confirming) -> None:
        self._confirming = confirming
        self._drawing, self._budget = confirming.drawing, confirming.budget
        self._is_of_answers = confirming.relation.is_of_answers

    def halved(
        self, contenders: Sequence[Contender], share: float, *, until: int = 1
    ) -> list[Contender]:
        """Return contenders, best first. If the budget is too small for all of them, random pairs
        and edges are left out.

        share: of the budget, which decides how many are tried.  until: number of pairs that the
        caller compares.
        """
        if not contenders:
            return []
        self._confirming.is_found = False
        ordered = sorted(contenders, key=lambda one: one.proposal.origin not in _FIRST)
        chosen = ordered[: self._budget.places(share)]
        each = self._budget.draws_for(share) / len(chosen)
        return halved(
            chosen,
            self._confirming.tried,
            draws=int(min(max(each, BARELY), MOST)),
            enough=self._confirming.enough,
            is_over=self._confirming.is_over,
            of_answers=self._is_of_answers,
            # With few draws, keeping more pairs costs too much.
            with_patterns=self._is_of_answers and each > FEWEST,
            until=until,
        )

    def among(self, ranked: list[Contender], others: list[Contender]) -> list[Contender]:
        """Return two ranked lists as one; their best pairs are compared by equally many draws."""
        if not others:
            return ranked
        draws = max(ranked[0].draws, others[0].draws) // 2
        best = [self._confirming.tried(one, draws, 1) for one in (ranked[0], others[0])]
        return self._sorted(best) + self._sorted([*ranked[1:], *others[1:]])

    def _sorted(self, contenders: list[Contender]) -> list[Contender]:
        enough = self._confirming.enough
        return sorted(contenders, key=lambda one: one.rank(enough), reverse=True)

    def compared(self, ranked: list[Contender], beyond: float) -> list[Contender]:
        """Return contenders, best first, after further draws for the best few, since the estimates
        by which many pairs were ranked are too rough to compare these.

        beyond: part of the budget that may be spent in addition to it; below 0, a part that is
        reserved for other pairs.
        """
        standing, out = ranked[:FINALISTS], ranked[FINALISTS:]
        left = (_LAST + beyond) * self._budget.draws - self._drawing.draws
        rounds = (len(standing) - 1).bit_length()
        if self._is_of_answers:
            # The best event may be rare, and its pair must not go before it had its draws.
            rounds = max(1, rounds - 1)
        for left_rounds in range(rounds, 0, -1):
            had = min(one.draws // 2 for one in standing)
            additional = int(left / left_rounds / (2 * len(standing)))
            size = min(had + additional, _MOST_LAST)
            if any(one.d1.is_alone for one in standing):
                size = min(size, MOST_ALONE)
            if additional < FEWEST or size <= had:
                break
            before = self._drawing.draws
            for place, one in enumerate(standing):
                if self._budget.is_out_of_time():
                    break
                if one.draws < 2 * size:
                    standing[place] = self._confirming.tried(one, size, 1)
            left -= self._drawing.draws - before
            half = (len(standing) + 1) // 2
            standing, rest = split(self._sorted(standing), half, by_hope=self._is_of_answers)
            out = [*rest, *out]
        return self._simplest_first([*standing, *out])

    def _simplest_first(self, ranked: list[Contender]) -> list[Contender]:
        """Return contenders with the simplest of the best first, if it promises about as much: the
        bound of the best of many pairs is too large by luck."""
        best, is_clear = ranked[0], self._confirming.is_clear
        others = (
            one
            for one in ranked[1:_LAST_TWO]
            if one.hope >= _ABOUT_AS_MUCH * best.hope
            and is_clear(one) >= is_clear(best)
            and one.proposal.inside >= best.proposal.inside
        )
        near = [best, *others]
        patterns = [one for one in near if one.proposal.origin == "pattern"]
        first = patterns[0] if patterns else min(near, key=lambda one: one.order)
        return [first, *(one for one in ranked if one is not first)]


def tried_most(ranked: list[Contender]) -> list[Contender]:
    """Return contenders, first those with at least half of the most draws: the bounds of the others
    are more likely to be luck."""
    most = max(one.draws for one in ranked)
    return sorted(ranked, key=lambda one: 2 * one.draws < most)


def halved(
    contenders: Iterable[Contender],
    tried: Callable[[Contender, int, int], Contender],
    *,
    draws: int,
    enough: float,
    is_over: Callable[[], bool],
    of_answers: bool = False,
    with_patterns: bool = False,
    until: int = 1,
) -> list[Contender]:
    """Return contenders, best first, after rounds of four times the draws for the best eighth,
    until one is left.

    tried: returns a contender after a trial with a number of draws of either input, in the round
    with a number.  draws: of the first round.  is_over: whether to end before the next trial.
    of_answers: half of the places are for hope.  with_patterns: patterns keep their places longer.
    until: at most this many pairs (if more than one) get no further round.
    """
    standing, out = list(contenders), list[Contender]()
    for number in range(rounds_for(len(standing))):
        if number and 1 < len(standing) <= until:
            break
        for place, one in enumerate(standing):
            if is_over():
                break
            standing[place] = tried(one, draws * GROWTH**number, number)
        standing.sort(key=lambda one: one.rank(enough), reverse=True)
        standing, rest = _chosen(
            standing, number, of_answers=of_answers, with_patterns=with_patterns
        )
        out = [*rest, *out]
    return [*standing, *out]


def _chosen(
    ranked: list[Contender], number: int, *, of_answers: bool, with_patterns: bool
) -> tuple[list[Contender], list[Contender]]:
    """Return the contenders that stay after the round with a number, and the others.

    Of answers, half of the places are for the most hope, whatever the evidence: a rare event that
    leaks much needs more draws for the same evidence than a frequent one that leaks little.
    Patterns are few, and known to leak: all of them stay after the first round, then the best half,
    and so on.
    """
    places = math.ceil(len(ranked) / KEPT)
    best, rest = split(ranked, places, by_hope=of_answers)
    if not (of_answers and with_patterns and len(ranked) > KEPT):
        return best, rest
    patterns = [one for one in _by_hope(ranked) if one.proposal.origin == "pattern"]
    if number:
        patterns = patterns[: math.ceil(len(patterns) / 2)]
    return _separated(ranked, [*best, *patterns])


def split(
    ranked: list[Contender], places: int, *, by_hope: bool
) -> tuple[list[Contender], list[Contender]]:
    """Return the contenders that get a place, and the others, both in the order given. by_hope:
    whether half of the places are for those with the most hope."""
    if not by_hope:
        return ranked[:places], ranked[places:]
    best = ranked[: places - places // 2]
    others = [one for one in _by_hope(ranked) if one not in best]
    return _separated(ranked, [*best, *others[: places // 2]])


def _by_hope(ranked: list[Contender]) -> list[Contender]:
    return sorted(ranked, key=lambda one: one.hope, reverse=True)


def _separated(
    ranked: list[Contender], chosen: list[Contender]
) -> tuple[list[Contender], list[Contender]]:
    inside = set(map(id, chosen))
    best = [one for one in ranked if id(one) in inside]
    return best, [one for one in ranked if id(one) not in inside]


def rounds_for(contenders: int) -> int:
    """Return after how many rounds one contender is left, and has had draws of its own.

    >>> rounds_for(1), rounds_for(2), rounds_for(8), rounds_for(400)
    (1, 2, 2, 4)
    """
    return 1 if contenders <= 1 else 1 + rounds_for(math.ceil(contenders / KEPT))
