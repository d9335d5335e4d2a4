"""Trials of a pair of inputs: estimate how much it leaks, and confirm a clear leak with new
draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.attacks.objective import Objective, best_predicted
from dpaudit.attacks.scorers import scorers_for
from dpaudit.attacks.single_columns import one_dimensional, single_columns
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.user_attacks import load_attacks
from dpaudit.attacks.weighted_sums import mean_differences
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.levels.candidates import Scorer
from dpaudit.levels.rule_tables import predicted_growth
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.trials import (
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
# Pairs of vectors of query answers are compared by a predicted lower bound on ε: the expected bound
# minus this number of standard errors.
_STANDARD_ERRORS = 2.5
# Scorers that are fast on outputs with many columns. Only these are used in the first round of
# trials, after which most pairs are dropped.
_QUICK: tuple[Scorer, ...] = (one_dimensional, single_columns, mean_differences, atoms)


class Judge:
    """Estimates from draws how much a pair of inputs leaks.

    spec: audit that follows the search. A leak counts only if it refutes the claim of this audit.
    is_of_answers: whether the inputs are vectors of query answers. Pairs of vectors are compared by
    a predicted bound with a small safety margin. Pairs of datasets have bounds that vary more, so
    their margin is larger: then more pairs are tied, and the simplest of them wins.
    """

    def __init__(self, spec: AuditSpec, drawing: Drawing, *, is_of_answers: bool) -> None:
        users = (
            load_attacks(spec.statistics.attacks, travels=False) if spec.statistics.attacks else ()
        )
        self._scorers: tuple[Scorer, ...] = (*scorers_for(spec.switches), *users)
        self._points, self._drawing = spec.tested.points(), drawing
        self._objective = Objective(self._points[0], spec.sampling.samples)
        self._is_of_answers = is_of_answers
        self._known: dict[tuple[Any, ...], tuple[float, float, float, float]] = {}

    def tried(self, one: Contender, draws: int, *, thorough: bool) -> Contender:
        """Make draws until each input of a proposed pair has `draws` draws. Return the pair with
        estimates of its leak from these draws. Raises MechanismError.

        one: the pair. A `Contender` is a proposed pair with the estimates of its latest trial.
        thorough: True to use all scorers (functions that look for events in the draws); False to
            use only the fast ones, as in the first round of trials.
        """
        for side in (one.d1, one.d2):
            self._drawing.fill(side, draws)
        if one.d1.only_raises and one.d2.only_raises:
            return replace(one, draws=2 * draws)
        key = (*one.key, one.d1.is_alone, draws, thorough)
        if key not in self._known:
            scorers = self._scorers if thorough else _QUICK
            self._known[key] = self._estimated(paired(one.d1, one.d2, draws), scorers)
        evidence, estimate, hope, error = self._known[key]
        return replace(
            one, evidence=evidence, estimate=estimate, hope=hope, error=error, draws=2 * draws
        )

    def _estimated(
        self, selection: SelectionDraws, scorers: Sequence[Scorer]
    ) -> tuple[float, float, float, float]:
        """Return (evidence, estimate, hope, standard error of the estimate) from the draws of a
        pair. All are 0 if the scorers (functions that look for events in the draws) find no event,
        for example if all outputs differ.

        The evidence is the log-likelihood of the draws minus the largest log-likelihood that the
        claim allows, in nats. The estimate is the lower bound on ε that an audit is predicted to
        certify: the expected bound minus a safety margin. For pairs of vectors of query answers,
        the hope is such a bound with a smaller margin, 2.5 standard errors (`_STANDARD_ERRORS`);
        for other pairs, it equals the estimate.
        """
        candidates = [one for scorer in scorers for one in scorer(selection)]
        evidence = max(
            (
                float(np.max(predicted_growth(one.table, point)))
                for one in candidates
                for point in self._points
            ),
            default=0.0,
        )
        objective = self._objective
        estimates = [best_predicted(one, objective) for one in candidates]
        estimate = hope = max(estimates, default=0.0)
        error = 0.0
        if estimate > 0:
            table = candidates[estimates.index(estimate)].table
            lowered = objective.predicted_bounds(table, _STANDARD_ERRORS)
            rule = np.unravel_index(np.argmax(lowered), lowered.shape)
            error = (
                float(objective.predicted_bounds(table, 0.0)[rule] - lowered[rule])
                / _STANDARD_ERRORS
            )
        if self._is_of_answers:
            bounds = (
                float(np.max(objective.predicted_bounds(one.table, _STANDARD_ERRORS)))
                for one in candidates
            )
            hope = max(bounds, default=0.0)
        return max(0.0, evidence), estimate, hope, error


class Confirming:
    """Tries pairs of inputs, and confirms that they leak.

    pairs: keys of the tried pairs that the report counts. The key of a pair is (number of d1,
    number of d2); each input of the search has a number.
    enough: evidence (log-likelihood ratio, in nats) from which a leak counts as clear.
    is_found: whether a pair has leaked clearly, and again in new draws, since the caller last set
    this field to False. It stays False if the mechanism makes many draws in one call.
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
        self._confirmed: dict[tuple[tuple[int, int], int], bool] = {}

    @property
    def refusals(self) -> list[str]:
        """Error messages of the tried pairs that gave no outputs, in the order of the trials. Only
        pairs that the report counts are included."""
        return [words for key, words in self._refused.items() if key in self.pairs]

    def tried(self, one: Contender, draws: int, number: int) -> Contender:
        """Return a proposed pair with its estimates after a trial with `draws` draws of each input.

        one: the pair. A `Contender` is a proposed pair with the estimates of its latest trial.
        number: index of the round of trials, from 0.
        """
        if one.proposal.inside or self.settings.outside:
            self.pairs.add(one.key)
        try:
            tried = self._judge.tried(one, draws, thorough=number > 0)
        except MechanismError as error:
            if self.drawing.has_alone and not one.d1.is_alone:
                # In a batch, an exception ends all draws. `alone` returns an input whose draws are
                # made one by one, so that an exception is only one of the outcomes.
                alone = self.inputs.alone
                one = replace(one, d1=alone(one.d1), d2=alone(one.d2))
                return self.tried(one, min(draws, MAX_ONE_BY_ONE), number)
            self._refused[one.key] = str(error)
            return replace(one, evidence=-1.0)
        if tried.d1.only_raises and tried.d2.only_raises:
            self._refused[one.key] = tried.d1.words
        elif self._spec.sampling.on_error == "fail" and (tried.d1.raised or tried.d2.raised):
            self._refused[one.key] = tried.d1.words or tried.d2.words
            return replace(tried, evidence=-1.0)
        tried = replace(tried, has_wrong_type=self._has_wrong_type(tried))
        if self.drawing.single_draws and not (self.is_found or tried.has_wrong_type):
            self.is_found = self.is_sure(tried)
        self._report(tried)
        return tried

    def _has_wrong_type(self, one: Contender) -> bool:
        """Return whether a tried pair only shows that the mechanism rejects a type of values.

        True if the mechanism always raises a TypeError or AttributeError for exactly one input, and
        some column of this input has values of a new type. A type is new in a column if this column
        has it neither in the other input nor in the usual input of the space (`Space.usual`), at
        which bugs are unlikely.
        """
        if one.d1.has_wrong_type == one.d2.has_wrong_type:
            return False
        d1, d2 = one.proposal.d1, one.proposal.d2
        wrong, other = (d1, d2) if one.d1.has_wrong_type else (d2, d1)
        return not _types_in(wrong) <= _types_in(other) | self._usual_types

    def always_raises(self, dataset: Any) -> bool | None:
        """Return whether the mechanism raises an exception in each of a few draws for a dataset;
        None if no draw can be made, so that the answer is unknown."""
        one = self.inputs.of(dataset)
        for given in filter(None, (one, one and self.inputs.alone(one))):
            try:
                self.drawing.fill(given, MIN_DRAWS)
            except MechanismError:
                if self.drawing.has_alone:
                    continue
                return None
            return given.only_raises
        return None

    def with_outputs(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the pairs that were tried and for which the mechanism gave outputs."""
        return [one for one in contenders if one.draws and one.key not in self._refused]

    def ranked(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the pairs, best first (`Contender.rank`)."""
        return sorted(contenders, key=lambda one: one.rank(self.enough), reverse=True)

    def is_over(self) -> bool:
        """Return whether to end a round of trials early.

        A round ends when time is up. If the mechanism is called once for each draw, which may be
        slow, the round also ends when a pair has leaked clearly and new draws have confirmed it.
        """
        return self.budget.is_out_of_time() or self.is_found

    def is_clear(self, one: Contender) -> bool:
        """Return whether a tried pair leaks clearly: its draws give enough evidence against the
        claim (at least `enough`, in nats), and its estimate of ε is above the claimed ε."""
        # The best of many scores may have large evidence by luck alone. So the estimate of ε must
        # also be above the claim.
        return one.evidence >= self.enough and one.estimate > self._least

    def is_sure(self, one: Contender) -> bool:
        """Return whether the leak of a tried pair is clear in its draws, and again in new draws.

        The best of many pairs may have had lucky draws. Without this check, a lucky pair would end
        the search before it tries pairs outside the space (the set of possible inputs), and hide
        their real leaks.
        """
        if not self.is_clear(one):
            return False
        key = one.key, one.draws  # a pair that has got more draws is checked with more draws, too
        if key not in self._confirmed:
            again = replace(one, d1=self.inputs.again(one.d1), d2=self.inputs.again(one.d2))
            try:
                again = self._judge.tried(again, self.needed(one), thorough=True)
            except MechanismError:
                return False
            self._confirmed[key] = self.is_clear(again)
        return self._confirmed[key]

    def needed(self, one: Contender) -> int:
        """Return the number of new draws of each input that a check of a leak needs. With this
        number, the expected evidence is twice the evidence that counts as clear. The number is at
        least `MIN_FIRST_DRAWS`, but at most half of the draws of each input that the pair has had.
        """
        half = one.draws // 2
        needed = math.ceil(half * min(1.0, 2 * self.enough / max(one.evidence, 1e-9)))
        return min(half, max(MIN_FIRST_DRAWS, needed))

    def _report(self, one: Contender) -> None:
        if self._notify is None:
            return
        spent, budget = self.drawing.draws, self.budget.draws
        rate = spent / max(self.budget.elapsed(), 1e-9)
        self._notify(
            Progress(
                name=self._spec.name,
                pair=f"search: {one.proposal.why}",
                draws=spent,
                budget=max(budget, spent),
                rate=rate,
                wealth=1.0,
                epsilon_lower=0.0,
                remaining=max(0.0, budget - spent) / max(rate, 1e-9),
            )
        )


def _types_in(value: Any) -> frozenset[tuple[str, str]]:
    """Return the set of (path, type) of all values in a dataset. A list of rows with ages contains
    `('[].age', 'number')`, for example. The type is null, text, number, list, table or the name of
    a class."""
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
