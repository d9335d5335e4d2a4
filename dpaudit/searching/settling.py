"""What a search ends in: the pairs to certify, with a simpler form, and how they were found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpaudit.certificates.searched import Leader, Searched
from dpaudit.inputs.differences import difference
from dpaudit.searching.budget import Budget
from dpaudit.searching.confirming import Confirming
from dpaudit.searching.guided import parts
from dpaudit.searching.proposals import Proposal
from dpaudit.searching.screening import Contender
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.trials import Drawing, Inputs
from dpaudit.wording import shortened

_LEADERS = 5
# Pairs that leak clearly, the smallest first, of which one has to do so on fresh draws, too.
_CONFIRMED = 8
_SHRINKING_TRIES = 300
_LONGEST_LEADER = 120
# Of longer inputs a reader is told how they differ.
_BRIEF = 16


class Settling:
    """Chooses what is certified of the pairs that were tried."""

    def __init__(
        self,
        settings: SearchSettings,
        drawing: Drawing,
        inputs: Inputs,
        confirming: Confirming,
        budget: Budget,
    ) -> None:
        self._settings, self._drawing, self._inputs = settings, drawing, inputs
        self._confirming, self._budget = confirming, budget

    def settled(
        self,
        inside: Sequence[Contender],
        outside: Sequence[Contender],
        noted: Sequence[Contender],
        note: str,
    ) -> Searched:
        """Return the pairs to certify: the best inside the space; where it leaks as it seems, its
        simplest form, else that of one outside which does. noted: pairs outside the space that do
        not count."""
        settings = self._settings
        tried, beyond = self._confirming.judged(inside), self._confirming.judged(outside)
        # Where time was up before any gave outputs, whatever came first.
        kept = (tried or beyond or [*inside, *outside])[: settings.keep]
        found = [(one.proposal.d1, one.proposal.d2) for one in kept]
        is_shrunk, used = False, list(kept)
        is_inside = (smallest := self._smallest(tried)) is not None
        if smallest is None:
            smallest = self._smallest(beyond)
        if smallest is not None:
            used.append(smallest)
            simpler = self._simpler(smallest)
            is_new = list(map(repr, simpler)) not in [list(map(repr, one)) for one in found]
            is_shrunk = is_new and (is_inside or not tried)
            found += [simpler] if is_new else []
        # Most mechanisms raise a TypeError for a missing value outside the space.
        others = [one for one in self._confirming.judged(noted) if not one.has_wrong_type]
        aside = self._smallest(others)
        leading = [*tried[:_LEADERS], *beyond[:_LEADERS]]
        leading.sort(key=lambda one: one.estimate, reverse=True)
        leaders = tuple(map(_leader, leading))
        refusals = self._confirming.refusals
        return Searched(
            space=settings.space.words(),
            adjacency=settings.adjacency.describe(),
            pairs=len(self._confirming.pairs),
            refused=len(refusals),
            refusal=next(iter(refusals), ""),
            draws=self._drawing.draws,
            leaders=leaders,
            found=tuple(found),
            outside=tuple(not self._is_inside(*pair) for pair in found),
            shrunk=is_shrunk,
            one_by_one=any(one.is_alone for one in used),
            kept=self._drawing.kept,
            note=note,
            beyond=None if aside is None else _leader(aside),
        )

    @property
    def _keeps_size(self) -> bool:
        """Whether records are replaced, so that their number is public, and may be what matters."""
        return self._settings.adjacency.kind in ("replace", "hamming")

    def _smallest(self, ranked: Sequence[Contender]) -> Contender | None:
        """Return the smallest pair that leaks for sure: fewer records are worth more than a larger
        bound, which the best pair shows. Pairs of different types come only where no others do; and
        where records are replaced, pairs of other sizes than the best."""
        every = [one for one in ranked if self._confirming.is_clear(one)]
        clear = [one for one in every if not one.has_wrong_type] or every
        if self._keeps_size:
            clear = [one for one in clear if _size(one) == _size(clear[0])]
        few = [*sorted(clear, key=_size)[:_CONFIRMED], *clear[:1]]
        return next(filter(self._confirming.is_sure, few), None)

    def _simpler(self, best: Contender) -> tuple[Any, Any]:
        """Return the simplest pair found that seems to leak clearly; that one, if there is none."""
        draws = self._confirming.needed(best)
        # Of a rare event each try is dear: so many that a search would be all shrinking.
        settings, most = self._settings, math.inf
        if settings.is_of_answers:
            most = self._drawing.draws + self._budget.draws

        def leaks(d1: Any, d2: Any) -> bool:
            one, other = self._inputs.of(d1), self._inputs.of(d2)
            if one is None or other is None or one is other:
                return False
            inside = self._is_inside(d1, d2)
            proposal = Proposal(d1, d2, "", "random", inside)
            if (not inside and not settings.outside) or self._drawing.draws > most:
                return False
            tried = self._confirming.tried(Contender(proposal, one, other, 0), draws, 1)
            return self._confirming.is_clear(tried)

        given = best.proposal.d1, best.proposal.d2
        return shrunk(
            *given,
            settings.space,
            settings.adjacency,
            leaks,
            most_tries=_SHRINKING_TRIES,
            keeps_size=self._keeps_size,
        )

    def _is_inside(self, d1: Any, d2: Any) -> bool:
        return self._settings.space.contains(d1) and self._settings.space.contains(d2)


def _size(one: Contender) -> int:
    """Return how many records a pair has."""
    return len(parts(one.proposal.d1)) + len(parts(one.proposal.d2))


def _leader(one: Contender) -> Leader:
    d1, d2 = one.proposal.d1, one.proposal.d2
    first, second = repr(d1), repr(d2)
    is_long = max(len(first), len(second)) > _BRIEF
    return Leader(
        d1=shortened(first, _LONGEST_LEADER),
        d2=shortened(second, _LONGEST_LEADER),
        why=one.proposal.why,
        inside=one.proposal.inside,
        estimate=one.estimate,
        draws=one.draws,
        apart=(difference(d1, d2) or "") if is_long else "",
    )
