"""Durations and sizes as people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpaudit.errors import ConfigurationError, Name

_TIMES = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_duration(value: float | str, key: str = "time") -> float:
    """Return seconds from `30s`, `2m`, `1h`, `500ms` or a number. Raises ConfigurationError."""
    if isinstance(value, int | float):
        return float(value)
    seconds = _number(value, _TIMES)
    if seconds is None:
        why = f"={value!r} must be a duration such as 30s, 2m or 1h"
        raise ConfigurationError(Name(key), why)
    return seconds


def parse_size(value: int | str) -> int:
    """Return bytes from `512MB`, `1.5GiB` or a number of them. Raises ConfigurationError."""
    if isinstance(value, int):
        return value
    size = _number(value.upper(), _SIZES)
    if size is None:
        why = f"={value!r} must be a size such as 512MB or 2GiB"
        raise ConfigurationError(Name("memory_limit"), why)
    return int(size)


def _number(text: str, units: Mapping[str, float]) -> float | None:
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", text)
    return float(match[1]) * units[match[2]] if match and match[2] in units else None
