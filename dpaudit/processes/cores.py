"""Compute how many processes can run at the same time, from usable cores and free memory, within
the limits of containers (Linux control groups). `root`, the folder that contains /proc and /sys,
differs only in tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = "sys/fs/cgroup"


def cores(root: Path = Path("/")) -> int:
    """Return the number of CPU cores that this process may use, at least 1. The CPU affinity and
    the CPU quota of the container limit it."""
    limits = [1.0 * _usable(), *_quotas(root)]
    return max(1, int(min(limits)))


def _usable() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13; PYTHON_CPU_COUNT changes it
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield the CPU quotas of the control groups (version 2) of this process, in cores."""
    for folder in _groups(root):
        with suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            yield int(quota) / int(period)  # without a quota, int("max") raises


def _groups(root: Path) -> list[Path]:
    """Return the folders of all control groups (version 2) that contain this process."""
    groups = root / _GROUPS
    innermost = groups
    with suppress(OSError, UnicodeDecodeError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                innermost = groups / line.removeprefix("0::/")
    folders = dict.fromkeys([innermost, *innermost.parents, groups])
    return [folder for folder in folders if folder.is_relative_to(groups)]


def room_for(processes: int, root: Path = Path("/")) -> int:
    """Return how many of `processes` further processes fit in free memory. Each counts as needing
    as much memory as this process uses now. If the system does not report its memory, all fit."""
    try:
        pages = int((root / "proc/self/statm").read_text(encoding="ascii").split()[1])
        left = min(_left(root))
    except (OSError, ValueError):
        return processes
    return min(processes, int(left // max(1, pages * os.sysconf("SC_PAGE_SIZE"))))


def _left(root: Path) -> Iterator[int]:
    """Yield the bytes free or used as file cache in the machine and each control group."""
    words = (root / "proc/meminfo").read_text(encoding="ascii").split()
    yield 1024 * int(words[words.index("MemAvailable:") + 1])
    for folder in _groups(root):
        with suppress(OSError, ValueError):
            limit, now = (
                int((folder / f"memory.{name}").read_text(encoding="ascii"))
                for name in ("max", "current")
            )
            stat = (folder / "memory.stat").read_text(encoding="ascii").split()
            yield limit - now + int(stat[stat.index("inactive_file") + 1])
