"""New processes that repeat the draws of a refutation, to detect noise that a process draws once.

After draws have refuted a claim, `dpaudit.auditing.redrawing` calls `NewProcesses.draw`. Up to
eight new processes draw again, and their counts are compared with the counts that refuted the claim
(docs/method.md §11, "New processes"). Each new process imports the mechanism for itself, since a
fork of this process would share noise that was drawn when the mechanism was imported. The clocks of
the processes run ahead by different numbers of hours: noise that is seeded by the time then differs
between processes. The processes are kept for later refutations of the same command or test run.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.sampling.chunks import Chunk, Counted
from dpaudit.sampling.executors import LARGE_LIBRARIES, in_a_line

if TYPE_CHECKING:  # most audits start no process, and these imports take some 30 ms
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from dpaudit.sampling.executors.pools import Done, Recipe
    from dpaudit.sampling.executors.processes import ProcessPool

# Number of new processes that repeat the draws of each refutation, to detect noise that a process
# draws once and then reuses; 0: no draws are repeated. With 8 processes, such noise is missed with
# probability 0.1 %; with two processes, with 11 % (simulated, docs/method.md §11).
PROCESSES = 8
# Least number of new processes that draw at the same time. An audit waits up to `WAITING_SECONDS`
# seconds for their draws. The number is above 1: in 28 % of audits, the draws of a single new
# process would not show noise that a process draws once and then reuses.
_MIN_PROCESSES = 2
# DRAWING_SECONDS: time limit for all new processes of a refutation together.
# WAITING_SECONDS: longest wait until `_MIN_PROCESSES` processes have drawn, since an import may be
#     slow.
# IMPORTING_SECONDS: longest wait for the import of large libraries by one interpreter for all its
#     forks, which does not count towards the other two limits. The import takes 8 s of processor
#     time for torch and Opacus, and longer on a busy machine. Interpreters with hash seeds of their
#     own import large libraries within the other two limits.
DRAWING_SECONDS, WAITING_SECONDS, IMPORTING_SECONDS = 5.0, 60.0, 300.0
# The new processes take turns on the cores, two or more at a time, and each may take long to start,
# on a busy machine or with a slow import. So if the first process has drawn after t seconds, the
# time limit for all processes is at least this number times t (but at most `WAITING_SECONDS`).
TIMES_OF_FIRST = 4.0
# Seconds between two checks for results, while new processes draw.
_LOOK_SECONDS = 0.1
# The clock of new process number k runs k times this number of seconds ahead. This is neither a
# whole number of minutes nor of seconds, so noise that is seeded by the time differs between
# processes, even if the time is rounded.
_CLOCK_SHIFT = 7 * 3600 + 13 * 60 + 17.371
# Whether new processes may be forks. On systems other than Linux, libraries that NumPy uses may
# fail after a fork.
_MAY_FORK = sys.platform == "linux"
_HASH_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The result of `NewProcesses.draw`.

    drawn: counts of each chunk (request for draws) that was drawn, in the order of the chunks.
    why: reason why chunks are missing; empty if all chunks were drawn.
    failed: whether any process could not draw; `drawn` is empty then.
    """

    drawn: list[Counted]
    why: str = ""
    failed: bool = False


class _CannotDrawError(Exception):
    """Raised if a new process cannot draw; the message gives the reason."""


class NewProcesses:
    """Starts new processes when they are first needed, and keeps them until `close`.

    On Linux, a few new Python interpreters import NumPy and dpaudit, and then fork; every fork
    imports the mechanism for itself. So not every process has to import NumPy and dpaudit, which
    takes longer than the import of a small mechanism. On other systems, every process is a Python
    interpreter of its own.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        """Start no process yet; `draw` starts processes when they are needed.

        preload: names of modules that an interpreter imports before it forks. Their import must
        draw no random number, since all forks would share it.
        """
        self._preload = tuple(preload)
        # The new Python interpreters. The key is (whether the interpreter has a hash seed of its
        # own, its number, counted from 0); interpreters of both kinds are numbered separately.
        self._pools: dict[tuple[bool, int], ProcessPool] = {}

    def draw(
        self,
        recipe: Recipe,
        chunks: Sequence[Chunk[Counted]],
        *,
        own_hashes: bool = False,
        look: Callable[[], None] = lambda: None,
    ) -> Answers:
        """Return the counts of each chunk, each drawn in a new process of its own.

        Chunks are left out when time runs out: after `DRAWING_SECONDS`, or `TIMES_OF_FIRST` times
        the time until the first process has drawn, if that is longer; after `WAITING_SECONDS` in
        any case.

        recipe: makes the sampler in the new processes.
        own_hashes: give every interpreter a different hash seed, if PYTHONHASHSEED is a number.
        look: called without arguments every 0.1 seconds or so; may raise to stop drawing.
        """
        from concurrent.futures import FIRST_COMPLETED, wait

        from dpaudit.processes.cores import cores, room_for

        workers = min(len(chunks), max(_MIN_PROCESSES, min(cores(), room_for(len(chunks)))))
        is_own = own_hashes and has_fixed_hashes()
        large = _large_modules() if _MAY_FORK else []
        if large and not is_own:
            workers = 1
        # One list for each interpreter: the indices of the chunks that it draws. With n
        # interpreters, interpreter k draws the chunks k, k + n, k + 2 · n, and so on.
        queues = [list(range(len(chunks)))[start::workers] for start in range(workers)]
        # Chunks that are being drawn. Maps the future of a chunk to (index of its worker, index of
        # the chunk, key of its interpreter in `_pools`).
        running: dict[Future[Done], tuple[int, int, tuple[bool, int]]] = {}
        drawn: dict[int, Counted] = {}
        if large and not is_own:
            self._import(recipe, large, look)
        begun, slowest, limit = time.monotonic(), 0.0, DRAWING_SECONDS
        try:
            while (elapsed := time.monotonic() - begun) < limit or (
                len(drawn) < _MIN_PROCESSES and running and elapsed < WAITING_SECONDS
            ):
                idle = set(range(workers)) - {worker for worker, _, _ in running.values()}
                for worker in idle if elapsed + slowest <= limit else ():
                    if queues[worker]:
                        place = queues[worker].pop(0)
                        key = is_own, worker if _MAY_FORK else place
                        future = self._sent(recipe, chunks[place], place, key, large)
                        running[future] = worker, place, key
                if not running:
                    break
                for future in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                    _, place, _ = running.pop(future)
                    done = _done(future)
                    (drawn[place],) = done.drawn
                    slowest = max(slowest, done.seconds)
                    if len(drawn) == 1:
                        first = time.monotonic() - begun
                        limit = max(DRAWING_SECONDS, min(TIMES_OF_FIRST * first, WAITING_SECONDS))
                look()
        except _CannotDrawError as error:
            return Answers([], str(error), failed=True)
        finally:
            for _, _, key in running.values():
                self._pools.pop(key).close(in_order=False)
        in_order = [drawn[place] for place in sorted(drawn)]
        return Answers(in_order, "" if len(drawn) == len(chunks) else late(len(drawn)))

    def close(self) -> None:
        """Kill all new processes."""
        while self._pools:
            self._pools.popitem()[1].close(in_order=False)

    def _import(self, recipe: Recipe, large: Sequence[str], look: Callable[[], None]) -> None:
        """Wait until the first new interpreter has imported large libraries, at most
        `IMPORTING_SECONDS` seconds. If the interpreter ends during this time, the next request for
        draws starts another interpreter.

        recipe, look: as in `draw`.
        """
        from concurrent.futures import wait

        end = time.monotonic() + IMPORTING_SECONDS
        with suppress(OSError):
            future = self._pool(recipe, (False, 0)).call(_imported, (*self._preload, *large))
            while not wait([future], _LOOK_SECONDS).done and time.monotonic() < end:
                look()

    def _sent(
        self,
        recipe: Recipe,
        chunk: Chunk[Counted],
        place: int,
        key: tuple[bool, int],
        large: Sequence[str],
    ) -> Future[Done]:
        """Send a chunk (request for draws) to a new Python interpreter, which on Linux forks to
        draw it. Return the future of its counts. Raise _CannotDrawError if the chunk cannot be
        sent.

        recipe: makes the sampler in the new process.
        place: index of the chunk.
        key: key of the interpreter in `_pools`; an interpreter that does not run yet is started.
        large: names of further modules that the interpreter imports before it forks.
        """
        try:
            given = pickle.dumps((recipe, [chunk]))
            pool = self._pool(recipe, key)
            if _MAY_FORK:
                return pool.call(_draw_in_fork, given, place, (*self._preload, *large))
            return pool.call(_draw_here, given, place)
        except Exception as error:  # noqa: BLE001  # raised by the system, or by pickling
            raise _CannotDrawError(in_a_line(error)) from None

    def _pool(self, recipe: Recipe, key: tuple[bool, int]) -> ProcessPool:
        """Return the new Python interpreter with this key. Start it if it does not run.

        recipe: makes the sampler; the interpreter imports the user's script if the mechanism is
            defined in it.
        key: (whether the interpreter has a hash seed of its own, its index).
        """
        from dpaudit.sampling.executors.processes import ProcessPool

        if key in self._pools and self._pools[key].has_ended():
            self._pools.pop(key).close(in_order=False)
        if key not in self._pools:
            is_own, number = key
            seed = (int(os.environ[_HASH_SEED]) + number + 1) % (1 << 32) if is_own else None
            starting = partial(_starting, seed, has_main=b"__main__" in recipe.made)
            # With replaced=0, the pool does not replace an interpreter that ends. It would do so in
            # a thread of its own, and in the context `_starting`, which changes variables of the
            # whole process while other threads run.
            self._pools[key] = ProcessPool(None, 1, starting=starting, replaced=0)
        return self._pools[key]


def _large_modules() -> list[str]:
    """Return the names of all modules of large libraries that this process has imported. There may
    be many: the first step of a training imports about 190 modules of torch. If forks had to import
    them, each would take 1 s longer.
    """
    return [name for name in list(sys.modules) if name.partition(".")[0] in LARGE_LIBRARIES]


@contextmanager
def _starting(hash_seed: int | None, *, has_main: bool) -> Iterator[None]:
    """Return a context in which this process can start a process with the given settings. The
    context changes PYTHONHASHSEED and the module `__main__` of this process, which a new process
    takes over, and restores both at its end.

    hash_seed: PYTHONHASHSEED of the new process; None: as in this process.
    has_main: whether the new process imports the program that runs here. It must do so if the
        mechanism is defined in this program.
    """
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
        else:
            os.environ.pop(_HASH_SEED, None)


def _draw_here(given: bytes, place: int) -> Done:
    """Import the mechanism and draw chunks in this process. Return the results, and the seconds for
    import and draws. The clock is shifted before `given` is unpickled, so that modules see the
    shifted clock when they are imported.

    given: pickle of the recipe and the chunks.
    place: index of the process, which decides how far its clock runs ahead.
    """
    from dpaudit.processes.other_clock import SHIFT, shift_as_asked
    from dpaudit.sampling.executors.pools import Done, draw

    os.environ[SHIFT] = str((place + 1) * _CLOCK_SHIFT)
    shift_as_asked()
    begun = time.perf_counter()
    try:
        return Done(draw(*pickle.loads(given)).drawn, time.perf_counter() - begun)
    except BaseException as error:  # noqa: BLE001  # the mechanism may raise any exception
        # The exception is sent as text. If it were pickled, the interpreter that made this fork
        # might import the mechanism to unpickle it. Later forks would then share the noise that the
        # import draws.
        raise UsageError(in_a_line(error)) from None


# In a new interpreter: maps the index of a fork to the connection to the fork.
_forked: dict[int, Connection] = {}


def _draw_in_fork(given: bytes, place: int, preload: Sequence[str]) -> Done:
    """Draw chunks in a fork of this process, and return the results. This process is a new
    interpreter; it makes the fork at its first use and keeps it. Raises UsageError with the text of
    the fork's error.

    given: pickled recipe and chunks, which only the fork reads.
    place: index of the fork.
    preload: names of modules to import before the fork.
    """
    from dpaudit.sampling.executors.processes import ask, result_of

    if place not in _forked:
        _imported(preload)
        _forked[place] = _fork()
    try:
        reply = ask(_forked[place], pickle.dumps((_draw_here, (given, place))))
    except (EOFError, OSError):
        _forked.pop(place).close()
        raise UsageError(_ENDED, code="worker-died") from None
    return result_of(reply)


def _imported(names: Sequence[str]) -> Done:
    """Import modules by their names, and return an empty result. A module that cannot be imported
    is skipped, such as torch.ops, which has no file. If the mechanism needs it, the mechanism
    raises the error.
    """
    from dpaudit.sampling.executors.pools import Done

    for name in names:
        with suppress(Exception):
            import_module(name)
    return Done([], 0.0)


def _fork() -> Connection:
    """Fork this process, and return a connection to the fork. The fork runs the tasks that it
    receives until this process ends or closes the connection.
    """
    from multiprocessing import Pipe

    from dpaudit.sampling.executors.processes import serve

    here, there = Pipe()
    with warnings.catch_warnings():
        # Python warns when a process with several threads forks. Hide the warning: the only other
        # thread here waits for the end of the auditing process and holds no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        is_fork = os.fork() == 0
    if is_fork:
        for connection in (here, *_forked.values()):
            connection.close()
        np.random.seed()  # forks share its state; `random` re-seeds itself in a fork
        try:
            serve(there)
        finally:
            os._exit(0)
    there.close()
    return here


def has_fixed_hashes() -> bool:
    """Return whether PYTHONHASHSEED is a number, so that all processes hash texts in the same
    way.
    """
    return os.environ.get(_HASH_SEED, "random").isdecimal()


# The new processes that were given to each open `compared_with` context, in which audits compare
# refutations with draws of these processes; the innermost context comes last. There is usually one:
# a command or a test run opens a context for all of its audits.
_current: list[NewProcesses] = []


@contextmanager
def compared_with(processes: NewProcesses) -> Iterator[None]:
    """Return a context. If the draws of an audit in this context refute the claim, the audit
    compares them with draws that `processes` makes in new processes."""
    _current.append(processes)
    try:
        yield
    finally:
        _current.remove(processes)


def current() -> NewProcesses | None:
    """Return the new processes of the innermost `compared_with` context. Audits compare refutations
    with draws of these processes. Return None outside of such contexts.
    """
    return _current[-1] if _current else None


def late(drawn: int) -> str:
    """Return the message that some or all new processes did not draw in time.

    drawn: number of processes that did draw in time.
    """
    if drawn:
        return "the others had not drawn in time, on a busy machine or after a slow import"
    return f"none had drawn within {WAITING_SECONDS:g} s"


_ENDED = "a new process ended before it had drawn"


def _done(future: Future[Done]) -> Done:
    error = future.exception()
    if error is None:
        return future.result()
    has_ended = getattr(error, "code", None) in ("worker-died", "worker-killed")
    raise _CannotDrawError(_ENDED if has_ended else in_a_line(error))
