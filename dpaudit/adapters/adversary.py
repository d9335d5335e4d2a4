"""The adversary of a computational claim, in front of a mechanism: its guesses are the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.adapters.calls import plain
from dpaudit.adapters.mechanism import Mechanism, Outputs, Wrapping
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES
from dpaudit.targets.construction import applied
from dpaudit.targets.target import name_of


@dataclass(frozen=True, slots=True)
class Attacked(Wrapping):
    """A mechanism whose outcomes are the guesses of an adversary, who may toss coins. Raises
    MechanismError when these cannot be had, which says nothing about the mechanism."""

    adversary: Callable[[Any], Any]
    adversary_name: str

    @property
    def parts(self) -> tuple[Any, ...]:
        return (*self.mechanism.parts, self.adversary)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return self.answers(self.mechanism.sample(dataset, size, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        return self.answers(self.mechanism.sample_each(datasets, rng))

    def answers(self, outputs: Outputs) -> list[Any]:
        """Return what the adversary answers to outputs; an exception stays what it is."""
        return [one if isinstance(one, Raised) else self._answer(one) for one in plain(outputs)]

    def _answer(self, output: Any) -> Any:
        try:
            answer = self.adversary(output)
        except FAILURES as error:
            raise MechanismError(
                f"the adversary {self.adversary_name} raised {type(error).__name__}: "
                f"{' '.join(str(error).split())[:200]}; return None where it does not know"
            ) from error
        if answer is None or (type(answer) is int and answer in (1, 2)):
            return answer
        raise MechanismError(
            f"the adversary {self.adversary_name} answered {answer!r}; "
            "it must answer 1 (d1), 2 (d2) or None (neither)"
        )


def attacked(mechanism: Mechanism, adversary: Callable[[Any], Any] | str | None) -> Mechanism:
    """Return the mechanism as an adversary sees it; itself without one. Raises TargetError."""
    if adversary is None:
        return mechanism
    return Attacked(mechanism, applied(adversary, "adversary"), name_of(adversary))
