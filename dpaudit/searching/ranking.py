"""Successive halving: rounds of trials that rank pairs by what they could still exceed.

Estimates from few draws mislead. So all pairs get few draws, the best eighth gets more, and so on
(Jamieson & Talwalkar 2016). Pairs are ranked by their evidence (`Contender.rank`), not by the bound
that they would certify now: a pair that uses all of the claim has a larger bound than a pair with a
leak in a rare event, but less evidence. Each kind of difference is halved separately, so that one
pair of each kind is in the last round. docs/method.md explains why the audit of the best pair is
valid nevertheless.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence, Set

from dpaudit.searching.leak_estimates import MAX_ONE_BY_ONE, Confirming
from dpaudit.searching.proposals import Proposal, parts
from dpaudit.searching.relations import Relation
from dpaudit.searching.space import identity
from dpaudit.searching.spaces.user_spaces import Own
from dpaudit.searching.trials import (
    INPUTS_PER_PAIR,
    MAX_FIRST_DRAWS,
    MIN_DRAWS,
    Contender,
)

# One in this number of pairs of each kind stays after a round.
KEPT_ONE_IN = 8
# Factor by which the draws of a pair grow from round to round.
GROWTH = 4
# The last round ends when the search has spent this share of its draws; the remaining draws are for
# making the winner simpler.
_FINAL_SHARE = 0.95
# The last round of datasets gets at least this share of the search's draws, unless a leak is clear.
_MIN_FINAL_SHARE = 0.35
# Largest number of draws of each input in the last round.
_MAX_FINAL_DRAWS = 64_000
# A bound counts as nearly as large as the best if it is at least this fraction of it.
_NEARLY_EQUAL_SHARE = 0.95
# Origins of the pairs that are tried first if the budget is too small for all pairs.
_TRIED_FIRST = ("bound", "extreme", "pattern")
# A dataset with more records than this has many records.
_FEW_RECORDS = 5
# Of query answers, this number of patterns, and of other pairs, stay until the last round. Patterns
# are known to leak.
_KEPT_ANSWERS = 4


class Ranking:
    """Ranks proposed pairs by trials: draws of their inputs, and estimates from these draws."""

    def __init__(self, confirming: Confirming) -> None:
        self._confirming, self._relation = confirming, confirming.relation
        self._drawing, self._budget = confirming.drawing, confirming.budget
        self._bounds = bounds_of(confirming.relation)

    def halved(
        self, contenders: Sequence[Contender], share: float, *, to_last: bool = False
    ) -> list[Contender]:
        """Return the pairs after rounds of trials, best first: pairs that stayed longer come first.
        If the budget is too small for all pairs, random pairs and pairs with edges are left out.
        With `to_last`, stop before the last round, which `last_round` makes."""
        if not contenders:
            return []
        self._confirming.is_found = False
        ordered = sorted(contenders, key=lambda pair: pair.proposal.origin not in _TRIED_FIRST)
        standing = ordered[: self._budget.places(share)]
        start, size, number, dropped = self._budget.spent, 0, 0, list[Contender]()
        while not self._confirming.is_over():
            sizes = self._sizes(standing)
            if to_last and (number or len(sizes) > 1):
                sizes.pop()
            if not sizes:
                break
            weights = [count * _growth(number + later) for later, count in enumerate(sizes)]
            left = (share - (self._budget.spent - start)) * self._budget.draws
            size += int(max(0.0, left) * _growth(number) / (INPUTS_PER_PAIR * sum(weights)))
            size = min(max(size, MIN_DRAWS), MAX_FIRST_DRAWS * GROWTH**number)
            self._try(standing, size, number)
            if number == 0:
                # By now, the speed is known better, and may allow more pairs.
                more = ordered[len(standing) : self._budget.places(share)]
                self._try(more, size, number)
                standing += more
            if len(sizes) == 1 and not to_last:
                break
            standing, out = self._split(self._confirming.ranked(standing))
            dropped, number = [*out, *dropped], number + 1
        return [*self._confirming.ranked(standing), *dropped]

    def merged(self, ranked: list[Contender], additions: list[Contender]) -> list[Contender]:
        """Return two lists of tried pairs as one, by rank, those with many draws first."""
        return tried_most(self._confirming.ranked([*ranked, *additions]))

    def last_round(self, ranked: list[Contender], beyond: float) -> list[Contender]:
        """Make the last round, and return the tried pairs, best first. One pair of each kind, and
        the next best pairs, get equally many draws, and `Confirming.measured` estimates their
        leaks. Of query answers, the better half is measured again with more draws.

        beyond: share that the round may spend in addition to what is left. A negative share
            reserves draws for other pairs.
        """
        is_of_answers = self._relation.is_of_answers
        left = (_FINAL_SHARE + beyond) * self._budget.draws - self._drawing.draws
        if not (is_of_answers or self._confirming.is_clear(ranked[0])):
            left = max(left, _MIN_FINAL_SHARE * self._budget.draws)
        standing, dropped = self._finalists(ranked)
        rounds = max(1, (len(standing) - 1).bit_length()) if is_of_answers else 1
        for later in range(rounds, 0, -1):
            past_draws = [contender.draws // 2 for contender in standing]
            inputs = 2 if is_of_answers else INPUTS_PER_PAIR
            size = _common_size(past_draws, left / later / inputs)
            size = min(max(size, max(past_draws)), max(_MAX_FINAL_DRAWS, max(past_draws)))
            if any(contender.d1.is_alone for contender in standing):
                size = min(size, MAX_ONE_BY_ONE)
            draws_before = self._drawing.draws
            for index, contender in enumerate(standing):
                if self._budget.is_out_of_time():
                    break
                standing[index] = self._confirming.measured(contender, size)
            left -= self._drawing.draws - draws_before
            standing = self._confirming.ranked(standing)
            if later > 1:
                half = (len(standing) + 1) // 2
                standing, dropped = standing[:half], [*standing[half:], *dropped]
        return [*self._simplest_first(standing), *dropped]

    def _try(self, contenders: list[Contender], size: int, number: int) -> None:
        """Replace each contender by the same pair with new estimates, until time is up."""
        for index, contender in enumerate(contenders):
            if self._confirming.is_over():
                break
            contenders[index] = self._confirming.tried(contender, size, number)

    def _sizes(self, contenders: Sequence[Contender]) -> list[int]:
        """Return the number of pairs in each round, until only the fewest of each kind are left."""
        kinds = self._by_kind(contenders)
        counts, sizes = [len(kind) for kind in kinds], list[int]()
        while not sizes or sum(counts) < sizes[-1]:
            sizes.append(sum(counts))
            counts = [min(count, self._quota(count)) for count in counts]
        return sizes

    def _quota(self, count: int) -> int:
        least = _KEPT_ANSWERS if self._relation.is_of_answers else 1
        return max(least, math.ceil(count / KEPT_ONE_IN))

    def _split(self, ranked: list[Contender]) -> tuple[list[Contender], list[Contender]]:
        """Return the pairs that stay, and the pairs that are dropped, both in the given order."""
        kinds = self._by_kind(ranked)
        ids = {id(pair) for kind in kinds for pair in kind[: self._quota(len(kind))]}
        return _separated(ranked, ids)

    def _simplest_first(self, ranked: list[Contender]) -> list[Contender]:
        """Return the pairs; the simplest one that is nearly as good as the best comes first."""
        # The largest bound is too large by luck.
        enough, best = self._confirming.enough, ranked[0]
        near = [
            pair
            for pair in ranked
            if pair.rank(enough)[:3] == best.rank(enough)[:3]
            and pair.hope >= _NEARLY_EQUAL_SHARE * best.hope
        ]
        first = min(
            near or [best], key=lambda pair: (pair.proposal.origin != "pattern", pair.order)
        )
        return [first, *(pair for pair in ranked if pair is not first)]

    def _finalists(self, ranked: list[Contender]) -> tuple[list[Contender], list[Contender]]:
        count = _KEPT_ANSWERS if self._relation.is_of_answers else 1
        chosen = {id(pair) for kind in self._by_kind(ranked) for pair in kind[:count]}
        return _separated(ranked, chosen)

    def _by_kind(self, contenders: Sequence[Contender]) -> list[list[Contender]]:
        kinds: dict[tuple[str, ...], list[Contender]] = {}
        for contender in contenders:
            kinds.setdefault(kind_of(contender.proposal, self._relation, self._bounds), []).append(
                contender
            )
        return list(kinds.values())


def bounds_of(relation: Relation) -> set[Hashable]:
    """Return the identities of the records at the bounds of the space."""
    if isinstance(relation.inner, Own):
        return set()
    return set(map(identity, relation.inner.of_record().present().extremes()))


def kind_of(proposal: Proposal, relation: Relation, bounds: Set[Hashable]) -> tuple[str, ...]:
    """Return the kind of the difference of a pair.

    All pairs outside the space are of one kind. For query answers, pairs with a pattern are of one
    kind, and others of another. For datasets, a kind says what differs (records at the bounds, at
    edges, or inside the bounds), and whether there are few or many records.
    """
    if not proposal.inside:
        return ("outside",)
    if relation.is_of_answers:
        return ("pattern",) if proposal.origin == "pattern" else ("other",)
    d1, d2 = parts(proposal.d1), parts(proposal.d2)
    ours, theirs = list(map(identity, d1)), list(map(identity, d2))
    differing = {*(key for key in ours if ours.count(key) > theirs.count(key))}
    differing |= {key for key in theirs if theirs.count(key) > ours.count(key)}
    kind = "edges" if proposal.origin == "edge" else "inside"
    what = "bounds" if differing <= bounds else kind
    return what, "many" if max(len(d1), len(d2)) > _FEW_RECORDS else "few"


def tried_most(ranked: list[Contender]) -> list[Contender]:
    """Return the pairs in another order. Pairs with at least half of the largest number of draws
    come first; the bounds of the others are more likely to be luck."""
    max_draws = max((contender.draws for contender in ranked), default=0)
    return sorted(ranked, key=lambda contender: 2 * contender.draws < max_draws)


def _growth(number: int) -> int:
    """Return how many times the draws of the first round a pair gets in round `number`."""
    return 1 if number == 0 else (GROWTH - 1) * int(GROWTH ** (number - 1))


def _common_size(past_draws: Sequence[int], further: float) -> int:
    """Return the number of draws that every pair can have if `further` draws are made."""
    ordered = sorted(past_draws)
    for count in range(len(ordered), 0, -1):
        size = (further + sum(ordered[:count])) / count
        if size >= ordered[count - 1]:
            return int(size)
    return ordered[0]


def _separated(
    ranked: list[Contender], chosen: set[int]
) -> tuple[list[Contender], list[Contender]]:
    inside = [pair for pair in ranked if id(pair) in chosen]
    return inside, [pair for pair in ranked if id(pair) not in chosen]
