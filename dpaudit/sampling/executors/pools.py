"""Send chunks to a `concurrent.futures.Executor` and return the results in order. `Pool` makes
bundles, sends enough of them to keep all workers busy, and yields the results in the order of the
chunks. `draw` is the function that a worker runs for a bundle."""

from __future__ import annotations

import os
import pickle
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.errors import DpauditError, MechanismError, Name, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.sampling.chunks import Chunk, Result, ToCount, ToTime
from dpaudit.sampling.executors import WorkerPool, threads_refused
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.seeding import preserved
from dpaudit.version import __version__

# Bundles that each worker has at a time: it draws one while the other waits.
_BUNDLES_PER_WORKER = 2
# Seconds that the auditing process may need to handle the result of one bundle. It handles one
# result at a time. So while n bundles are being drawn, drawing a new one takes at least n times
# this number of seconds.
_SECONDS_PER_BUNDLE = 0.003
# Largest number of chunks in a bundle.
_MAX_CHUNKS = 256
# Random name of this process. Processes on two machines may have one id, and a fork has the name of
# its parent, so both are compared.
_PROCESS = secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Instructions from which a worker process makes its sampler.

    run: random name of the audit.
    made: pickle of a function that makes a sampler.
    origin: random name of the auditing process, its process id, and the id of its thread.
    versions: versions of dpaudit, NumPy and Python, on which the draws of a seed depend.
    """

    run: str
    made: bytes
    origin: tuple[str, int, int]
    versions: tuple[str, ...]

    @classmethod
    def of(
        cls, make: Callable[[], Sampler], dumps: Callable[[object], bytes] = pickle.dumps
    ) -> Recipe:
        """Return the recipe of an audit. Raises UsageError if `dumps` cannot pickle `make`."""
        try:
            factory = dumps(make)
        except Exception as error:  # a user's object may raise any exception when it is pickled
            raise UsageError(
                f"the mechanism or a dataset cannot be sent to other processes ({error}); "
                "name it by import path, or use workers=1",
                code="not-picklable",
            ) from error
        origin = (_PROCESS, os.getpid(), threading.get_ident())
        return cls(secrets.token_hex(8), factory, origin, _versions())


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """The results of the chunks of a bundle, in order, and how long the bundle took."""

    drawn: list[Any]
    seconds: float


# Held while this worker draws: its threads share the global random generators, so only one of them
# may draw at a time.
_lock = threading.Lock()
# Name of the audit for which this worker drew last (`Recipe.run`), and the sampler of this audit.
_current: tuple[str, Sampler] | None = None


def draw(recipe: Recipe, chunks: Sequence[Chunk[Any]]) -> Done:
    """Draw some chunks in this worker process, and return the result of each. Afterwards, restore
    the state of the global random generators, since the worker may do other work. Raises UsageError
    if this worker is a thread of the auditing process."""
    *process, thread = recipe.origin
    if process == [_PROCESS, os.getpid()] and thread != threading.get_ident():
        raise threads_refused()
    with _lock, auditor_errstate():
        sampler = _sampler(recipe)
        start = time.perf_counter()
        with preserved(sampler.carried):
            results = [sampler.draw(chunk) for chunk in chunks]
        return Done(results, time.perf_counter() - start)


def forget(run: str) -> None:
    """Close the sampler that this worker has for an ended audit, unless it is drawing. `run` is the
    random name of the audit."""
    global _current
    if _lock.acquire(blocking=False):
        try:
            if _current is not None and _current[0] == run:
                _current[1].close()
                _current = None
        finally:
            _lock.release()


def _sampler(recipe: Recipe) -> Sampler:
    global _current
    if _current is not None and _current[0] == recipe.run:
        return _current[1]
    if _current is not None:
        _current[1].close()
        _current = None
    if _versions() != recipe.versions:
        raise UsageError(
            f"the worker on {platform.node()} has {', '.join(_versions())}, the auditing process "
            f"has {', '.join(recipe.versions)}: the same seed may give other draws; install the "
            "same versions in both",
            code="worker-versions-differ",
        )
    sampler: Sampler = pickle.loads(recipe.made)()
    _current = recipe.run, sampler
    return sampler


def _versions() -> tuple[str, ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    return f"dpaudit {__version__}", f"numpy {np.__version__}", f"Python {python}"


class Pool(WorkerPool):
    """A pool that draws on an executor of the user, and does not close it. Each task contains the
    recipe, so that any worker can draw any task.

    bundle_seconds: least duration of a bundle, so that sending it, about 1 ms, is cheap.
    cancels: whether bundles that are not needed are cancelled.
    """

    bundle_seconds = 0.1
    cancels = True

    def __init__(self, executor: Executor, recipe: Any, workers: int) -> None:
        self._executor, self._recipe, self.workers = executor, recipe, workers

    def bundles_in_flight(self) -> int:
        """Return the number of bundles to send before their results come back."""
        return _BUNDLES_PER_WORKER * self.workers

    def submit(self, bundle: list[Chunk[Any]]) -> Future[Any]:
        return self._executor.submit(draw, self._recipe, bundle)

    def result(self, future: Future[Any]) -> Done:
        """Wait for the results of a bundle."""
        done: Done = future.result()
        return done

    def restart(self, error: BrokenExecutor) -> None:
        """Replace an executor that has lost a worker. Raise MechanismError if the user made it."""
        raise _gone(error) from error

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk, in the order of the chunks. The sizes of bundles depend
        on the clock, but the draws do not, since every chunk has random streams of its own."""
        source, size = iter(chunks), 1
        waiting: deque[tuple[list[Chunk[Any]], Future[Any]]] = deque()
        try:
            while True:
                while len(waiting) < self.bundles_in_flight() and (bundle := _bundle(source, size)):
                    if type(bundle[0]) is ToTime:
                        self.settle()
                    waiting.append((bundle, self._sent(bundle)))
                if not waiting:
                    return
                try:
                    done = self.result(waiting[0][1])
                except BrokenExecutor as error:
                    self.restart(error)
                    for index, (bundle, future) in enumerate(waiting):
                        if isinstance(future.exception(), BrokenExecutor):
                            waiting[index] = bundle, self._sent(bundle)
                    continue
                except Exception as error:
                    explained = error_of(error)
                    if explained is None:
                        raise
                    raise explained from error
                waiting.popleft()
                size = self._next_size(done)
                yield from done.drawn
        finally:
            if self.cancels:
                for _, future in waiting:
                    future.cancel()

    def _sent(self, bundle: list[Chunk[Any]]) -> Future[Any]:
        """Send a bundle; the returned future reports a broken executor, after earlier results."""
        try:
            return self.submit(bundle)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken

    def _next_size(self, done: Done) -> int:
        """Return the number of chunks of the next bundle, at most twice as many as in `done`."""
        seconds = max(self.bundle_seconds, _SECONDS_PER_BUNDLE * self.bundles_in_flight())
        size = len(done.drawn)
        fitting = max(1.0, seconds * size / max(done.seconds, 1e-9))
        return int(min(_MAX_CHUNKS, 2 * size, fitting))


def _bundle(source: Iterator[Chunk[Any]], size: int) -> list[Chunk[Any]]:
    """Return the next chunks for one task, at most `size`; empty if there are no more."""
    # A chunk of any type other than `ToCount` ends its bundle: the audit waits for the result of a
    # `ToLearn` before it makes the next chunk, and measures the duration of a `ToTime`.
    bundle: list[Chunk[Any]] = []
    for chunk in source:
        bundle.append(chunk)
        if type(chunk) is not ToCount or len(bundle) >= size:
            break
    return bundle


def error_of(error: Exception) -> DpauditError | None:
    """Return the error with which the audit ends if a task raised `error`. None means that the
    audit ends with `error` itself. Exceptions of Dask are recognised by name, since Dask may not be
    installed."""
    kind = type(error).__name__
    if isinstance(error, ModuleNotFoundError):
        return UsageError(
            f"a worker has no module {error.name!r}; install the same packages there as here, "
            "dpaudit included, and add the mechanism's folder to its PYTHONPATH",
            code="module-not-found",
        )
    if kind == "KilledWorker":
        killed: Any = error
        return MechanismError(
            f"{killed.allowed_failures + 1} Dask workers died while they drew the same chunk, the "
            f"last one at {killed.last_worker.address}; with ",
            *(Name("isolate"), ", a crash of the mechanism counts as an outcome"),
            code="worker-killed",
        )
    if kind in ("NoWorkerError", "NoValidWorkerError"):
        return MechanismError(
            "the Dask cluster had no workers for longer than "
            "distributed.scheduler.no-workers-timeout allows; start some with `dask worker`",
            code="workers-lost",
        )
    if isinstance(error, CancelledError) or kind in ("CommClosedError", "ClosedClientError"):
        return _gone(error)
    return None


def _gone(error: Exception) -> MechanismError:
    words = " ".join(str(error).split()) or type(error).__name__
    return MechanismError(
        f"the executor or cluster that drew is gone ({words}). A run with ",
        *(Name("journal"), " continues with ", Name("resume"), "; with ", Name("isolate")),
        ", a crash of the mechanism counts as an outcome",
        code="workers-lost",
    )
