"""Freed memory is used again, instead of being requested from the system."""

from __future__ import annotations

import platform
import subprocess
import sys

_FAULTS = """
import resource, sys
import numpy as np
from dpaudit.sampling.sampler import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(50):
    every = [np.ones(250_000) for _ in range(4)]
    del every
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_minflt - before.ru_minflt, after.ru_maxrss - before.ru_maxrss)
"""


def faults(word: str) -> tuple[int, int]:
    """Return the number of pages requested for arrays of 2 MB, and the growth of the process."""
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS, word], capture_output=True, text=True, check=True
    )
    pages, grown = map(int, done.stdout.split())
    return pages, grown


def test_freed_memory_is_used_again() -> None:
    (pages, grown), (usual, _) = faults("kept"), faults("given back")
    # glibc requests each page of 8 MB once. Other C libraries request no more than before.
    most = usual / 4 if platform.libc_ver()[0] == "glibc" else 1.5 * usual
    assert pages <= most
    assert grown < 16 * (1024 if sys.platform != "darwin" else 1 << 20)
