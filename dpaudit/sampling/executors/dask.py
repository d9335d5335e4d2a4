"""Draws on a Dask cluster: a local one for this audit, or one that runs somewhere else."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dpaudit.errors import MechanismError, UsageError
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import Setup, WorkerPool
from dpaudit.sampling.executors.pools import Done, Pool, Recipe, draw, forget
from dpaudit.wording import install_command

_TO_CONNECT = "10 s"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# What the workers of a local cluster need not see to: one that draws in Python loses a tenth of its
# time to it, for want of a second interpreter lock.
_UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.system-monitor.interval": "10s",
    # Nor give back memory at once that the next draws need again.
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(_THREADS, 1),
}
# What Dask raises when its `no-workers-timeout` is over; older versions have no such error.
_NOBODY = ("NoWorkerError", "NoValidWorkerError")
_log = logging.getLogger(__name__)
# Seconds after which the cluster is asked again how many workers it has.
_COUNTED = 2.0


@contextmanager
def with_dask(setup: Setup, address: str) -> Iterator[WorkerPool]:
    """Draw on the cluster at an address, or on a local one with so many worker processes. Dask runs
    again what was lost with a worker, and the seed is in the chunk. Raises UsageError."""
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise UsageError(
            f"executor dask needs Dask, and {error.name!r} is not installed; "
            f"{install_command('dask')}"
        ) from None
    import cloudpickle  # which Dask brings along, and which takes lambdas, too

    recipe = Recipe.of(setup.make, cloudpickle.dumps)
    with ExitStack() as stack:
        place = address or stack.enter_context(_local(distributed, setup.workers))
        client = stack.enter_context(_connected(distributed, place))
        if not client.nthreads():
            where = client.scheduler.address
            _log.warning("the Dask cluster at %s has no workers; waiting for one", where)
        yield _DaskPool(distributed, client, recipe)
        client.run(_forget, recipe.run, wait=False)


class _DaskPool(Pool):
    """One audit on a cluster."""

    seconds = 0.5  # Dask spends some ten milliseconds of CPU on a task

    def __init__(self, distributed: Any, client: Any, recipe: Recipe) -> None:
        super().__init__(1)
        self._distributed, self._client = distributed, client
        self._name, self._number = f"dpaudit-{recipe.run}", 0
        # A task, since what is merely scattered is gone with the worker that holds it.
        self._recipe = client.submit(_same, recipe, pure=False, key=f"{self._name}-recipe")
        self._asked = -_COUNTED

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Any:
        self._number += 1
        key = f"{self._name}-{self._number}"
        return self._client.submit(draw, self._recipe, list(chunks), pure=False, key=key)

    def ahead(self) -> int:
        now = time.monotonic()
        if now - self._asked > _COUNTED:
            self.workers, self._asked = max(1, len(self._client.nthreads())), now
        return super().ahead()

    def result(self, task: Any, /) -> Done:
        try:
            done: Done = task.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise MechanismError(
                f"{error.allowed_failures + 1} Dask workers died while they drew the same chunk, "
                f"the last one at {error.last_worker.address}; with isolate, a crash of the "
                "mechanism counts as an outcome"
            ) from None
        except self._distributed.client.FutureCancelledError as error:
            raise MechanismError(
                f"the connection to the Dask scheduler is lost ({error}); start it again"
            ) from None
        except ModuleNotFoundError as error:
            raise UsageError(
                f"a Dask worker has no module {error.name!r}; install the same packages there as "
                "here, dpaudit included, and add the mechanism's folder to its PYTHONPATH"
            ) from error
        except Exception as error:
            if type(error).__name__ not in _NOBODY:
                raise
            raise MechanismError(
                "the Dask cluster had no workers for longer than "
                "distributed.scheduler.no-workers-timeout allows; start some with `dask worker`"
            ) from None
        return done


async def _forget(run: str) -> None:
    """Run on a worker; Dask waits only for what is not a coroutine."""
    forget(run)


def _same(recipe: Recipe) -> Recipe:
    return recipe


@contextmanager
def _local(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a cluster of this machine, without dashboard; its workers have one thread each."""
    import dask

    with dask.config.set(_UNWATCHED):
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
        # End the workers at once, whatever they are drawing.
        for nanny in cluster.workers.values():
            nanny.auto_restart = False
            with suppress(ProcessLookupError, TypeError):  # it has ended, or not begun
                os.kill(nanny.pid, signal.SIGKILL)
        raise
    finally:
        cluster.close()


def _connected(distributed: Any, place: Any) -> Any:
    """Return a client of a cluster, an address, or a scheduler's file."""
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
            "with `dask scheduler` and give its address, e.g. dask://host:8786"
        ) from None


def _await(file: Path) -> None:
    """Wait for the file of a scheduler that is just starting, as long as for its answer; Dask would
    wait forever. Raises OSError."""
    from dask.utils import parse_timedelta

    deadline = time.monotonic() + parse_timedelta(_TO_CONNECT)
    while not (file.exists() and file.read_bytes().rstrip().endswith(b"}")):
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"no such scheduler file, for {_TO_CONNECT}")
        time.sleep(0.1)
