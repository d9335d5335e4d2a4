"""Attacks of users: loading, checking and fitting them.

An attack is a class with `fit`, an instance, or a function: the object itself, its import path, or
the name of an entry point of an installed package. It gets selection draws and returns a score,
which is cross-fitted and cut into levels like any other. It never sees the draws that certify a
rule, and its score sees outcomes without their inputs. A check ensures that the score of an outcome
does not depend on the other outcomes.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.draws import SelectionDraws
from dpaudit.errors import AttackError, Name, TargetError, UsageError
from dpaudit.float_errors import user_errstate
from dpaudit.import_path import resolve
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.level_map import FloatArray, larger_for_d1
from dpaudit.levels.limits import MAX_DRAWS_SLOW, MIN_DRAWS_SLOW, TINY
from dpaudit.levels.scores import Scored, cross_fitted
from dpaudit.outcomes import Outcomes
from dpaudit.wording import did_you_mean, shortened, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, slots=True, eq=False)
class UsersAttack:
    """A user's attack, as a scorer. Calling it raises AttackError if the attack fails.

    attack: an object with a method `fit`, or a function that does the same. From selection draws it
        returns a function that gives each outcome one number. Larger numbers are evidence for one
        of the inputs, always the same one; NaN means no guess.
    source: a function that imports the attack. It is called in other processes before they unpickle
        the score; None: nothing to import.
    travels: whether the score will be sent to other processes.
    """

    name: str
    attack: Any
    source: Callable[[], Any] | None = None
    travels: bool = False

    def __call__(self, selection: SelectionDraws) -> list[Candidate]:
        """Return a list with one candidate, by the attack's score. The sign of the score is
        reversed if its larger numbers are evidence for d2."""
        held_out, final, halves = cross_fitted(
            selection.size,
            MAX_DRAWS_SLOW,
            lambda rows: self._fitted(selection.take(rows)),
            lambda score, rows: score(selection.outcomes.take(rows)),
        )
        final.check(selection.outcomes)
        if self.travels:
            pickle.dumps(final)
        result = by_score(Scored(self.name, held_out, lambda: final, halves), selection)
        if larger_for_d1(result.counts[:-1]):
            return [result]
        turned, turned_halves = replace(final, sign=-1.0), None if halves is None else -halves
        return [by_score(Scored(self.name, -held_out, lambda: turned, turned_halves), selection)]

    def _fitted(self, selection: SelectionDraws) -> UsersScore:
        try:
            # The attack is copied for each fit, since it may store what it has learned in its own
            # attributes.
            attack = copy.deepcopy(self.attack)
            with user_errstate():
                scorer = getattr(attack, "fit", attack)(selection)
        except Exception as error:
            message = f"{_words(error)} when it was fitted to {selection.size:,} draws"
            raise AttackError(
                f"the attack {self.name} raised {message}", code="attack-raised"
            ) from error
        if not callable(scorer):
            raise AttackError(
                f"the attack {self.name} returned {shown(scorer)} from fit; it must return a "
                "function from outcomes to scores",
                code="attack-returned-no-score",
            )
        return UsersScore(self.name, scorer, self.source)


@dataclass(frozen=True, slots=True, eq=False)
class UsersScore:
    """The checked score of a user's attack, with the sign that makes larger numbers evidence for
    d1.

    scorer: the function that the attack returned.
    sign: 1, or -1 for a score whose larger numbers are evidence for d2.
    """

    name: str
    scorer: Callable[[Outcomes], ArrayLike]
    source: Callable[[], Any] | None = None
    sign: float = 1.0

    @property
    def columns(self) -> tuple[tuple[str, float], ...]:
        """Empty, since it is unknown on which columns a user's score depends."""
        return ()

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        if outcomes.size == 0:
            return np.empty(0)
        try:
            with user_errstate():
                returned = self.scorer(outcomes)
            scores = np.asarray(returned, dtype=np.float64)
        except Exception as error:
            message = f"{_words(error)} when it scored {outcomes.size:,} outcomes"
            raise AttackError(
                f"the attack {self.name} raised {message}", code="attack-raised"
            ) from error
        if scores.shape != (outcomes.size,):
            raise AttackError(
                f"the attack {self.name} returned scores of shape {scores.shape}; it must return "
                f"a number for each outcome: ({outcomes.size},)",
                code="attack-returned-no-score",
            )
        return scores * self.sign

    def words(self) -> str:
        words = getattr(self.scorer, "words", None)
        what = words if isinstance(words, str) and words else f"that of the attack {self.name}"
        return f"is {what}" if self.sign > 0 else f"is minus {what}"

    def check(self, outcomes: Outcomes) -> None:
        """Raise AttackError if the score of an outcome changes with the other outcomes of its
        batch. Such a score could reveal the input, since a batch may hold draws of one input only.
        """
        some = outcomes.take(slice(MIN_DRAWS_SLOW))
        together, half = self(some), np.arange(some.size)[::-2]
        apart = self(some.take(half))
        if not np.allclose(together[half], apart, rtol=TINY, atol=TINY, equal_nan=True):
            raise AttackError(
                f"the attack {self.name} gives the same outcome another score among other "
                "outcomes; a score must depend on its outcome alone, so compute means and the "
                "like in fit",
                code="score-depends-on-batch",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            scorer = pickle.dumps(self.scorer)
        except Exception as error:
            raise AttackError(
                f"the score of the attack {self.name} cannot be sent to other processes "
                f"({_words(error)}); let fit return an instance of a class of its module, or use "
                "workers=1",
                code="score-not-sendable",
            ) from error
        return _restored, (self.name, scorer, self.source, self.sign)


def _restored(
    name: str, scorer: bytes, source: Callable[[], Any] | None, sign: float
) -> UsersScore:
    if source is not None:
        source()
    return UsersScore(name, pickle.loads(scorer), source, sign)


def _words(error: BaseException) -> str:
    message = shortened(str(error), 200)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


# Name of the group of entry points in which installed packages offer attacks.
GROUP = "dpaudit.attacks"


def load_attacks(attacks: Sequence[Any], *, travels: bool) -> tuple[UsersAttack, ...]:
    """Load and check the user's own attacks. Raise UsageError if an attack cannot be loaded or
    occurs twice.

    attacks: classes with a method `fit`, instances of such classes, functions with the signature of
        `fit`, import paths of any of these, or names of installed attacks.
    travels: whether scores will be sent to other processes; then a score that cannot be pickled is
        an error.
    """
    result = tuple(replace(_loaded(attack), travels=travels) for attack in attacks)
    names = [attack.name for attack in result]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(Name("attacks"), f": {twice} is given twice", code="attack-twice")
    return result


def installed_attacks() -> dict[str, EntryPoint]:
    """Return the attacks that installed packages offer: the entry point of each, by its name.
    Nothing is imported."""
    from importlib.metadata import entry_points

    return {
        entry.name: entry
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def is_import_path(option: str) -> bool:
    """Return whether the text names a module and its attack, not an attack of a package."""
    return ":" in option or option.endswith(".py")


def check_installed(option: str) -> None:
    """Raise UsageError if no installed package offers an attack of this name."""
    if option not in (installed := installed_attacks()):
        known = f"; installed: {', '.join(installed)}" if installed else "; none is installed"
        raise UsageError(
            Name("attacks"),
            f": {option!r} is neither an import path, package.module:Attack, nor an "
            f"installed attack{known}.{did_you_mean(option, installed)}",
            code="attack-not-found",
        )


def _loaded(option: Any) -> UsersAttack:
    if not isinstance(option, str):
        return _fitting(option, getattr(option, "__qualname__", type(option).__qualname__))
    is_installed = not is_import_path(option)
    if is_installed:
        check_installed(option)
    source = partial(_load if is_installed else resolve, option)
    try:
        attack = source()
    except Exception as error:
        if is_installed:
            why = f": the installed attack {option!r} cannot be loaded: {_words(error)}"
            raise UsageError(Name("attacks"), why, code="attack-not-loadable") from error
        if not isinstance(error, TargetError):
            raise
        # Errors of import paths say "target", the usual kind of object.
        words = str(error).removeprefix("target ").replace("A target is", "An attack is")
        raise UsageError(Name("attacks"), f": {words}", code=error.code) from error
    return _fitting(attack, option, source)


def _load(name: str) -> Any:
    return installed_attacks()[name].load()


def _fitting(attack: Any, name: str, source: Any = None) -> UsersAttack:
    """Return the attack as a scorer. Raise UsageError if it cannot be instantiated or called."""

    def refused(message: str, code: str = "attack-without-fit") -> UsageError:
        return UsageError(Name("attacks"), f": {message}", code=code)

    if inspect.isclass(attack):
        if not hasattr(attack, "fit"):
            raise refused(f"the class {name} has no method fit(selection)")
        try:
            attack = attack()
        except Exception as error:
            raise refused(
                f"the class {name} cannot be made without arguments: {_words(error)}; name an "
                "instance or a function instead",
                "attack-not-loadable",
            ) from error
    fit = getattr(attack, "fit", attack)
    if not callable(fit):
        raise refused(
            f"{name} is of type {type(attack).__name__}; it must have a method fit(selection), or "
            "be a function of that kind"
        )
    try:
        inspect.signature(fit).bind(None)
    except TypeError as error:
        raise refused(f"{name}: fit must take one argument, but: {error}") from None
    except ValueError:
        pass  # a built-in function without a signature
    return UsersAttack(name, attack, source)
