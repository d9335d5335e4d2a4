"""The pairs that a search tries: those that traces suggest, the catalogue, random ones, and pairs
like the best. Each comes once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.searching.budget import PROPOSED, SHARE, WIDTH, Budget
from dpaudit.searching.by_traces import by_traces
from dpaudit.searching.guided import around, parts
from dpaudit.searching.proposals import Proposal, proposals
from dpaudit.searching.proposals.stream import catalogue
from dpaudit.searching.raising import where_exceptions_begin
from dpaudit.searching.screening import Contender
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.space import MissingLibrary
from dpaudit.searching.trials import SEARCHING, Inputs
from dpaudit.tracing.scoring import Scorer, can_score

# Proposals in a row that come to nothing: their inputs take no such form, or were there before.
_PATIENCE, _AT_FIRST = 1_000, 100
# Of the time of the search, for proposals.
_GATHERING = 1 / 3
# Pairs that are traced at most, one for so many draws of a search; and the part of its time for it.
_SCORES, _DRAWS_OF_A_SCORE, _TRACING = 200, 1_000, 0.1
# The best ones, which others are made like.
_CENTRES = 3
_VALUES = 200
# Proposals like them, at most, and pairs of these.
_GUIDED_PROPOSALS, _GUIDED_WIDTH = 500, 32
# Pairs outside the space that are tried where these do not count.
_BEYOND = 40
# Datasets that raise, and others, between which exceptions begin.
_RAISING = 3


class Gathering:
    """Makes contenders of proposals, and none of a pair twice. note: why some kinds are missing."""

    def __init__(
        self, settings: SearchSettings, spec: AuditSpec, inputs: Inputs, budget: Budget
    ) -> None:
        self._settings, self._spec, self._inputs, self._budget = settings, spec, inputs, budget
        self._proposed: set[tuple[int, int]] = set()
        self.note = ""

    def gathered(self) -> list[Contender]:
        """Return what is proposed: the catalogue, and random pairs if there is a place for them,
        since these take long to make."""
        settings, found = self._settings, list[Contender]()
        space, adjacency, only = settings.space, settings.adjacency, not settings.outside
        source = proposals(space, adjacency, seed=self._spec.seed, inside_only=only)
        places, limit = self._budget.places(PROPOSED), self._spec.time
        for one in islice(self._contenders(chain(self._by_traces(), source)), WIDTH):
            is_late = limit is not None and self._budget.elapsed() > _GATHERING * SHARE * limit
            if found and (is_late or (len(found) >= places and one.proposal.origin == "random")):
                break
            found.append(one)
        return found

    def beyond(self) -> list[Contender]:
        """Return the few pairs outside the space that are tried where these do not count."""
        settings = self._settings
        if settings.inside or settings.outside:
            return []
        source = catalogue(settings.space, settings.adjacency)
        return list(islice(self._contenders(one for one in source if not one.inside), _BEYOND))

    def _by_traces(self) -> Iterator[Proposal]:
        """Yield the pairs that traces suggest, where the mechanism can be traced."""
        spec, settings = self._spec, self._settings
        scores = min(_SCORES, self._budget.draws // _DRAWS_OF_A_SCORE)
        # Answers to queries are compared, mostly: what a trace counts is above what that costs, and
        # patterns are known to be as bad as any.
        if scores < 1 or settings.is_of_answers or spec.no_trace or not can_score(spec.target):
            return
        scorer = Scorer(spec.target)

        def score(d1: Any, d2: Any) -> float:
            return scorer(settings.formed(d1), settings.formed(d2))

        yield from by_traces(
            settings.space,
            settings.adjacency,
            score,
            scores=scores,
            inside_only=not settings.outside,
            seconds=math.inf if spec.time is None else _TRACING * SHARE * spec.time,
        )

    def like(self, ranked: Sequence[Contender], turn: int) -> list[Contender]:
        """Return pairs like the best ones."""
        settings = self._settings
        centres = [one.proposal for one in ranked[:_CENTRES]]
        values = {
            repr(value): value
            for one in ranked
            for dataset in (one.proposal.d1, one.proposal.d2)
            for value in parts(dataset)
        }
        if not values:
            return []
        rng = np.random.default_rng([self._spec.seed, SEARCHING, turn])
        some = list(values.values())[:_VALUES]
        source = around(centres, some, settings.space, settings.adjacency, rng)
        wanted = (one for one in source if one.inside)
        contenders = self._contenders(islice(wanted, _GUIDED_PROPOSALS))
        return list(islice(contenders, _GUIDED_WIDTH))

    def raising(
        self, ranked: Sequence[Contender], raises: Callable[[Any], bool | None]
    ) -> list[Contender]:
        """Return pairs in which only one input raises, between pairs whose inputs both raise and
        pairs whose inputs both give outputs. raises: whether a dataset always raises."""
        settings = self._settings
        raising = [one.proposal for one in ranked if one.d1.only_raises and one.d2.only_raises]
        silent = [one.proposal for one in ranked if one.draws and not one.d1.raised]
        if not (raising and silent):
            return []
        by_size = sorted((max(one.d1, one.d2, key=_size) for one in raising), key=_size)
        few = [*by_size[:1], *by_size[::-1][:_RAISING]]
        others = [one.d1 for one in silent[:_RAISING]]
        source = where_exceptions_begin(few, others, settings.space, settings.adjacency, raises)
        return list(islice(self._contenders(source), 2))

    def _contenders(self, source: Iterable[Proposal]) -> Iterator[Contender]:
        """Yield a contender for each proposal that is not one of those before."""
        fruitless = 0
        for proposal in self._possible(source):
            d1, d2 = self._inputs.of(proposal.d1), self._inputs.of(proposal.d2)
            fruitless += 1
            if fruitless > (_PATIENCE if self._proposed else _AT_FIRST):
                return
            if d1 is None or d2 is None or d1 is d2:
                continue
            both = min(d1.number, d2.number), max(d1.number, d2.number)
            if both not in self._proposed:
                self._proposed.add(both)
                fruitless = 0
                yield Contender(proposal, d1, d2, len(self._proposed))

    def _possible(self, source: Iterable[Proposal]) -> Iterator[Proposal]:
        """Yield proposals; without Hypothesis those that are not random."""
        try:
            yield from source
        except MissingLibrary as error:
            self.note = str(error)


def _size(dataset: Any) -> int:
    return len(parts(dataset))
