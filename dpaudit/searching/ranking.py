"""Rounds of trials that rank pairs: first many pairs with few draws, then fewer and fewer pairs
with more draws.

A contender is a proposed pair with the outcome of its latest trial.

Estimates from few draws mislead. So all pairs get few draws, the best eighth of them gets four
times as many, and so on (successive halving, Jamieson & Talwalkar 2016). Each round costs half of
the round before. docs/method.md explains why the audit of the best pair is valid nevertheless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from dpaudit.searching.leak_estimates import MAX_ONE_BY_ONE, Confirming
from dpaudit.searching.trials import MAX_FIRST_DRAWS, MIN_DRAWS, MIN_FIRST_DRAWS, Contender

# One in this number of pairs stays after a round of trials; the others are dropped.
KEPT_ONE_IN = 8
# Factor by which the number of draws of a pair grows from one round of trials to the next.
GROWTH = 4
# Number of pairs that are compared at the end. Each round of this comparison keeps the better half,
# until one pair is left (a few pairs, if inputs are query answers).
FINALISTS = 8
# The final comparison of the best pairs ends when the search has spent this share of its draws. The
# remaining draws are for making the winner simpler.
_FINAL_SHARE = 0.95
# Largest number of draws of each input in the comparison of the best pairs (`FINALISTS`), with
# which the search ends.
_MAX_FINAL_DRAWS = 64_000
# Of this number of best pairs, the simplest is put first if its bound is almost as large as the
# best bound (`_NEARLY_EQUAL_SHARE`).
_COMPARED_BEST = 2
# A bound counts as almost as large as the best bound if it is at least this fraction of the best
# bound.
_NEARLY_EQUAL_SHARE = 0.95
# Names of methods that propose pairs (`Proposal.origin`). If the budget is too small for all pairs,
# the pairs of these methods are tried first.
_TRIED_FIRST = ("bound", "trace", "extreme", "pattern")
# The final comparison of datasets may make additional draws, so that it has at least this share of
# the search's draws. A search spends most of its draws on first estimates of many pairs. Those are
# too rough to find the pairs whose ε is slightly above the claimed ε.
_MIN_FINAL_SHARE = 0.15


class Ranking:
    """Ranks proposed pairs of inputs, best first. A trial draws outputs of a pair and estimates its
    leak."""

    def __init__(self, confirming: Confirming) -> None:
        self._confirming = confirming
        self._drawing, self._budget = confirming.drawing, confirming.budget
        self._is_of_answers = confirming.relation.is_of_answers

    def halved(
        self, contenders: Sequence[Contender], share: float, *, until: int = 1
    ) -> list[Contender]:
        """Return the given pairs, best first, after rounds of trials. After each round, the best
        pairs stay and get more draws. If the budget is too small for all pairs, random pairs and
        pairs with unusual values are left out.

        contenders: the pairs. A `Contender` is a proposed pair with the estimates of its latest
        trial.
        share: share of the search's draws that the rounds may spend.
        until: number of pairs at which the rounds end. The caller compares these pairs afterwards.
        """
        if not contenders:
            return []
        self._confirming.is_found = False
        ordered = sorted(contenders, key=lambda one: one.proposal.origin not in _TRIED_FIRST)
        chosen = ordered[: self._budget.places(share)]
        each = self._budget.draws_for(share) / len(chosen)
        return halved(
            chosen,
            self._confirming.tried,
            draws=int(min(max(each, MIN_DRAWS), MAX_FIRST_DRAWS)),
            enough=self._confirming.enough,
            is_over=self._confirming.is_over,
            of_answers=self._is_of_answers,
            # `with_patterns` keeps all patterns of query answers for the second round, in addition
            # to the best pairs. These pairs cost draws, so the budget must allow more than
            # `MIN_FIRST_DRAWS` draws of each input for each pair.
            with_patterns=self._is_of_answers and each > MIN_FIRST_DRAWS,
            until=until,
        )

    def among(self, ranked: list[Contender], others: list[Contender]) -> list[Contender]:
        """Merge two ranked lists of tried pairs into one list, best first. Before that, give the
        best pair of each list the same number of draws, so that the two can be compared."""
        if not others:
            return ranked
        draws = max(ranked[0].draws, others[0].draws) // 2
        best = [self._confirming.tried(one, draws, 1) for one in (ranked[0], others[0])]
        return self._confirming.ranked(best) + self._confirming.ranked([*ranked[1:], *others[1:]])

    def compared(self, ranked: list[Contender], beyond: float) -> list[Contender]:
        """Return all given pairs, best first. Before that, make further draws for the best 8 pairs
        (or all pairs, if there are fewer), since the estimates so far are too rough to compare the
        best. The pairs at the bounds are always among the 8.

        ranked: tried pairs, best first.
        beyond: share of the draws of the search. The comparison may use this share in addition to
            the draws that are left of 95 % of them. A negative share reserves draws for other
            pairs.
        """
        left = (_FINAL_SHARE + beyond) * self._budget.draws - self._drawing.draws
        if self._is_of_answers:
            standing, out = ranked[:FINALISTS], ranked[FINALISTS:]
        else:
            if not self._confirming.is_clear(ranked[0]):
                left = max(left, _MIN_FINAL_SHARE * self._budget.draws)
            before = self._drawing.draws
            standing, out = self._with_equal_draws(ranked, left)
            left -= self._drawing.draws - before
        rounds = (len(standing) - 1).bit_length()
        if self._is_of_answers:
            # Each round drops half of the pairs. There is one round less here, since the best event
            # may be rare: its pair must not be dropped before it had enough draws.
            rounds = max(1, rounds - 1)
        for left_rounds in range(rounds, 0, -1):
            had = min(one.draws // 2 for one in standing)
            additional = int(left / left_rounds / (2 * len(standing)))
            size = min(had + additional, _MAX_FINAL_DRAWS)
            if any(one.d1.is_alone for one in standing):
                size = min(size, MAX_ONE_BY_ONE)
            if additional < MIN_FIRST_DRAWS or size <= had:
                break
            before = self._drawing.draws
            for place, one in enumerate(standing):
                if self._budget.is_out_of_time():
                    break
                if one.draws < 2 * size:
                    standing[place] = self._confirming.tried(one, size, 1)
            left -= self._drawing.draws - before
            half = (len(standing) + 1) // 2
            standing, rest = split(self._finally(standing), half, by_hope=self._is_of_answers)
            out = [*rest, *out]
        return self._simplest_first([*standing, *out])

    def _with_equal_draws(
        self, ranked: list[Contender], left: float
    ) -> tuple[list[Contender], list[Contender]]:
        """Give pairs of datasets as many draws as the pair with the most draws, since estimates
        from few draws are lower. Return (these pairs, best first; the other pairs). At most 8 pairs
        get draws: pairs at the bounds, then pairs with large estimates.

        left: number of draws that may be made. Pairs at the bounds get their draws in any case.
        """
        size = max(one.draws for one in ranked) // 2
        if any(one.d1.is_alone for one in ranked):
            size = min(size, MAX_ONE_BY_ONE)
        waiting = self._finally(ranked)
        waiting.sort(key=lambda one: (one.proposal.origin != "bound", one.draws < 2 * size))
        end, standing, out = self._drawing.draws + left, list[Contender](), list[Contender]()
        for one in waiting:
            missing = max(0, 2 * size - one.draws)
            may_draw = one.proposal.origin == "bound" or self._drawing.draws + missing <= end
            if len(standing) == FINALISTS or (
                missing and (not may_draw or self._budget.is_out_of_time())
            ):
                out.append(one)
            else:
                standing.append(self._confirming.tried(one, size, 1) if missing else one)
        return self._finally(standing), out

    def _finally(self, contenders: list[Contender]) -> list[Contender]:
        if self._is_of_answers:
            return self._confirming.ranked(contenders)
        enough = self._confirming.enough
        return sorted(contenders, key=lambda one: one.final_rank(enough), reverse=True)

    def _simplest_first(self, ranked: list[Contender]) -> list[Contender]:
        """Return the pairs, but put a simple pair first if its bound is almost as large as the best
        bound: a pair at the bounds if the difference is at most the standard error of the best
        bound, or else the simpler of the best two if its bound is at least 95 % of the best bound.

        The best bound of many pairs is too large by luck, so a slightly smaller bound is no worse.

        ranked: tried pairs, best first.
        """
        best, is_clear = ranked[0], self._confirming.is_clear
        others = [
            one
            for one in ranked[1:]
            if is_clear(one) >= is_clear(best) and one.proposal.inside >= best.proposal.inside
        ]
        at_bounds = [
            one
            for one in (best, *others)
            if one.proposal.origin == "bound"
            and one.draws >= best.draws
            and one.hope >= best.hope - best.error
        ]
        second = [one for one in others if one in ranked[1:_COMPARED_BEST]]
        near = [best, *(one for one in second if one.hope >= _NEARLY_EQUAL_SHARE * best.hope)]
        patterns = [one for one in near if one.proposal.origin == "pattern"]
        first = next(iter([*at_bounds, *patterns]), min(near, key=lambda one: one.order))
        return [first, *(one for one in ranked if one is not first)]


def tried_most(ranked: list[Contender]) -> list[Contender]:
    """Return all given pairs, reordered: first the pairs with at least half of the largest number
    of draws, then the others, whose bounds are more likely to be luck."""
    most = max((one.draws for one in ranked), default=0)
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
    """Return all contenders (proposed pairs), best first, after rounds of trials. After each round,
    the best eighth stays and gets four times the draws. The last round has only one contender,
    unless the rounds end earlier because of `until`. Contenders that drop out are returned, too,
    after those that stayed longer.

    tried: function that takes a contender, the number of draws of each input and the index of the
    round. It returns the contender with the estimates of a trial.
    draws: number of draws of each input in the first round.
    enough: evidence (log-likelihood ratio, in nats) from which a leak counts as clear. Contenders
    with at least this evidence are ranked by other criteria.
    is_over: function that returns whether to end the round before the next trial.
    of_answers: whether inputs are vectors of query answers. Then only half of the contenders that
    stay are chosen by rank; the other half are those with the largest `hope` (a lower bound on ε).
    with_patterns: whether patterns of query answers, such as `one entry above`, stay in addition to
    the best eighth.
    until: the rounds end as soon as at most this number of contenders, but more than one, stay.
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
    """Return (the pairs that stay after a round of trials, the other pairs).

    ranked: tried pairs, best first.
    number: index of the round, from 0.
    of_answers: whether inputs are vectors of query answers.
    with_patterns: whether patterns of query answers, such as `one entry above`, stay in addition to
    the best pairs.

    For query answers, half of the pairs that stay are those with the largest `hope` (a lower bound
    on ε), whatever their evidence: a rare event that leaks much needs more draws for the same
    evidence than a frequent event that leaks little. Patterns are few, and known to leak: all of
    them stay after the first round, then the better half, and so on.
    """
    places = math.ceil(len(ranked) / KEPT_ONE_IN)
    best, rest = split(ranked, places, by_hope=of_answers)
    if not (of_answers and with_patterns and len(ranked) > KEPT_ONE_IN):
        return best, rest
    patterns = [one for one in _by_hope(ranked) if one.proposal.origin == "pattern"]
    if number:
        patterns = patterns[: math.ceil(len(patterns) / 2)]
    return _separated(ranked, [*best, *patterns])


def split(
    ranked: list[Contender], places: int, *, by_hope: bool
) -> tuple[list[Contender], list[Contender]]:
    """Return (the pairs that stay, the other pairs), both in the given order.

    ranked: tried pairs, best first.
    places: number of pairs that stay.
    by_hope: whether half of the pairs that stay are those with the largest `hope`, whatever their
    rank. `hope` is a lower bound on ε with a small safety margin.
    """
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
    """Return how many rounds of trials rank a number of pairs. One pair in eight stays after each
    round, until a last round has only one pair.

    >>> rounds_for(1), rounds_for(2), rounds_for(8), rounds_for(400)
    (1, 2, 2, 4)
    """
    return 1 if contenders <= 1 else 1 + rounds_for(math.ceil(contenders / KEPT_ONE_IN))
