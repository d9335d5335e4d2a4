"""How many processes can run at the same time, by cores and by memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = "sys/fs/cgroup"


def cores(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use, by its affinity and the limit of its
    container. root: folder of the system's files."""
    limits = [1.0 * _usable(), *_quotas(root)]
    return max(1, int(min(limits)))


def _usable() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13; PYTHON_CPU_COUNT changes it
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield the limits of control groups, in cores: for every group of this process in version 2,
    for the container in version 1."""
    for folder in _groups(root):
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            yield int(quota) / int(period)  # not for "max"
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (
            (root / _GROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="ascii")
            for name in ("quota", "period")
        )
        if int(quota) > 0:
            yield int(quota) / int(period)


def _groups(root: Path) -> list[Path]:
    """Return the folders of the control groups, version 2, of this process."""
    groups = root / _GROUPS
    own = groups
    with suppress(OSError, UnicodeDecodeError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                own = groups / line.removeprefix("0::/")
    folders = dict.fromkeys([own, *own.parents, groups])
    return [folder for folder in folders if folder.is_relative_to(groups)]


def room_for(processes: int, root: Path = Path("/")) -> int:
    """Return how many of these processes fit in memory if each is as large as this one; all where
    the system does not say."""
    try:
        pages = int((root / "proc/self/statm").read_text(encoding="ascii").split()[1])
        left = min(_left(root))
    except (OSError, ValueError):
        return processes
    return min(processes, int(left // max(1, pages * os.sysconf("SC_PAGE_SIZE"))))


def _left(root: Path) -> Iterator[int]:
    """Yield the free bytes of the machine, and of control groups, version 2. The cache of files
    counts as free."""
    words = (root / "proc/meminfo").read_text(encoding="ascii").split()
    yield 1024 * int(words[words.index("MemAvailable:") + 1])
    for folder in _groups(root):
        with suppress(OSError, ValueError):
            most, now = (
                int((folder / f"memory.{name}").read_text(encoding="ascii"))
                for name in ("max", "current")
            )
            stat = (folder / "memory.stat").read_text(encoding="ascii").split()
            yield most - now + int(stat[stat.index("inactive_file") + 1])
