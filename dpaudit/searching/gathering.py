"""The pairs that a search tries: those that traces suggest, the catalogue, random pairs, and
variations of the best. Each pair comes once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import DatasetError
from dpaudit.searching.climbing import Pair, Pool, climbed
from dpaudit.searching.follow_ups import around, parts, where_exceptions_begin
from dpaudit.searching.proposals import Proposal, catalogue, proposals
from dpaudit.searching.relations import Relation
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.space import MissingLibrary
from dpaudit.searching.timeouts import Ended, Limit
from dpaudit.searching.trials import (
    PROPOSED,
    SEARCHING,
    SHARE,
    WIDTH,
    Budget,
    Contender,
    Inputs,
)
from dpaudit.tracing.trace import Scorer, can_score

# Proposals in a row without a new pair, after which no more are expected.
_PATIENCE = 1_000
# The same before the first pair: then no input may have the form of the mechanism.
_AT_FIRST = 100
# Part of the time of a search in which proposals are made.
_GATHERING = 1 / 3
# Most pairs that are traced.
_SCORES = 200
# Draws of a search for each pair that is traced: a small search traces fewer pairs.
_DRAWS_OF_A_SCORE = 1_000
# Part of the time of a search for traces.
_TRACING = 0.1
# Part of the traced pairs that are of the catalogue; the others are for climbing.
_CATALOGUE = 0.6
# Pairs inside the space with the highest scores that are proposed first.
_INSIDE = 4
# Pairs outside the space with the highest scores that are proposed next.
_OUTSIDE = 2
# Times the score of its start that a climb has to reach: its pair is less simple.
_MUCH = 1.5
# The best pairs, of which variations are made.
_CENTRES = 3
# Most values that variations put in.
_VALUES = 200
# Most variations that are made.
_GUIDED_PROPOSALS = 500
# Most variations that are tried.
_GUIDED_WIDTH = 32
# Pairs outside the space that are tried where these do not count.
_BEYOND = 40
# Datasets that raise, and datasets that do not, between which bisection looks for a step.
_RAISING = 3
# Most pairs at such a step.
_RAISING_PAIRS = 2

# Returns the score of two inputs in plain Python; it may raise DatasetError for inputs without the
# form that the mechanism takes.
Score = Callable[[Any, Any], float]


class Gathering:
    """Makes contenders of proposals, none of a pair twice. note: why some kinds are missing."""

    def __init__(
        self, settings: SearchSettings, spec: AuditSpec, inputs: Inputs, budget: Budget
    ) -> None:
        self._settings, self._spec, self._inputs, self._budget = settings, spec, inputs, budget
        self._relation = settings.relation
        self._proposed: set[tuple[int, int]] = set()
        self.note = ""

    def gathered(self) -> list[Contender]:
        """Return contenders of the traced pairs and the catalogue, then of random pairs as far as
        the budget has a place for them, since these take long to make."""
        contenders: list[Contender] = []
        source = proposals(
            self._relation, seed=self._spec.seed, inside_only=not self._settings.outside
        )
        places, limit = self._budget.places(PROPOSED), self._spec.time
        for one in islice(self._contenders(chain(self._by_traces(), source)), WIDTH):
            is_late = limit is not None and self._budget.elapsed() > _GATHERING * SHARE * limit
            is_full = len(contenders) >= places and one.proposal.origin == "random"
            if contenders and (is_late or is_full):
                break
            contenders.append(one)
        return contenders

    def beyond(self) -> list[Contender]:
        """Return the few pairs outside the space that are tried where these do not count."""
        if self._settings.inside or self._settings.outside:
            return []
        outside = (one for one in catalogue(self._relation) if not one.inside)
        return list(islice(self._contenders(outside), _BEYOND))

    def _by_traces(self) -> Iterator[Proposal]:
        """Yield the pairs that traces suggest, where the mechanism can be traced."""
        spec, settings = self._spec, self._settings
        scores = min(_SCORES, self._budget.draws // _DRAWS_OF_A_SCORE)
        # Answers are mostly compared: a trace counts more there than a comparison leaks, and the
        # patterns are known to be as bad as any pair.
        is_traced = scores >= 1 and not self._relation.is_of_answers and not spec.no_trace
        if not (is_traced and can_score(spec.target)):
            return
        scorer = Scorer(spec.target)
        yield from by_traces(
            self._relation,
            lambda d1, d2: scorer(settings.formed(d1), settings.formed(d2)),
            scores=scores,
            inside_only=not settings.outside,
            seconds=math.inf if spec.time is None else _TRACING * SHARE * spec.time,
        )

    def like(self, ranked: Sequence[Contender], turn: int) -> list[Contender]:
        """Return variations of the best pairs, inside the space."""
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
        source = around(centres, list(values.values())[:_VALUES], self._relation, rng)
        wanted = islice((one for one in source if one.inside), _GUIDED_PROPOSALS)
        return list(islice(self._contenders(wanted), _GUIDED_WIDTH))

    def raising(
        self, ranked: Sequence[Contender], raises: Callable[[Any], bool | None]
    ) -> list[Contender]:
        """Return pairs in which only one input raises, between pairs whose inputs both raise and
        pairs whose inputs both give outputs. raises: returns whether a dataset always raises."""
        raising = [one.proposal for one in ranked if one.d1.only_raises and one.d2.only_raises]
        quiet = [one.proposal for one in ranked if one.draws and not one.d1.raised]
        if not (raising and quiet):
            return []
        by_size = sorted((max(one.d1, one.d2, key=_size) for one in raising), key=_size)
        few = [*by_size[:1], *by_size[::-1][:_RAISING]]
        others = [one.d1 for one in quiet[:_RAISING]]
        source = where_exceptions_begin(few, others, self._relation, raises)
        return list(islice(self._contenders(source), _RAISING_PAIRS))

    def _contenders(self, source: Iterable[Proposal]) -> Iterator[Contender]:
        """Yield a contender for each proposal whose pair is new."""
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


def by_traces(
    relation: Relation,
    score: Score,
    *,
    scores: int,
    inside_only: bool,
    seconds: float = math.inf,
) -> Iterator[Proposal]:
    """Yield the pairs of the catalogue that coupled runs separate most, and the pair that climbing
    from the best one leads to. Scores are not random, so that choosing the best of many pairs needs
    no correction.

    scores: number of pairs that are scored at most.  seconds: time limit of scoring.
    """
    limit, pool = Limit(seconds, scores), Pool(relation)
    scored: list[tuple[float, Proposal]] = []

    def height(d1: Any, d2: Any) -> float:
        limit.spend()
        try:
            return score(d1, d2)
        except DatasetError:
            return -math.inf

    with suppress(Ended):
        for one in islice(catalogue(relation, inside_only=inside_only), int(_CATALOGUE * scores)):
            scored.append((height(one.d1, one.d2), one))
            pool.add(one)
    scored.sort(key=lambda pair: -pair[0])
    ranked = [one for high, one in scored if high > 0]
    inside = [one for one in ranked if one.inside][:_INSIDE]
    for start in inside[:1]:
        yield from _climbed(start, relation, height, pool)
    outside = [one for one in ranked if not one.inside][:_OUTSIDE]
    yield from (replace(one, origin="trace") for one in (*inside, *outside))


def _climbed(start: Proposal, relation: Relation, height: Score, pool: Pool) -> Iterator[Proposal]:
    """Yield the pair that climbing leads to, if its score is much higher than the start's."""
    best: list[tuple[float, Pair]] = []

    def scored(pair: Pair) -> float:
        if not relation.holds_inside(*pair):
            return -math.inf
        reached = height(*pair)
        if not best or reached > best[-1][0]:
            best.append((reached, pair))
        return reached

    with suppress(Ended):
        climbed(Pair(start.d1, start.d2), pool, scored)
    if len(best) > 1 and best[-1][0] >= _MUCH * best[0][0]:
        pair = best[-1][1]
        yield Proposal(pair.d1, pair.d2, "climbed to by traces", "trace", True)
