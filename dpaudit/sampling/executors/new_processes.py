"""New processes that draw again what refuted a claim, for comparison (docs/method.md §11).

Each imports the mechanism for itself: a fork of this process would share the noise that was drawn
at import. Their clocks run ahead. They are kept for later refutations.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.processes.other_clock import SHIFT, shift_as_asked
from dpaudit.sampling.chunks import Chunk, Counted
from dpaudit.sampling.executors import in_a_line
from dpaudit.sampling.executors.pools import Done, Recipe, draw

if TYPE_CHECKING:  # most audits start no process, and these imports take some 30 ms
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from dpaudit.sampling.executors.processes import ProcessPool

# Processes that are compared with the first one; 0: no refutation is compared.
PROCESSES = 8
# Processes that draw at the same time, at least; fewer show too little.
_FEWEST = 2
# Seconds that all of them may take together, and until `_FEWEST` have drawn: imports of the
# mechanism may be slow.
SECONDS, PATIENCE = 5.0, 60.0
# Seconds between two looks at the results.
_LOOK = 0.1
# Seconds by which the clock of each further process runs ahead: hours, soon days, and no whole
# number of minutes or seconds.
_AHEAD = 7 * 3600 + 13 * 60 + 17.371
# Elsewhere, system libraries that NumPy uses may not survive a fork.
_MAY_FORK = sys.platform == "linux"
_HASH_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Draws of new processes.

    drawn: counts, in the order of the chunks.  why: why some chunks are missing; empty if none
    are.  failed: whether a process could not draw.
    """

    drawn: list[Counted]
    why: str = ""
    failed: bool = False


class _CannotDrawError(Exception):
    """A new process cannot draw; the message says why."""


class NewProcesses:
    """Processes that are started when they are first needed; `close` ends them.

    An interpreter imports NumPy and dpaudit, which takes most of the time that a small mechanism
    needs to start, and forks its processes before they import the mechanism. Where a fork is not
    safe, every process is an interpreter.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        """preload: further modules that mechanisms import, and that draw no noise."""
        self._preload = tuple(preload)
        # Interpreters by number, and by whether each has a hash seed of its own.
        self._pools: dict[tuple[bool, int], ProcessPool] = {}

    def draw(
        self,
        recipe: Recipe,
        chunks: Sequence[Chunk[Counted]],
        *,
        own_hashes: bool = False,
        look: Callable[[], None] = lambda: None,
    ) -> Answers:
        """Draw each chunk in a process of its own, as far as time allows.

        own_hashes: give every interpreter another hash seed, if that of this process is fixed.
        look: called while the processes draw; may raise.
        """
        from concurrent.futures import FIRST_COMPLETED, wait

        from dpaudit.processes.cores import cores, room_for

        workers = min(len(chunks), max(_FEWEST, min(cores(), room_for(len(chunks)))))
        is_own = own_hashes and has_fixed_hashes()
        # Each interpreter has its turn with every `workers`-th process.
        queues = [list(range(len(chunks)))[start::workers] for start in range(workers)]
        running: dict[Future[Done], tuple[int, int]] = {}
        drawn: dict[int, Counted] = {}
        begun, slowest = time.monotonic(), 0.0
        try:
            while (elapsed := time.monotonic() - begun) < SECONDS or (
                len(drawn) < _FEWEST and running and elapsed < PATIENCE
            ):
                idle = set(range(workers)) - {worker for worker, _ in running.values()}
                for worker in idle if elapsed + slowest <= SECONDS else ():
                    if queues[worker]:
                        place = queues[worker].pop(0)
                        number = worker if _MAY_FORK else place
                        given = recipe, chunks[place], place
                        running[self._sent(*given, number, is_own=is_own)] = worker, place
                if not running:
                    break
                for future in wait(running, _LOOK, FIRST_COMPLETED).done:
                    _, place = running.pop(future)
                    done = _done(future)
                    (drawn[place],) = done.drawn
                    slowest = max(slowest, done.seconds)
                look()
        except _CannotDrawError as error:
            return Answers([], str(error), failed=True)
        finally:
            for worker, place in running.values():
                number = worker if _MAY_FORK else place
                self._pools.pop((is_own, number)).close(in_order=False)
        in_order = [drawn[place] for place in sorted(drawn)]
        return Answers(in_order, "" if len(drawn) == len(chunks) else late(len(drawn)))

    def close(self) -> None:
        """End all processes."""
        while self._pools:
            self._pools.popitem()[1].close(in_order=False)

    def _sent(
        self, recipe: Recipe, chunk: Chunk[Counted], place: int, number: int, *, is_own: bool
    ) -> Future[Done]:
        """Send a chunk to the interpreter of this number. Raises _CannotDrawError."""
        try:
            given = pickle.dumps((recipe, [chunk]))
            pool = self._pool(recipe, number, is_own=is_own)
            if _MAY_FORK:
                return pool.call(_draw_in_fork, given, place, self._preload)
            return pool.call(_draw_here, given, place)
        except Exception as error:  # noqa: BLE001  # of the system, or of what cannot be sent
            raise _CannotDrawError(in_a_line(error)) from None

    def _pool(self, recipe: Recipe, number: int, *, is_own: bool) -> ProcessPool:
        """Return the interpreter of this number."""
        from dpaudit.sampling.executors.processes import ProcessPool

        key = is_own, number
        if key in self._pools and self._pools[key].has_ended():
            self._pools.pop(key).close(in_order=False)
        if key not in self._pools:
            seed = (int(os.environ[_HASH_SEED]) + number + 1) % (1 << 32) if is_own else None
            starting = partial(_starting, seed, has_main=b"__main__" in recipe.made)
            # Not replaced, since `_starting` changes what all threads share.
            self._pools[key] = ProcessPool(None, 1, starting=starting, replaced=0)
        return self._pools[key]


@contextmanager
def _starting(hash_seed: int | None, *, has_main: bool) -> Iterator[None]:
    """Start a process with a hash seed, and without the program that runs here unless the mechanism
    is part of it."""
    main, seed = sys.modules["__main__"], os.environ.get(_HASH_SEED)
    if hash_seed is not None:
        os.environ[_HASH_SEED] = str(hash_seed)
    if not has_main:
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if seed is not None:
            os.environ[_HASH_SEED] = seed


def _draw_here(given: bytes, place: int) -> Done:
    """Draw with the clock of the process of this number. Return also the seconds that it took, with
    the import of the mechanism.

    given: pickled recipe and chunks, whose modules see that clock, too.
    """
    os.environ[SHIFT] = str((place + 1) * _AHEAD)
    shift_as_asked()
    begun = time.perf_counter()
    try:
        return Done(draw(*pickle.loads(given)).drawn, time.perf_counter() - begun)
    except BaseException as error:  # noqa: BLE001  # whatever the mechanism raises
        # Only text: the interpreter that forked this process would import the mechanism to read an
        # exception of its own, and later forks would share the noise that is drawn there.
        raise UsageError(in_a_line(error)) from None


# In an interpreter: connections to the processes that it has forked, by number.
_forked: dict[int, Connection] = {}


def _draw_in_fork(given: bytes, place: int, preload: Sequence[str]) -> Done:
    """Draw in the fork of this number, which imports the mechanism for itself."""
    from dpaudit.sampling.executors.processes import ask, result_of

    if place not in _forked:
        for name in preload:
            import_module(name)
        _forked[place] = _fork()
    try:
        reply = ask(_forked[place], pickle.dumps((_draw_here, (given, place))))
    except (EOFError, OSError):
        _forked.pop(place).close()
        raise UsageError(_ENDED, code="worker-died") from None
    return result_of(reply)


def _fork() -> Connection:
    """Fork this process; return the connection to a fork that serves tasks until this process
    ends."""
    from multiprocessing import Pipe

    from dpaudit.sampling.executors.processes import serve

    here, there = Pipe()
    with warnings.catch_warnings():
        # The other thread waits for the end of the program, and holds no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        is_fork = os.fork() == 0
    if is_fork:
        for connection in (here, *_forked.values()):
            connection.close()
        np.random.seed()  # as `random` does by itself
        try:
            serve(there)
        finally:
            os._exit(0)
    there.close()
    return here


def has_fixed_hashes() -> bool:
    """Return whether equal texts have equal hashes in every process that this one starts."""
    return os.environ.get(_HASH_SEED, "random").isdecimal()


# Processes of the audits under way: those of a command, or of a test run, share them.
_current: list[NewProcesses] = []


@contextmanager
def compared_with(processes: NewProcesses) -> Iterator[None]:
    """Compare refutations by all audits inside the context with draws of these processes."""
    _current.append(processes)
    try:
        yield
    finally:
        _current.remove(processes)


def current() -> NewProcesses | None:
    """Return the processes of the innermost `compared_with`; None outside."""
    return _current[-1] if _current else None


def late(drawn: int) -> str:
    """Return why only this number of processes has drawn: the others took too long."""
    if drawn:
        return f"the others had not drawn within {SECONDS:g} s"
    return f"none had drawn within {PATIENCE:g} s"


_ENDED = "a new process ended before it had drawn"


def _done(future: Future[Done]) -> Done:
    error = future.exception()
    if error is None:
        return future.result()
    has_ended = getattr(error, "code", None) in ("worker-died", "worker-killed")
    raise _CannotDrawError(_ENDED if has_ended else in_a_line(error))
