"""New processes that draw what a refutation is compared with (docs/method.md §11).

Each imports the mechanism for itself: a fork of this process would have the noise that was drawn
when the mechanism was imported. Their clocks run ahead. They are kept for later refutations.
"""

from __future__ import annotations

import os
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpaudit.errors import DpauditError, UsageError
from dpaudit.processes.other_clock import SHIFT, shift_as_asked
from dpaudit.sampling.chunks import Chunk, Counted
from dpaudit.sampling.executors.pools import Done, Recipe, draw

if TYPE_CHECKING:  # most audits start no process, and these imports take some 30 ms
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from dpaudit.sampling.executors.processes import ProcessPool

# Processes that are compared with the first one; 0: no refutation is compared.
PROCESSES = 8
# Processes that draw at the same time, at least.
_FEWEST = 2
# Seconds that all of it may take, while fewer than `_FEWEST` processes have drawn (imports of the
# mechanism may be slow), and between two looks at what has come.
SECONDS, PATIENCE, _LOOK = 5.0, 60.0, 0.1
# Seconds by which the clock of every further process runs ahead: hours, soon days, and no whole
# number of minutes or seconds.
_AHEAD = 7 * 3600 + 13 * 60 + 17.371
# Elsewhere, system libraries that NumPy uses may not survive a fork.
_MAY_FORK = sys.platform == "linux"
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


class _CannotDraw(Exception):
    """A new process cannot draw; the message says why."""


class NewProcesses:
    """Processes that are started when they are first asked for; `close` ends them.

    An interpreter imports NumPy and dpaudit, which is most of what a small mechanism takes to
    start, and forks for each of its processes before these import the mechanism. Where a fork is
    not safe, every process is an interpreter.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        """preload: modules that mechanisms import, too, and that draw no noise."""
        self._preload = tuple(preload)
        # The interpreters, by whether each has a hash seed of its own, and by number.
        self._started: dict[bool, dict[int, ProcessPool]] = {False: {}, True: {}}

    def draw(
        self,
        recipe: Recipe,
        chunks: Sequence[Chunk[Counted]],
        *,
        own_hashes: bool = False,
        look: Callable[[], None] = lambda: None,
    ) -> Answers:
        """Draw each chunk in a process of its own, as far as there is time.

        own_hashes: whether every interpreter is to have another hash seed, where that of this one
        is fixed.  look: called while the processes are waited for; may raise.
        """
        from concurrent.futures import FIRST_COMPLETED, wait

        from dpaudit.processes.cores import cores, room_for

        hands = min(len(chunks), max(_FEWEST, min(cores(), room_for(len(chunks)))))
        interpreters = hands if _MAY_FORK else len(chunks)
        is_own = own_hashes and has_fixed_hashes()
        running: dict[Future[Done], int] = {}
        drawn, waiting = dict[int, Counted](), list(range(len(chunks)))
        begun, slowest = time.monotonic(), 0.0
        try:
            while (elapsed := time.monotonic() - begun) < SECONDS or (
                len(drawn) < _FEWEST and running and elapsed < PATIENCE
            ):
                busy = {place % interpreters for place in running.values()}
                is_time = elapsed + slowest <= SECONDS
                while is_time and len(busy) < hands:
                    free = (one for one in waiting if one % interpreters not in busy)
                    if (place := next(free, None)) is None:
                        break
                    waiting.remove(place)
                    busy.add(place % interpreters)
                    future = self._sent(recipe, chunks[place], place, interpreters, is_own=is_own)
                    running[future] = place
                if not running:
                    break
                for future in wait(running, _LOOK, FIRST_COMPLETED).done:
                    place, done = running.pop(future), _result(future)
                    (drawn[place],) = done.drawn
                    slowest = max(slowest, done.seconds)
                look()
        except _CannotDraw as error:
            return Answers([], str(error), failed=True)
        finally:
            for place in running.values():
                self._started[is_own].pop(place % interpreters).close(in_order=False)
        in_order = [drawn[place] for place in sorted(drawn)]
        return Answers(in_order, "" if len(drawn) == len(chunks) else late(len(drawn)))

    def close(self) -> None:
        """End all processes."""
        for pools in self._started.values():
            while pools:
                pools.popitem()[1].close(in_order=False)

    def _sent(
        self,
        recipe: Recipe,
        chunk: Chunk[Counted],
        place: int,
        interpreters: int,
        *,
        is_own: bool,
    ) -> Future[Done]:
        """Hand a chunk over to the process of this number. Raises _CannotDraw."""
        from dpaudit.sampling.executors.processes import ProcessPool

        pools, number = self._started[is_own], place % interpreters
        hashes = (int(os.environ[_HASH_SEED]) + number + 1) % (1 << 32) if is_own else None
        with ExitStack() as while_it_starts:
            if number not in pools:  # it starts with its first chunk
                pools[number] = ProcessPool(recipe, 1)
                if hashes is not None:
                    while_it_starts.enter_context(_hash_seed(hashes))
                if b"__main__" not in recipe.made:
                    while_it_starts.enter_context(_without_main())
            try:
                draws = _draw_in_fork if _MAY_FORK else _draw_here
                return pools[number].do(draws, recipe, [chunk], place, self._preload)
            except Exception as error:  # noqa: BLE001  # of the system, or of what cannot be sent
                pools.pop(number).close(in_order=False)
                raise _CannotDraw(_words(error)) from None


def _draw_here(
    recipe: Recipe, chunks: Sequence[Chunk[Any]], place: int, preload: Sequence[str] = ()
) -> Done:
    """Draw with the clock of the process of this number; return the seconds that it took, with the
    import of the mechanism."""
    os.environ[SHIFT] = str((place + 1) * _AHEAD)
    shift_as_asked()
    begun = time.perf_counter()
    return Done(draw(recipe, chunks).drawn, time.perf_counter() - begun)


# In an interpreter: the processes that it has forked, by number.
_forked: dict[int, Connection] = {}


def _draw_in_fork(
    recipe: Recipe, chunks: Sequence[Chunk[Any]], place: int, preload: Sequence[str]
) -> Done:
    """Draw in the fork of this number, which has seen no mechanism before its own."""
    from multiprocessing import Pipe

    if place not in _forked:
        for name in preload:
            import_module(name)
        here, there = Pipe()
        with warnings.catch_warnings():
            # A thread waits for the end of the program, and holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            is_fork = os.fork() == 0
        if is_fork:
            here.close()
            _serve(there, place)
        there.close()
        _forked[place] = here
    connection = _forked[place]
    try:
        connection.send((recipe, chunks))
        found: Done | BaseException = connection.recv()
    except (EOFError, OSError):
        _forked.pop(place).close()
        raise UsageError("a new process ended before it had drawn") from None
    if isinstance(found, BaseException):
        raise found
    return found


def _serve(connection: Connection, place: int) -> NoReturn:
    """Draw what is asked for until the interpreter that forked this process ends."""
    for one in _forked.values():
        one.close()
    np.random.seed()  # as `random` does by itself
    try:
        while True:
            recipe, chunks = connection.recv()
            try:
                found: Done | BaseException = _draw_here(recipe, chunks, place)
            except BaseException as error:  # noqa: BLE001  # whatever the mechanism raises
                found = UsageError(_words(error))
            connection.send(found)
    finally:
        os._exit(0)


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
def _hash_seed(seed: int) -> Iterator[None]:
    before = os.environ[_HASH_SEED]
    os.environ[_HASH_SEED] = str(seed)
    try:
        yield
    finally:
        os.environ[_HASH_SEED] = before


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a process that is started from importing the program that runs here."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _result(future: Future[Done]) -> Done:
    error = future.exception()
    if error is not None:
        raise _CannotDraw(_words(error))
    return future.result()


def late(drawn: int) -> str:
    """Return why so few processes have drawn: the others took too long."""
    if drawn:
        return f"the others had not drawn within {SECONDS:g} s"
    return f"none had drawn within {PATIENCE:g} s"


def _words(error: BaseException) -> str:
    """Return in a line why a process could not draw."""
    said = " ".join(str(error).split())
    if type(error).__name__ == "BrokenProcessPool":
        return "a new process ended before it had drawn"
    return said if isinstance(error, DpauditError) else f"{type(error).__name__}: {said}"
