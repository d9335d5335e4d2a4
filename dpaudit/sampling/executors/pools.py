"""Pools of workers that send out chunks in bundles and return results in the order of the chunks.

A *bundle* is a list of chunks that one worker draws as one task. `OrderedPool` makes bundles, sends
enough of them to keep all workers busy, and yields the results in order. `draw` is the function
that a worker runs for a bundle; `Recipe` tells the worker how to make its sampler. The subclasses
differ in where tasks run: `ExecutorPool` on an executor of the user, `_DaskPool` on a Dask cluster,
`ProcessPool` (processes.py) on processes of its own.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import MechanismError, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.hash_seed import VARIABLE
from dpaudit.sampling.chunks import Chunk, Result, ToCount, ToPace, ToTime
from dpaudit.sampling.executors import Setup, WorkerPool, threads_refused
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.seeding import preserved
from dpaudit.version import __version__
from dpaudit.wording import install_command

# Number of bundles (lists of chunks) that each worker has at a time. It draws one bundle while the
# other waits, so that it need not wait for the next one.
_BUNDLES_PER_WORKER = 2
# Least number of seconds of drawing that a bundle (list of chunks) should take, so that sending it
# is cheap in comparison.
# _BUNDLE_SECONDS: for processes, where sending a bundle takes about 1 ms.
# _BUNDLE_SECONDS_DASK: for Dask, which spends about 10 ms of CPU time on a task.
_BUNDLE_SECONDS, _BUNDLE_SECONDS_DASK = 0.1, 0.5
# Seconds that the auditing process may need to handle the result of one bundle (list of chunks). It
# handles one result at a time. So while n bundles are being drawn, a new bundle is made so large
# that drawing it takes at least n times this number of seconds.
_SECONDS_PER_CHUNK = 0.003
# Largest number of chunks (requests for draws) in a bundle, which one worker draws as one task.
_MAX_CHUNKS = 256
# Largest number of audits whose samplers a worker keeps: several programs may use a worker in turn.
_MAX_SAMPLERS = 4
# Random name of this process. Neither the name nor the process id is enough to identify a process:
# processes on two machines may have the same id, and a fork has the name of its parent. So both are
# compared.
_PROCESS = secrets.token_hex(8)
# _TO_CONNECT: longest wait for a Dask scheduler, in Dask's notation.
# _COUNTED: seconds between two requests to a Dask cluster for its number of workers, which may
#     change.
_TO_CONNECT, _COUNTED = "10 s", 2.0
# Environment variables that limit the threads of numeric libraries. They are set to 1 in each
# worker of a local Dask cluster, since the workers share the cores.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Settings of a local Dask cluster. Profiling is off, since it takes a tenth of the time of a
# mechanism in Python.
_LOCAL_CLUSTER = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.system-monitor.interval": "10s",
}
# Name of the setting for the environment variables of Dask workers. dpaudit replaces Dask's value,
# which makes workers return freed memory to the operating system, although the next draws need the
# memory again.
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Instructions from which a worker process makes its sampler; part of every task.

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
        """Return the `Recipe` of an audit: the pickled function `make`, which worker processes call
        to make their sampler; the ids of this process and thread; and the versions of dpaudit,
        NumPy and Python. Raise UsageError if `make` cannot be pickled.

        make: a function that makes a sampler.
        dumps: function that pickles `make`.
        """
        try:
            made = dumps(make)
        except Exception as error:  # a user's object may raise any exception when it is pickled
            raise UsageError(
                f"the mechanism or a dataset cannot be sent to other processes ({error}); "
                "name it by import path, or use workers=1",
                code="not-picklable",
            ) from error
        origin = (_PROCESS, os.getpid(), threading.get_ident())
        return cls(secrets.token_hex(8), made, origin, _versions())


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """Results of a bundle. A bundle is a list of chunks (requests for draws) that one worker draws
    as one task.

    drawn: result of each chunk, in the order of the bundle.
    seconds: time that the worker needed to draw them.
    """

    drawn: list[Any]
    seconds: float


# Held while this worker draws: all of its threads share the global random generators, so only one
# of them may draw at a time.
_lock = threading.Lock()
# Maps the name of an audit (`Recipe.run`) to this worker's sampler for the audit. The most recently
# used sampler is last.
_samplers: OrderedDict[str, Sampler] = OrderedDict()


def draw(recipe: Recipe, chunks: Sequence[Chunk[Any]]) -> Done:
    """Draw some chunks in this worker process, and return the result of each.

    The state of global random generators is restored afterwards, since the worker may do other
    work. Raises UsageError if this worker is a thread of the auditing process.
    """
    *process, thread = recipe.origin
    if process == [_PROCESS, os.getpid()] and thread != threading.get_ident():
        raise threads_refused()
    with _lock, auditor_errstate():
        sampler = _sampler(recipe)
        start = time.perf_counter()
        with preserved(sampler.carried):
            drawn = [sampler.draw(chunk) for chunk in chunks]
        return Done(drawn, time.perf_counter() - start)


def forget(run: str) -> None:
    """Close this worker's sampler of an audit that has ended. If the worker is drawing, do nothing,
    so that the draws are not disturbed.

    run: name of the audit.
    """
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
    while len(_samplers) > _MAX_SAMPLERS:
        _samplers.popitem(last=False)[1].close()
    return _samplers[recipe.run]


def _versions() -> tuple[str, ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    return f"dpaudit {__version__}", f"numpy {np.__version__}", f"Python {python}"


class OrderedPool(WorkerPool):
    """A pool that sends bundles of chunks to workers and yields the results in order.

    Subclasses implement `submit`.
    """

    # Least number of seconds of drawing that a bundle (list of chunks) should take.
    bundle_seconds = _BUNDLE_SECONDS

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def ahead(self) -> int:
        """Return the number of bundles (lists of chunks) to send before their results come back."""
        return _BUNDLES_PER_WORKER * self.workers

    @abstractmethod
    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]: ...

    def result(self, future: Future[Done], /) -> Done:
        """Wait for a bundle (list of chunks that one worker draws), and return its results."""
        return future.result()

    def settle(self, seconds: float) -> None:
        """Wait until all workers have started, at most `seconds`; called before draws are timed.

        By default this does not wait, since an executor does not report when workers have started.
        A second call does not wait.
        """

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        """Yield the result of each chunk (request for draws), in the order of the chunks. The sizes
        of bundles (lists of chunks for one worker) depend on the clock, but the draws do not, since
        every chunk has random streams of its own.
        """
        waiting: deque[Future[Done]] = deque()
        source, size = iter(chunks), 1
        try:
            while True:
                while len(waiting) < self.ahead() and (bundle := _bundle(source, size)):
                    first = bundle[0]
                    if isinstance(first, ToTime) or (isinstance(first, ToPace) and first.patience):
                        self.settle(first.patience)
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
        """Return the number of chunks (requests for draws) for the next task of a worker, at most
        twice as many as in the last task.

        done: results of the last task, which show how long a chunk takes.
        """
        seconds = max(self.bundle_seconds, _SECONDS_PER_CHUNK * self.ahead())
        size = len(done.drawn)
        fitting = max(1.0, seconds * size / max(done.seconds, 1e-9))
        return int(min(_MAX_CHUNKS, 2 * size, fitting))


def _bundle(source: Iterator[Chunk[Any]], size: int) -> list[Chunk[Any]]:
    """Return the next chunks from `source` for one worker task; empty if there are no more.

    A chunk of any type other than `ToCount` is the last one of its list. The audit waits for the
    result of a `ToLearn` chunk before it makes the next, and measures the duration of a `ToTime`
    chunk.

    size: largest number of chunks.
    """
    bundle: list[Chunk[Any]] = []
    for chunk in source:
        bundle.append(chunk)
        if type(chunk) is not ToCount or len(bundle) >= size:
            break
    return bundle


class ExecutorPool(OrderedPool):
    """A pool that draws on an executor of the user, by the executor's method `submit`. The pool
    does not close the executor. Each task contains the recipe (instructions from which a worker
    makes its sampler), so that any worker can draw any task.

    lost: message for an executor that has lost its workers, with the placeholder {} for the reason.
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
        """Wait for a bundle (list of chunks that one worker draws), and return its results.

        Raises MechanismError if the workers were lost, and UsageError if a worker lacks a module.
        """
        try:
            return future.result()
        except ModuleNotFoundError as error:
            raise UsageError(
                f"a worker has no module {error.name!r}; install the same packages there as here, "
                "dpaudit included, and add the mechanism's folder to its PYTHONPATH",
                code="module-not-found",
            ) from error
        except Exception as error:
            # Exceptions of Dask are recognised by the name of their class, since Dask may not be
            # installed.
            kind = type(error).__name__
            if kind == "KilledWorker":
                killed: Any = error
                raise MechanismError(
                    f"{killed.allowed_failures + 1} Dask workers died while they drew the same "
                    f"chunk, the last one at {killed.last_worker.address}; with isolate, a crash "
                    "of the mechanism counts as an outcome",
                    code="worker-killed",
                ) from None
            if isinstance(error, BrokenExecutor | CancelledError) or kind == "CommClosedError":
                why = self.lost.format(" ".join(str(error).split()) or kind)
            elif kind in ("NoWorkerError", "NoValidWorkerError"):
                why = (
                    "the Dask cluster had no workers for longer than "
                    "distributed.scheduler.no-workers-timeout allows; start some with "
                    "`dask worker`"
                )
            else:
                raise
            raise MechanismError(why, code="workers-lost") from None


class _DaskPool(ExecutorPool):
    """A pool that draws on a Dask cluster, whose number of workers may change during the audit.

    Tasks are sent by `client.submit`, and not by `client.get_executor`: its futures do not keep the
    reason why Dask cancelled them, and log an error for each task that finishes while it is
    cancelled.
    """

    bundle_seconds = _BUNDLE_SECONDS_DASK
    lost = "the connection to the Dask scheduler is lost ({}); start it again"

    def __init__(self, client: Any, recipe: Recipe) -> None:
        # A small task returns the recipe, so that Dask keeps the recipe on a worker as the result
        # of this task. If the worker dies, Dask repeats the task. Data sent by `scatter` would be
        # lost.
        there = client.submit(_same, recipe, pure=False)
        super().__init__(client, there)
        self._client, self._asked = client, -_COUNTED

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        # Dask returns a class of its own, which has all methods of `Future` that this module uses.
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
    """Yield a pool on a Dask cluster. Dask repeats tasks that are lost with a worker.

    address: address of the scheduler, or path of its .json file. Empty: start a cluster on this
        machine, with `setup.workers` worker processes.

    Raises UsageError if Dask is not installed or no scheduler answers.
    """
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
    """Call `forget` on a Dask worker, which closes the sampler of the audit `run`. This function is
    a coroutine: `Client.run` with `wait=False` then returns before it ends.
    """
    forget(run)


def _same(recipe: Recipe) -> Recipe:
    return recipe


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a Dask cluster on this machine: `workers` processes with one thread each, no dashboard.

    If PYTHONHASHSEED is set here, the workers get the same value, and so hash texts as this process
    does. (Dask alone would replace the value 0 by another value.) When Dask starts a worker, it
    changes environment variables of this process, too; they are restored. If an exception ends the
    context, the workers are killed.
    """
    import dask

    before = {name: os.environ.get(name) for name in (*_THREADS, VARIABLE)}
    given = dict.fromkeys(_THREADS, "1")
    if (seed := before[VARIABLE]) is not None:
        given[VARIABLE] = seed
    with _restored(before), dask.config.set({**_LOCAL_CLUSTER, _ENVIRONMENT: given}):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            worker_dashboard_address=None,
            # Port 0 stands for any free port, since another cluster may use the default port.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    with _restored(before):
        try:
            yield cluster
        except BaseException:
            # The worker processes are killed, since a draw that a worker makes may never end.
            for nanny in cluster.workers.values():
                nanny.auto_restart = False
                with suppress(ProcessLookupError, TypeError):  # ended, or not yet started
                    os.kill(nanny.pid, signal.SIGKILL)
            raise
        finally:
            cluster.close()


@contextmanager
def _restored(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Return a context at whose end environment variables get the given values. A variable whose
    value is None is removed.
    """
    try:
        yield
    finally:
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _connected(distributed: Any, place: Any) -> Any:
    """Return a Dask client that is connected to a cluster. Raise UsageError if no scheduler
    answers.

    distributed: the module `distributed`.
    place: a cluster object, the address of a scheduler, or the path of its .json file.
    """
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
    """Wait until a Dask scheduler that is starting has written its file.

    Raises FileNotFoundError after `_TO_CONNECT`; Dask itself would wait forever.
    """
    from dask.utils import parse_timedelta

    deadline = time.monotonic() + parse_timedelta(_TO_CONNECT)
    while not (file.exists() and file.read_bytes().rstrip().endswith(b"}")):
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"no such scheduler file, for {_TO_CONNECT}")
        time.sleep(0.1)
