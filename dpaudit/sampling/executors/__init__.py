"""Choose where the chunks of an audit are drawn: this process, other processes, other machines.

A chunk is a request for draws. `drawing` yields a `WorkerPool`, which takes an iterable of chunks
and yields the result of each chunk in order. The user's options `executor` and `workers` decide
which pool it is: `InProcess`, `ProcessPool`, or a pool on Dask or on an executor of the user. The
draws are equal in all of them, since the random streams of a chunk follow from the seed and the
key of the chunk.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from dpaudit.errors import DpauditError, Name, UsageError
from dpaudit.wording import did_you_mean

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpaudit.sampling.chunks import Chunk, Result
    from dpaudit.sampling.sampler import Sampler

Workers = int | Literal["auto"]
EXECUTORS = ("serial", "processes", "dask")
# Names of worker processes begin with this, so that a worker can recognise itself as a worker.
WORKER = "dpaudit-worker"
_DASK_ADDRESS = "dask://host:8786"


class Drawer(Protocol):
    """A function that draws chunks."""

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in the order of the chunks.

        Chunks may be taken from the iterable before the results of earlier chunks are used. Closing
        the returned iterator discards the chunks that are being drawn.
        """
        ...


class WorkerPool(ABC):
    """A `Drawer` with information about the processes that draw.

    workers: number of processes that draw at the same time.
    is_here: whether the next chunk will be drawn in this process, when its result is requested.
    others_drew: whether other processes have made draws of this audit.
    differed: whether another process gave different outputs for an equal seed.
    note: reason why only this process draws although drawing takes long; else None.
    """

    workers: int = 1
    is_here: bool = False
    others_drew: bool = True
    differed: bool = False
    note: str | None = None

    @abstractmethod
    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in the order of the chunks."""


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """The arguments from which a pool is made.

    sampler: makes the draws in this process.
    make: returns an equal sampler in another process; it is sent there as a pickle.
    workers: largest number of processes that draw at the same time.
    left: is called with a rate in draws per second and returns the seconds of drawing that the
        audit still needs at this rate. None: no worker processes may join a serial audit.
    """

    sampler: Sampler
    make: Callable[[], Sampler]
    workers: int = 1
    left: Callable[[float], float] | None = None


def check_executor(executor: Executor | str | None, asked: Workers) -> None:
    """Raise UsageError for an unknown executor, or an executor that contradicts `workers`.

    asked: the user's number of workers.
    """
    if executor is None:
        return
    if not isinstance(executor, str):
        _check_given(executor)
        return
    workers = 1 if asked == "auto" else asked
    name, separator, address = executor.partition("://")
    given = f"={executor!r}"
    if name not in EXECUTORS:
        raise _refused(
            f"{given} is not known; known: {', '.join(EXECUTORS)}, "
            f"{_DASK_ADDRESS}.{did_you_mean(name, EXECUTORS)}"
        )
    if separator and (name != "dask" or not address):
        raise _refused(f"{given} takes no address; give {name}, or {_DASK_ADDRESS}")
    if name == "serial" and workers > 1:
        raise UsageError(
            Name("executor"),
            f"{given} draws in this process; for ",
            Name("workers"),
            f"={workers} give processes",
            code="options-conflict",
        )
    if address and workers > 1:
        raise UsageError(
            Name("workers"),
            f"={workers} with ",
            Name("executor"),
            f"{given}: the number of workers is set where they are started; leave ",
            Name("workers"),
            " out",
            code="options-conflict",
        )


def _refused(why: str) -> UsageError:
    return UsageError(Name("executor"), why, code="executor-unknown")


def _check_given(executor: object) -> None:
    from concurrent.futures import Executor, ThreadPoolExecutor

    if not isinstance(executor, Executor):
        raise UsageError(
            f"executor={executor!r} must be a name ({', '.join(EXECUTORS)}) or a "
            "concurrent.futures.Executor; of a Dask client, give client.get_executor()",
            code="executor-unknown",
        )
    if isinstance(executor, ThreadPoolExecutor):
        raise threads_refused()


def threads_refused() -> UsageError:
    """Return the error for an executor that runs its tasks in threads of this process."""
    return UsageError(
        "the executor runs its tasks in threads of the auditing process. Threads share global "
        "random generators, so draws would depend on each other; give an executor that uses "
        "processes",
        code="executor-with-threads",
    )


def in_a_line(error: BaseException) -> str:
    """Return an error in one line: "type: message", or only the message of a DpauditError."""
    message = " ".join(str(error).split())
    if isinstance(error, DpauditError) and message:
        return message
    return f"{type(error).__name__}: {message}".removesuffix(": ")


def is_serial(executor: Executor | str | None, workers: Workers) -> bool:
    """Return whether the audit begins in this process alone, without worker processes."""
    return executor == "serial" or (executor is None and workers in (1, "auto"))


def resolved(executor: Executor | str | None, workers: Workers) -> int:
    """Return the number of worker processes as an integer.

    "auto" becomes the number of usable cores. With the executor "serial", with an executor object
    of the user, or with the address of a cluster, "auto" becomes 1.
    """
    if workers != "auto":
        return workers
    is_given = executor is not None and not isinstance(executor, str)
    if executor == "serial" or is_given or "://" in str(executor):
        return 1
    from dpaudit.processes.cores import cores

    return cores()


@contextmanager
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[WorkerPool]:
    """Yield the pool that draws, and close it after the context.

    executor: name, address or object of the executor. None means this process if `setup.workers` is
        1 (worker processes may join later), and worker processes otherwise.

    Raises UsageError for an executor that cannot be reached or is not installed, and for a
    mechanism that cannot be pickled.
    """
    # Pools are imported here, since an audit needs only one of them, and most audits need no other
    # process.
    if is_serial(executor, setup.workers):
        from dpaudit.sampling.executors.in_process import InProcess

        pool = InProcess(_unless_preparing(setup))
        with _closing(pool.close):
            yield pool
        return
    setup.sampler.close()  # the workers have samplers of their own
    if executor in (None, "processes"):
        from dpaudit.sampling.executors.pools import Recipe
        from dpaudit.sampling.executors.processes import ProcessPool

        processes = ProcessPool(Recipe.of(setup.make), setup.workers, ())
        with _closing(processes.close):
            yield processes
    elif isinstance(executor, str):
        from dpaudit.sampling.executors.pools import dask_pool

        with dask_pool(setup, executor.partition("://")[2]) as cluster:
            yield cluster
    else:
        from dpaudit.sampling.executors.pools import ExecutorPool, Recipe

        yield ExecutorPool(executor, Recipe.of(setup.make), setup.workers)


@contextmanager
def _closing(close: Callable[..., None]) -> Iterator[None]:
    """Call `close(in_order=...)` after the context.

    close: called with in_order=True, or in_order=False if an exception ended the context.
    """
    is_over = False
    try:
        yield
        is_over = True
    finally:
        close(in_order=is_over)


def _unless_preparing(setup: Setup) -> Setup:
    """Return `setup`, with `left` set to None if this process is still importing its script.

    A spawned process first imports the script of its parent. A script that audits outside of
    `if __name__ == "__main__":` then audits again, and must not start further processes. Raises
    SystemExit if this process is a worker of dpaudit.
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
