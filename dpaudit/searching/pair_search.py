"""A search for the pairs of inputs to audit. It proposes pairs, ranks them by rounds of trials, and
simplifies a leaking pair.

All draws of a search choose pairs and certify nothing. The audit that follows draws from other
random streams. Its pairs are fixed, and written to a file, before its first draw.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any

from dpaudit.auditing.options import MIN_SAMPLES, DefaultSamples
from dpaudit.auditing.pace import rate_enough, rate_of, with_chosen_samples
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Searched
from dpaudit.errors import DatasetError, MechanismError, Name, UsageError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching import saved_search
from dpaudit.searching.final_pairs import final_pairs
from dpaudit.searching.gathering import Gathering
from dpaudit.searching.leak_estimates import Confirming, Notify
from dpaudit.searching.proposals import KINDS, Outside, kind_outside, proposals
from dpaudit.searching.ranking import Ranking
from dpaudit.searching.search_settings import SearchSettings, check_where, invalid
from dpaudit.searching.spaces import parse_space
from dpaudit.searching.trials import (
    COMPARING_SHARE,
    NOTED_SHARE,
    PROPOSED_SHARE,
    RAISING_SHARE,
    SEARCH_SHARE,
    Budget,
    Contender,
    Drawing,
    Input,
    Inputs,
    one_by_one,
)
from dpaudit.wording import counted

# If pairs outside the space are tried, too, the pairs inside get this share of the draws for
# proposed pairs (`PROPOSED_SHARE`), and the pairs outside get the rest.
_INSIDE_SHARE = 2 / 3
# Smallest size of a first round of trials (`Budget.draws_for`) that is divided among the kinds of
# values outside the space, such as NaN. With fewer draws, no pair of some kind would leak clearly.
_MIN_DIVIDED = 300
# The speed of the mechanism is measured for the first of at most _PACED_INPUTS inputs that does not
# raise, in calls for at most _MAX_PACED draws. The inputs have numbers from _PACED_NUMBER on, which
# no other input has.
_PACED_INPUTS, _PACED_NUMBER, _MAX_PACED = 8, 1 << 30, 4_096
# Largest value of the option `keep`, the number of pairs that the audit certifies.
_MAX_KEEP = 100


def neighbour_search(
    space: Any,
    adjacency: Adjacency | None,
    *,
    form: str | None = None,
    inside: Any = False,
    outside: Any = False,
    keep: Any = 1,
    base: Path | None = None,
    elsewhere: bool = False,
) -> NeighbourSearch:
    """Return the search for the options that a user gives, which are those of `SearchSettings`.
    Import paths are relative to `base`. Raises UsageError for a wrong option, without an adjacency,
    and if no two inputs of the space are neighbours."""
    if adjacency is None:
        raise UsageError(
            "a search needs the relation between the inputs; give ",
            Name("adjacency"),
            ", such as add-remove",
            code="option-missing",
        )
    check_where(inside, outside)
    is_whole = isinstance(keep, Integral) and not isinstance(keep, bool)
    if not (is_whole and 1 <= keep <= _MAX_KEEP):
        raise invalid("keep", keep, f"a number of pairs, from 1 to {_MAX_KEEP}")
    search = NeighbourSearch(
        parse_space(space, base), adjacency, form, inside, outside, int(keep), elsewhere
    )
    search.relation.check_possible()
    return search


@dataclass(frozen=True, slots=True)
class NeighbourSearch(SearchSettings):
    """A search with its settings. It chooses the pairs of an audit that has none."""

    def find(self, spec: AuditSpec, on_progress: Notify | None) -> tuple[AuditSpec, Searched]:
        """Return the audit with the pairs that leak most, and the result of the search. Raises
        MechanismError if every input gives only exceptions."""
        began = time.monotonic()
        spec, searched, rate = saved_search.read(spec)
        if searched is None:
            requested = spec
            with Drawing(spec) as drawing:
                if isinstance(spec.sampling.samples, DefaultSamples) and not spec.sampling.time:
                    rate = self._rate(spec, drawing)
                    spec = with_chosen_samples(spec, rate)
                searched = _SearchRun(self, spec, drawing, on_progress).run()
            saved_search.write(requested, searched, rate)
        elif rate is not None:
            spec = with_chosen_samples(spec, rate)
        alone = one_by_one(spec) if searched.one_by_one else None
        spec = spec if alone is None else alone
        pairs = tuple(self.pair(d1, d2) for d1, d2 in searched.found)
        if spec.sampling.time is None:
            in_addition = COMPARING_SHARE if self.relation.is_of_answers else 0.0
            spent = min(
                searched.draws, int((1 + in_addition) * SEARCH_SHARE * spec.sampling.samples)
            )
            # The draws left are divided among the pairs. If one pair was made by simplifying
            # another pair, it gets no share, since it leaks in the same way.
            several = len(pairs) - searched.shrunk
            samples = max(MIN_SAMPLES, (spec.sampling.samples - spent) // several)
            sampling = replace(spec.sampling, samples=samples)
        else:
            left = spec.sampling.time - (time.monotonic() - began)
            sampling = replace(spec.sampling, time=max(spec.sampling.time / 2, left))
        return replace(spec, pairs=pairs, sampling=sampling), searched

    def _rate(self, spec: AuditSpec, drawing: Drawing) -> float:
        """Return the draws per second for the first proposed input that does not raise."""
        draws, samples = drawing.draws, spec.sampling.samples
        enough = rate_enough(samples, 1) if isinstance(samples, DefaultSamples) else 0.0
        source = proposals(self.relation, seed=spec.sampling.seed, inside_only=True)
        for number, proposal in enumerate(islice(source, _PACED_INPUTS)):
            with suppress(DatasetError):
                paced = Input(_PACED_NUMBER + number, self.formed(proposal.d1))
                drawing.fill(paced, 1)  # the first call may import modules
                if not paced.only_raises:
                    break
        else:  # the search itself says why
            return math.inf
        rate = rate_of(lambda size: drawing.fill(paced, paced.draws + size), 1, _MAX_PACED, enough)
        drawing.draws = draws
        return rate


class _SearchRun:
    """One search for the pairs that leak most. `run` may be called once."""

    def __init__(
        self, settings: SearchSettings, spec: AuditSpec, drawing: Drawing, notify: Notify | None
    ) -> None:
        self._settings, self._spec, self._drawing = settings, spec, drawing
        self._budget, self._inputs = Budget(spec, drawing), Inputs(settings.formed)
        self._gathering = Gathering(settings, spec, self._inputs, self._budget)
        self._confirming = Confirming(settings, spec, drawing, self._inputs, self._budget, notify)
        self._ranking = Ranking(self._confirming)

    def run(self) -> Searched:
        """Return the result of the search, with the pairs to certify. Raises MechanismError."""
        settings, confirming = self._settings, self._confirming
        self._drawing.warm(self._inputs.of(settings.space.usual()))
        self._budget.begin()
        contenders = self._gathering.gathered()
        if not contenders:
            raise DatasetError(
                f"no input of {settings.space.words()} can be handed over as {settings.form}: "
                f"{self._inputs.unformed}",
                code="form-impossible",
            )
        if self._spec.sampling.time is not None:
            self._budget.plan_by_clock(
                lambda index, draws: confirming.tried(contenders[index % len(contenders)], draws, 0)
            )
        inside = [contender for contender in contenders if contender.proposal.inside]
        outside = [contender for contender in contenders if not contender.proposal.inside]
        share = PROPOSED_SHARE * (_INSIDE_SHARE if inside and outside else 1.0)
        noted = self._gathering.beyond()
        # Pairs inside and outside the space are ranked separately. Otherwise, a leak outside the
        # space could hide a leak inside.
        best = self._best(inside, share, PROPOSED_SHARE - share + (NOTED_SHARE if noted else 0.0))
        is_enough = bool(best) and confirming.is_sure(best[0])
        beyond = [] if is_enough else self._by_kind(outside, PROPOSED_SHARE * (1 - _INSIDE_SHARE))
        if len(confirming.refusals) == len(confirming.pairs):
            pairs = counted(len(confirming.pairs), "pair")
            raise MechanismError(
                f"no output came for either input of the {pairs} that the search tried; the "
                f"first reason: {confirming.refusals[0]}; state a space that the mechanism "
                "accepts, or give it what it needs (",
                *(Name("params"), ", ", Name("as"), ")"),
                code="always-raises",
            )
        aside = [] if is_enough else self._by_kind(noted, NOTED_SHARE)
        return final_pairs(confirming, best, beyond, aside, self._gathering.note)

    def _by_kind(self, outside: list[Contender], share: float) -> list[list[Contender]]:
        """Return the tried pairs outside the space: one list, best first, for each kind of pair."""
        # A NaN mostly leaks more than a number beyond a bound, and would hide its leak. Numbers
        # beyond a bound get half of the draws, since their leaks are mostly smaller.
        if self._budget.draws_for(share) < _MIN_DIVIDED:
            return [self._ranking.halved(outside, share)]
        kinds: dict[Outside, list[Contender]] = {}
        for contender in outside:
            kinds.setdefault(kind_outside(contender.proposal, self._settings.space), []).append(
                contender
            )
        weights = {kind: len(kinds) - 1 if kind == "beyond" else 1 for kind in kinds}
        total = max(1, sum(weights.values()))
        return [
            self._ranking.halved(kinds[kind], share * max(1, weights[kind]) / total)
            for kind in KINDS
            if kind in kinds
        ]

    def _best(self, inside: list[Contender], share: float, reserved: float) -> list[Contender]:
        """Return the tried pairs inside, best first, and leave a share `reserved` of the draws."""
        confirming, ranking = self._confirming, self._ranking
        # After a clear leak, a larger leak is looked for only if the inputs are query answers. For
        # datasets of records, a small pair is worth more than a large bound. No larger leak is
        # looked for if the mechanism is called once for each draw, since it may be slow.
        is_wanted = confirming.relation.is_of_answers and not self._drawing.single_draws
        best = self._with_raising(ranking.halved(inside, share, to_last=True))
        if not best or (not is_wanted and confirming.is_sure(best[0])):
            return best
        is_clear = confirming.is_sure(best[0])
        if not is_clear:
            best = ranking.last_round(best, -reserved)
        if is_wanted and (is_clear or confirming.is_sure(best[0])):
            best = ranking.last_round(best, COMPARING_SHARE)
        return best

    def _with_raising(self, best: list[Contender]) -> list[Contender]:
        """Return the pairs and those for which only one input raises, ranked together."""
        if self._spec.sampling.on_error == "fail" or self._confirming.is_over():
            return best
        raising = self._gathering.raising(best, self._confirming.always_raises)
        return (
            self._ranking.merged(best, self._ranking.halved(raising, RAISING_SHARE))
            if raising
            else best
        )
