"""Chunks out in bundles, results back in order, whatever the order in which they end."""

from __future__ import annotations

import os
import pickle
import platform
import secrets
import threading
import time
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.errors import MechanismError, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.sampling.chunks import Chunk, Found, ToCount, ToTime
from dpaudit.sampling.executors import THREADS, Setup, WorkerPool
from dpaudit.sampling.generators import preserved
from dpaudit.sampling.sampler import Sampler
from dpaudit.version import __version__

# Bundles under way for each worker: one that it draws, one that waits.
_AHEAD = 2
# Seconds that a bundle should take for every one that is under way, at least: all go through one
# process, and come back.
_FOR_EACH = 0.003
# Chunks of a bundle, at most.
_MOST = 256


class Pool(WorkerPool):
    """Workers, which draw bundles of chunks: a task each, such as a future."""

    # That a bundle should take to draw, at least: what its way there and back takes is then small
    # beside it, a millisecond between processes.
    seconds = 0.1

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def ahead(self) -> int:
        """Return how many bundles are to be under way now."""
        return _AHEAD * self.workers

    @abstractmethod
    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Any: ...

    @abstractmethod
    def result(self, task: Any, /) -> Done:
        """Wait for a bundle."""

    def cancel(self, task: Any, /) -> None:
        """Discard a bundle, unless it is being drawn already."""
        task.cancel()

    def settle(self, seconds: float) -> None:
        """Wait until all are there who will draw, before the time of draws is taken; not longer
        than so many seconds. Most are there from the start."""

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        """Yield what was drawn in the order of the chunks. Bundles depend on the clock, what is
        drawn does not: a chunk has random streams of its own."""
        waiting: deque[Any] = deque()
        source, size, is_settled = iter(chunks), 1, False
        try:
            while True:
                while len(waiting) < self.ahead() and (bundle := _bundle(source, size)):
                    if isinstance(bundle[0], ToTime) and not is_settled:
                        self.settle(bundle[0].patience)
                        is_settled = True
                    waiting.append(self.submit(bundle))
                if not waiting:
                    return
                done = self.result(waiting.popleft())
                size = _fitting(done, max(self.seconds, _FOR_EACH * self.ahead()))
                yield from done.drawn
        finally:
            for task in waiting:
                self.cancel(task)


def _bundle(source: Iterator[Chunk[Any]], size: int) -> list[Chunk[Any]]:
    """Return the next chunks, none when there are no more; learning blocks, which are waited for
    one by one, and those whose time is taken, by themselves."""
    bundle: list[Chunk[Any]] = []
    for chunk in source:
        bundle.append(chunk)
        if type(chunk) is not ToCount or len(bundle) >= size:
            break
    return bundle


def _fitting(done: Done, wanted: float) -> int:
    """Return how many chunks take a worker so many seconds, by what the last ones took; no more
    than double their number."""
    size = len(done.drawn)
    return int(min(_MOST, 2 * size, max(1.0, wanted * size / max(done.seconds, 1e-9))))


# Audits whose samplers a worker keeps; several programs may use it by turns.
_KEPT = 4
# Tells this process from those on other machines; a fork has it too, but not the number.
_PROCESS = secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a worker makes its sampler from: a name of the audit, the pickled function that makes a
    sampler, the process and thread that audit, and the versions of what decides the draws there."""

    run: str
    made: bytes
    origin: tuple[str, int, int]
    versions: tuple[str, ...]

    @classmethod
    def of(
        cls, make: Callable[[], Sampler], dumps: Callable[[object], bytes] = pickle.dumps
    ) -> Recipe:
        """Raises UsageError for what cannot be pickled."""
        try:
            made = dumps(make)
        except Exception as error:  # whatever a user's object raises when it is pickled
            raise UsageError(
                f"the mechanism or a dataset cannot be sent to other processes ({error}); "
                "name it by import path, or use workers=1"
            ) from error
        origin = (_PROCESS, os.getpid(), threading.get_ident())
        return cls(secrets.token_hex(8), made, origin, _versions())


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What was drawn, chunk by chunk, and the seconds that it took."""

    drawn: list[Any]
    seconds: float


_lock = threading.Lock()
_samplers: OrderedDict[str, Sampler] = OrderedDict()


def draw(recipe: Recipe, chunks: Sequence[Chunk[Any]]) -> Done:
    """Draw chunks one after the other, in a process that may do other work before and after."""
    process, number, thread = recipe.origin
    if (process, number) == (_PROCESS, os.getpid()) and thread != threading.get_ident():
        raise UsageError(THREADS)
    with _lock, auditor_errstate():  # threads share the global generators
        sampler = _sampler(recipe)
        start = time.perf_counter()
        with preserved(sampler.carried):
            drawn = [sampler.draw(chunk) for chunk in chunks]
        return Done(drawn, time.perf_counter() - start)


def forget(run: str) -> None:
    """Let go of the sampler of an audit that has ended, unless this process is drawing."""
    if _lock.acquire(blocking=False):
        try:
            if run in _samplers:
                _samplers.pop(run).close()
        finally:
            _lock.release()


def _sampler(recipe: Recipe) -> Sampler:
    if recipe.run not in _samplers:
        here, there = _versions(), recipe.versions
        if here != there:  # draws need not be those that this seed gives there
            raise UsageError(
                f"the worker on {platform.node()} has {', '.join(here)}, the auditing process has "
                f"{', '.join(there)}: the same seed may give other draws; install the same "
                "versions in both"
            )
        _samplers[recipe.run] = pickle.loads(recipe.made)()
    _samplers.move_to_end(recipe.run)
    while len(_samplers) > _KEPT:
        _samplers.popitem(last=False)[1].close()
    return _samplers[recipe.run]


def _versions() -> tuple[str, ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    return f"dpaudit {__version__}", f"numpy {np.__version__}", f"Python {python}"


class GivenPool(Pool):
    """Draws with nothing but the executor's `submit`; it is left open. A task takes along all that
    a worker needs, so that workers need no preparation."""

    def __init__(self, setup: Setup, executor: Executor) -> None:
        super().__init__(setup.workers)
        self._recipe, self._executor = Recipe.of(setup.make), executor

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        return self._executor.submit(draw, self._recipe, chunks)

    def result(self, task: Future[Done], /) -> Done:
        try:
            return task.result()
        except (BrokenExecutor, CancelledError) as error:
            how = " ".join(str(error).split()) or type(error).__name__
            raise MechanismError(
                f"the executor lost its workers or their draws ({how}); use an executor that "
                "replaces dead workers, such as processes or dask"
            ) from None
