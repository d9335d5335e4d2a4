"""The result of a search: the pairs to certify, a simpler version of one of them, and a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpaudit.certificates.result import Leader, Searched
from dpaudit.inputs.records import difference
from dpaudit.searching.leak_estimates import Confirming
from dpaudit.searching.proposals import Proposal, parts
from dpaudit.searching.ranking import tried_most
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.trials import Contender
from dpaudit.wording import shortened

# The report lists at most this number of pairs inside the space, and at most this number of pairs
# outside the space.
_MAX_LISTED = 5
# To confirm a leak, new draws are made for the clearly leaking pairs with the fewest records, at
# most this number of pairs, and then for the best pair, until one pair leaks again.
_MAX_CONFIRMED = 8
# Largest number of pairs that are tried in order to make a leaking pair simpler.
_SHRINKING_TRIES = 300
# Length to which the text of an input in the report is shortened, in characters.
_MAX_CHARACTERS = 120
# If the text of either input is longer than this (in characters), the report also describes how the
# two inputs differ.
_SHORT_CHARACTERS = 16


def final_pairs(
    confirming: Confirming,
    inside: Sequence[Contender],
    outside: Sequence[Sequence[Contender]],
    noted: Sequence[Sequence[Contender]],
    note: str,
) -> Searched:
    """Return the result of a search, with the pairs to certify. These are the best pairs inside the
    space or, if no pair inside gave outputs, the best pairs outside.

    If pairs leak clearly, and again in new draws, the one with the fewest records is simplified,
    and its simpler version is added.

    inside: tried pairs inside the space, best first.
    outside: tried pairs outside the space that may be certified. There is one list, best first, for
        each kind of values outside.
    noted: like `outside`, but pairs that the report only mentions. At most one of the two is not
        empty.
    note: which proposals were left out, and why; "" if none were.
    """
    settings, drawing = confirming.settings, confirming.drawing
    of_every_kind = [contender for kind in outside for contender in kind]
    tried = confirming.with_outputs(inside)
    beyond = confirming.with_outputs(confirming.ranked(of_every_kind))
    # If time was up before any pair gave outputs, the first proposed pairs are certified.
    winners = (tried or beyond or [*inside, *of_every_kind])[: settings.keep]
    pairs = [(contender.proposal.d1, contender.proposal.d2) for contender in winners]
    smallest = inside_smallest = _smallest(confirming, tried)
    if smallest is None:
        smallest = _smallest(confirming, beyond)
    is_shrunk, used = False, list(winners)
    if smallest is not None:
        used.append(smallest)
        simpler = _simpler(confirming, smallest)
        if list(map(repr, simpler)) not in [list(map(repr, pair)) for pair in pairs]:
            is_shrunk = inside_smallest is not None or not tried
            pairs.append(simpler)
    unused_kinds = [
        kind for kind in (*outside, *noted) if not any(contender in used for contender in kind)
    ]
    aside = [
        contender for kind in unused_kinds if (contender := _noted(confirming, kind)) is not None
    ]
    leading = _leading([*tried[:_MAX_LISTED], *beyond[:_MAX_LISTED]], winners)
    refusals, relation = confirming.refusals, confirming.relation
    unsettled = _unsettled(confirming, tried, winners)
    return Searched(
        space=settings.space.words(),
        adjacency=settings.adjacency.describe(),
        pairs=len(confirming.pairs),
        refused=len(refusals),
        refusal=next(iter(refusals), ""),
        draws=drawing.draws,
        leaders=tuple(_leader(contender, audited=contender in winners) for contender in leading),
        found=tuple(pairs),
        outside=tuple(not relation.are_inside(*pair) for pair in pairs),
        shrunk=is_shrunk,
        one_by_one=any(contender.d1.is_alone for contender in used),
        kept=drawing.kept,
        note=note,
        beyond=_leader(aside[0]) if aside else None,
        more_beyond=tuple(map(_leader, aside[1:])),
        unsettled=() if unsettled is None else ((unsettled.proposal.d1, unsettled.proposal.d2),),
        unsettled_upper=0.0 if unsettled is None else unsettled.upper,
    )


def _unsettled(
    confirming: Confirming, tried: Sequence[Contender], winners: Sequence[Contender]
) -> Contender | None:
    """Return the unaudited pair with the largest upper end of ε above the claim; None if none."""
    open_pairs = [pair for pair in tried if pair not in winners and pair.upper > confirming.claimed]
    return max(open_pairs, key=lambda pair: (pair.upper, pair.evidence), default=None)


def _noted(confirming: Confirming, kind: Sequence[Contender]) -> Contender | None:
    """Return the smallest of the clearly leaking pairs of one kind outside the space."""
    # Most mechanisms raise a TypeError or an AttributeError for a missing value, which is no leak.
    candidates = [
        contender for contender in confirming.with_outputs(kind) if not contender.has_wrong_type
    ]
    return _smallest(confirming, candidates)


def _leading(tried: list[Contender], winners: Sequence[Contender]) -> list[Contender]:
    """Return the tried pairs in the order of the report: the pairs to certify come first."""
    ordered = tried_most(sorted(tried, key=lambda contender: contender.estimate, reverse=True))
    return sorted(ordered, key=lambda contender: contender not in winners)


def _smallest(confirming: Confirming, ranked: Sequence[Contender]) -> Contender | None:
    """Return the pair with the fewest records among those that leak again in new draws."""
    # The pair with the largest bound is certified in any case, so a pair with fewer records is
    # worth more here. Under relations that replace records, the number of records may be public,
    # and the leak may depend on it, so only pairs with as many records as the best are used.
    leaking = [contender for contender in ranked if confirming.is_clear(contender)]
    clear = [contender for contender in leaking if not contender.has_wrong_type] or leaking
    if confirming.relation.keeps_size:
        clear = [contender for contender in clear if _size(contender) == _size(clear[0])]
    few = [*sorted(clear, key=_size)[:_MAX_CONFIRMED], *clear[:1]]
    return next(filter(confirming.is_sure, few), None)


def _simpler(confirming: Confirming, best: Contender) -> tuple[Any, Any]:
    """Return a simplified version of a leaking pair that still leaks clearly in its draws."""
    relation, drawing, inputs = confirming.relation, confirming.drawing, confirming.inputs
    draws = confirming.needed(best)
    # A rare event needs many draws for each try. Without this limit, shrinking a pair of query
    # answers would spend more draws than the rest of the search.
    max_draws = drawing.draws + confirming.budget.draws if relation.is_of_answers else math.inf

    def leaks(d1: Any, d2: Any) -> bool:
        first, second = inputs.of(d1), inputs.of(d2)
        if first is None or second is None or first is second:
            return False
        inside = relation.are_inside(d1, d2)
        if (not inside and not confirming.settings.outside) or drawing.draws > max_draws:
            return False
        proposal = Proposal(d1, d2, "", "random", inside)
        tried = confirming.tried(Contender(proposal, first, second, 0), draws, 1)
        return confirming.is_clear(tried)

    return shrunk(
        best.proposal.d1,
        best.proposal.d2,
        relation,
        leaks,
        most_tries=_SHRINKING_TRIES,
        keeps_size=relation.keeps_size,
    )


def _size(contender: Contender) -> int:
    return len(parts(contender.proposal.d1)) + len(parts(contender.proposal.d2))


def _leader(contender: Contender, *, audited: bool = False) -> Leader:
    d1, d2 = contender.proposal.d1, contender.proposal.d2
    first, second = repr(d1), repr(d2)
    is_long = max(len(first), len(second)) > _SHORT_CHARACTERS
    return Leader(
        d1=shortened(first, _MAX_CHARACTERS),
        d2=shortened(second, _MAX_CHARACTERS),
        why=contender.proposal.why,
        inside=contender.proposal.inside,
        estimate=contender.estimate,
        draws=contender.draws,
        apart=(difference(d1, d2) or "") if is_long else "",
        audited=audited,
    )
