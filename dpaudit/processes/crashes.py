"""One process after the other: what ends is replaced, and its draw under way is an outcome."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from dpaudit.errors import DpauditError, MechanismError
from dpaudit.outcomes import Raised
from dpaudit.processes.child import Child, Ended, TimedOut
from dpaudit.watching import Watch

CRASH, TIMEOUT = "crash", "timeout"
# So many processes in a row that did not come to the end of one draw end an audit.
HOPELESS = 50
# And so many that ended alike before a draw began, which then says nothing about its input.
_ALIKE = 3
# As long as no draw at all came to its end: so many draws of every input that end alike, of which
# there are at least two. A crash on one input alone is what an audit looks for.
_ALWAYS = 20
# Seconds that such draws take before somebody is told, and before _ALIKE of every input are enough.
PATIENCE = 10.0

_log = logging.getLogger(__name__)


class HasChild(Protocol):
    @property
    def child(self) -> Child: ...


Process = TypeVar("Process", bound=HasChild)


class Succession(Generic[Process]):
    """Processes that draw, of which one runs at a time: first `first`, then what `start` returns.
    timeout: seconds of a draw, for words."""

    def __init__(
        self, name: str, first: Process, start: Callable[[], Process], timeout: float | None
    ) -> None:
        self._name, self._start, self._timeout = name, start, timeout
        self._process: Process | None = first
        self._deaths = 0
        self._unbegun: list[str] = []
        self._watch = Watch()
        # Of draws, for as long as none has come to its end, or ended in another way.
        self._varies = False
        self._first: Raised | None = None
        self._alike: Counter[Hashable] = Counter()
        self._asked, self._seconds = time.monotonic(), 0.0

    def living(self) -> Process:
        """Return the process, or a new one in its place; no draw is under way then. Raises
        MechanismError when a new one cannot be started as the first one was."""
        self._asked = time.monotonic()
        if self._process is None or not self._process.child.is_alive:
            self.close()
            try:
                self._process = self._start()
            except DpauditError as error:
                raise MechanismError(f"a process that ended cannot be replaced: {error}") from None
        return self._process

    def close(self) -> None:
        """End the process; the next draw starts another one."""
        if self._process is not None:
            self._process.child.close()
            self._process = None

    def lives(self) -> None:
        """Take notice that a draw came to its end."""
        self._deaths, self._unbegun, self._varies = 0, [], True

    def died(self, end: Ended | TimedOut, dataset: Hashable, *, has_begun: bool = True) -> Raised:
        """Return what the draw under way is. Raises MechanismError when that happens every time.

        dataset: stands for the one that is drawn from.  has_begun: whether it is under way indeed.
        """
        self.close()
        self._deaths += 1
        self._seconds += time.monotonic() - self._asked
        failure = Raised(TIMEOUT if isinstance(end, TimedOut) else CRASH, self.words(end))
        self._unbegun = [] if has_begun else [*self._unbegun, failure.message]
        if self._unbegun[-_ALIKE:] == [failure.message] * _ALIKE:
            raise MechanismError(
                f"the process of {self._name} ended {_ALIKE} times in a row before a draw began, "
                f"each time with: {failure.message}"
            )
        if self._is_always(failure, dataset):
            took = f", which took {self._seconds:.0f} s" if self._seconds >= PATIENCE else ""
            raise MechanismError(
                f"{self._name} ended its process in each of its first {self._alike.total()} draws "
                f"of both inputs, with a {failure.kind} ({failure.message}){took}; an audit needs "
                "outputs"
            )
        if self._deaths >= HOPELESS:
            raise MechanismError(
                f"{self._name} ended its process {HOPELESS} times in a row without finishing a "
                f"draw, the last time with a {failure.kind} ({failure.message}); an audit needs "
                "outputs"
            )
        self._tell(failure)
        return failure

    def _tell(self, failure: Raised) -> None:
        """Say, once, that all draws so far have ended in one way, where that has taken long."""
        if self._varies or self._seconds < PATIENCE or not self._watch.tells("no draw"):
            return
        total = self._alike.total()
        draws = f"all {total} draws of" if total > 1 else "the only draw of"
        words = "%s %s so far ended with a %s (%s)"
        _log.warning(words, draws, self._name, failure.kind, failure.message)

    def _is_always(self, failure: Raised, dataset: Hashable) -> bool:
        """Return whether no draw has ended in another way than this one, often enough."""
        self._first = self._first or failure
        if self._varies or failure != self._first:
            self._varies = True
            return False
        self._alike[dataset] += 1
        enough = _ALWAYS if self._seconds < PATIENCE else _ALIKE
        return len(self._alike) > 1 and min(self._alike.values()) >= enough

    def words(self, end: Ended | TimedOut) -> str:
        """Return how a process ended."""
        if isinstance(end, Ended):
            return str(end)
        return "no outcome in time" if self._timeout is None else f"over {self._timeout:g} s"
