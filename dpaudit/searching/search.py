"""Finds the pairs to audit: proposals, halving, pairs like the best, and a simpler one.

All draws made here choose pairs and certify nothing. The audit that follows draws from streams of
its own, and what it audits is settled, and in the journal, before its first draw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from dpaudit.attacks.choosing.selection import attacks_for
from dpaudit.attacks.loading import load_attacks
from dpaudit.auditing.journal.requests import digest
from dpaudit.auditing.options import MINIMUM_SAMPLES
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.certificates.searched import Leader, Searched
from dpaudit.errors import DatasetError, MechanismError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.searching import record
from dpaudit.searching.by_traces import by_traces
from dpaudit.searching.forming import formed
from dpaudit.searching.guided import around, parts
from dpaudit.searching.neighbours import NUMERIC
from dpaudit.searching.proposals import Proposal, proposals
from dpaudit.searching.screening import FEWEST, MOST, Contender, Judge, halved, split
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.space import MissingLibrary, Space
from dpaudit.searching.trials import SEARCHING, Drawing, Input, one_by_one
from dpaudit.tracing.scoring import Scorer, can_score
from dpaudit.wording import counted, shortened

Notify = Callable[[Progress], None]

# Of the budget: for the search, and of that for the proposals, the rest for pairs like the best and
# for making the winner simpler.
SHARE = 1 / 4
_PROPOSED, _GUIDED = 0.6, 0.15
# Proposals in a row that come to nothing: their inputs take no such form, or were there before.
_PATIENCE, _AT_FIRST = 1_000, 100
# Draws of either input that are made one by one where the mechanism fails for a batch, at most.
_MOST_ALONE = 2_000
# So much more of a budget is for comparing the best pairs of answers, where they leak clearly:
# fewer draws to certify cost less of the bound then than a pair that is not the best.
_COMPARING = 0.6
# Pairs of a first round, at most, and of a round of pairs like the best; so many such rounds.
_WIDTH, _GUIDED_WIDTH, _TURNS = 400, 32, 2
# Inputs that have to be drawn for, for each pair: many pairs share one of theirs.
_INPUTS = 1.3
# Of the time of the search, for proposals.
_GATHERING = 1 / 3
# With a small budget, pairs that are tried all the same, and draws of either input.
_FEW_PAIRS, _BARELY = 24, 10
# Draws of either input that show how fast draws are made.
_FEWEST_TIMED = 2
# Of the budget for proposals, what is for those inside the space, if there are others.
_INSIDE = 2 / 3
# Pairs that are traced at most, one for so many draws of a search; and the part of its time for it.
_SCORES, _DRAWS_OF_A_SCORE, _TRACING = 200, 1_000, 0.1
# The best ones, which others are made like.
_CENTRES = 3
_VALUES = 200
_GUIDED_PROPOSALS = 500
_LEADERS = 5
# The last rounds, for so many pairs, the best half of which goes on, until one is left or, of
# answers, a few: of all draws that are left but for shrinking, at most so many of either input.
_FINALISTS, _LAST, _MOST_LAST = 8, 0.95, 64_000
# Of this many that were compared by the most draws, the simplest that promises about as much.
_LAST_TWO, _ABOUT_AS_MUCH = 2, 0.95
# Evidence beyond 1/α, in logs, that is more than the luck of the best of so many pairs and orders.
_LUCK = 10.0
# Pairs that leak clearly, the smallest first, of which one has to do so on fresh draws, too.
_CONFIRMED = 8
_SHRINKING_TRIES = 300
_LONGEST, _LONGEST_LEADER = 300, 120


@dataclass(frozen=True, slots=True)
class NeighbourSearch:
    """What to search, and how.

    space: what one input may be.  adjacency: the relation between the two.  form: what datasets are
    handed over as; None: as they are.  inside: leave out inputs that lie outside the space.
    keep: how many pairs to certify; they share the error probability.  elsewhere: whether the
    process that the mechanism is in makes data frames.
    """

    space: Space
    adjacency: Adjacency
    form: str | None = None
    inside: bool = False
    keep: int = 1
    elsewhere: bool = False

    def find(self, spec: AuditSpec, on_progress: Notify | None) -> tuple[AuditSpec, Searched]:
        """Return the audit with the pairs that leak most, and how they were found.

        Raises MechanismError where no input gives anything but exceptions.
        """
        began = time.monotonic()
        spec, searched = record.read(spec)
        if searched is None:
            with Drawing(spec) as drawing:
                searched = _Search(self, spec, drawing, on_progress).run()
            record.write(spec, searched)
        alone = one_by_one(spec) if searched.one_by_one else None
        spec = spec if alone is None else alone
        pairs = tuple(self.pair(d1, d2) for d1, d2 in searched.found)
        left: dict[str, Any]
        if spec.time is None:
            more = _COMPARING if self.adjacency.kind in NUMERIC else 0.0
            spent = min(searched.draws, int((1 + more) * SHARE * spec.samples))
            # A simpler form leaks as its pair does, and is refuted as soon.
            several = len(pairs) - searched.shrunk
            left = {"samples": max(MINIMUM_SAMPLES, (spec.samples - spent) // several)}
        else:
            left = {"time": max(spec.time / 2, spec.time - (time.monotonic() - began))}
        return replace(spec, pairs=pairs, **left), searched

    def describe(self) -> str:
        """Return in words what is searched."""
        form = f" as {self.form}" if self.form else ""
        inside = ", inside it alone" if self.inside else ""
        kept = f", {self.keep} pairs kept" if self.keep > 1 else ""
        return f"{self.space.words()}{form} ({self.adjacency.describe()}{inside}{kept})"

    def pair(self, d1: Any, d2: Any) -> NeighbouringPair:
        """Return two plain inputs as an audit takes them."""
        label = f"d1 = {shortened(repr(d1), _LONGEST)}, d2 = {shortened(repr(d2), _LONGEST)}"
        one, other = self.formed(d1), self.formed(d2)
        return NeighbouringPair(one, other, self.adjacency, label)

    def formed(self, dataset: Any) -> Any:
        """Return a dataset as the mechanism takes it. Raises DatasetError where there is none."""
        return formed(dataset, self.form, self.space, elsewhere=self.elsewhere)


class _Search:
    """One search; `run` once."""

    def __init__(
        self, settings: NeighbourSearch, spec: AuditSpec, drawing: Drawing, notify: Notify | None
    ) -> None:
        self._settings, self._spec, self._drawing, self._notify = settings, spec, drawing, notify
        self._began = time.monotonic()
        self._inputs: dict[str, Input | None] = {}
        self._inputs_alone: dict[int, Input] = {}
        self._proposed: set[tuple[int, int]] = set()
        self._pairs: set[tuple[int, int]] = set()
        self._refused: dict[tuple[int, int], str] = {}
        attacks = attacks_for(
            floating_point=spec.floating_point, timing=False, repeated=spec.runs > 1
        )
        users = load_attacks(spec.attacks, travels=False) if spec.attacks else ()
        # Of answers. Of records, which vary more, careful bounds tie more often: the simplest wins.
        self._is_of_answers = settings.adjacency.kind in NUMERIC
        self._judge = Judge(
            spec.tested.points(), spec.samples, drawing, (*attacks, *users), self._is_of_answers
        )
        self._enough = math.log(1 / spec.alpha) + _LUCK
        self._least = min(point.epsilon for point in spec.tested.points())
        self._is_found = self._is_planned = False
        self._confirmed: dict[tuple[int, int], bool] = {}
        self._deadline = math.inf
        self._note = self._unformed = ""
        self._budget = max(2 * FEWEST, int(SHARE * spec.samples))

    def run(self) -> Searched:
        """Return the pairs to certify, and how they were found. Raises MechanismError."""
        settings = self._settings
        source = proposals(
            settings.space, settings.adjacency, seed=self._spec.seed, inside_only=settings.inside
        )
        contenders = self._gathered(chain(self._by_traces(), source))
        if not contenders:
            raise DatasetError(
                f"no input of {settings.space.words()} can be handed over as {settings.form}: "
                f"{self._unformed}"
            )
        if self._spec.time is not None:
            self._plan_by_clock(contenders[0])
        inside = [one for one in contenders if one.proposal.inside]
        outside = [one for one in contenders if not one.proposal.inside]
        shares = (_INSIDE, 1 - _INSIDE) if inside and outside else (1.0, 1.0)
        # Where a leak is clear, more is worth its draws for answers alone: of records, the smallest
        # that leak say more than a larger bound. A call for each draw may be slow.
        is_wanted = self._is_of_answers and not self._drawing.single_draws
        # Apart, so that a leak outside the space hides none inside it. Of answers, the last few are
        # compared later, with more pairs: a last round here would take the draws for that.
        best = self._halved(inside, _PROPOSED * shares[0], until=_FINALISTS if is_wanted else 1)
        if best and (is_wanted or not self._is_sure(best[0])):
            for number in range(_TURNS):
                best = self._among(best, self._guided(best, number))
            for_outside = _PROPOSED * shares[1] if outside else 0.0
            is_clear = self._is_sure(best[0])
            if is_wanted:
                best = _tried_most(best)
            if not is_clear:
                best = self._compared(best, -for_outside)
            if is_clear or (is_wanted and self._is_sure(best[0])):
                best = self._compared(best, _COMPARING if is_wanted else 0.0)
        is_enough = bool(best) and self._is_sure(best[0])
        beyond = [] if is_enough else self._halved(outside, _PROPOSED * shares[1])
        if len(self._refused) == len(self._pairs):
            raise MechanismError(
                f"no output came for either input of the {counted(len(self._pairs), 'pair')} that "
                f"the search tried; the first reason: {self._refusal}; state a space that the "
                "mechanism accepts, or give it what it needs (params, as)"
            )
        return self._settled(best, beyond)

    def _by_traces(self) -> Iterator[Proposal]:
        """Yield the pairs that traces suggest, where the mechanism can be traced."""
        spec, settings = self._spec, self._settings
        scores = min(_SCORES, self._budget // _DRAWS_OF_A_SCORE)
        # Answers to queries are compared, mostly: what a trace counts is above what that costs, and
        # patterns are known to be as bad as any.
        is_of_answers = settings.adjacency.kind in NUMERIC
        if scores < 1 or is_of_answers or spec.no_trace or not can_score(spec.target):
            return
        scorer = Scorer(spec.target)

        def score(d1: Any, d2: Any) -> float:
            return scorer(settings.formed(d1), settings.formed(d2))

        yield from by_traces(
            settings.space,
            settings.adjacency,
            score,
            scores=scores,
            inside_only=settings.inside,
            seconds=math.inf if spec.time is None else _TRACING * SHARE * spec.time,
        )

    @property
    def _refusal(self) -> str:
        return next(iter(self._refused.values()), "")

    def _gathered(self, source: Iterable[Proposal]) -> list[Contender]:
        """Return what is proposed: the catalogue, and random pairs if there is a place for them,
        since these take long to make."""
        found: list[Contender] = []
        places, limit = self._places(_PROPOSED), self._spec.time
        for one in islice(self._contenders(source), _WIDTH):
            is_late = limit is not None and self._elapsed() > _GATHERING * SHARE * limit
            if found and (is_late or (len(found) >= places and one.proposal.origin == "random")):
                break
            found.append(one)
        return found

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _places(self, share: float) -> int:
        """Return how many pairs there are draws for. share: of the budget."""
        if self._spec.time is not None and not self._is_planned:
            return _WIDTH
        budget = self._draws_for(share)
        # Of few draws, some pairs get so few that these show large leaks alone.
        return max(int(budget / FEWEST), min(_FEW_PAIRS, int(budget / _BARELY)), 1)

    def _draws_for(self, share: float) -> float:
        """Return the draws of either input, of all pairs of a first round together: rounds cost
        half of the ones before, and inputs serve several pairs."""
        return share * self._budget / (2 * _INPUTS)

    def _plan_by_clock(self, one: Contender) -> None:
        """See how fast draws are made and judged, to plan how many there is time for; by very few
        where these take long. The first trial may have something to import."""
        seconds = SHARE * (self._spec.time or 0.0)
        taken, size = 0.0, 0
        for draws in (_FEWEST_TIMED, 2 * _FEWEST_TIMED, FEWEST):
            if taken * draws > seconds * max(size, 1) / 10:
                break
            began, size = time.monotonic(), draws
            self._tried(one, draws, 0)
            taken = max(time.monotonic() - began, 1e-6)
        self._budget = max(2 * _BARELY, int(2 * size * seconds / taken))
        self._is_planned = True
        # What had to be imported takes nothing from a short search.
        self._deadline = time.monotonic() + seconds

    def _halved(
        self, contenders: Sequence[Contender], share: float, *, until: int = 1
    ) -> list[Contender]:
        """Return contenders, best first; those of patterns come first where not all have a place.
        share: of the budget, which decides how many are tried.  until: so many the caller compares.
        """
        if not contenders:
            return []
        self._is_found = False
        first = ("trace", "pattern")
        ordered = sorted(contenders, key=lambda one: one.proposal.origin not in first)
        chosen = ordered[: self._places(share)]
        each = self._draws_for(share) / len(chosen)
        return halved(
            chosen,
            self._tried,
            draws=int(min(max(each, _BARELY), MOST)),
            enough=self._enough,
            is_over=self._is_over,
            of_answers=self._is_of_answers,
            # Where draws are few, to keep more pairs is dear.
            with_patterns=self._is_of_answers and each > FEWEST,
            until=until,
        )

    def _contenders(self, source: Iterable[Proposal]) -> Iterator[Contender]:
        """Yield a contender for each proposal that is not one of those before."""
        fruitless = 0
        for proposal in self._possible(source):
            d1, d2 = self._input(proposal.d1), self._input(proposal.d2)
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
            self._note = str(error)

    def _input(self, dataset: Any) -> Input | None:
        """Return the input of a dataset; None where it cannot have the form of the others."""
        key = repr(dataset)
        if "..." in key or "array(" in key:  # what NumPy and pandas write may leave values out
            key = digest(dataset)
        if key not in self._inputs:
            try:
                given = self._settings.formed(dataset)
            except DatasetError as error:
                self._inputs[key] = None
                self._unformed = self._unformed or str(error)
            else:
                self._inputs[key] = Input(len(self._inputs), given)
        return self._inputs[key]

    def _tried(self, one: Contender, draws: int, number: int) -> Contender:
        key = (one.d1.number, one.d2.number)
        self._pairs.add(key)
        try:
            tried = self._judge.tried(one, draws, thorough=number > 0)
        except MechanismError as error:
            if self._drawing.has_alone and not one.is_alone:
                # An exception is no outcome of a batch, but one of a draw.
                return self._tried(self._alone(one), min(draws, _MOST_ALONE), number)
            self._refused[key] = str(error)
            return replace(one, evidence=-1.0)
        if tried.d1.only_raises and tried.d2.only_raises:
            self._refused[key] = tried.d1.words
        elif self._spec.on_error == "fail" and (tried.d1.raised or tried.d2.raised):
            self._refused[key] = tried.d1.words or tried.d2.words
            return replace(tried, evidence=-1.0)
        self._is_found |= self._is_clear(tried)
        self._report(tried)
        return tried

    def _alone(self, one: Contender) -> Contender:
        """Return a contender for which the mechanism is called once for each draw."""
        for side in (one.d1, one.d2):
            if side.number not in self._inputs_alone:
                self._inputs_alone[side.number] = Input(side.number, side.dataset, is_alone=True)
        d1, d2 = (self._inputs_alone[side.number] for side in (one.d1, one.d2))
        return replace(one, d1=d1, d2=d2)

    def _is_over(self) -> bool:
        """Whether to end before all had their turn: when time is up; of a mechanism that is called
        once for each draw, and so may be slow, when a pair is found that leaks for sure."""
        return self._is_out_of_time() or (self._is_found and self._drawing.single_draws)

    def _is_out_of_time(self) -> bool:
        return time.monotonic() > self._deadline

    def _is_clear(self, one: Contender) -> bool:
        # What promises no bound above the claim is the luck of the best of many orders.
        return one.evidence >= self._enough and one.estimate > self._least

    def _is_sure(self, one: Contender) -> bool:
        """Return whether a leak is clear, and is so on fresh draws, too: the best of many pairs may
        be lucky, and would hide those outside the space."""
        if not self._is_clear(one):
            return False
        key = (one.d1.number, one.d2.number)
        if key not in self._confirmed:
            again = replace(one, d1=self._again(one.d1), d2=self._again(one.d2))
            try:
                again = self._judge.tried(again, self._needed(one), thorough=True)
            except MechanismError:
                return False
            self._confirmed[key] = self._is_clear(again)
        return self._confirmed[key]

    def _again(self, one: Input) -> Input:
        """Return the same input without its draws."""
        key = f"again {one.number}"
        if key not in self._inputs:
            self._inputs[key] = Input(len(self._inputs), one.dataset, is_alone=one.is_alone)
        fresh = self._inputs[key]
        assert fresh is not None
        return fresh

    def _needed(self, one: Contender) -> int:
        """Return as many draws of either input as show a clear leak twice over."""
        half = one.draws // 2
        needed = math.ceil(half * min(1.0, 2 * self._enough / max(one.evidence, 1e-9)))
        return min(half, max(FEWEST, needed))

    def _guided(self, ranked: Sequence[Contender], turn: int) -> list[Contender]:
        """Return pairs like the best ones, best first."""
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
        contenders = islice(self._contenders(islice(wanted, _GUIDED_PROPOSALS)), _GUIDED_WIDTH)
        found = list(contenders)
        return self._halved(found, _GUIDED / _TURNS) if found else []

    def _among(self, ranked: list[Contender], more: list[Contender]) -> list[Contender]:
        """Return both lists as one, best first; the best of each with equally many draws."""
        if not more:
            return ranked
        draws = max(ranked[0].draws, more[0].draws) // 2
        best = [self._tried(one, draws, 1) for one in (ranked[0], more[0])]
        rest = [*ranked[1:], *more[1:]]
        best.sort(key=lambda one: one.rank(self._enough), reverse=True)
        return best + sorted(rest, key=lambda one: one.rank(self._enough), reverse=True)

    def _compared(self, ranked: list[Contender], beyond: float) -> list[Contender]:
        """Return contenders, best first, after more draws for the best few: estimates that many
        pairs were ranked by are too rough to tell these apart. beyond: so much of the budget may be
        spent beyond it; below 0, what is kept for others."""
        standing, out = ranked[:_FINALISTS], ranked[_FINALISTS:]
        left = (_LAST + beyond) * self._budget - self._drawing.draws
        rounds = (len(standing) - 1).bit_length()
        if self._is_of_answers:
            # What shows most may be rare, and is not to go before it had its draws.
            rounds = max(1, rounds - 1)
        for left_rounds in range(rounds, 0, -1):
            had = min(one.draws // 2 for one in standing)
            more = int(left / left_rounds / (2 * len(standing)))
            size = min(had + more, _MOST_LAST)
            if any(one.is_alone for one in standing):
                size = min(size, _MOST_ALONE)
            if more < FEWEST or size <= had:
                break
            before = self._drawing.draws
            for place, one in enumerate(standing):
                if self._is_out_of_time():
                    break
                if one.draws < 2 * size:
                    standing[place] = self._tried(one, size, 1)
            left -= self._drawing.draws - before
            standing.sort(key=lambda one: one.rank(self._enough), reverse=True)
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
            and self._is_clear(one) >= self._is_clear(best)
            and one.proposal.inside >= best.proposal.inside
        )
        near = [best, *others]
        shapes = [one for one in near if one.proposal.origin == "pattern"]
        first = shapes[0] if shapes else min(near, key=lambda one: one.order)
        return [first, *(one for one in ranked if one is not first)]

    def _settled(self, inside: Sequence[Contender], outside: Sequence[Contender]) -> Searched:
        """Return the pairs to certify: the best inside the space; where it leaks as it seems, its
        simplest form, else that of one outside which does."""
        settings = self._settings
        tried, beyond = self._judged(inside), self._judged(outside)
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
        leading = [*tried[:_LEADERS], *beyond[:_LEADERS]]
        leaders = tuple(
            Leader(
                d1=shortened(repr(one.proposal.d1), _LONGEST_LEADER),
                d2=shortened(repr(one.proposal.d2), _LONGEST_LEADER),
                why=one.proposal.why,
                inside=one.proposal.inside,
                estimate=one.estimate,
                draws=one.draws,
            )
            for one in leading
        )
        return Searched(
            space=settings.space.words(),
            adjacency=settings.adjacency.describe(),
            pairs=len(self._pairs),
            refused=len(self._refused),
            refusal=self._refusal,
            draws=self._drawing.draws,
            leaders=leaders,
            found=tuple(found),
            outside=tuple(not self._is_inside(*pair) for pair in found),
            shrunk=is_shrunk,
            one_by_one=any(one.is_alone for one in used),
            kept=self._drawing.kept,
            note=self._note,
        )

    def _smallest(self, ranked: Sequence[Contender]) -> Contender | None:
        """Return the smallest pair that leaks for sure: fewer records are worth more than a larger
        bound, which the best pair shows."""
        clear = [one for one in ranked if self._is_clear(one)]
        few = [*sorted(clear, key=_size)[:_CONFIRMED], *clear[:1]]
        return next(filter(self._is_sure, few), None)

    def _judged(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return those that gave outputs."""
        return [
            one
            for one in contenders
            if one.draws and (one.d1.number, one.d2.number) not in self._refused
        ]

    def _simpler(self, best: Contender) -> tuple[Any, Any]:
        """Return the simplest pair found that seems to leak clearly; that one, if there is none."""
        draws = self._needed(best)
        # Of a rare event each try is dear: so many that a search would be all shrinking.
        most = self._drawing.draws + self._budget if self._is_of_answers else math.inf

        def leaks(d1: Any, d2: Any) -> bool:
            one, other = self._input(d1), self._input(d2)
            if one is None or other is None or one is other:
                return False
            inside = self._is_inside(d1, d2)
            proposal = Proposal(d1, d2, "", "random", inside)
            if (settings.inside and not inside) or self._drawing.draws > most:
                return False
            tried = self._tried(Contender(proposal, one, other, 0), draws, 1)
            return self._is_clear(tried)

        settings = self._settings
        given = best.proposal.d1, best.proposal.d2
        return shrunk(
            *given, settings.space, settings.adjacency, leaks, most_tries=_SHRINKING_TRIES
        )

    def _is_inside(self, d1: Any, d2: Any) -> bool:
        return self._settings.space.contains(d1) and self._settings.space.contains(d2)

    def _report(self, one: Contender) -> None:
        if self._notify is None:
            return
        spent, elapsed = self._drawing.draws, max(time.monotonic() - self._began, 1e-9)
        rate = spent / elapsed
        self._notify(
            Progress(
                name=self._spec.name,
                pair=f"search: {one.proposal.why}",
                draws=spent,
                budget=max(self._budget, spent),
                rate=rate,
                wealth=1.0,
                epsilon_lower=0.0,
                remaining=max(0.0, self._budget - spent) / max(rate, 1e-9),
            )
        )


def _tried_most(ranked: list[Contender]) -> list[Contender]:
    """Return contenders, those first that got through all rounds: they had most draws, or about as
    many. What the others seem to be is luck rather."""
    most = max(one.draws for one in ranked)
    return sorted(ranked, key=lambda one: 2 * one.draws < most)


def _size(one: Contender) -> int:
    """Return how many records a pair has."""
    return len(parts(one.proposal.d1)) + len(parts(one.proposal.d2))
