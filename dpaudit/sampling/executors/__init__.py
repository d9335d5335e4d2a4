"""Choose where the chunks of an audit are drawn: this process, other processes, other machines.

The draws are equal in all pools, since the random streams of a chunk follow from the seed and the
key of the chunk. The options `executor` and `workers` decide which pool `drawing` yields:

- `InProcess` (in_process.py) draws in this process, and moves to worker processes in a long audit.
- `Pool` (pools.py) sends bundles to an executor of the user, and `DaskPool` (cluster.py) to a Dask
  cluster.
- `ProcessPool` (worker_processes.py) is a `Pool` with worker processes of its own on this machine.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from dpaudit.errors import DpauditError, Name, UsageError
from dpaudit.processes import cores
from dpaudit.sampling.chunks import Chunk, Result
from dpaudit.wording import did_you_mean

if TYPE_CHECKING:  # most audits start no process, and this import takes some 30 ms
    from concurrent.futures import Executor

    from dpaudit.sampling.sampler import Sampler

Workers = int | Literal["auto"]
EXECUTORS = ("serial", "processes", "dask")
# Values of the option `executor` for draws on this machine: `serial` for this process, `processes`
# for worker processes that it starts, None to choose between the two by the number of workers.
LOCAL = (None, "serial", "processes")
# Names of worker processes begin with this text, by which a process knows that it is a worker.
WORKER = "dpaudit-worker"
_DASK_ADDRESS = "dask://host:8786"
# Worker processes are started only if this process alone would draw for at least this many more
# seconds, since a worker takes about 1 s to start.
WORTHWHILE_SECONDS = 5.0


class Drawer(Protocol):
    """A function that makes the draws of chunks."""

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in order. More chunks may be taken from `chunks` before
        earlier results are used. When the iterator is closed, chunks that are being drawn are
        discarded."""
        ...


class WorkerPool(ABC):
    """A `Drawer` with information about the processes that draw.

    workers: number of processes that draw at the same time.
    is_here: whether the next chunk will be drawn in this process, when its result is requested.
    others_drew: whether other processes draw, or have drawn, for this audit.
    differed: whether another process gave different outputs for an equal seed.
    note: the reason why only this process draws, although drawing takes long; else None.
    """

    workers: int = 1
    is_here: bool = False
    others_drew: bool = True
    differed: bool = False
    note: str | None = None

    @abstractmethod
    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in the order of the chunks."""

    def settle(self) -> None:  # noqa: B027  # optional
        """Start all processes that will draw, and wait until they are ready, before draws are
        timed. By default, do nothing: an executor does not tell when its workers have started."""

    def close(self, *, in_order: bool) -> None:  # noqa: B027  # optional
        """End the processes that the pool has started. With `in_order`, give them some seconds to
        end by themselves before they are killed."""


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """The arguments from which a pool is made.

    sampler: makes the draws in this process.
    make: returns an equal sampler in another process; it is sent there as a pickle.
    workers: largest number of processes that draw at the same time.
    left: maps a rate, in draws per second, to the seconds of drawing that the audit still needs. If
        they are many, `InProcess` moves to worker processes. None: it does not move.
    may_repeat: called with the way in which a worker ended. Returns whether the chunks of this
        worker may be drawn again, which requires that equal seeds give equal outputs.
    """

    sampler: Sampler
    make: Callable[[], Sampler]
    workers: int = 1
    left: Callable[[float], float] | None = None
    may_repeat: Callable[[str], bool] = lambda how: False


def check_executor(executor: Executor | str | None, workers: Workers) -> None:
    """Raise UsageError for an unknown executor, or one that contradicts the number of workers."""
    if executor is None:
        return
    name, separator, address = str(executor).partition("://")
    value, known = f"={executor!r}", ", ".join(EXECUTORS)
    if not isinstance(executor, str):
        from concurrent.futures import Executor, ThreadPoolExecutor

        if isinstance(executor, ThreadPoolExecutor):
            raise threads_refused()
        if isinstance(executor, Executor):
            return
        why = (
            f"{value} must be a name ({known}) or a concurrent.futures.Executor; of a Dask client, "
            "give client.get_executor()"
        )
    elif name not in EXECUTORS:
        hint = did_you_mean(name, EXECUTORS)
        why = f"{value} is not known; known: {known}, {_DASK_ADDRESS}.{hint}"
    elif separator and (name != "dask" or not address):
        why = f"{value} takes no address; give {name}, or {_DASK_ADDRESS}"
    else:
        _check_workers(name, address, value, 1 if workers == "auto" else workers)
        return
    raise UsageError(Name("executor"), why, code="executor-unknown")


def _check_workers(name: str, address: str, value: str, workers: int) -> None:
    if workers > 1 and name == "serial":
        draws = f"{value} draws in this process; for "
        remedy = f"={workers} give processes"
        raise UsageError(Name("executor"), draws, Name("workers"), remedy, code="options-conflict")
    if workers > 1 and address:
        where = f"{value}: the number of workers is set where they are started; leave "
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
    """Return an error as one line: `type: message`, or only the message for a DpauditError."""
    message = " ".join(str(error).split())
    if isinstance(error, DpauditError) and message:
        return message
    return f"{type(error).__name__}: {message}".removesuffix(": ")


def is_serial(executor: Executor | str | None, workers: Workers) -> bool:
    """Return whether the audit begins in this process alone, without worker processes."""
    return executor == "serial" or (executor is None and workers in (1, "auto"))


def resolved(executor: Executor | str | None, workers: Workers) -> int:
    """Return the number of worker processes. "auto" becomes the number of usable cores, except that
    it becomes 1 for the executor "serial", an executor object, and the address of a cluster."""
    if workers != "auto":
        return workers
    is_given = executor is not None and not isinstance(executor, str)
    if executor == "serial" or is_given or "://" in str(executor):
        return 1
    return cores.cores()


@contextmanager
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[WorkerPool]:
    """Yield the pool that draws, and close it at the end. Without an executor, this process draws
    if `setup.workers` is 1, and worker processes draw otherwise. Raises UsageError if an executor
    cannot be reached, or if the mechanism cannot be pickled."""
    if _is_preparing():
        setup = replace(setup, left=None)
    # Only the pool that is needed is imported: most audits need no other process.
    pool: WorkerPool
    if is_serial(executor, setup.workers):
        from dpaudit.sampling.executors.in_process import InProcess

        pool = InProcess(setup)
    else:
        setup.sampler.close()  # the workers have samplers of their own
        pool = _other_processes(executor, setup)
    is_over = False
    try:
        yield pool
        is_over = True
    finally:
        pool.close(in_order=is_over)


def _other_processes(executor: Executor | str | None, setup: Setup) -> WorkerPool:
    if executor in (None, "processes"):
        from dpaudit.sampling.executors.worker_processes import ProcessPool

        return ProcessPool(setup, setup.workers)
    if isinstance(executor, str):
        from dpaudit.sampling.executors.cluster import DaskPool

        return DaskPool(setup, executor.partition("://")[2])
    from dpaudit.sampling.executors.pools import Pool, Recipe

    assert executor is not None
    return Pool(executor, Recipe.of(setup.make), setup.workers)


def _is_preparing() -> bool:
    """Return whether this spawned process still imports a script. End it if it is a worker."""
    # The import audits, too, if the script audits outside of `if __name__ == "__main__":`. Such an
    # audit must not start further processes, which would import the script again.
    process = sys.modules.get("multiprocessing.process")
    current = None if process is None else process.current_process()
    if not getattr(current, "_inheriting", False):
        return False
    if str(getattr(current, "name", "")).startswith(WORKER):
        raise SystemExit(1)  # the auditing process notices this and reports an error
    return True
