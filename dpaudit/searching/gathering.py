"""The pairs that a search tries, each pair once.

They are the pairs that traces suggest, the pairs of the catalogue (all proposed pairs that are not
random), random pairs, and variations of the best pairs. A trace runs a mechanism on both inputs
with the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import DatasetError
from dpaudit.searching.climbing import Pair, Pool, climbed
from dpaudit.searching.follow_ups import around, parts, where_exceptions_begin
from dpaudit.searching.proposals import (
    Outside,
    Proposal,
    at_bounds,
    catalogue,
    kind_outside,
    proposals,
)
from dpaudit.searching.relations import Relation
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.space import MissingLibrary
from dpaudit.searching.timeouts import Ended, Limit
from dpaudit.searching.trials import (
    BATCH_STREAM,
    MAX_FIRST_PAIRS,
    PROPOSED_SHARE,
    SEARCH_SHARE,
    SEVERAL_PAIRS,
    Budget,
    Contender,
    Inputs,
)
from dpaudit.tracing.trace import Scorer, can_score

# The search for proposals ends after this number of proposals in a row that give no new pair.
_MAX_REPEATS = 1_000
# If not even the first proposals give a usable pair, the search for proposals ends after this
# number of them, which is less than `_MAX_REPEATS`: perhaps no input can be converted to the data
# type that the mechanism takes.
_MAX_UNUSABLE = 100
# Share of a search's time after which no more proposals are made.
_PROPOSING_SHARE = 1 / 3
# Largest number of pairs for which both inputs are run with the same noise (traced).
_MAX_TRACED = 200
# One pair is traced (run on both inputs with the same noise) for every 1,000 draws of a search, so
# that a small search traces fewer pairs.
_DRAWS_PER_TRACE = 1_000
# Share of a search's time that traces (runs on both inputs with the same noise) may take.
_TRACING_SHARE = 0.1
# Share of the traced pairs (run on both inputs with the same noise) that come from the catalogue:
# the list of all proposed pairs that are not random. Hill climbing makes the other traced pairs.
_CATALOGUE_SHARE = 0.6
# Number of pairs inside the space (the set of possible inputs) that are proposed before all other
# pairs, because their two runs with the same noise differ most.
_TRACED_INSIDE = 4
# Number of pairs outside the space (the set of possible inputs) that the search proposes early,
# right after the `_TRACED_INSIDE` pairs inside it: the pairs whose two runs with the same noise
# differ most.
_TRACED_OUTSIDE = 2
# Hill climbing starts from a simple pair. The pair that it reaches is proposed only if its score is
# at least this factor times the score of the start.
_MIN_GAIN = 1.5
# The search varies the best pairs that it has tried. Number of these pairs.
_VARIED_PAIRS = 3
# Largest number of different records, or entries of vectors, that are inserted to make variations
# of the best pairs. They are taken from the tried pairs.
_MAX_INSERTED = 200
# In one round, at most this number of variations inside the space (the set of possible inputs) are
# made. The limit includes variations that repeat an earlier pair, which are not tried again.
_MAX_MADE = 500
# Largest number of variations that are tried in one round. A variation is a random change of one of
# the best pairs; pairs that were proposed before do not count.
_MAX_TRIED = 32
# Largest number of pairs of each kind outside the space (the set of possible inputs) that are tried
# if the user neither excludes nor includes inputs outside the space. They only serve a note in the
# report. More pairs have numbers beyond the bounds: their leak may need several records.
_PAIRS_OUTSIDE: Mapping[Outside, int] = {"NaN": 8, "missing": 8, "beyond": 16, "other": 8}
# Bisection looks for the step at which exceptions begin, between inputs that give outputs and
# inputs that always raise. It uses at most this number of inputs that give outputs. Of the inputs
# that raise, it uses the smallest one, and at most this number of the largest ones.
_BISECTED_INPUTS = 3
# Bisection finds pairs for which the mechanism raises on only one of the two inputs. Largest number
# of such pairs that are added to the pairs to try.
_BISECTED_PAIRS = 2

# Type of functions that return the score of two inputs. The inputs are plain Python values, such as
# lists. If they cannot be converted to the data type that the mechanism takes, the function may
# raise DatasetError.
Score = Callable[[Any, Any], float]


class Gathering:
    """Makes a `Contender` (a pair to try) of each proposed pair that was not proposed before.

    note: reason why some kinds of proposals are missing, such as that Hypothesis is not installed;
    "" if none are missing.
    """

    def __init__(
        self, settings: SearchSettings, spec: AuditSpec, inputs: Inputs, budget: Budget
    ) -> None:
        self._settings, self._spec, self._inputs, self._budget = settings, spec, inputs, budget
        self._relation = settings.relation
        self._proposed: set[tuple[int, int]] = set()
        self.note = ""

    def gathered(self) -> list[Contender]:
        """Return the pairs to try, each as a `Contender`: first pairs that differ much in runs with
        the same noise, then the catalogue (all other proposed pairs that are not random), then
        random pairs.

        Random pairs take long to make. They are made only if the draws of the search allow more
        pairs than were proposed before.
        """
        contenders: list[Contender] = []
        source = proposals(
            self._relation, seed=self._spec.sampling.seed, inside_only=not self._settings.outside
        )
        places, limit = self._budget.places(PROPOSED_SHARE), self._spec.sampling.time
        # A pair at the bounds that traces suggest is proposed as a pair at the bounds, because such
        # pairs stay until the final comparison.
        bounds = {repr((one.d1, one.d2)): one for one in at_bounds(self._relation)}
        traced = (bounds.get(repr((one.d1, one.d2)), one) for one in self._by_traces())
        source = chain(traced, bounds.values(), source)
        for one in islice(self._contenders(source), MAX_FIRST_PAIRS):
            is_late = (
                limit is not None
                and self._budget.elapsed() > _PROPOSING_SHARE * SEARCH_SHARE * limit
            )
            is_full = len(contenders) >= places and one.proposal.origin == "random"
            # Hypothesis needs up to a second for its first pair, and a user's own code may need any
            # time for each.
            enough = 1 if self._relation.is_own else SEVERAL_PAIRS
            if (is_late and len(contenders) >= enough) or (contenders and is_full):
                break
            contenders.append(one)
        return contenders

    def beyond(self) -> list[Contender]:
        """Return at most 40 pairs outside the space (the set of possible inputs), each as a
        `Contender`, for notes in the report. Return [] if an option already excludes or includes
        all inputs outside the space: no note is needed then."""
        if self._settings.inside or self._settings.outside:
            return []
        outside = [one for one in catalogue(self._relation) if not one.inside]
        chosen: list[Proposal] = []
        for kind, most in _PAIRS_OUTSIDE.items():
            alike = [one for one in outside if kind_outside(one, self._relation.space) == kind]
            chosen += _by_turns(alike)[:most]
        return list(self._contenders(chosen))

    def _by_traces(self) -> Iterator[Proposal]:
        """Yield the pairs with the largest scores. The score of a pair says how much two runs of
        the mechanism differ, one on each input, with the same noise. Yield nothing if the mechanism
        cannot be run in this way."""
        spec, settings = self._spec, self._settings
        scores = min(_MAX_TRACED, self._budget.draws // _DRAWS_PER_TRACE)
        # Mechanisms that take query answers are not traced. They mostly compare numbers with noise,
        # and runs with the same noise overrate the leak of a comparison. No trace is needed: the
        # known patterns of answers leak as much as any other pair.
        is_traced = scores >= 1 and not self._relation.is_of_answers and not spec.no_trace
        if not (is_traced and can_score(spec.target)):
            return
        scorer = Scorer(spec.target)
        yield from by_traces(
            self._relation,
            lambda d1, d2: scorer(settings.formed(d1), settings.formed(d2)),
            scores=scores,
            inside_only=not settings.outside,
            seconds=math.inf
            if spec.sampling.time is None
            else _TRACING_SHARE * SEARCH_SHARE * spec.sampling.time,
        )

    def like(self, ranked: Sequence[Contender], turn: int) -> list[Contender]:
        """Return variations of the best pairs, each as a `Contender` (a pair to try). Variations
        with an input outside the space (the set of possible inputs) are left out.

        ranked: tried pairs, best first.
        turn: index of the round of variations, from 0.
        """
        centres = [one.proposal for one in ranked[:_VARIED_PAIRS]]
        values = {
            repr(value): value
            for one in ranked
            for dataset in (one.proposal.d1, one.proposal.d2)
            for value in parts(dataset)
        }
        if not values:
            return []
        rng = np.random.default_rng([self._spec.sampling.seed, BATCH_STREAM, turn])
        source = around(centres, list(values.values())[:_MAX_INSERTED], self._relation, rng)
        wanted = islice((one for one in source if one.inside), _MAX_MADE)
        return list(islice(self._contenders(wanted), _MAX_TRIED))

    def raising(
        self, ranked: Sequence[Contender], raises: Callable[[Any], bool | None]
    ) -> list[Contender]:
        """Return pairs to try such that the mechanism raises an exception for only one input.

        Such pairs lie between an input that gave outputs and an input that always raised. Bisection
        finds them, on a path of neighbouring inputs from the first input to the second. The second
        input is taken from a pair both of whose inputs always raised.

        ranked: tried pairs.
        raises: function that returns whether the mechanism always raises for a dataset; None if
        that is unknown.
        """
        raising = [one.proposal for one in ranked if one.d1.only_raises and one.d2.only_raises]
        quiet = [one.proposal for one in ranked if one.draws and not one.d1.raised]
        if not (raising and quiet):
            return []
        by_size = sorted((max(one.d1, one.d2, key=_size) for one in raising), key=_size)
        few = [*by_size[:1], *by_size[::-1][:_BISECTED_INPUTS]]
        others = [one.d1 for one in quiet[:_BISECTED_INPUTS]]
        source = where_exceptions_begin(few, others, self._relation, raises)
        return list(islice(self._contenders(source), _BISECTED_PAIRS))

    def _contenders(self, source: Iterable[Proposal]) -> Iterator[Contender]:
        """Yield a `Contender` (a pair to try) for each proposed pair that was not proposed
        before."""
        fruitless = 0
        for proposal in self._possible(source):
            d1, d2 = self._inputs.of(proposal.d1), self._inputs.of(proposal.d2)
            fruitless += 1
            if fruitless > (_MAX_REPEATS if self._proposed else _MAX_UNUSABLE):
                return
            if d1 is None or d2 is None or d1 is d2:
                continue
            both = min(d1.number, d2.number), max(d1.number, d2.number)
            if both not in self._proposed:
                self._proposed.add(both)
                fruitless = 0
                yield Contender(proposal, d1, d2, len(self._proposed))

    def _possible(self, source: Iterable[Proposal]) -> Iterator[Proposal]:
        """Yield the given proposals. If Hypothesis is not installed, end before the first random
        pair, and store the reason in `note`."""
        try:
            yield from source
        except MissingLibrary as error:
            self.note = str(error)


def _size(dataset: Any) -> int:
    return len(parts(dataset))


def _by_turns(pairs: Sequence[Proposal]) -> list[Proposal]:
    """Return the pairs in another order: the first pair of each d1, then the second pair of each
    d1, and so on. So the first pairs contain datasets of several sizes."""
    groups: dict[str, list[Proposal]] = {}
    for one in pairs:
        groups.setdefault(repr(one.d1), []).append(one)
    return [one for turn in zip_longest(*groups.values()) for one in turn if one is not None]


def by_traces(
    relation: Relation,
    score: Score,
    *,
    scores: int,
    inside_only: bool,
    seconds: float = math.inf,
) -> Iterator[Proposal]:
    """Yield pairs with large scores: first the pair that hill climbing reaches, then the best pairs
    of the catalogue (all proposed pairs that are not random).

    score: function that runs the mechanism on two inputs with the same noise and returns how much
    the runs differ.
    scores: largest number of pairs that are scored.
    inside_only: whether to leave out inputs outside the space (the set of possible inputs).
    seconds: time limit of scoring.
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
        for one in islice(
            catalogue(relation, inside_only=inside_only), int(_CATALOGUE_SHARE * scores)
        ):
            scored.append((height(one.d1, one.d2), one))
            pool.add(one)
    scored.sort(key=lambda pair: -pair[0])
    ranked = [one for high, one in scored if high > 0]
    inside = [one for one in ranked if one.inside][:_TRACED_INSIDE]
    for start in inside[:1]:
        yield from _climbed(start, relation, height, pool)
    outside = [one for one in ranked if not one.inside][:_TRACED_OUTSIDE]
    yield from (replace(one, origin="trace") for one in (*inside, *outside))


def _climbed(start: Proposal, relation: Relation, height: Score, pool: Pool) -> Iterator[Proposal]:
    """Climb from a pair: change it step by step to pairs with larger scores. Yield the last pair if
    its score is at least 1.5 times the score of `start`, else nothing.

    relation: decides which pairs are neighbours inside the space (the set of possible inputs).
    height: function that returns the score of two inputs.
    pool: known records and values, from which changes are made.
    """
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
    if len(best) > 1 and best[-1][0] >= _MIN_GAIN * best[0][0]:
        pair = best[-1][1]
        yield Proposal(pair.d1, pair.d2, "climbed to by traces", "trace", True)
