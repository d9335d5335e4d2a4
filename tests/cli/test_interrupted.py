"""Ctrl-C, and an auditor that is killed: nothing is left that runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psutil import STATUS_ZOMBIE, NoSuchProcess, Process

HANGS = """
import os, time
def hangs(x, size):
    with open(os.environ["STARTED"], "a") as file:
        file.write("!")
    if size > 100:
        time.sleep(600)
    return [0.0] * size
"""
ISOLATED = ("--isolate", "--timeout", "10m")


@contextmanager
def auditing(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], list[Process]]]:
    """Start an audit that hangs, wait until it does, and yield it and all its processes."""
    (folder / "mine.py").write_text(HANGS)
    started = folder / "started"
    inputs = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--quiet", *more)
    with subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "run", "mine.py:hangs", *inputs],
        cwd=folder,
        env={**os.environ, "STARTED": str(started)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        family = [Process(process.pid)]
        try:
            wait_until(lambda: started.exists() and len(started.read_text()) > 6)
            time.sleep(0.2)
            family += family[0].children(recursive=True)
            yield process, family
        finally:
            for one in filter(runs, family):
                one.kill()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def runs(process: Process) -> bool:
    try:
        return process.is_running() and process.status() != STATUS_ZOMBIE
    except NoSuchProcess:
        return False


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--workers", "2"),
        ("--workers", "2", *ISOLATED),
        ("--executor", "processes"),
        ("--executor", "dask", "--workers", "2"),
    ],
)
def test_ctrl_c_ends_a_hanging_draw_and_all_processes(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    with auditing(tmp_path, *more) as (process, family):
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        seconds = time.monotonic() - start
        assert process.returncode == 130
        assert "interrupted" in said
        assert "Traceback" not in said
        assert seconds < 5  # a third of one, on a machine that does nothing else
        wait_until(lambda: not any(map(runs, family)), 10)


def test_workers_end_when_the_auditor_is_killed(tmp_path: Path) -> None:
    with auditing(tmp_path, "--workers", "2", *ISOLATED) as (process, family):
        assert len(family) > 4  # two workers, and a process of each that draws
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(runs, family)), 10)
