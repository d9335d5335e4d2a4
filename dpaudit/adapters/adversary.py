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
from dpaudit.targets.construction import imported_function
from dpaudit.targets.parameters import check_post_process

_ANSWERS = (1, 2, None)


@dataclass(frozen=True, slots=True)
class Attacked(Wrapping):
    """A mechanism whose outcomes are the guesses of an adversary, who may toss coins.

    An exception of the mechanism stays the outcome that it is. Raises MechanismError when the
    adversary raises or answers something else: neither says anything about the mechanism.
    """

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
        """Return what the adversary answers to outputs."""
        # Python's own scalars, as the adversary would get them from single draws.
        return [one if isinstance(one, Raised) else self._answer(one) for one in plain(outputs)]

    def _answer(self, output: Any) -> Any:
        try:
            answer = self.adversary(output)
        except FAILURES as error:
            raise MechanismError(
                f"the adversary {self.adversary_name} raised {type(error).__name__}: "
                f"{' '.join(str(error).split())[:200]}; return None where it does not know"
            ) from error
        if type(answer) in (int, type(None)) and answer in _ANSWERS:
            return answer
        raise MechanismError(
            f"the adversary {self.adversary_name} answered {answer!r}; "
            "it must answer 1 (d1), 2 (d2) or None (neither)"
        )


def attacked(mechanism: Mechanism, adversary: Callable[[Any], Any] | str | None) -> Mechanism:
    """Return the mechanism as an adversary sees it; itself without one. Raises TargetError."""
    if adversary is None:
        return mechanism
    if isinstance(adversary, str):
        return Attacked(mechanism, imported_function(adversary, "adversary"), adversary)
    name = getattr(adversary, "__qualname__", repr(adversary))
    check_post_process(adversary, name, "adversary")
    return Attacked(mechanism, adversary, name)
