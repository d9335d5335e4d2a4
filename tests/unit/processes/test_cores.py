"""The number of cores, where the system or a container allows fewer than the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaudit.processes.cores import cores, room_for


@pytest.fixture(autouse=True)
def _a_machine_with_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("process_cpu_count", "cpu_count"):
        monkeypatch.setattr(os, name, lambda: 8, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def with_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"sys/fs/cgroup/cpu.max": "350000 100000\n"}, 3),
        ({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "what is this?"}, 8),
        (
            {
                "proc/self/cgroup": "0::/user.slice/mine\n",
                "sys/fs/cgroup/user.slice/mine/cpu.max": "max 100000\n",
                "sys/fs/cgroup/user.slice/cpu.max": "200000 100000\n",
            },
            2,
        ),
    ],
)
def test_a_container_may_allow_fewer(files: dict[str, str], wanted: int, tmp_path: Path) -> None:
    assert cores(with_files(tmp_path, files)) == wanted


def test_so_may_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 5}, raising=False)
    assert cores(tmp_path) == 3


MEMORY = {
    "proc/self/statm": "9999 1000 10 1 0 10 0\n",  # 1,000 pages
    "proc/meminfo": "MemTotal:  99999 kB\nMemFree:  1000 kB\nMemAvailable:   14000 kB\n",
}
GROUP = {
    "proc/self/cgroup": "0::/mine\n",
    "sys/fs/cgroup/mine/memory.max": "9000000\n",
    "sys/fs/cgroup/mine/memory.current": "2000000\n",
    "sys/fs/cgroup/mine/memory.stat": "anon 900000\ninactive_file 1200000\n",
}


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, 8),
        (MEMORY, 3),
        (MEMORY | GROUP, 2),
        (MEMORY | GROUP | {"sys/fs/cgroup/mine/memory.max": "max\n"}, 3),
        (MEMORY | {"proc/self/statm": "9999 9999 10 1 0 10 0\n"}, 0),
    ],
)
def test_memory_may_allow_fewer(
    files: dict[str, str], wanted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: 4096)
    assert room_for(8, with_files(tmp_path, files)) == wanted
