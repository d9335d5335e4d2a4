"""A Dask cluster with two workers draws what one process draws, also when a worker dies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import Progress
from dpaudit.claims import PureDP
from dpaudit.errors import UsageError
from tests.sent import ends_with

ROOT = Path(__file__).parents[2]
LAPLACE = "mechanisms.laplace:laplace"


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `dask …` where the mechanisms can be imported."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


Cluster = tuple[str, list[subprocess.Popen[bytes]]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Yield the file of a scheduler, two workers that are not replaced, and the scheduler."""
    file = str(tmp_path / "scheduler.json")
    scheduler = ("distributed.cli.dask_scheduler", "--scheduler-file", file, "--no-dashboard")
    where = ("--port", "0", "--host", "127.0.0.1")
    worker = ("distributed.cli.dask_worker", "--scheduler-file", file, "--no-nanny")
    alone = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path))
    with (
        started(*scheduler, *where) as first,
        started(*worker, *alone) as one,
        started(*worker, *alone) as other,
    ):
        yield file, [one, other, first]


def address(file: str) -> str:
    import distributed  # here, since every worker of the suite collects this file

    with distributed.Client(scheduler_file=file) as client:
        client.wait_for_workers(2)
        return str(client.scheduler.address)


def numbers(result: dpaudit.AuditResult) -> Any:
    assert result.error is None
    return result.p_value, result.epsilon_lower, result.certificates[0].blocks


def audited(**more: Any) -> dpaudit.AuditResult:
    return dpaudit.audit(LAPLACE, 0, 1, PureDP(1.0), samples=1_000_000, **more)


def test_a_worker_may_die(cluster: Cluster) -> None:
    import distributed

    file, workers = cluster
    where = address(file)
    seen: list[int] = []

    def kill_one(progress: Progress) -> None:
        seen.append(progress.draws)
        if progress.draws > 300_000:
            workers[0].kill()

    lost = audited(executor=f"dask://{where}", on_progress=kill_one)
    assert workers[0].wait(10) == -9
    assert seen[-1] == 1_000_000
    assert numbers(lost) == numbers(audited())
    # A file gives the address as well; one worker is left.
    assert numbers(audited(executor=f"dask://{file}")) == numbers(lost)
    with distributed.Client(where.removeprefix("tcp://")) as client:
        other = audited(executor=client.get_executor(pure=False), workers=2)
        assert numbers(other) == numbers(lost)


def test_a_scheduler_that_is_lost_is_named(cluster: Cluster) -> None:
    file, (*_, scheduler) = cluster

    def kill_it(progress: Progress) -> None:
        if progress.draws > 100_000:
            scheduler.kill()

    lost = audited(executor=f"dask://{file}", on_progress=kill_it)
    assert lost.error_code == "workers-lost"
    assert "connection to the Dask" in str(lost.error)


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
            samples=20_000,
            executor="dask",
            workers=2,
        )
    assert os.environ["PYTHONHASHSEED"] == "7"
    assert "OMP_NUM_THREADS" not in os.environ
    here = dpaudit.audit(lambda x, rng: x + rng.laplace(), 0, 1, PureDP(1.0), samples=20_000)
    assert numbers(by_dask) == numbers(here)


def test_a_mechanism_that_kills_every_worker_is_an_error() -> None:
    import dask

    dies = partial(ends_with, 3)
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):  # instead of 3
        result = dpaudit.audit(dies, 0, 1, PureDP(1.0), samples=5_000, executor="dask")
    assert result.error_code == "worker-killed"
    assert "2 Dask workers" in str(result.error)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.sampling.executors.pools._TO_CONNECT", "0.3 s")
    for place in ("127.0.0.1:9", "/none.json"):
        with pytest.raises(UsageError, match=repr(place)) as error:
            audited(executor=f"dask://{place}")
        assert error.value.code == "no-dask-scheduler"


def test_a_cluster_without_workers_gives_a_warning_and_then_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "scheduler.json"
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT", "1s")
    words = ("distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--no-dashboard")
    with started(*words, "--port", "0", "--host", "127.0.0.1"):
        # The file of a scheduler that is starting is waited for.
        result = audited(executor=f"dask://{file}")
    assert "has no workers; " in caplog.text
    assert result.error_code == "workers-lost"


def test_without_dask_the_message_has_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install distributed") as error:
        audited(executor="dask")
    assert error.value.code == "package-missing"
