"""Whether a pair leaks: by some draws and, where these show it clearly, by fresh ones, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dpaudit.attacks.learning import scorers_for
from dpaudit.attacks.user_attacks import load_attacks
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.errors import MechanismError
from dpaudit.searching.budget import BARELY, Budget
from dpaudit.searching.screening import FEWEST, Contender, Judge
from dpaudit.searching.settings import SearchSettings
from dpaudit.searching.space import types_in
from dpaudit.searching.trials import Drawing, Inputs

Notify = Callable[[Progress], None]

# Draws of either input that are made one by one where the mechanism fails for a batch, at most.
MOST_ALONE = 2_000
# Evidence beyond 1/α, in logs, that is more than the luck of the best of so many pairs and orders.
_LUCK = 10.0


class Confirming:
    """Tries pairs, and confirms that they leak.

    pairs: those tried that count.  refused: why some pairs gave no outputs.  enough: evidence that
    is clear.  is_found: whether a pair leaked clearly since rounds last began.
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
        self._spec, self._drawing, self._inputs = spec, drawing, inputs
        self._budget, self._notify = budget, notify
        self.pairs: set[tuple[int, int]] = set()
        self._counts_outside = settings.outside
        self._usual_types = types_in(settings.space.usual())
        self.refused: dict[tuple[int, int], str] = {}
        attacks = scorers_for(
            floating_point=spec.floating_point, timing=False, repeated=spec.runs > 1
        )
        users = load_attacks(spec.attacks, travels=False) if spec.attacks else ()
        # Hopeful of answers. Of records, which vary more, careful bounds tie more often: then the
        # simplest wins.
        self._judge = Judge(
            spec.tested.points(), spec.samples, drawing, (*attacks, *users), settings.is_of_answers
        )
        self.enough = math.log(1 / spec.alpha) + _LUCK
        self._least = min(point.epsilon for point in spec.tested.points())
        self.is_found = False
        self._confirmed: dict[tuple[int, int], bool] = {}

    @property
    def refusals(self) -> list[str]:
        """Why some of the pairs gave no outputs, in the order of their trials."""
        return [words for key, words in self.refused.items() if key in self.pairs]

    def tried(self, one: Contender, draws: int, number: int) -> Contender:
        """Return a contender after so many draws of either input, in the round with this number."""
        key = (one.d1.number, one.d2.number)
        if one.proposal.inside or self._counts_outside:
            self.pairs.add(key)
        try:
            tried = self._judge.tried(one, draws, thorough=number > 0)
        except MechanismError as error:
            if self._drawing.has_alone and not one.is_alone:
                # An exception is no outcome of a batch, but one of a draw.
                alone = replace(one, d1=self._inputs.alone(one.d1), d2=self._inputs.alone(one.d2))
                return self.tried(alone, min(draws, MOST_ALONE), number)
            self.refused[key] = str(error)
            return replace(one, evidence=-1.0)
        if tried.d1.only_raises and tried.d2.only_raises:
            self.refused[key] = tried.d1.words
        elif self._spec.on_error == "fail" and (tried.d1.raised or tried.d2.raised):
            self.refused[key] = tried.d1.words or tried.d2.words
            return replace(tried, evidence=-1.0)
        tried = replace(tried, has_wrong_type=self._has_wrong_type(tried))
        self.is_found |= self.is_clear(tried) and not tried.has_wrong_type
        self._report(tried)
        return tried

    def _has_wrong_type(self, one: Contender) -> bool:
        """Return whether one input alone raises, always, a TypeError or AttributeError, and has
        values of a type that neither the other input nor a usual one has."""
        if one.d1.has_wrong_type == one.d2.has_wrong_type:
            return False
        d1, d2 = one.proposal.d1, one.proposal.d2
        wrong, other = (d1, d2) if one.d1.has_wrong_type else (d2, d1)
        return not types_in(wrong) <= types_in(other) | self._usual_types

    def always_raises(self, dataset: Any) -> bool | None:
        """Return whether a few draws for a dataset all raise; None where none can be made."""
        one = self._inputs.of(dataset)
        for given in filter(None, (one, one and self._inputs.alone(one))):
            try:
                self._drawing.fill(given, BARELY)
            except MechanismError:
                if self._drawing.has_alone:
                    continue
                return None
            return given.only_raises
        return None

    def judged(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return those that gave outputs."""
        return [
            one
            for one in contenders
            if one.draws and (one.d1.number, one.d2.number) not in self.refused
        ]

    def is_over(self) -> bool:
        """Whether to end before all had their turn: when time is up; of a mechanism that is called
        once for each draw, and so may be slow, when a pair is found that leaks for sure."""
        return self._budget.is_out_of_time() or (self.is_found and self._drawing.single_draws)

    def is_clear(self, one: Contender) -> bool:
        """Return whether a leak is clear by the draws that were made."""
        # What promises no bound above the claim is the luck of the best of many orders.
        return one.evidence >= self.enough and one.estimate > self._least

    def is_sure(self, one: Contender) -> bool:
        """Return whether a leak is clear, and is so on fresh draws, too: the best of many pairs may
        be lucky, and would hide those outside the space."""
        if not self.is_clear(one):
            return False
        key = (one.d1.number, one.d2.number)
        if key not in self._confirmed:
            again = replace(one, d1=self._inputs.again(one.d1), d2=self._inputs.again(one.d2))
            try:
                again = self._judge.tried(again, self.needed(one), thorough=True)
            except MechanismError:
                return False
            self._confirmed[key] = self.is_clear(again)
        return self._confirmed[key]

    def needed(self, one: Contender) -> int:
        """Return as many draws of either input as show a clear leak twice over."""
        half = one.draws // 2
        needed = math.ceil(half * min(1.0, 2 * self.enough / max(one.evidence, 1e-9)))
        return min(half, max(FEWEST, needed))

    def _report(self, one: Contender) -> None:
        if self._notify is None:
            return
        spent, elapsed = self._drawing.draws, max(self._budget.elapsed(), 1e-9)
        rate = spent / elapsed
        self._notify(
            Progress(
                name=self._spec.name,
                pair=f"search: {one.proposal.why}",
                draws=spent,
                budget=max(self._budget.draws, spent),
                rate=rate,
                wealth=1.0,
                epsilon_lower=0.0,
                remaining=max(0.0, self._budget.draws - spent) / max(rate, 1e-9),
            )
        )
