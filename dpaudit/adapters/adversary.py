"""A user's own function in front of a mechanism: all that is looked at is what it answers.

An adversary guesses the input; a distinguisher scores outputs, and where its scores are cut is
chosen on selection draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import FAILURES, plain
from dpaudit.adapters.mechanism import Mechanism, Wrapping
from dpaudit.errors import MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.targets.construction import imported_function
from dpaudit.targets.parameters import check_post_process

_ANSWERS = (1, 2, None)
# So many outputs of every batch are shown twice.
_ASKED_AGAIN = 4


@dataclass(frozen=True, slots=True)
class Role:
    """What a function in front of a mechanism is for. key: its name in configuration files.

    accepts: whether something is an answer; wanted: which answers there are, in words. tosses:
    whether it may answer one output in several ways.
    """

    key: str
    accepts: Callable[[Any], bool]
    wanted: str
    tosses: bool = False


def _is_guess(answer: Any) -> bool:
    return type(answer) in (int, type(None)) and answer in _ANSWERS


def _is_score(answer: Any) -> bool:
    return answer is None or isinstance(answer, Real | str | np.generic)


ADVERSARY = Role("adversary", _is_guess, "1 (d1), 2 (d2) or None (neither)", tosses=True)
DISTINGUISHER = Role(
    "distinguisher",
    _is_score,
    "a number (larger means more evidence for d1), a text or None",
)


@dataclass(frozen=True, slots=True)
class Attacked(Wrapping):
    """A mechanism whose outcomes are the answers of an adversary, or of what has another role.

    An exception of the mechanism stays the outcome that it is. Raises MechanismError when the
    adversary raises, answers something else, or another time something else: none of these says
    anything about the mechanism.
    """

    adversary: Callable[[Any], Any]
    adversary_name: str
    role: Role = ADVERSARY

    @property
    def parts(self) -> tuple[Any, ...]:
        return (*self.mechanism.parts, self.adversary)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return self.answers(self.mechanism.sample(dataset, size, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        return self.answers(self.mechanism.sample_each(datasets, rng))

    def answers(self, outputs: list[Any] | NDArray[Any]) -> list[Any]:
        """Return what the adversary answers to outputs."""
        # Python's own scalars, as the adversary would get them from single draws.
        entries = list(plain(outputs))
        answers = [one if isinstance(one, Raised) else self._answer(one) for one in entries]
        again = [] if self.role.tosses else entries[:_ASKED_AGAIN]
        for one, answer in zip(again, answers, strict=False):
            if not isinstance(one, Raised) and not _is_same(self._answer(one), answer):
                raise MechanismError(
                    f"the {self.role.key} {self.adversary_name} first answers {answer!r} to an "
                    "output, then another value to the same output; its answer must depend on the "
                    "output alone"
                )
        return answers

    def _answer(self, output: Any) -> Any:
        try:
            answer = self.adversary(output)
        except FAILURES as error:
            raise MechanismError(
                f"the {self.role.key} {self.adversary_name} raised {type(error).__name__}: "
                f"{' '.join(str(error).split())[:200]}; return None where it does not know"
            ) from error
        if self.role.accepts(answer):
            return answer
        raise MechanismError(
            f"the {self.role.key} {self.adversary_name} answered {answer!r}; "
            f"it must answer {self.role.wanted}"
        )


def attacked(
    mechanism: Mechanism, adversary: Callable[[Any], Any] | str | None, role: Role = ADVERSARY
) -> Mechanism:
    """Return the mechanism as an adversary sees it; itself without one. Raises TargetError."""
    if adversary is None:
        return mechanism
    if not isinstance(adversary, str):
        name = getattr(adversary, "__qualname__", repr(adversary))
        check_post_process(adversary, name, role.key)
        return Attacked(mechanism, adversary, name, role)
    function = imported_function(adversary, role.key)
    if function is None:
        raise TargetError(f"{role.key} is empty; give its import path, package.module:function")
    return Attacked(mechanism, function, adversary, role)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether answers are equal, as NaN is to itself."""
    return bool(one == other) or (one != one and other != other)  # NaN
