"""Where the chunks of an audit are drawn: in this process, in others, or on other machines.

The draws are the same everywhere, since the random streams of a chunk follow from its key.
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
# Names of worker processes begin with this.
WORKER = "dpaudit-worker"
_DASK_ADDRESS = "dask://host:8786"


class Drawer(Protocol):
    """Draws chunks."""

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in order. Chunks are taken as they are needed, some
        ahead; closing the iterator discards those under way."""
        ...


class WorkerPool(ABC):
    """Draws the chunks of an audit, as a `Drawer`.

    workers: processes that draw at the same time.
    is_here: whether the next chunk is drawn in this process, when its result is asked for.
    others_drew: whether other processes have drawn.
    differed: whether another process gave other outputs for the same seed.
    note: why no other processes draw, though drawing takes long; else None.
    """

    workers: int = 1
    is_here: bool = False
    others_drew: bool = True
    differed: bool = False
    note: str | None = None

    @abstractmethod
    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """The parts from which a pool is made.

    sampler: draws in this process.  make: returns such a sampler elsewhere; it is pickled.
    workers: processes that may draw at the same time.  left: returns the seconds of drawing that
    are left, given a rate in draws per second; None if no workers should join later.
    """

    sampler: Sampler
    make: Callable[[], Sampler]
    workers: int = 1
    left: Callable[[float], float] | None = None


def check_executor(executor: Executor | str | None, asked: Workers) -> None:
    """Raise UsageError for an unknown executor, or one that cannot have this many workers."""
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
    """Return the error of an executor that draws in threads of this process."""
    return UsageError(
        "the executor runs its tasks in threads of the auditing process. Threads share global "
        "random generators, so draws would depend on each other; give an executor that uses "
        "processes",
        code="executor-with-threads",
    )


def in_a_line(error: BaseException) -> str:
    """Return an error in one line, with its type unless it is an error of dpaudit."""
    message = " ".join(str(error).split())
    if isinstance(error, DpauditError) and message:
        return message
    return f"{type(error).__name__}: {message}".removesuffix(": ")


def is_serial(executor: Executor | str | None, workers: Workers) -> bool:
    """Return whether the audit begins without worker processes."""
    return executor == "serial" or (executor is None and workers in (1, "auto"))


def resolved(executor: Executor | str | None, workers: Workers) -> int:
    """Return the number of workers. `auto` is the number of cores, or 1 where workers are started
    elsewhere."""
    if workers != "auto":
        return workers
    is_given = executor is not None and not isinstance(executor, str)
    if executor == "serial" or is_given or "://" in str(executor):
        return 1
    from dpaudit.processes.cores import cores

    return cores()


@contextmanager
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[WorkerPool]:
    """Yield the pool that draws; it ends with the context.

    executor: None means this process for one worker (others may join later), and worker processes
    for several.  Raises UsageError for an executor that cannot be reached or is not installed, and
    for a mechanism that cannot be sent there.
    """
    # Imported here: most audits need only one of these, and no other process.
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
    """Call `close(in_order=...)` afterwards; False if an exception ended the context."""
    is_over = False
    try:
        yield
        is_over = True
    finally:
        close(in_order=is_over)


def _unless_preparing(setup: Setup) -> Setup:
    """Return the setup without workers that join if this process is a child of another one and is
    still importing its script, which then audits again. Raises SystemExit in a worker of
    dpaudit."""
    process = sys.modules.get("multiprocessing.process")
    if setup.left is None or process is None:
        return setup
    current = process.current_process()
    if not getattr(current, "_inheriting", False):
        return setup
    if current.name.startswith(WORKER):
        raise SystemExit(1)  # the auditing process sees that this one has ended
    return replace(setup, left=None)
