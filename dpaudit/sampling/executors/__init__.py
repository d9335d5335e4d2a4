"""Who draws the chunks: this process, others, or other machines. The draws are the same.

A new kind is one new file, with a `Pool` that is made from a `Setup`, and one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dpaudit.did_you_mean import did_you_mean
from dpaudit.errors import Name, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpaudit.sampling.chunks import Chunk, Found
    from dpaudit.sampling.sampler import Sampler


class Draws(Protocol):
    """Draws chunks."""

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        """Yield what was drawn, in the order of the chunks. Chunks are asked for as they are
        needed, some ahead; closing the iterator discards what is under way."""
        ...


EXECUTORS = ("serial", "processes", "dask")
# The one that may be somewhere else.
_AFAR = "dask://host:8786"


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What an executor is given: the sampler of this process, what makes its like elsewhere, which
    is pickled, and how many chunks may be drawn at the same time."""

    sampler: Sampler
    make: Callable[[], Sampler]
    workers: int = 1


def check_executor(executor: Executor | str | None, workers: int) -> None:
    """Raise UsageError for an executor that is not known, or not with so many workers."""
    if executor is None:
        return
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


def is_serial(executor: Executor | str | None, workers: int) -> bool:
    """Return whether each chunk is drawn when it is asked for, in this process."""
    return executor == "serial" or (executor is None and workers == 1)


@contextmanager
def drawing(executor: Executor | str | None, setup: Setup) -> Iterator[Draws]:
    """Yield what draws; None: in this process with one worker, else in processes of its own. Raises
    UsageError for what cannot be reached, installed or sent there."""
    if is_serial(executor, setup.workers):
        yield partial(map, setup.sampler.draw)
        return
    setup.sampler.close()  # the workers have samplers of their own
    with _opened(executor, setup) as draws:
        yield draws


def _opened(executor: Executor | str | None, setup: Setup) -> AbstractContextManager[Draws]:
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
