"""Choose where the chunks of an audit are drawn: this process, other processes, other machines.

A chunk is a request for draws. `drawing` yields a `WorkerPool`, which takes an iterable of chunks
and yields the result of each chunk in order. The user's options `executor` and `workers` decide
which pool it is: `InProcess` (below), `ProcessPool`, or a pool on Dask or on an executor of the
user. The draws are equal in all of them, since the random streams of a chunk follow from the seed
and the key of the chunk.

`InProcess` draws every chunk in this process at first. If the audit will take several seconds more,
it starts worker processes (`JoiningWorkers`), as many as cores and memory allow, and goes on
drawing while they start. Before workers join, each worker has to repeat a few test draws of this
process from an equal seed. If any test draw differs, or the mechanism keeps state between calls,
this process draws alone.
"""

from __future__ import annotations

import math
import pickle
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from dpaudit.errors import DpauditError, MechanismError, Name, UsageError
from dpaudit.outcomes import KeyArray
from dpaudit.processes import cores
from dpaudit.sampling.chunks import (
    Chunk,
    FirstCalls,
    Learning,
    Result,
    ToCount,
    ToLearn,
    ToPace,
    ToProbe,
    ToTime,
)
from dpaudit.sampling.state import Written, changed, kept_state
from dpaudit.wording import ONE_PROCESS, did_you_mean

if TYPE_CHECKING:  # most audits start no process, and these imports take some 30 ms
    from concurrent.futures import Executor

    from dpaudit.sampling.executors.processes import ProcessPool
    from dpaudit.sampling.sampler import Sampler

Workers = int | Literal["auto"]
EXECUTORS = ("serial", "processes", "dask")
# Values of the option `executor` for draws on this machine: `serial` for this process, `processes`
# for worker processes that it starts, None to choose between the two by the number of workers.
LOCAL = (None, "serial", "processes")
# Names of worker processes begin with this text, by which a process knows that it is a worker.
WORKER = "dpaudit-worker"
_DASK_ADDRESS = "dask://host:8786"
# Workers are started only if this process alone would need at least this many more seconds to draw,
# since a worker takes about 1 s to start.
WORTHWHILE_SECONDS = 5.0
# Libraries whose import takes seconds.
LARGE_LIBRARIES = ("torch", "opacus")
# No worker is started in this number of seconds after the first draw, since an audit may find a
# violation in this time.
_FIRST_SECONDS = 1.0
# _FIRST_SECONDS_LARGE: if this process uses torch or Opacus (`LARGE_LIBRARIES`), workers start only
#     after drawing has taken this many seconds of processor time: a worker takes about as long to
#     import them.
# _MIN_WALL_SHARE: a mechanism that waits uses little processor time. So this share of the wall time
#     of drawing replaces the processor time if the share is larger.
_FIRST_SECONDS_LARGE, _MIN_WALL_SHARE = 10.0, 0.2
# If JAX or a similar library compiles the mechanism again for each number of draws, a call for
# fewer draws than this takes about as long as a call for this number. So chunks that are smaller do
# not show the number of draws per second.
_COMPILED_DRAWS = 1_024
# Number of chunks of a compiled mechanism that must be timed before workers are started. Chunks
# during which the mechanism was compiled are not counted.
_COMPILED_CHUNKS = 4
# Test draws, which each worker has to repeat before workers join: largest number (`_TEST_DRAWS`),
# and longest time that they may take in this process, in seconds (`_TEST_SECONDS`). If the largest
# number would take longer, fewer draws are made, but at least 4.
_TEST_DRAWS, _TEST_SECONDS = 64, 0.25
# Key of the chunk (request for draws) of test draws, which each worker has to repeat before workers
# join. No chunk of an audit has this key, so test draws use no random numbers of the audit.
_TEST_KEY = (0, 99, 0)
# If calls change variables of the mechanism, no worker processes are started. A note names at most
# this number of these variables.
_MAX_NAMED = 3


class Drawer(Protocol):
    """A function that makes the draws of chunks (requests for draws)."""

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk (request for draws), in the order of the chunks. Chunks
        may be taken from `chunks` before the results of earlier chunks are used. Closing the
        returned iterator discards the chunks that are being drawn.
        """
        ...


class WorkerPool(ABC):
    """A `Drawer` (a function that makes the draws of chunks) with information about the processes
    that draw.

    workers: number of processes that draw at the same time.
    is_here: whether the next chunk will be drawn in this process, when its result is requested.
    others_drew: whether other processes have made draws of this audit.
    differed: whether another process gave different outputs for an equal seed.
    note: if only this process draws, although drawing takes long, the reason for it; else None.
    """

    workers: int = 1
    is_here: bool = False
    others_drew: bool = True
    differed: bool = False
    note: str | None = None

    @abstractmethod
    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk (request for draws), in the order of the chunks."""


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """The arguments from which a pool is made.

    sampler: makes the draws in this process.
    make: returns an equal sampler in another process; it is sent there as a pickle.
    workers: largest number of processes that draw at the same time.
    left: function from a rate, in draws per second, to the seconds of drawing that the audit still
        needs at this rate. `InProcess`, which draws in this process, starts worker processes if
        this is long. None: it starts none.
    """

    sampler: Sampler
    make: Callable[[], Sampler]
    workers: int = 1
    left: Callable[[float], float] | None = None


def check_executor(executor: Executor | str | None, asked: Workers) -> None:
    """Raise UsageError for an unknown executor, or an executor that contradicts the number of
    workers.

    executor: the value of the option `executor`.
    asked: the value of the option `workers`.
    """
    if executor is None:
        return
    name, separator, address = str(executor).partition("://")
    given, known = f"={executor!r}", ", ".join(EXECUTORS)
    if not isinstance(executor, str):
        from concurrent.futures import Executor, ThreadPoolExecutor

        if isinstance(executor, ThreadPoolExecutor):
            raise threads_refused()
        if isinstance(executor, Executor):
            return
        why = (
            f"{given} must be a name ({known}) or a concurrent.futures.Executor; of a Dask client, "
            "give client.get_executor()"
        )
    elif name not in EXECUTORS:
        hint = did_you_mean(name, EXECUTORS)
        why = f"{given} is not known; known: {known}, {_DASK_ADDRESS}.{hint}"
    elif separator and (name != "dask" or not address):
        why = f"{given} takes no address; give {name}, or {_DASK_ADDRESS}"
    else:
        _check_workers(name, address, given, 1 if asked == "auto" else asked)
        return
    raise UsageError(Name("executor"), why, code="executor-unknown")


def _check_workers(name: str, address: str, given: str, workers: int) -> None:
    if workers > 1 and name == "serial":
        draws = f"{given} draws in this process; for "
        remedy = f"={workers} give processes"
        raise UsageError(Name("executor"), draws, Name("workers"), remedy, code="options-conflict")
    if workers > 1 and address:
        where = f"{given}: the number of workers is set where they are started; leave "
        parts = Name("workers"), f"={workers} with ", Name("executor"), where
        raise UsageError(*parts, Name("workers"), " out", code="options-conflict")


def threads_refused() -> UsageError:
    """Return the error for an executor that runs its tasks in threads of this process."""
    return UsageError(
        "the executor runs its tasks in threads of the auditing process. Threads share global "
        "random generators, so draws would depend on each other; give an executor that uses "
        "processes",
        code="executor-with-threads",
    )


def in_a_line(error: BaseException) -> str:
    """Return an error as one line of text: `type: message`, or only the message for a
    DpauditError.
    """
    message = " ".join(str(error).split())
    if isinstance(error, DpauditError) and message:
        return message
    return f"{type(error).__name__}: {message}".removesuffix(": ")


def is_serial(executor: Executor | str | None, workers: Workers) -> bool:
    """Return whether the audit begins in this process alone, without worker processes."""
    return executor == "serial" or (executor is None and workers in (1, "auto"))


def resolved(executor: Executor | str | None, workers: Workers) -> int:
    """Return the number of worker processes as an integer. "auto" becomes the number of usable
    cores; but it becomes 1 for the executor "serial", for an executor object of the user, and for
    the address of a cluster.
    """
    if workers != "auto":
        return workers
    is_given = executor is not None and not isinstance(executor, str)
    if executor == "serial" or is_given or "://" in str(executor):
        return 1
    return cores.cores()


@contextmanager
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[WorkerPool]:
    """Yield the pool that draws, and close it after the context.

    executor: name, address or object of the executor. None means this process if `setup.workers` is
        1 (worker processes may join later), and worker processes otherwise.

    Raises UsageError for an executor that cannot be reached or is not installed, and for a
    mechanism that cannot be pickled.
    """
    # Only the pool that is needed is imported: most audits need no other process.
    if is_serial(executor, setup.workers):
        here = InProcess(_unless_preparing(setup))
        with _closing(here.close):
            yield here
        return
    from dpaudit.sampling.executors import pools

    setup.sampler.close()  # the workers have samplers of their own
    if executor in (None, "processes"):
        from dpaudit.sampling.executors.processes import ProcessPool

        processes = ProcessPool(pools.Recipe.of(setup.make), setup.workers)
        with _closing(processes.close):
            yield processes
    elif isinstance(executor, str):
        with pools.dask_pool(setup, executor.partition("://")[2]) as cluster:
            yield cluster
    else:
        yield pools.ExecutorPool(executor, pools.Recipe.of(setup.make), setup.workers)


@contextmanager
def _closing(close: Callable[..., None]) -> Iterator[None]:
    """Return a context that calls `close(in_order=True)` when it ends normally, and
    `close(in_order=False)` when an exception ends it.
    """
    is_over = False
    try:
        yield
        is_over = True
    finally:
        close(in_order=is_over)


def _unless_preparing(setup: Setup) -> Setup:
    """Return `setup`. If this process is a spawned process that still imports the script of its
    parent, return a copy with `left` = None: then no worker processes join the audit.

    The import audits, too, if the script audits outside of `if __name__ == "__main__":`. Such an
    audit must not start further processes, which would import the script again. Raises SystemExit
    if this process is a worker of dpaudit.
    """
    process = sys.modules.get("multiprocessing.process")
    if setup.left is None or process is None:
        return setup
    current = process.current_process()
    if not getattr(current, "_inheriting", False):
        return setup
    if current.name.startswith(WORKER):
        raise SystemExit(1)  # the auditing process notices this and reports an error
    return replace(setup, left=None)


class InProcess(WorkerPool):
    """A pool that draws each chunk in this process when its result is requested. `setup.left`, if
    given, forecasts how many seconds of drawing are left. If these are many, worker processes start
    and make the later draws.
    """

    is_here, others_drew = True, False

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._joining: JoiningWorkers | None = None
        self._may_join = setup.left is not None
        self._sent: object = None  # the last measure that was pickled
        # _since: time when drawing began, by the clock, in seconds; NaN before.
        # _drew, _busy: wall time and processor time of drawing so far, in seconds.
        # _rate: draws per second in the last chunk.
        self._since, self._drew, self._busy, self._rate = math.nan, 0.0, 0.0, 0.0
        self._chunks = 0  # of a compiled mechanism, timed

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        if self._setup.left is None:
            return map(self._setup.sampler.draw, chunks)
        return self._drawn(iter(chunks))

    def close(self, *, in_order: bool) -> None:
        """End the workers, if any have joined.

        in_order: whether workers get some seconds to end by themselves before they are killed. If
            not, they are killed immediately.
        """
        if self._joining is not None:
            self._joining.close(in_order=in_order)

    def _drawn(self, source: Iterator[Chunk[Any]]) -> Iterator[Any]:
        for chunk in source:
            # These chunks measure the rate of all workers: let them join first.
            if isinstance(chunk, ToTime) or (
                isinstance(chunk, ToPace) and chunk.patience and not self._is_large()
            ):
                self._look(now=True)
                if self._joining is not None:
                    self._joining.pool.settle(chunk.patience)
                    self._look()
            if self._joining is not None and self._can_send(chunk):
                self.others_drew, self.workers = True, self._joining.workers
                yield from self._joining.pool(chain([chunk], source))
                return
            yield self._timed(chunk)
            # The audit has used the result that was just yielded, so it knows now how many draws
            # are left. From this number, `_look` decides whether worker processes would save time.
            self._look()

    def _timed(self, chunk: Chunk[Any]) -> Any:
        """Draw a chunk (request for draws) in this process, return its result, and update the
        number of draws per second.
        """
        start, busy = time.perf_counter(), time.process_time()
        if math.isnan(self._since):
            self._since = start
        compiled = self._compiled()
        before = len(compiled)
        drawn = self._setup.sampler.draw(chunk)
        seconds = time.perf_counter() - start
        self._drew += seconds
        self._busy += time.process_time() - busy
        if isinstance(chunk, FirstCalls):
            # The first calls ask for one draw each. Their time does not show the draws per second
            # of a mechanism that makes many draws per call, so the rate is measured later.
            is_single = self._setup.sampler.mechanism.interleaved
            self._rate = 1 / max(drawn.seconds, 1e-9) if is_single else 0.0
        elif not isinstance(chunk, ToProbe) and len(compiled) == before:
            if compiled:  # on a busy machine, the fastest chunk shows the rate best
                self._chunks += 1
                rate = max(chunk.size, _COMPILED_DRAWS) / max(seconds, 1e-9)
                self._rate = max(self._rate, rate)
            else:
                self._rate = chunk.size / max(seconds, 1e-9)
        return drawn

    @staticmethod
    def _is_large() -> bool:
        return any(name in sys.modules for name in LARGE_LIBRARIES)

    def _compiled(self) -> Sized:
        return getattr(self._setup.sampler.mechanism, "compiled", ())

    def _least_left(self) -> float:
        """Return the least number of seconds of drawing that must be left for it to be worth
        starting workers. For a compiled mechanism the number is larger, since each worker has to
        compile it, too; the number is infinite until enough draws were timed."""
        if not self._compiled():
            return WORTHWHILE_SECONDS
        return (
            max(WORTHWHILE_SECONDS, 2 * self._drew)
            if self._chunks >= _COMPILED_CHUNKS
            else math.inf
        )

    def _look(self, *, now: bool = False) -> None:
        """Start worker processes if that will save time. If they were started before, and all are
        ready, let them make all further draws in place of this process.

        now: whether to start workers even if drawing has not yet taken the usual time,
            `_FIRST_SECONDS` or `_FIRST_SECONDS_LARGE` seconds.
        """
        left = self._setup.left
        if not self._may_join or left is None:
            return
        if self._is_large():
            is_time = max(self._busy, _MIN_WALL_SHARE * self._drew) >= _FIRST_SECONDS_LARGE
        else:
            is_time = time.perf_counter() - self._since >= _FIRST_SECONDS
        try:
            if self._joining is not None:
                self._joining.look()
                self.is_here = not self._joining.are_there
            elif (now or is_time) and self._rate > 0 and left(self._rate) > self._least_left():
                used = self._busy / self._drew
                self._joining = JoiningWorkers(self._setup, self._rate, used)
        except _CannotJoinError as reason:
            self._stay(reason)

    def _can_send(self, chunk: Chunk[Any]) -> bool:
        """Return whether workers have joined and the chunk (request for draws) can be pickled.

        A request for counts (`ToCount`) may contain a rule of the user's own attack, which may not
        be picklable. If it is not, this process makes all further draws.
        """
        if self._joining is None or not self._joining.are_there:
            return False
        if isinstance(chunk, ToCount) and chunk.measure is not self._sent:
            try:
                pickle.dumps(chunk)
            except Exception as error:  # noqa: BLE001  # a user's object may raise any exception
                self._stay(_CannotJoinError(in_a_line(error)))
            self._sent = chunk.measure
        return self._may_join

    def _stay(self, reason: _CannotJoinError) -> None:
        """End the worker processes, and make all further draws in this process.

        reason: why workers cannot join. Its message, if any, becomes a note to the user.
        """
        self.close(in_order=False)
        self._joining, self._may_join, self.is_here = None, False, True
        self.differed = isinstance(reason, _DiffersError)
        if str(reason):
            self.note = f"{ONE_PROCESS}: {reason}"


class _CannotJoinError(Exception):
    """Raised if worker processes cannot take part in the drawing of an audit. The message is the
    reason, for a note to the user; it is empty if no note is needed."""


class _DiffersError(_CannotJoinError):
    """Raised if a worker gave other outputs than this process for an equal seed."""


class JoiningWorkers:
    """Worker processes that start while the auditing process goes on drawing. When all are ready,
    they join: they make all further draws.

    workers: number of worker processes.
    pool: the pool of the worker processes.
    are_there: whether the workers have joined.
    """

    def __init__(self, setup: Setup, rate: float, used: float) -> None:
        """Start the worker processes. Raises _CannotJoinError if that is not possible.

        setup: the arguments of the pool.
        rate: draws per second in this process.
        used: number of cores that drawing in this process keeps busy.
        """
        self._sampler = setup.sampler
        self.are_there = False
        wanted = round(cores.cores() / max(1.0, used))
        self.workers = min(wanted, cores.room_for(wanted))
        if wanted < 2:
            raise _CannotJoinError
        if self.workers < 2:
            raise _CannotJoinError("there is no memory for another process as large as this one")
        if _is_in_no_file():
            raise _CannotJoinError("the program that runs is in no file")
        few = ToLearn(_TEST_KEY, min(_TEST_DRAWS, max(4, int(rate * _TEST_SECONDS))))
        try:
            self.pool = self._started(setup, few)
        except UsageError as error:
            raise _CannotJoinError(str(error.__cause__)) from None
        except MechanismError as error:  # raised by draws that do not belong to the audit
            raise _CannotJoinError(in_a_line(error)) from None
        except OSError as error:
            raise _CannotJoinError(f"no process can be started ({error})") from None

    def look(self) -> None:
        """Let the workers join, which means that they make all further draws, if every worker has
        started and has repeated the test draws of this process. Raise _CannotJoinError if a worker
        failed to start, or if its test draws differ from those of this process.
        """
        if self.are_there or not all(future.done() for future in self.pool.started):
            return
        for error in filter(None, (future.exception() for future in self.pool.started)):
            if getattr(error, "code", None) == "worker-died":
                raise _CannotJoinError(
                    "a process that was to draw ended at once (in a script, audits belong into "
                    "`if __name__ == '__main__':`)"
                )
            raise _CannotJoinError(in_a_line(error))
        shown = [_keys(future.result().drawn[0]) for future in self.pool.started]
        if self._shown is not None and not all(np.array_equal(self._shown, keys) for keys in shown):
            raise _DiffersError("there, equal seeds give other outputs than in this process")
        self._sampler.close()  # the workers have samplers of their own
        self.are_there = True

    def close(self, *, in_order: bool) -> None:
        self.pool.close(in_order=in_order and self.are_there)

    def _started(self, setup: Setup, few: ToLearn) -> ProcessPool:
        """Make the test draws `few` twice in this process, then start workers that repeat them. If
        both times give equal draws, the workers must make the same draws.

        Raises _CannotJoinError if the mechanism must not run in several processes: its calls change
        variables, or all of them write to one file.
        """
        from dpaudit.sampling.executors.pools import Recipe
        from dpaudit.sampling.executors.processes import ProcessPool

        recipe = Recipe.of(setup.make)
        parts = self._sampler.mechanism.parts
        before = kept_state(*parts)
        with Written() as once:
            keys = _keys(self._sampler.draw(few))
        with Written() as twice:
            again = _keys(self._sampler.draw(few))
        if names := changed(before, kept_state(*parts)):
            listed = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
            why = f"the mechanism keeps state between calls, which changed {listed}"
            raise _CannotJoinError(why)
        if files := sorted(once.files & twice.files):
            raise _CannotJoinError(f"its calls all write to {files[0]}")
        # If two runs from one seed differ in this process, the seed does not determine the draws.
        # Workers cannot be expected to repeat them, so their test draws are not compared.
        self._shown = keys if np.array_equal(keys, again) else None
        pool = ProcessPool(recipe, self.workers, [few])
        pool.start()
        return pool


def _keys(drawn: Learning) -> KeyArray:
    return drawn.fresh.release().outcomes.keys()


def _is_in_no_file() -> bool:
    """Return whether the running program is in no file, such as a program from standard input. A
    new process could not import it.
    """
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return main.__spec__ is None and file is not None and not Path(file).exists()
