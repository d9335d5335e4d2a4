"""Rounds of trials, which put pairs in order: many are halved, and the last few compared."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.searching.budget import BARELY, Budget
from dpaudit.searching.confirming import MOST_ALONE, Confirming
from dpaudit.searching.screening import FEWEST, MOST, Contender, halved, split
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.trials import Drawing

# The last rounds, for so many pairs, the best half of which goes on, until one is left or, of
# answers, a few: of all draws that are left but for shrinking, at most so many of either input.
FINALISTS, _LAST, _MOST_LAST = 8, 0.95, 64_000
# Of this many that were compared by the most draws, the simplest that promises about as much.
_LAST_TWO, _ABOUT_AS_MUCH = 2, 0.95


class Ranking:
    """Puts contenders in order, best first, by trials."""

    def __init__(
        self, settings: SearchSettings, drawing: Drawing, confirming: Confirming, budget: Budget
    ) -> None:
        self._is_of_answers = settings.is_of_answers
        self._drawing, self._confirming, self._budget = drawing, confirming, budget

    def halved(
        self, contenders: Sequence[Contender], share: float, *, until: int = 1
    ) -> list[Contender]:
        """Return contenders, best first. Where not all have a place, random pairs and edges go.
        share: of the budget, which decides how many are tried.  until: so many the caller compares.
        """
        if not contenders:
            return []
        self._confirming.is_found = False
        first = ("trace", "extreme", "pattern")
        ordered = sorted(contenders, key=lambda one: one.proposal.origin not in first)
        chosen = ordered[: self._budget.places(share)]
        each = self._budget.draws_for(share) / len(chosen)
        return halved(
            chosen,
            self._confirming.tried,
            draws=int(min(max(each, BARELY), MOST)),
            enough=self._confirming.enough,
            is_over=self._confirming.is_over,
            of_answers=self._is_of_answers,
            # Where draws are few, to keep more pairs is dear.
            with_patterns=self._is_of_answers and each > FEWEST,
            until=until,
        )

    def among(self, ranked: list[Contender], more: list[Contender]) -> list[Contender]:
        """Return both lists as one, best first; the best of each with equally many draws."""
        if not more:
            return ranked
        draws = max(ranked[0].draws, more[0].draws) // 2
        best = [self._confirming.tried(one, draws, 1) for one in (ranked[0], more[0])]
        rest = [*ranked[1:], *more[1:]]
        best.sort(key=lambda one: one.rank(self._confirming.enough), reverse=True)
        return best + sorted(rest, key=lambda one: one.rank(self._confirming.enough), reverse=True)

    def compared(self, ranked: list[Contender], beyond: float) -> list[Contender]:
        """Return contenders, best first, after more draws for the best few: estimates that many
        pairs were ranked by are too rough to tell these apart. beyond: so much of the budget may be
        spent beyond it; below 0, what is kept for others."""
        standing, out = ranked[:FINALISTS], ranked[FINALISTS:]
        left = (_LAST + beyond) * self._budget.draws - self._drawing.draws
        rounds = (len(standing) - 1).bit_length()
        if self._is_of_answers:
            # What shows most may be rare, and is not to go before it had its draws.
            rounds = max(1, rounds - 1)
        for left_rounds in range(rounds, 0, -1):
            had = min(one.draws // 2 for one in standing)
            more = int(left / left_rounds / (2 * len(standing)))
            size = min(had + more, _MOST_LAST)
            if any(one.is_alone for one in standing):
                size = min(size, MOST_ALONE)
            if more < FEWEST or size <= had:
                break
            before = self._drawing.draws
            for place, one in enumerate(standing):
                if self._budget.is_out_of_time():
                    break
                if one.draws < 2 * size:
                    standing[place] = self._confirming.tried(one, size, 1)
            left -= self._drawing.draws - before
            standing.sort(key=lambda one: one.rank(self._confirming.enough), reverse=True)
            half = (len(standing) + 1) // 2
            standing, rest = split(standing, half, by_hope=self._is_of_answers)
            out = [*rest, *out]
        ranked = [*standing, *out]
        # Of those left that promise about as much, the simplest: many others were tried, and luck
        # shows the best of many as better than it is.
        best = ranked[0]
        least = _ABOUT_AS_MUCH * best.hope
        others = (
            one
            for one in ranked[1:_LAST_TWO]
            if one.hope >= least
            and self._confirming.is_clear(one) >= self._confirming.is_clear(best)
            and one.proposal.inside >= best.proposal.inside
        )
        near = [best, *others]
        shapes = [one for one in near if one.proposal.origin == "pattern"]
        first = shapes[0] if shapes else min(near, key=lambda one: one.order)
        return [first, *(one for one in ranked if one is not first)]


def tried_most(ranked: list[Contender]) -> list[Contender]:
    """Return contenders, those first that got through all rounds: they had most draws, or about as
    many. What the others seem to be is luck rather."""
    most = max(one.draws for one in ranked)
    return sorted(ranked, key=lambda one: 2 * one.draws < most)
