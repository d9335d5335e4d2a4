"""A Dask cluster with two workers draws what one process draws, also when a worker dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import Progress
from dpaudit.claims import PureDP
from dpaudit.errors import UsageError
from dpaudit.sampling.executors import cluster as dask_cluster
from tests.sent import ends_with

ROOT = Path(__file__).parents[3]
LAPLACE = "mechanisms.laplace:laplace"
SAMPLES = 40_000

# A process that has imported Dask, and forks a scheduler or a worker for each line of its input.
# An empty line ends all forks.
FORKING = """
import asyncio, json, os, signal, sys
import dask, distributed
import dpaudit.sampling.sampler, mechanisms.laplace
from dpaudit.sampling.executors import cluster as dask_cluster

async def serve(kind, **options):
    async with getattr(distributed, kind)(**options) as server:
        await server.finished()

forks = []
for line in sys.stdin:
    while line == "\\n" and forks:
        os.kill(forks[-1], signal.SIGKILL)
        os.waitpid(forks.pop(), 0)
    if line == "\\n":
        print(0, flush=True)
        continue
    kind, options, config = json.loads(line)
    process = os.fork()
    if not process:
        with dask.config.set({**dask_cluster._LOCAL_CLUSTER, **config}):
            asyncio.run(serve(kind, **options))
        os._exit(0)
    forks.append(process)
    print(process, flush=True)
"""


class Forks:
    """Schedulers and workers on this machine."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _send(self, line: str) -> int:
        given, told = self._process.stdin, self._process.stdout
        assert given is not None
        assert told is not None
        given.write(line + "\n")
        given.flush()
        return int(told.readline())

    def _fork(self, kind: str, options: dict[str, Any], config: dict[str, Any]) -> int:
        return self._send(json.dumps([kind, options, config]))

    def end(self) -> None:
        self._send("")

    def scheduler(self, file: Path, **config: Any) -> int:
        """Start a scheduler that writes this file, and return its process."""
        options = {"scheduler_file": str(file), "host": "127.0.0.1", "port": 0}
        return self._fork("Scheduler", {**options, "dashboard_address": "127.0.0.1:0"}, config)

    def worker(self, address: str, folder: Path) -> int:
        """Start a worker that is not replaced, and return its process."""
        options = {"scheduler_ip": address, "nthreads": 1, "local_directory": str(folder)}
        return self._fork("Worker", {**options, "dashboard": False}, {})


@pytest.fixture(scope="module")
def process_with_dask() -> Iterator[Forks]:
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield Forks(process)
    process.communicate()  # closes its input, which ends it


@pytest.fixture
def forks(process_with_dask: Forks) -> Iterator[Forks]:
    yield process_with_dask
    process_with_dask.end()


class Cluster(NamedTuple):
    """A scheduler's file, address and process, and the processes of its two workers."""

    file: Path
    address: str
    scheduler: int
    workers: list[int]


@pytest.fixture
def cluster(forks: Forks, tmp_path: Path) -> Cluster:
    import distributed  # here, since every worker of the suite collects this file

    file = tmp_path / "scheduler.json"
    scheduler = forks.scheduler(file, **{"distributed.scheduler.allowed-failures": 1})
    # The file of a scheduler that is starting is waited for.
    with dask_cluster._connected(distributed, str(file)) as client:
        address = str(client.scheduler.address)
        workers = [forks.worker(address, tmp_path) for _ in range(2)]
        client.wait_for_workers(2)
    return Cluster(file, address, scheduler, workers)


def numbers(result: dpaudit.AuditResult) -> Any:
    assert result.error is None
    return result.p_value, result.epsilon_lower, result.certificates[0].evidence.blocks


def audited(**more: Any) -> dpaudit.AuditResult:
    return dpaudit.audit(LAPLACE, 0, 1, PureDP(1.0), samples=SAMPLES, **more)


def test_a_worker_may_die(cluster: Cluster) -> None:
    import distributed

    seen: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.draws > 12_000 and len(cluster.workers) == 2:
            assert seen[-1] < SAMPLES
            os.kill(cluster.workers.pop(), signal.SIGKILL)
        seen.append(progress.draws)

    lost = audited(executor=f"dask://{cluster.address}", on_progress=kill_one)
    assert len(cluster.workers) == 1
    assert seen[-1] == SAMPLES
    assert numbers(lost) == numbers(audited())
    with distributed.Client(cluster.address.removeprefix("tcp://")) as client:
        other = audited(executor=client.get_executor(pure=False), workers=2)
        assert numbers(other) == numbers(lost)


def test_a_scheduler_that_is_lost_is_named(cluster: Cluster) -> None:
    def kill_it(progress: Progress) -> None:
        if progress.draws > 12_000:
            os.kill(cluster.scheduler, signal.SIGKILL)

    # A file gives the address as well.
    lost = audited(executor=f"dask://{cluster.file}", on_progress=kill_it)
    assert lost.error_code == "workers-lost"
    assert "is gone" in str(lost.error)


def test_a_task_that_is_lost_with_the_scheduler_has_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask never ends a task that its client took while it connected again in vain."""
    monkeypatch.setattr(dask_cluster, "_COUNTED", 0.01)
    pool = object.__new__(dask_cluster.DaskPool)
    pool._client = SimpleNamespace(status="closed")
    with pytest.raises(CancelledError):
        pool.result(Future())


def test_a_local_cluster_is_made_beside_another_one_and_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    offset = 1.0

    def noisy(x: float, rng: np.random.Generator) -> float:
        assert os.environ["PYTHONHASHSEED"] == "7"
        return float(x + offset * rng.laplace())

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # another program has it
            taken.bind(("0.0.0.0", 8787))
            taken.listen()
        # Dask's warning of a port that is taken would be an error.
        by_dask = dpaudit.audit(
            noisy,  # Dask's own pickles take closures
            0,
            1,
            PureDP(1.0),
            samples=2_000,
            executor="dask",
        )
    assert os.environ["PYTHONHASHSEED"] == "7"
    assert "OMP_NUM_THREADS" not in os.environ
    here = dpaudit.audit(lambda x, rng: x + rng.laplace(), 0, 1, PureDP(1.0), samples=2_000)
    assert numbers(by_dask) == numbers(here)


def test_a_mechanism_that_kills_every_worker_is_an_error(cluster: Cluster) -> None:
    dies = partial(ends_with, 3)
    executor = f"dask://{cluster.address}"
    result = dpaudit.audit(dies, 0, 1, PureDP(1.0), samples=5_000, executor=executor)
    assert result.error_code == "worker-killed"
    assert "2 Dask workers" in str(result.error)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.sampling.executors.cluster._TO_CONNECT", "0.3 s")
    for place in ("127.0.0.1:9", "/none.json"):
        with pytest.raises(UsageError, match=repr(place)) as error:
            audited(executor=f"dask://{place}")
        assert error.value.code == "no-dask-scheduler"


def test_without_dask_the_message_has_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install distributed") as error:
        audited(executor="dask")
    assert error.value.code == "package-missing"
