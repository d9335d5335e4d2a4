"""Draw on a Dask cluster: an existing one, or one that is started on this machine for the audit.
Dask itself repeats tasks that are lost with a worker."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dpaudit.errors import UsageError
from dpaudit.hash_seed import VARIABLE
from dpaudit.sampling.executors import Setup
from dpaudit.sampling.executors.pools import Done, Pool, Recipe, forget
from dpaudit.wording import install_command

# _TO_CONNECT: longest wait for a scheduler, in Dask's notation.
# _COUNTED: seconds between two requests for the number of workers, which may change, and between
# two looks whether the scheduler is lost.
_TO_CONNECT, _COUNTED = "10 s", 2.0
# Environment variables that limit the threads of numeric libraries. They are set to 1 in each
# worker of a local cluster, since the workers share the cores.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Settings of a local cluster. Profiling is off, since it takes a tenth of the time of a mechanism
# in Python.
_LOCAL_CLUSTER = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.system-monitor.interval": "10s",
}
# Name of the setting for the environment variables of workers. dpaudit replaces Dask's value, which
# makes workers return freed memory to the operating system, although the next draws need it again.
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"

_log = logging.getLogger(__name__)


class DaskPool(Pool):
    """A pool on a Dask cluster, whose number of workers may change during the audit."""

    bundle_seconds = 0.5  # Dask spends about 10 ms of CPU time on a task

    def __init__(self, setup: Setup, address: str) -> None:
        """Connect to a cluster. `address` is that of its scheduler, or the path of the scheduler's
        .json file. Without an address, start a cluster on this machine with `setup.workers` worker
        processes. Raises UsageError if Dask is not installed or no scheduler answers."""
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
        self._run, self._counted_at, self._cluster = recipe.run, -_COUNTED, None
        with ExitStack() as stack:
            if not address:
                self._cluster = stack.enter_context(_local_cluster(distributed, setup.workers))
            client = stack.enter_context(_connected(distributed, address or self._cluster))
            if not client.nthreads():
                where = client.scheduler.address
                _log.warning("the Dask cluster at %s has no workers; waiting for one", where)
            # A small task returns the recipe, so that Dask keeps the recipe on a worker as the
            # result of this task, and repeats the task if the worker dies. Data sent by `scatter`
            # would be lost.
            super().__init__(
                client.get_executor(pure=False), client.submit(_same, recipe, pure=False), 1
            )
            self._client, self._stack = client, stack.pop_all()

    def bundles_in_flight(self) -> int:
        now = time.monotonic()
        if now - self._counted_at > _COUNTED:
            self._counted_at = now
            with suppress(OSError):  # the scheduler is lost, as the next result reports
                self.workers = max(1, len(self._client.nthreads()))
        return super().bundles_in_flight()

    def result(self, future: Future[Any]) -> Done:
        """Wait for the results of a bundle. A task that Dask took while it lost the scheduler has
        no result, ever: once the client is closed, it counts as cancelled."""
        while not wait([future], _COUNTED).done:
            if self._client.status == "closed":
                raise CancelledError("the scheduler is lost")
        return super().result(future)

    def close(self, *, in_order: bool) -> None:
        with self._stack:
            if in_order:
                self._client.run(forget, self._run, on_error="ignore")
            elif self._cluster is not None:
                self._client.close()  # it would log that the workers are lost
                _kill(self._cluster)  # a draw may never end


def _same(recipe: Recipe) -> Recipe:
    return recipe


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a cluster on this machine: `workers` processes with one thread each, no dashboard."""
    import dask

    # Workers hash texts as this process does: Dask alone would replace PYTHONHASHSEED=0.
    variables = dict.fromkeys(_THREADS, "1")
    if VARIABLE in os.environ:
        variables[VARIABLE] = os.environ[VARIABLE]
    settings = {**_LOCAL_CLUSTER, _ENVIRONMENT: variables}
    # Dask sets the variables of its workers in this process, too; they are restored.
    with patch.dict(os.environ), dask.config.set(settings):
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
    with cluster:
        yield cluster


def _kill(cluster: Any) -> None:
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        with suppress(ProcessLookupError, TypeError):  # ended, or not yet started
            os.kill(nanny.pid, signal.SIGKILL)


def _connected(distributed: Any, scheduler: Any) -> Any:
    """Return a client for a cluster object, the address of a scheduler or its .json file."""
    if not isinstance(scheduler, str):
        return distributed.Client(scheduler)
    try:
        if scheduler.endswith(".json"):
            _await(Path(scheduler))
            return distributed.Client(scheduler_file=scheduler, timeout=_TO_CONNECT)
        address = scheduler if "://" in scheduler else f"tcp://{scheduler}"
        return distributed.Client(address, timeout=_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler!r} ({' '.join(str(error).split())}); start "
            "one with `dask scheduler` and give its address, e.g. dask://host:8786",
            code="no-dask-scheduler",
        ) from None


def _await(file: Path) -> None:
    """Wait, at most `_TO_CONNECT` seconds, until a starting scheduler has written its file."""
    # Dask itself would wait forever.
    from dask.utils import parse_timedelta

    deadline = time.monotonic() + parse_timedelta(_TO_CONNECT)
    while not (file.exists() and file.read_bytes().rstrip().endswith(b"}")):
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"no such scheduler file, for {_TO_CONNECT}")
        time.sleep(0.1)
