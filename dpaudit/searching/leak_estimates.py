"""Trials of a pair: estimate how much it leaks, and confirm a clear leak with new draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.objective import Objective, best_predicted
from dpaudit.attacks.scorers import scorers_for
from dpaudit.attacks.single_columns import one_dimensional, single_columns
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.user_attacks import load_attacks
from dpaudit.attacks.weighted_sums import mean_differences
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.levels.level_map import IntArray
from dpaudit.levels.rule_tables import evidence_of, guesses_of, largest, predicted_growth
from dpaudit.searching.search_settings import SearchSettings
from dpaudit.searching.trials import (
    LUCK,
    MIN_DRAWS,
    MIN_FIRST_DRAWS,
    Budget,
    Contender,
    Drawing,
    Inputs,
    paired,
)

Notify = Callable[[Progress], None]

# If the mechanism raises an exception in a batch of draws, the draws are made one by one. Then each
# input gets at most this number of draws, since single calls are slow.
MAX_ONE_BY_ONE = 2_000
# A leak counts as clear if its evidence (a log-likelihood ratio, in nats) exceeds log(1/α) by this
# number, where α is the false-alarm probability. The best of many pairs and scores rarely exceeds
# it by chance.
_EVIDENCE_MARGIN = 10.0
# The margin for evidence that was measured on other draws than those that chose the event.
_MEASURED_MARGIN = 4.0
# Pairs of vectors of query answers are compared by a predicted lower bound on ε: the expected bound
# minus this number of standard errors.
_STANDARD_ERRORS = 2.5
# The upper end of an estimate lies this number of standard errors above it: 95 % of such intervals
# contain the ε of their event.
_UPPER_DEVIATIONS = 1.645
# Scorers that are fast on outputs with many columns. Only these are used in the first round of
# trials, after which most pairs are dropped.
_QUICK: tuple[Scorer, ...] = (one_dimensional, single_columns, mean_differences, atoms)


@dataclass(frozen=True, slots=True)
class _Estimates:
    """Estimates of the leak of a pair; the fields are those of `Contender`."""

    evidence: float = 0.0
    estimate: float = 0.0
    hope: float = 0.0
    upper: float = math.nan


class Judge:
    """Estimates from draws how much a pair of inputs leaks.

    spec: audit that follows the search. A leak counts only if it refutes the claim of this audit.
    is_of_answers: whether inputs are query answers. Their bound is predicted with a small safety
        margin. For datasets, whose bounds vary more, the margin is larger: then more pairs count as
        equally good, and the simplest of them wins.
    """

    def __init__(self, spec: AuditSpec, drawing: Drawing, *, is_of_answers: bool) -> None:
        users = (
            load_attacks(spec.statistics.attacks, travels=False) if spec.statistics.attacks else ()
        )
        self._scorers: tuple[Scorer, ...] = (*scorers_for(spec.switches), *users)
        self._points, self._drawing = spec.tested.points(), drawing
        self._objective = Objective(self._points[0], spec.sampling.samples)
        self._is_of_answers = is_of_answers
        self._known: dict[tuple[Any, ...], _Estimates] = {}

    def tried(self, contender: Contender, draws: int, *, thorough: bool) -> Contender:
        """Return the pair with estimates from `draws` draws of each input. The same draws choose
        the events and are counted. The first round, which is not `thorough`, uses only the fast
        scorers. Raises MechanismError."""
        return self._judged(
            contender, draws, self._scorers if thorough else _QUICK, self._estimated
        )

    def measured(self, contender: Contender, draws: int) -> Contender:
        """Return the pair with estimates, as `tried` does, but with the evidence and an upper end
        of ε from draws that did not choose the events. The events are chosen on one half of the
        draws and counted in the other, and vice versa. Raises MechanismError."""
        return self._judged(contender, draws, self._scorers, self._measured)

    def _judged(
        self,
        contender: Contender,
        draws: int,
        scorers: Sequence[Scorer],
        estimated: Callable[[Contender, int, Sequence[Scorer]], _Estimates],
    ) -> Contender:
        for side in (contender.d1, contender.d2):
            self._drawing.fill(side, draws)
        if contender.d1.only_raises and contender.d2.only_raises:
            return replace(contender, draws=2 * draws)
        key = (*contender.key, contender.d1.is_alone, draws, len(scorers), estimated.__name__)
        if key not in self._known:
            self._known[key] = estimated(contender, draws, scorers)
        known = self._known[key]
        return replace(
            contender,
            evidence=known.evidence,
            estimate=known.estimate,
            hope=known.hope,
            upper=known.upper,
            draws=2 * draws,
        )

    def _estimated(self, contender: Contender, draws: int, scorers: Sequence[Scorer]) -> _Estimates:
        """Return estimates without an upper end; all are 0 if the scorers find no event."""
        selection = paired(contender.d1, contender.d2, draws)
        candidates = [candidate for scorer in scorers for candidate in scorer(selection)]
        evidence = max((self._growth(candidate)[0] for candidate in candidates), default=0.0)
        if _are_certain(selection):
            return _Estimates(max(0.0, evidence), math.inf, math.inf)
        objective = self._objective
        estimate = max(
            (best_predicted(candidate, objective) for candidate in candidates), default=0.0
        )
        hope = estimate
        if self._is_of_answers:
            hope = max((self._bound(candidate)[0] for candidate in candidates), default=0.0)
        return _Estimates(max(0.0, evidence), estimate, hope)

    def _measured(self, contender: Contender, draws: int, scorers: Sequence[Scorer]) -> _Estimates:
        """Return estimates with evidence from draws that did not choose the events."""
        # Each candidate has two rules: one with the largest evidence, which may be about a rare
        # event, and one with the largest bound.
        estimates = self._estimated(contender, draws, scorers)
        half = draws // 2
        parts = (
            paired(contender.d1, contender.d2, half),
            paired(contender.d1, contender.d2, draws, half),
        )
        counts: dict[tuple[int, int, str], _HeldOutGuesses] = {}
        bounds: dict[tuple[int, int, str], float] = {}
        for learning, counted in (parts, parts[::-1]):
            for number, scorer in enumerate(scorers):
                for index, candidate in enumerate(scorer(learning)):
                    likely, lasting = (number, index, "likely"), (number, index, "lasting")
                    bound, rule = self._bound(candidate)
                    bounds[lasting] = max(bound, bounds.get(lasting, -math.inf))
                    levels = candidate.level_map()
                    reached = levels(counted.outcomes)
                    for key, best in ((likely, self._growth(candidate)[1]), (lasting, rule)):
                        guesses = guesses_of(best, levels.levels)[reached]
                        counts.setdefault(key, _HeldOutGuesses()).add(guesses, counted.is_d1)
        if not counts:
            return replace(estimates, evidence=0.0)
        evidence = {key: guesses.evidence(self._points) for key, guesses in counts.items()}
        key = max(evidence, key=lambda key: evidence[key])
        if evidence[key] < LUCK:
            key = max(bounds, key=lambda key: bounds[key])
        upper = math.inf if estimates.estimate == math.inf else counts[key].upper(self._points[0])
        return replace(estimates, evidence=max(evidence.values()), upper=upper)

    def _growth(self, candidate: Candidate) -> tuple[float, tuple[int, int]]:
        """Return (evidence in nats, rule) of the rule with the largest evidence."""
        tables = (predicted_growth(candidate.table, point) for point in self._points)
        return max((float(table.max()), largest(table)) for table in tables)

    def _bound(self, candidate: Candidate) -> tuple[float, tuple[int, int]]:
        """Return (bound, rule) of the rule with the largest bound predicted at a small margin."""
        bounds = self._objective.predicted_bounds(candidate.table, _STANDARD_ERRORS)
        return float(bounds.max()), largest(bounds)


class _HeldOutGuesses:
    """Right and wrong guesses of rules about draws that had no part in the choice of the rules."""

    def __init__(self) -> None:
        self.right = self.wrong = self.draws = 0
        self.h = 0.5

    def add(self, guesses: IntArray, is_d1: NDArray[np.bool_]) -> None:
        """Count the guesses of a rule about some draws: 1 for d1, -1 for d2, 0 for none."""
        truth = np.where(is_d1, 1, -1)
        self.right += int((guesses == truth).sum())
        self.wrong += int((guesses == -truth).sum())
        self.draws += len(guesses)
        if guesses.min(initial=0) < 0 < guesses.max(initial=0):
            self.h = 1.0

    def evidence(self, points: Sequence[ProfilePoint]) -> float:
        """Return the evidence against a claim, in nats."""
        right, wrong = np.array(float(self.right)), np.array(float(self.wrong))
        return max(float(evidence_of(right, wrong, point, self.draws, self.h)) for point in points)

    def upper(self, point: ProfilePoint) -> float:
        """Return the upper end of a 95 % interval of ε: the log-odds of Wilson's bound."""
        right = max(0.0, self.right - self.h * point.delta * self.draws)
        total, z = right + self.wrong, _UPPER_DEVIATIONS
        if self.wrong == 0 or total == 0:
            return math.inf
        share = right / total
        spread = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
        high = (share + z**2 / (2 * total) + spread) / (1 + z**2 / total)
        return math.log(high / (1 - high))


def _are_certain(selection: SelectionDraws) -> bool:
    """Return whether each input has a single output, and the two outputs differ."""
    keys = [selection.outcomes.take(selection.is_d1 == side).keys() for side in (True, False)]
    return all((outputs == outputs[0]).all() for outputs in keys) and keys[0][0] != keys[1][0]


class Confirming:
    """Tries pairs of inputs, and confirms that they leak.

    pairs: keys of the tried pairs that the report counts.
    enough: evidence from which a leak counts as clear.
    claimed: claimed ε at the δ for which estimates are made.
    is_found: whether a pair has leaked clearly, and again in new draws. The caller may set it back
        to False. It stays False if the mechanism makes many draws in one call.
    """

    def __init__(
        self,
        settings: SearchSettings,
        spec: AuditSpec,
        drawing: Drawing,
        inputs: Inputs,
        budget: Budget,
        notify: Notify | None,
    ) -> None:
        self.settings, self.relation = settings, settings.relation
        self.drawing, self.inputs, self.budget = drawing, inputs, budget
        self._spec, self._notify = spec, notify
        self.pairs: set[tuple[int, int]] = set()
        self.enough = math.log(1 / spec.alpha) + _EVIDENCE_MARGIN
        self.is_found = False
        self._usual_types = _types_in(settings.space.usual())
        self._refused: dict[tuple[int, int], str] = {}
        self._judge = Judge(spec, drawing, is_of_answers=self.relation.is_of_answers)
        self._least = min(point.epsilon for point in spec.tested.points())
        self.claimed = spec.tested.points()[0].epsilon
        self._confirmed: dict[tuple[tuple[int, int], int], bool] = {}

    @property
    def refusals(self) -> list[str]:
        """Error messages of the pairs in `pairs` without outputs, in the order of the trials."""
        return [words for key, words in self._refused.items() if key in self.pairs]

    def measured(self, contender: Contender, draws: int) -> Contender:
        """Return a pair with its estimates from `draws` draws per input, as in the last round."""
        return self.tried(contender, draws, 1, is_last=True)

    def tried(
        self, contender: Contender, draws: int, number: int, *, is_last: bool = False
    ) -> Contender:
        """Return a pair with its estimates from a trial with `draws` draws of each input. `number`
        is the round, from 0. In the last round, the estimates are those of `Judge.measured`."""
        if contender.proposal.inside or self.settings.outside:
            self.pairs.add(contender.key)
        try:
            tried = (
                self._judge.measured(contender, draws)
                if is_last
                else self._judge.tried(contender, draws, thorough=number > 0)
            )
        except MechanismError as error:
            if self.drawing.has_alone and not contender.d1.is_alone:
                # In a batch, an exception ends all draws. `alone` returns an input whose draws are
                # made one by one, so that an exception is only one of the outcomes.
                alone = self.inputs.alone
                contender = replace(contender, d1=alone(contender.d1), d2=alone(contender.d2))
                return self.tried(contender, min(draws, MAX_ONE_BY_ONE), number, is_last=is_last)
            self._refused[contender.key] = str(error)
            return replace(contender, evidence=-1.0)
        if tried.d1.only_raises and tried.d2.only_raises:
            self._refused[contender.key] = tried.d1.words
        elif self._spec.sampling.on_error == "fail" and (tried.d1.raised or tried.d2.raised):
            self._refused[contender.key] = tried.d1.words or tried.d2.words
            return replace(tried, evidence=-1.0)
        tried = replace(tried, has_wrong_type=self._has_wrong_type(tried))
        if self.drawing.single_draws and not (self.is_found or tried.has_wrong_type):
            self.is_found = self.is_sure(tried)
        self._report(tried)
        return tried

    def _has_wrong_type(self, contender: Contender) -> bool:
        """Return whether a tried pair only shows that the mechanism rejects a type of values."""
        # It always raises a TypeError or AttributeError for exactly one input, of which some column
        # has a type that it has neither in the other input nor in the usual input of the space.
        if contender.d1.has_wrong_type == contender.d2.has_wrong_type:
            return False
        d1, d2 = contender.proposal.d1, contender.proposal.d2
        wrong, counterpart = (d1, d2) if contender.d1.has_wrong_type else (d2, d1)
        return not _types_in(wrong) <= _types_in(counterpart) | self._usual_types

    def always_raises(self, dataset: Any) -> bool | None:
        """Return whether the mechanism raises an exception in each of a few draws for a dataset.
        Return None if no draw can be made."""
        entry = self.inputs.of(dataset)
        for variant in filter(None, (entry, entry and self.inputs.alone(entry))):
            try:
                self.drawing.fill(variant, MIN_DRAWS)
            except MechanismError:
                if self.drawing.has_alone:
                    continue
                return None
            return variant.only_raises
        return None

    def with_outputs(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the pairs that were tried and for which the mechanism gave outputs."""
        return [
            contender
            for contender in contenders
            if contender.draws and contender.key not in self._refused
        ]

    def ranked(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the pairs, best first (`Contender.rank`)."""
        return sorted(contenders, key=lambda contender: contender.rank(self.enough), reverse=True)

    def is_over(self) -> bool:
        """Return whether to end a round of trials early. It ends when time is up. If each call
        makes one draw, which may be slow, it also ends when a pair has leaked clearly, and again in
        new draws."""
        return self.budget.is_out_of_time() or self.is_found

    def is_clear(self, contender: Contender) -> bool:
        """Return whether a tried pair leaks clearly. Its evidence must be at least `enough`
        (somewhat less after the last round), and its estimate of ε above the claimed ε."""
        # The best of many scores may have large evidence by luck alone. So the estimate of ε must
        # also be above the claim. Evidence of the last round owes nothing to the choice of a score.
        margin = 0.0 if math.isnan(contender.upper) else _EVIDENCE_MARGIN - _MEASURED_MARGIN
        return contender.evidence >= self.enough - margin and contender.estimate > self._least

    def is_sure(self, contender: Contender) -> bool:
        """Return whether the leak of a tried pair is clear in its draws, and again in new draws.
        The best of many pairs may only have had lucky draws. Without this check, such a pair would
        end the search before it tries pairs outside the space, and hide their real leaks."""
        if not self.is_clear(contender):
            return False
        # A pair that has got more draws is checked with more draws, too.
        key = contender.key, contender.draws
        if key not in self._confirmed:
            again = replace(
                contender, d1=self.inputs.again(contender.d1), d2=self.inputs.again(contender.d2)
            )
            try:
                again = self._judge.tried(again, self.needed(contender), thorough=True)
            except MechanismError:
                return False
            self._confirmed[key] = self.is_clear(again)
        return self._confirmed[key]

    def needed(self, contender: Contender) -> int:
        """Return the number of new draws of each input that a check of a leak needs. With it, the
        expected evidence is twice `enough`. It is at least `MIN_FIRST_DRAWS`, but at most twice the
        draws of each input that the pair has had."""
        past_draws = contender.draws // 2
        needed = math.ceil(past_draws * 2 * self.enough / max(contender.evidence, 1e-9))
        return min(2 * past_draws, max(MIN_FIRST_DRAWS, needed))

    def _report(self, contender: Contender) -> None:
        if self._notify is None or not self.budget.speed():
            return
        spent, budget = self.drawing.draws, self.budget.draws
        self._notify(
            Progress(
                name=self._spec.name,
                pair=f"search: {contender.proposal.why}",
                draws=spent,
                budget=max(budget, spent),
                rate=self.budget.speed(),
                wealth=1.0,
                epsilon_lower=0.0,
                remaining=self.budget.remaining_seconds(),
            )
        )


def _types_in(value: Any) -> frozenset[tuple[str, str]]:
    """Return the set of (path, type) of all values in a dataset, such as `('[].age', 'number')`."""
    return frozenset(_types(value, ""))


def _types(value: Any, column: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield column, "table"
        for name, part in value.items():
            yield from _types(part, f"{column}.{name}")
    elif isinstance(value, list | tuple):
        yield column, "list"
        for part in value:
            yield from _types(part, f"{column}[]")
    elif value is None or isinstance(value, str):
        yield column, "null" if value is None else "text"
    else:
        yield column, "number" if isinstance(value, int | float) else type(value).__name__
