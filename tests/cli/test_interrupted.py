"""Ctrl-C, and an auditor that is killed: nothing is left that runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

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
def auditing(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start an audit that hangs, wait until it does, and yield it and a mark of its processes."""
    (folder / "mine.py").write_text(HANGS)
    mark, started = f"DPAUDIT_MARK={uuid4().hex}", folder / "started"
    name, _, value = mark.partition("=")
    inputs = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--quiet", *more)
    with subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "run", "mine.py:hangs", *inputs],
        cwd=folder,
        env={**os.environ, name: value, "STARTED": str(started)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(lambda: started.exists() and len(started.read_text()) > 6)
            time.sleep(0.2)
            yield process, mark
        finally:
            for number in marked(mark):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def marked(mark: str) -> list[int]:
    """Return the processes with this variable in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


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
    with auditing(tmp_path, *more) as (process, mark):
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        seconds = time.monotonic() - start
        assert process.returncode == 130
        assert "interrupted" in said
        assert "Traceback" not in said
        assert seconds < 5  # a third of one, on a machine that does nothing else
        wait_until(lambda: not marked(mark), 10)


def test_workers_end_when_the_auditor_is_killed(tmp_path: Path) -> None:
    with auditing(tmp_path, "--workers", "2", *ISOLATED) as (process, mark):
        process.kill()
        process.wait()
        wait_until(lambda: not marked(mark), 10)
