"""Attacks of the user's own: fitted, cross-fitted and cut into levels like all others.

An attack gets selection draws and nothing else, so that it cannot look at what certifies. The score
that it returns sees outcomes without their inputs; that it looks at each by itself is checked.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.attacks.one_dimensional import larger_for_d1
from dpaudit.draws import SelectionDraws
from dpaudit.errors import AttackError
from dpaudit.float_errors import user_errstate
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.scores import MOST_ROWS, Scored, cross_fitted
from dpaudit.outcomes import Outcomes
from dpaudit.wording import shown

Scorer = Callable[[Outcomes], ArrayLike]

_LOOKED_AT = 256
_SAME = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class UsersAttack:
    """An attack that somebody else wrote; raises AttackError when it fails.

    name: as reports call it. attack: has a method `fit`, or is such a function: from selection
        draws to a score, which takes outcomes and returns a number for each, the larger the more it
        is evidence for one of the inputs; NaN abstains. source: imports the attack, where it was
        imported; another process does so before it is sent a score. travels: whether it will be.
    """

    name: str
    attack: Any
    source: Callable[[], Any] | None = None
    travels: bool = False

    def __call__(self, selection: SelectionDraws) -> list[Candidate]:
        """Return the order by the attack's score."""
        held_out, kept, halves = cross_fitted(
            selection.size,
            MOST_ROWS,
            lambda rows: self._fitted(selection.take(rows)),
            lambda score, rows: score(selection.outcomes.take(rows)),
        )
        kept.check(selection.outcomes)
        if self.travels:
            pickle.dumps(kept)
        found = by_score(Scored(self.name, held_out, lambda: kept, halves), selection)
        if larger_for_d1(found.held_out[:-1]):
            return [found]
        turned, other = replace(kept, sign=-1.0), None if halves is None else -halves
        return [by_score(Scored(self.name, -held_out, lambda: turned, other), selection)]

    def _fitted(self, selection: SelectionDraws) -> UsersScore:
        try:
            # A copy, so that an attack may keep in itself what it has learned.
            attack = copy.deepcopy(self.attack)
            with user_errstate():
                scorer = getattr(attack, "fit", attack)(selection)
        except Exception as error:
            raise AttackError(
                f"the attack {self.name} raised {_words(error)} when it was fitted to "
                f"{selection.size} draws"
            ) from error
        if not callable(scorer):
            raise AttackError(
                f"the attack {self.name} returned {shown(scorer)} from fit; it must return a "
                "function from outcomes to scores"
            )
        return UsersScore(self.name, scorer, self.source)


@dataclass(frozen=True, slots=True, eq=False)
class UsersScore:
    """The score of a user's attack, with what it returns checked; negative where it is d2 that the
    attack has spoken for on selection draws."""

    name: str
    scorer: Scorer
    source: Callable[[], Any] | None = None
    sign: float = 1.0

    @property
    def columns(self) -> tuple[tuple[str, float], ...]:
        """What the score depends on, nobody but its author knows."""
        return ()

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        if outcomes.size == 0:
            return np.empty(0)
        try:
            with user_errstate():
                returned = self.scorer(outcomes)
            scores = np.asarray(returned, dtype=np.float64)
        except Exception as error:
            raise AttackError(
                f"the attack {self.name} raised {_words(error)} when it scored {outcomes.size} "
                "outcomes"
            ) from error
        if scores.shape != (outcomes.size,):
            raise AttackError(
                f"the attack {self.name} returned scores of shape {scores.shape} for "
                f"{outcomes.size} outcomes; it must return one number for each: "
                f"({outcomes.size},)"
            )
        return scores * self.sign

    def words(self) -> str:
        said = getattr(self.scorer, "words", None)
        what = said if isinstance(said, str) and said else f"that of the attack {self.name}"
        return f"is {what}" if self.sign > 0 else f"is minus {what}"

    def check(self, outcomes: Outcomes) -> None:
        """Raise AttackError for a score that does not depend on each outcome alone: draws of one
        input may come together, and would then be told apart by their company."""
        some = outcomes.take(slice(_LOOKED_AT))
        together, half = self(some), np.arange(some.size)[::-2]
        apart = self(some.take(half))
        if not np.allclose(together[half], apart, rtol=_SAME, atol=_SAME, equal_nan=True):
            raise AttackError(
                f"the attack {self.name} gives the same outcome another score among other "
                "outcomes; a score must depend on its outcome alone, so compute means and the "
                "like in fit"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            scorer = pickle.dumps(self.scorer)
        except Exception as error:
            raise AttackError(
                f"the score of the attack {self.name} cannot be sent to other processes "
                f"({_words(error)}); let fit return an instance of a class of its module, or use "
                "workers=1"
            ) from error
        return _restored, (self.name, scorer, self.source, self.sign)


def _restored(
    name: str, scorer: bytes, source: Callable[[], Any] | None, sign: float
) -> UsersScore:
    if source is not None:
        source()
    return UsersScore(name, pickle.loads(scorer), source, sign)


def _words(error: BaseException) -> str:
    message = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
