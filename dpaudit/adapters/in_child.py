"""A mechanism that draws in a child. If the child ends during a draw, this is the outcome of the
draw: `crash`, or `timeout` if the child was killed at the time limit. The draw is not repeated,
since then only draws that a child survives would count. A new child makes the next draw."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Any, Generic, TypeVar

import numpy as np

from dpaudit.adapters.calls import Outputs, batch_failed, draw_in_few_sizes
from dpaudit.errors import DpauditError, MechanismError
from dpaudit.outcomes import Raised
from dpaudit.processes.child import Child, Ended, TimedOut
from dpaudit.targets.target import CommandTarget, IsolatedTarget
from dpaudit.watching import Watch

Process = TypeVar("Process", bound=Child)

# If this number of children in a row end before they complete a draw, the audit ends.
MAX_ENDED = 50
# If no draw was completed, and this number of draws of each input have ended their child with the
# same failure, the audit ends. (If only one input ends the child, that is a leak, and no error.)
_MAX_FAILED_DRAWS = 20
# The same limit after the failed draws have taken `_SLOW_SECONDS` seconds together.
_MAX_SLOW_FAILED_DRAWS, _SLOW_SECONDS = 3, 10.0


class InChild(ABC, Generic[Process]):
    """Base of mechanisms that draw in a child.

    label: name of the mechanism, for messages about batches.
    batch: name of the parameter for the number of draws, for the same messages.
    interleaved: whether each draw is a call of its own.
    has_few_sizes: whether calls for batches use only a few different numbers of draws.
    """

    parts = ()  # a child re-seeds the generators in its objects itself
    label: str
    batch: str
    interleaved: bool
    has_few_sizes = False

    def __init__(self, target: IsolatedTarget | CommandTarget) -> None:
        self.name, self._timeout = target.name, target.limits.timeout
        self._watch = Watch.of_process(self._timeout)
        self._child: Process | None = None
        # Number of children in a row that ended before they completed a draw.
        self._deaths = 0
        # Whether some draw was completed, or two draws ended their children with different
        # failures. Until then: the failure, its draws by input, and the seconds that they took.
        self._varies = False
        self._failure: Raised | None = None
        self._failed_draws: Counter[Hashable] = Counter()
        self._began, self._seconds = time.monotonic(), 0.0

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved  # outputs of a batch may be entries of an array

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        if self.interleaved:
            return self.sample_each(repeat(dataset, size), rng)
        try:
            if self.has_few_sizes:
                return draw_in_few_sizes(lambda count: self.draw_batch(dataset, count, rng), size)
            return self.draw_batch(dataset, size, rng)
        except Ended as end:
            self.close()
            what = f"ended its process ({self._failed(end).message})"
            raise batch_failed(self.label, self.batch, size, what) from None

    def close(self) -> None:
        """End the child. The next draw starts a new one."""
        if self._child is not None:
            self._child.close()
            self._child = None

    @abstractmethod
    def start(self) -> Process:
        """Start a child. Raises TargetError if it cannot make draws."""

    @abstractmethod
    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs: ...

    @abstractmethod
    def draw_batch(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return `size` outputs, made in a single call. Raises Ended."""

    def running(self) -> Process:
        """Return the child that makes the next draw. Raises MechanismError if the last child has
        ended and no new one can be started."""
        self._began = time.monotonic()
        if self._child is None or not self._child.is_alive:
            self.close()
            try:
                self._child = self.start()
            except DpauditError as error:
                raise MechanismError(
                    f"a process that ended cannot be replaced: {error}", code="process-failed"
                ) from None
        return self._child

    def draw_ended(self) -> None:
        """Record that a draw is complete."""
        self._deaths, self._varies = 0, True

    def died(self, end: Ended, dataset: Hashable) -> Raised:
        """Return the outcome of a draw in which the child has ended. `dataset` is the input, or a
        value that identifies it. Raises MechanismError if the mechanism ends its child in every
        draw, or in too many draws in a row."""
        self.close()
        failure = self._failed(end)
        self._deaths += 1
        self._seconds += time.monotonic() - self._began
        self._failure = self._failure or failure
        self._varies |= failure != self._failure
        self._failed_draws[dataset] += 1
        enough = _MAX_FAILED_DRAWS if self._seconds < _SLOW_SECONDS else _MAX_SLOW_FAILED_DRAWS
        is_of_both = len(self._failed_draws) > 1 and min(self._failed_draws.values()) >= enough
        if is_of_both and not self._varies:
            draws = f"in each of its first {self._failed_draws.total()} draws of both inputs"
        elif self._deaths >= MAX_ENDED:
            draws = f"{MAX_ENDED} times in a row without finishing a draw"
        else:
            return failure
        why = f"{self.name} ended its process {draws}, the last time with a {failure.kind}"
        remedy = ""
        if isinstance(end, TimedOut):
            remedy = (
                f"; {self._watch.hint or 'if a draw needs more time, raise timeout (--timeout)'}"
            )
        raise MechanismError(
            f"{why} ({failure.message}); an audit needs outputs{remedy}",
            code="mechanism-ends-process",
        )

    def _failed(self, end: Ended) -> Raised:
        is_late = isinstance(end, TimedOut) and self._timeout is not None
        return Raised(end.kind, f"over {self._timeout:g} s" if is_late else str(end))
