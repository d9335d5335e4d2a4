"""Pools of workers: chunks go out in bundles, and results come back in the order of the chunks.

Every pool shares one merge, `OrderedPool`, and one function that workers run, `draw`. An executor
that the caller made, and a Dask cluster, differ only in what their errors say.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import secrets
import signal
import threading
import time
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import MechanismError, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.sampling.chunks import Chunk, Result, ToCount, ToTime
from dpaudit.sampling.executors import Setup, WorkerPool, threads_refused
from dpaudit.sampling.generators import preserved
from dpaudit.sampling.sampler import Sampler
from dpaudit.version import __version__
from dpaudit.wording import install_command

# Bundles under way for each worker: one that it draws, one that waits.
_AHEAD = 2
# Seconds of drawing in a bundle, at least: sending one between processes takes a millisecond, and
# Dask spends some ten milliseconds of CPU on a task.
_BUNDLE, _BUNDLE_FOR_DASK = 0.1, 0.5
# The same for every bundle under way: all of them pass through the auditing process.
_FOR_EACH = 0.003
# Chunks of a bundle, at most.
_MOST_CHUNKS = 256
# Audits whose samplers a worker keeps; several programs may use it in turn.
_KEPT = 4
# Distinguishes this process from those on other machines. A fork has it too, but not its number.
_PROCESS = secrets.token_hex(8)
# How long to wait for a Dask scheduler, and seconds between two counts of its workers.
_TO_CONNECT, _COUNTED = "10 s", 2.0
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Workers of a local Dask cluster need no profiling, which takes a tenth of the time of a mechanism
# in Python, and should not give back memory that the next draws need again.
_LOCAL_CLUSTER = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(_THREADS, 1),
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a worker makes its sampler.

    run: name of the audit.  made: pickled function that makes a sampler.  origin: process and
    thread of the audit.  versions: of everything that decides what a seed draws.
    """

    run: str
    made: bytes
    origin: tuple[str, int, int]
    versions: tuple[str, ...]

    @classmethod
    def of(
        cls, make: Callable[[], Sampler], dumps: Callable[[object], bytes] = pickle.dumps
    ) -> Recipe:
        """Return the recipe of this audit. Raises UsageError if it cannot be pickled."""
        try:
            made = dumps(make)
        except Exception as error:  # whatever a user's object raises when it is pickled
            raise UsageError(
                f"the mechanism or a dataset cannot be sent to other processes ({error}); "
                "name it by import path, or use workers=1",
                code="not-picklable",
            ) from error
        origin = (_PROCESS, os.getpid(), threading.get_ident())
        return cls(secrets.token_hex(8), made, origin, _versions())


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """Results of a bundle, chunk by chunk, and the seconds that drawing took."""

    drawn: list[Any]
    seconds: float


_lock = threading.Lock()
_samplers: OrderedDict[str, Sampler] = OrderedDict()


def draw(recipe: Recipe, chunks: Sequence[Chunk[Any]]) -> Done:
    """Draw chunks one after the other, in a worker that may do other work before and after."""
    process, number, thread = recipe.origin
    if (process, number) == (_PROCESS, os.getpid()) and thread != threading.get_ident():
        raise threads_refused()
    with _lock, auditor_errstate():  # threads share the global generators
        sampler = _sampler(recipe)
        start = time.perf_counter()
        with preserved(sampler.carried):
            drawn = [sampler.draw(chunk) for chunk in chunks]
        return Done(drawn, time.perf_counter() - start)


def forget(run: str) -> None:
    """Close the sampler of an audit that has ended, unless this process is drawing."""
    if _lock.acquire(blocking=False):
        try:
            if run in _samplers:
                _samplers.pop(run).close()
        finally:
            _lock.release()


def _sampler(recipe: Recipe) -> Sampler:
    if recipe.run not in _samplers:
        here, there = _versions(), recipe.versions
        if here != there:
            raise UsageError(
                f"the worker on {platform.node()} has {', '.join(here)}, the auditing process has "
                f"{', '.join(there)}: the same seed may give other draws; install the same "
                "versions in both",
                code="worker-versions-differ",
            )
        _samplers[recipe.run] = pickle.loads(recipe.made)()
    _samplers.move_to_end(recipe.run)
    while len(_samplers) > _KEPT:
        _samplers.popitem(last=False)[1].close()
    return _samplers[recipe.run]


def _versions() -> tuple[str, ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    return f"dpaudit {__version__}", f"numpy {np.__version__}", f"Python {python}"


class OrderedPool(WorkerPool):
    """Workers that draw bundles of chunks; results come back in the order of the chunks."""

    # Seconds of drawing in a bundle, at least.
    bundle_seconds = _BUNDLE

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def ahead(self) -> int:
        """Return how many bundles should be under way now."""
        return _AHEAD * self.workers

    @abstractmethod
    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]: ...

    def result(self, future: Future[Done], /) -> Done:
        """Wait for a bundle."""
        return future.result()

    def settle(self, seconds: float) -> None:
        """Wait until all workers have started, at most some seconds: before draws are timed. A
        second call does not wait."""

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the results. Bundles depend on the clock, draws do not: every chunk has random
        streams of its own."""
        waiting: deque[Future[Done]] = deque()
        source, size = iter(chunks), 1
        try:
            while True:
                while len(waiting) < self.ahead() and (bundle := _bundle(source, size)):
                    if isinstance(bundle[0], ToTime):
                        self.settle(bundle[0].patience)
                    waiting.append(self.submit(bundle))
                if not waiting:
                    return
                done = self.result(waiting.popleft())
                size = self._next_size(done)
                yield from done.drawn
        finally:
            for future in waiting:
                future.cancel()

    def _next_size(self, done: Done) -> int:
        """Return how many chunks fill a bundle, at most twice as many as the last one had."""
        seconds = max(self.bundle_seconds, _FOR_EACH * self.ahead())
        size = len(done.drawn)
        fitting = max(1.0, seconds * size / max(done.seconds, 1e-9))
        return int(min(_MOST_CHUNKS, 2 * size, fitting))


def _bundle(source: Iterator[Chunk[Any]], size: int) -> list[Chunk[Any]]:
    """Return the next chunks, none if there are no more. Learning chunks, for which the audit
    waits, and timed chunks are bundles of their own."""
    bundle: list[Chunk[Any]] = []
    for chunk in source:
        bundle.append(chunk)
        if type(chunk) is not ToCount or len(bundle) >= size:
            break
    return bundle


class ExecutorPool(OrderedPool):
    """Draws with nothing but the `submit` of an executor, which stays open. A task carries all that
    a worker needs.

    lost: message when the executor has lost its workers; {} stands for the reason.
    """

    lost = (
        "the executor lost its workers or their draws ({}); use an executor that replaces dead "
        "workers, such as processes or dask"
    )

    def __init__(self, executor: Executor, recipe: Any, workers: int = 1) -> None:
        super().__init__(workers)
        self._executor, self._recipe = executor, recipe

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        return self._executor.submit(draw, self._recipe, list(chunks))

    def result(self, future: Future[Done], /) -> Done:
        """Wait for a bundle. Raises MechanismError when the workers are lost."""
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as error:
            raise self._lost(error) from None
        except ModuleNotFoundError as error:
            raise UsageError(
                f"a worker has no module {error.name!r}; install the same packages there as here, "
                "dpaudit included, and add the mechanism's folder to its PYTHONPATH",
                code="module-not-found",
            ) from error
        except Exception as error:
            # By name, since Dask is imported only by those who use it.
            if type(error).__name__ == "CommClosedError":
                raise self._lost(error) from None
            if type(error).__name__ == "KilledWorker":
                killed: Any = error
                raise MechanismError(
                    f"{killed.allowed_failures + 1} Dask workers died while they drew the same "
                    f"chunk, the last one at {killed.last_worker.address}; with isolate, a crash "
                    "of the mechanism counts as an outcome",
                    code="worker-killed",
                ) from None
            if type(error).__name__ in ("NoWorkerError", "NoValidWorkerError"):
                raise MechanismError(
                    "the Dask cluster had no workers for longer than "
                    "distributed.scheduler.no-workers-timeout allows; start some with "
                    "`dask worker`",
                    code="workers-lost",
                ) from None
            raise

    def _lost(self, error: Exception) -> MechanismError:
        how = " ".join(str(error).split()) or type(error).__name__
        return MechanismError(self.lost.format(how), code="workers-lost")


class _DaskPool(ExecutorPool):
    """Draws with a Dask client, whose workers may come and go.

    Not with `client.get_executor`, whose futures do not keep the reason why Dask cancelled them,
    and which logs an error for each task that finishes while it is cancelled.
    """

    bundle_seconds = _BUNDLE_FOR_DASK
    lost = "the connection to the Dask scheduler is lost ({}); start it again"

    def __init__(self, client: Any, recipe: Recipe) -> None:
        # The result of a task, since data that is merely scattered is lost with its worker.
        there = client.submit(_same, recipe, pure=False)
        super().__init__(client, there)
        self._client, self._asked = client, -_COUNTED

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        # Its future has the methods that are used here.
        future: Future[Done] = self._client.submit(draw, self._recipe, list(chunks), pure=False)
        return future

    def ahead(self) -> int:
        now = time.monotonic()
        if now - self._asked > _COUNTED:
            self._asked = now
            with suppress(OSError):  # the scheduler is lost, as `result` reports
                self.workers = max(1, len(self._client.nthreads()))
        return super().ahead()


@contextmanager
def dask_pool(setup: Setup, address: str) -> Iterator[WorkerPool]:
    """Yield a pool on the cluster at an address, or on a local one with some worker processes. Dask
    runs again any task that was lost with a worker. Raises UsageError."""
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise UsageError(
            f"executor dask needs Dask, and {error.name!r} is not installed; "
            f"{install_command('dask')}",
            code="package-missing",
        ) from None
    import cloudpickle  # comes with Dask, and takes lambdas, too

    recipe = Recipe.of(setup.make, cloudpickle.dumps)
    with ExitStack() as stack:
        place = address or stack.enter_context(_local_cluster(distributed, setup.workers))
        client = stack.enter_context(_connected(distributed, place))
        if not client.nthreads():
            where = client.scheduler.address
            _log.warning("the Dask cluster at %s has no workers; waiting for one", where)
        yield _DaskPool(client, recipe)
        client.run(_forget, recipe.run, wait=False)


async def _forget(run: str) -> None:
    """Run on a Dask worker, which does not wait for a coroutine."""
    forget(run)


def _same(recipe: Recipe) -> Recipe:
    return recipe


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a cluster of this machine, without dashboard; its workers have one thread each."""
    import dask

    with dask.config.set(_LOCAL_CLUSTER):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            worker_dashboard_address=None,
            # Any port: the usual one may be that of another cluster.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    try:
        yield cluster
    except BaseException:
        # Kill the workers, whatever they are drawing.
        for nanny in cluster.workers.values():
            nanny.auto_restart = False
            with suppress(ProcessLookupError, TypeError):  # ended, or not begun
                os.kill(nanny.pid, signal.SIGKILL)
        raise
    finally:
        cluster.close()


def _connected(distributed: Any, place: Any) -> Any:
    """Return a client of a cluster, of an address, or of a scheduler's file."""
    if not isinstance(place, str):
        return distributed.Client(place)
    try:
        if place.endswith(".json"):
            _await(Path(place))
            return distributed.Client(scheduler_file=place, timeout=_TO_CONNECT)
        address = place if "://" in place else f"tcp://{place}"
        return distributed.Client(address, timeout=_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {place!r} ({' '.join(str(error).split())}); start one "
            "with `dask scheduler` and give its address, e.g. dask://host:8786",
            code="no-dask-scheduler",
        ) from None


def _await(file: Path) -> None:
    """Wait for the file of a scheduler that is starting: Dask would wait forever. Raises OSError
    after the time that a connection may take."""
    from dask.utils import parse_timedelta

    deadline = time.monotonic() + parse_timedelta(_TO_CONNECT)
    while not (file.exists() and file.read_bytes().rstrip().endswith(b"}")):
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"no such scheduler file, for {_TO_CONNECT}")
        time.sleep(0.1)
