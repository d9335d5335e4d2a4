"""How many processes can compute at the same time: cores, and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = "sys/fs/cgroup"


def cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use: those of the machine, as far as its affinity and
    the limit of its container allow. root: where the system's files are."""
    limits = [1.0 * _usable(), *_quotas(root)]
    return max(1, int(min(limits)))


def _usable() -> int:
    """Return the cores that the system lets this process run on."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13; PYTHON_CPU_COUNT changes it
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield the cores that control groups allow, as far as they set a limit: of version 2 every
    group that this process is in, and of version 1 that of a container."""
    for folder in _groups(root):
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            yield int(quota) / int(period)  # "max" is no number, and no limit
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (
            (root / _GROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="ascii")
            for name in ("quota", "period")
        )
        if int(quota) > 0:
            yield int(quota) / int(period)


def _groups(root: Path) -> list[Path]:
    """Return the folders of the control groups (of version 2) that this process is in."""
    groups = root / _GROUPS
    own = groups
    with suppress(OSError, UnicodeDecodeError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                own = groups / line.removeprefix("0::/")
    folders = dict.fromkeys([own, *own.parents, groups])
    return [folder for folder in folders if folder.is_relative_to(groups)]


def room_for(processes: int, root: Path = Path("/")) -> int:
    """Return how many processes as large as this one there is memory for, of so many; all of them
    where the system does not say."""
    try:
        pages = int((root / "proc/self/statm").read_text(encoding="ascii").split()[1])
        left = min(_left(root))
    except (OSError, ValueError):
        return processes
    return min(processes, int(left // max(1, pages * os.sysconf("SC_PAGE_SIZE"))))


def _left(root: Path) -> Iterator[int]:
    """Yield the bytes that the machine has left, and those that control groups (of version 2) do:
    with what they keep of files, which they give up when it is needed."""
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
