"""Who draws the chunks: this process, others, or other machines. The draws are the same.

A new kind is one new file, with a `Pool` that is made from a `Setup`, and one line here.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from dpaudit.errors import Name, UsageError
from dpaudit.wording import did_you_mean

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpaudit.sampling.chunks import Chunk, Found
    from dpaudit.sampling.sampler import Sampler


class Drawer(Protocol):
    """Draws chunks."""

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        """Yield what was drawn, in the order of the chunks. Chunks are asked for as they are
        needed, some ahead; closing the iterator discards what is under way."""
        ...


class WorkerPool(ABC):
    """Whoever draws the chunks of an audit.

    workers: processes that draw at the same time.
    is_here: whether the next chunk is drawn in this process, when it is asked for.
    others_drew: whether other processes have drawn.
    differed: whether another process gave other outputs from the same seed.
    note: why no others draw though it takes long; None where there is nothing to say.
    """

    workers: int = 1
    is_here: bool = False
    others_drew: bool = True
    differed: bool = False
    note: str | None = None

    @abstractmethod
    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        """Draw, as `Drawer` does."""


Workers = int | Literal["auto"]
EXECUTORS = ("serial", "processes", "dask")
# How the processes that draw are called.
WORKER = "dpaudit-worker"
# The one that may be somewhere else.
_AFAR = "dask://host:8786"


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What an executor is given: the sampler of this process, what makes its like elsewhere, which
    is pickled, and how many chunks may be drawn at the same time. left: the seconds of drawing that
    are left at a rate, in draws a second; only where workers are to join when that is long."""

    sampler: Sampler
    make: Callable[[], Sampler]
    workers: int = 1
    left: Callable[[float], float] | None = None


def check_executor(executor: Executor | str | None, asked: Workers) -> None:
    """Raise UsageError for an executor that is not known, or not with so many workers."""
    if executor is None:
        return
    workers = 1 if asked == "auto" else asked
    if not isinstance(executor, str):
        _check_given(executor)
        return
    name, separator, address = executor.partition("://")
    if name not in EXECUTORS:
        raise UsageError(
            Name("executor"),
            f"={executor!r} is not known; known: {', '.join(EXECUTORS)}, "
            f"{_AFAR}.{did_you_mean(name, EXECUTORS)}",
        )
    if separator and (name != "dask" or not address):
        why = f"={executor!r} takes no address; give {name}, or {_AFAR}"
        raise UsageError(Name("executor"), why)
    if name == "serial" and workers > 1:
        raise UsageError(
            Name("executor"),
            f"={executor!r} draws in this process; for ",
            Name("workers"),
            f"={workers} give processes",
        )
    if address and workers > 1:
        raise UsageError(
            Name("workers"),
            f"={workers} with ",
            Name("executor"),
            f"={executor!r}: the number of workers is set where they are started; leave ",
            Name("workers"),
            " out",
        )


def is_serial(executor: Executor | str | None, workers: Workers) -> bool:
    """Return whether each chunk is drawn when it is asked for, in this process, at least at
    first."""
    return executor == "serial" or (executor is None and workers in (1, "auto"))


def resolved(executor: Executor | str | None, workers: Workers) -> int:
    """Return how many workers there may be; `auto`: as many as there are cores for this process,
    unless somebody else started them."""
    if workers != "auto":
        return workers
    is_given = executor is not None and not isinstance(executor, str)
    if executor == "serial" or is_given or "://" in str(executor):
        return 1
    from dpaudit.processes.cores import cores

    return cores()


@contextmanager
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[WorkerPool]:
    """Yield what draws; None: in this process with one worker, else in processes of its own, which
    join this one later where the setup says what is left. Raises UsageError for what cannot be
    reached, installed or sent there."""
    if is_serial(executor, setup.workers):
        if setup.left is not None and (child := _preparing()):
            if child.startswith(WORKER):
                raise SystemExit(1)  # whoever started this process finds that it has ended
            setup = replace(setup, left=None)  # of the user's own, and in no need of others
        from dpaudit.sampling.executors.in_process import InProcess

        crew, is_over = InProcess(setup), False
        try:
            yield crew
            is_over = True
        finally:
            crew.end(in_order=is_over)
        return
    setup.sampler.close()  # the workers have samplers of their own
    with _opened(executor, setup) as draws:
        yield draws


def _preparing() -> str:
    """Return the name of this process, if another one has started it and it runs its script to
    begin with; else the empty text."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or not getattr(process.current_process(), "_inheriting", False):
        return ""
    return str(process.current_process().name)


def _opened(executor: Executor | str | None, setup: Setup) -> AbstractContextManager[WorkerPool]:
    """Return an executor, imported when it is asked for."""
    if executor in (None, "processes"):
        from dpaudit.sampling.executors.processes import in_processes

        return in_processes(setup)
    if isinstance(executor, str):
        from dpaudit.sampling.executors.dask import with_dask

        return with_dask(setup, executor.partition("://")[2])
    from dpaudit.sampling.executors.pools import GivenPool

    return nullcontext(GivenPool(setup, executor))


def _check_given(executor: object) -> None:
    from concurrent.futures import Executor, ThreadPoolExecutor

    if not isinstance(executor, Executor):
        raise UsageError(
            f"executor={executor!r} must be a name ({', '.join(EXECUTORS)}) or a "
            "concurrent.futures.Executor; of a Dask client, give client.get_executor()"
        )
    if isinstance(executor, ThreadPoolExecutor):
        raise UsageError(THREADS)


THREADS = (
    "the executor runs its tasks in threads of the auditing process. Threads share global random "
    "generators, so draws would depend on each other; give an executor that uses processes"
)
