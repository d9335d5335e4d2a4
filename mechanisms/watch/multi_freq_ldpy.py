"""What a report of local hashing of multi-freq-ldpy supports, for `make watch`.

A report is a bucket and the seed of a hash function. The server counts the values whose hash is the
bucket; so does dpaudit, because no seed occurs twice.
"""

from __future__ import annotations

from importlib import import_module

VALUES = 4


def supported_of_two(report: tuple[int, int]) -> list[bool]:
    """Return which values a report with two buckets supports."""
    return _supported(report, buckets=2)


def supported_of_four(report: tuple[int, int]) -> list[bool]:
    """Return which values a report with four buckets supports, as for ε = 1."""
    return _supported(report, buckets=4)


def _supported(report: tuple[int, int], buckets: int) -> list[bool]:
    bucket, seed = report
    xxh32 = import_module("xxhash").xxh32
    hashes = (xxh32(str(value), seed=seed).intdigest() for value in range(VALUES))
    return [hashed % buckets == bucket for hashed in hashes]
