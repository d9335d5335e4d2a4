"""Whole processes, measured: CPU, wall time and peak memory, children included."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Cost:
    """cpu, wall: seconds. memory: peak resident set of the largest process, bytes."""

    cpu: float
    wall: float
    memory: int


def cost(words: Sequence[str]) -> Cost:
    """Run a command to its end and return what it cost; its exit code must be 0 or 1."""
    start = time.perf_counter()
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(words)} ended with exit code {process.returncode}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * scale)


def alternated(commands: Sequence[Sequence[str]], times: int) -> list[Cost]:
    """Run each command `times` times, taking turns, and return the medians."""
    costs: list[list[Cost]] = [[] for _ in commands]
    for _ in range(times):
        for command, kept in zip(commands, costs, strict=True):
            kept.append(cost(command))
    return [
        Cost(
            median(one.cpu for one in kept),
            median(one.wall for one in kept),
            int(median(one.memory for one in kept)),
        )
        for kept in costs
    ]


def python(code: str) -> list[str]:
    """Return the command that runs a program in this Python."""
    return [sys.executable, "-c", code]


def dpaudit(*words: str) -> list[str]:
    """Return the command `dpaudit …`."""
    script = Path(sys.executable).with_name("dpaudit")
    return [str(script), *words]
