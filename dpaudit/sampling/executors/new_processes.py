"""New interpreters that draw what a refutation is compared with (docs/method.md §11).

They import the mechanism for themselves, unlike a fork, which would have the noise that was drawn
when it was imported. Their clocks run ahead. They are kept for the refutations after the first.
"""

from __future__ import annotations

import os
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpaudit.errors import DpauditError, UsageError
from dpaudit.processes.other_clock import SHIFT
from dpaudit.sampling.chunks import Chunk, Counted
from dpaudit.sampling.executors.worker import Done, Recipe

if TYPE_CHECKING:  # most audits start no process, and its imports take some 30 ms
    from concurrent.futures import Future

    from dpaudit.sampling.executors.processes import ProcessPool

# Processes that are compared with the first one; none: no refutation is compared.
PROCESSES = 8
# Processes that are started even if the first ones are slow.
_FEWEST = 2
# Seconds that all of it may take, and between two looks at what has come.
SECONDS, _LOOK = 5.0, 0.1
# Seconds by which the clock of every further process runs ahead: hours, to another day soon, and no
# whole number of minutes or seconds.
_AHEAD = 7 * 3600 + 13 * 60 + 17.371
_HASH_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What new processes have drawn.

    drawn: what they have counted, in the order of the chunks.  why: why there are fewer than were
    asked for; the empty text where all have answered.  failed: whether one of them could not draw.
    """

    drawn: list[Counted]
    why: str = ""
    failed: bool = False


class NewProcesses:
    """New interpreters, started when they are first asked for; `close` ends them."""

    def __init__(self) -> None:
        # By whether each has a hash seed of its own.
        self._idle: dict[bool, list[ProcessPool]] = {False: [], True: []}
        self._started = 0

    def draw(
        self,
        recipe: Recipe,
        chunks: Sequence[Chunk[Counted]],
        *,
        own_hashes: bool = False,
        look: Callable[[], None] = lambda: None,
    ) -> Answers:
        """Draw each chunk in a process of its own, as far as there is time.

        own_hashes: whether every process is to have another hash seed, where that of this one is
        fixed.  look: called while the processes are waited for; may raise.
        """
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        from dpaudit.processes.cores import cores, room_for

        is_own = own_hashes and has_fixed_hashes()
        kept = self._idle[is_own]
        running: dict[Future[Done], tuple[ProcessPool, int, float]] = {}
        drawn, waiting = dict[int, Counted](), list(reversed(range(len(chunks))))
        hands = min(len(chunks), max(_FEWEST, min(cores(), room_for(len(chunks)))))
        begun, slowest = time.monotonic(), 0.0
        try:
            while (elapsed := time.monotonic() - begun) < SECONDS:
                is_time = elapsed + slowest <= SECONDS
                while waiting and len(running) < hands and (kept or is_time):
                    pool = kept.pop() if kept else self._new(recipe)
                    number = waiting.pop()
                    future = self._sent(pool, recipe, chunks[number], is_own=is_own)
                    running[future] = pool, number, time.monotonic()
                if not running:
                    break
                for future in wait(running, _LOOK, FIRST_COMPLETED).done:
                    pool, number, since = running[future]
                    if (error := future.exception()) is not None:
                        return Answers([], _words(error), failed=True)
                    (drawn[number],) = future.result().drawn
                    slowest = max(slowest, time.monotonic() - since)
                    kept.append(pool)
                    del running[future]
                look()
        except (OSError, UsageError, BrokenProcessPool) as error:
            return Answers([], _words(error), failed=True)
        finally:
            for pool, *_ in running.values():
                pool.close(in_order=False)
        in_order = [drawn[number] for number in sorted(drawn)]
        return Answers(in_order, "" if len(drawn) == len(chunks) else _late(len(drawn)))

    def close(self) -> None:
        """End all processes."""
        for kept in self._idle.values():
            while kept:
                kept.pop().close(in_order=False)

    def _new(self, recipe: Recipe) -> ProcessPool:
        from dpaudit.sampling.executors.processes import ProcessPool

        self._started += 1
        return ProcessPool(recipe, 1)

    def _sent(
        self, pool: ProcessPool, recipe: Recipe, chunk: Chunk[Counted], *, is_own: bool
    ) -> Future[Done]:
        """Hand a chunk over; a new process starts with it."""
        with ExitStack() as while_it_starts:
            variables = {SHIFT: str(self._started * _AHEAD)}
            if is_own:
                variables[_HASH_SEED] = str(
                    (int(os.environ[_HASH_SEED]) + self._started) % (1 << 32)
                )
            while_it_starts.enter_context(_environment(variables))
            if b"__main__" not in recipe.made:
                while_it_starts.enter_context(_without_main())
            return pool.send(recipe, [chunk])


def has_fixed_hashes() -> bool:
    """Return whether equal texts have equal hashes in every process that this one starts."""
    return os.environ.get(_HASH_SEED, "random").isdecimal()


# Of the audits that are under way: those of a command, or of a test run, share them.
_current: list[NewProcesses] = []


@contextmanager
def compared_with(processes: NewProcesses) -> Iterator[None]:
    """Let refutations by all audits inside be compared with draws of these processes."""
    _current.append(processes)
    try:
        yield
    finally:
        _current.remove(processes)


def current() -> NewProcesses | None:
    """Return the processes that refutations are compared with; None where nothing asks for it."""
    return _current[-1] if _current else None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a process that is started from importing the program that runs here."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _late(drawn: int) -> str:
    words = "the others" if drawn else "they"
    return f"{words} had not drawn within {SECONDS:g} s"


def _words(error: BaseException) -> str:
    """Return in a line why a process could not draw."""
    said = " ".join(str(error).split())
    if type(error).__name__ == "BrokenProcessPool":
        return "a new process ended before it had drawn"
    return said if isinstance(error, DpauditError) else f"{type(error).__name__}: {said}"
