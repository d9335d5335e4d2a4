"""Memory that is freed stays with the process, for the block that is drawn next."""

from __future__ import annotations

import numpy as np

# The largest piece by which glibc learns, 32 MiB, less room for what it keeps beside it.
_LARGEST = (32 << 20) - (64 << 10)


def keep_freed_memory() -> None:
    """Have the C library keep memory that is freed, in place of giving it back to the system.

    Arrays of some megabytes are made anew for every block. Where their memory comes from the system
    each time, the system clears every page of it first. glibc keeps pieces up to the size of the
    largest one that was freed so far (mallopt(3), M_MMAP_THRESHOLD): one is asked for, never
    touched, so that it takes no memory, and freed. With other C libraries nothing changes.
    """
    np.empty(_LARGEST, dtype=np.uint8)
