"""Who draws the chunks: this process, others, or other machines. The draws are the same.

A new kind is one new file, with a `Pool` that is made from a `Setup`, and one line here.
"""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dpaudit.did_you_mean import did_you_mean
from dpaudit.errors import Name, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpaudit.sampling.chunks import Chunk, Found
    from dpaudit.sampling.executors.joining import Others
    from dpaudit.sampling.sampler import Sampler


class Draws(Protocol):
    """Draws chunks."""

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        """Yield what was drawn, in the order of the chunks. Chunks are asked for as they are
        needed, some ahead; closing the iterator discards what is under way."""
        ...


class Crew(ABC):
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
        """Draw, as `Draws` does."""


class Here(Crew):
    """Draws each chunk in this process, when it is asked for. Where the setup says what is left,
    others join it when that is long."""

    is_here, others_drew = True, False

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._others: Others | None = None
        # Since when, with how many seconds of how many cores, and how many a second at last.
        self._since, self._drew, self._busy, self._rate = math.nan, 0.0, 0.0, 0.0

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        sampler, left = self._setup.sampler, self._setup.left
        return map(sampler.draw, chunks) if left is None else self._drawn(chunks, left)

    def end(self, *, in_order: bool) -> None:
        """End the others; at once, where anything went wrong."""
        if self._others is not None:
            self._others.end(in_order=in_order)

    def _drawn(self, chunks: Iterable[Chunk[Any]], left: Callable[[float], float]) -> Iterator[Any]:
        from dpaudit.sampling.chunks import ToTime

        source = iter(chunks)
        for chunk in source:
            if isinstance(chunk, ToTime):  # its time is taken, which wants all who will draw
                self._look(left, now=True)
                if self._others is not None:
                    self._others.wait(chunk.patience)
                    self._look(left)
            is_theirs = self._others is not None and self._others.take(chunk)
            self._hear()
            if self._others is not None and is_theirs:
                self.others_drew, self.workers = True, self._others.workers
                yield from self._others.draw(chain([chunk], source))
                return
            yield self._timed(chunk)
            # Now that whoever asked knows what it was good for.
            self._look(left)

    def _timed(self, chunk: Chunk[Any]) -> Any:
        """Draw a chunk, and take notice of how long it takes."""
        from dpaudit.sampling.chunks import FirstCalls, ToProbe

        start, busy = time.perf_counter(), time.process_time()
        if math.isnan(self._since):
            self._since = start
        found = self._setup.sampler.draw(chunk)
        seconds = time.perf_counter() - start
        self._drew += seconds
        self._busy += time.process_time() - busy
        if isinstance(chunk, FirstCalls):
            # A call for many draws at once says nothing of how long one takes.
            is_single = self._setup.sampler.mechanism.interleaved
            self._rate = 1 / max(found.seconds, 1e-9) if is_single else 0.0
        elif not isinstance(chunk, ToProbe):
            self._rate = chunk.size / max(seconds, 1e-9)
        return found

    def _look(self, left: Callable[[float], float], *, now: bool = False) -> None:
        """Let others start when that is worth while, and draw when they can.

        now: though it has not taken long yet.
        """
        is_time = now or time.perf_counter() - self._since >= _FIRST
        if self._others is not None:
            self._others.look()
        elif is_time and self._rate > 0 and left(self._rate) > WORTHWHILE:
            from dpaudit.sampling.executors.joining import Others

            self._others = Others(self._setup, self._rate, self._busy / self._drew)
        self._hear()

    def _hear(self) -> None:
        """Take notice of what the others say."""
        if self._others is not None:
            self.is_here = not self._others.are_there
            self.note, self.differed = self._others.note, self._others.differed


Workers = int | Literal["auto"]
EXECUTORS = ("serial", "processes", "dask")
# Seconds of drawing that are worth other processes, which take about one each to start; and those
# that an audit takes before any do, since it may soon find something.
WORTHWHILE, _FIRST = 5.0, 1.0
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
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[Crew]:
    """Yield what draws; None: in this process with one worker, else in processes of its own, which
    join this one later where the setup says what is left. Raises UsageError for what cannot be
    reached, installed or sent there."""
    if is_serial(executor, setup.workers):
        if setup.left is not None and (child := _preparing()):
            if child.startswith(WORKER):
                raise SystemExit(1)  # whoever started this process finds that it has ended
            setup = replace(setup, left=None)  # of the user's own, and in no need of others
        crew, is_over = Here(setup), False
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


def _opened(executor: Executor | str | None, setup: Setup) -> AbstractContextManager[Crew]:
    """Return an executor, imported when it is asked for."""
    if executor in (None, "processes"):
        from dpaudit.sampling.executors.processes import in_processes

        return in_processes(setup)
    if isinstance(executor, str):
        from dpaudit.sampling.executors.dask import with_dask

        return with_dask(setup, executor.partition("://")[2])
    from dpaudit.sampling.executors.given import GivenPool

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
