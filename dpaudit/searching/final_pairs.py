"""The result of a search: the pairs to certify, with a simpler form, and how they were found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpaudit.certificates.result import Leader, Searched
from dpaudit.inputs.records import difference
from dpaudit.searching.confirming import Confirming
from dpaudit.searching.follow_ups import parts
from dpaudit.searching.proposals import Proposal
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.trials import Contender
from dpaudit.wording import shortened

# Pairs inside the space, and outside, that the report lists.
_LEADERS = 5
# Smallest pairs with a clear leak, of which the first that also leaks on fresh draws is taken.
_CONFIRMED = 8
# Pairs that shrinking tries.
_SHRINKING_TRIES = 300
# Most characters of an input in the report.
_LONGEST_LEADER = 120
# Longer inputs, in characters, come with a description of their difference.
_BRIEF = 16


def final_pairs(
    confirming: Confirming,
    inside: Sequence[Contender],
    outside: Sequence[Contender],
    noted: Sequence[Contender],
    note: str,
) -> Searched:
    """Return the pairs to certify: the best inside the space and, if it leaks on fresh draws, its
    simplest form, else that of the best pair outside.

    inside, outside: contenders, best first.  noted: pairs outside the space that do not count.
    note: proposals that were left out, and why.
    """
    settings, drawing = confirming.settings, confirming.drawing
    tried, beyond = confirming.with_outputs(inside), confirming.with_outputs(outside)
    # If time was up before any pair gave outputs, the first proposals are certified.
    kept = (tried or beyond or [*inside, *outside])[: settings.keep]
    pairs = [(one.proposal.d1, one.proposal.d2) for one in kept]
    smallest = inside_smallest = _smallest(confirming, tried)
    if smallest is None:
        smallest = _smallest(confirming, beyond)
    is_shrunk, used = False, list(kept)
    if smallest is not None:
        used.append(smallest)
        simpler = _simpler(confirming, smallest)
        if list(map(repr, simpler)) not in [list(map(repr, pair)) for pair in pairs]:
            is_shrunk = inside_smallest is not None or not tried
            pairs.append(simpler)
    # Most mechanisms raise a TypeError for a missing value outside the space.
    others = [one for one in confirming.with_outputs(noted) if not one.has_wrong_type]
    aside = _smallest(confirming, others)
    leading = [*tried[:_LEADERS], *beyond[:_LEADERS]]
    leading.sort(key=lambda one: one.estimate, reverse=True)
    refusals, relation = confirming.refusals, confirming.relation
    return Searched(
        space=settings.space.words(),
        adjacency=settings.adjacency.describe(),
        pairs=len(confirming.pairs),
        refused=len(refusals),
        refusal=next(iter(refusals), ""),
        draws=drawing.draws,
        leaders=tuple(map(_leader, leading)),
        found=tuple(pairs),
        outside=tuple(not relation.are_inside(*pair) for pair in pairs),
        shrunk=is_shrunk,
        one_by_one=any(one.d1.is_alone for one in used),
        kept=drawing.kept,
        note=note,
        beyond=None if aside is None else _leader(aside),
    )


def _smallest(confirming: Confirming, ranked: Sequence[Contender]) -> Contender | None:
    """Return the smallest pair that leaks on fresh draws, too; None where none does.

    Fewer records are worth more than a larger bound, which the best pair shows. Pairs with a wrong
    type come only where no others leak; and where records are replaced, only pairs of the best
    one's size, since the number of records may be public, and may decide.
    """
    every = [one for one in ranked if confirming.is_clear(one)]
    clear = [one for one in every if not one.has_wrong_type] or every
    if confirming.relation.keeps_size:
        clear = [one for one in clear if _size(one) == _size(clear[0])]
    few = [*sorted(clear, key=_size)[:_CONFIRMED], *clear[:1]]
    return next(filter(confirming.is_sure, few), None)


def _simpler(confirming: Confirming, best: Contender) -> tuple[Any, Any]:
    """Return the simplest pair that leaks clearly, as far as shrinking leads from a pair."""
    relation, drawing, inputs = confirming.relation, confirming.drawing, confirming.inputs
    draws = confirming.needed(best)
    # Each try of a rare event takes many draws: without a limit, shrinking would use most of them.
    most = drawing.draws + confirming.budget.draws if relation.is_of_answers else math.inf

    def leaks(d1: Any, d2: Any) -> bool:
        one, other = inputs.of(d1), inputs.of(d2)
        if one is None or other is None or one is other:
            return False
        inside = relation.are_inside(d1, d2)
        if (not inside and not confirming.settings.outside) or drawing.draws > most:
            return False
        proposal = Proposal(d1, d2, "", "random", inside)
        tried = confirming.tried(Contender(proposal, one, other, 0), draws, 1)
        return confirming.is_clear(tried)

    return shrunk(
        best.proposal.d1,
        best.proposal.d2,
        relation,
        leaks,
        most_tries=_SHRINKING_TRIES,
        keeps_size=relation.keeps_size,
    )


def _size(one: Contender) -> int:
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
