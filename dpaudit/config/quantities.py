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
    return float(_parsed(value, key, _TIMES, "a duration such as 30s, 2m or 1h"))


def parse_size(value: int | str) -> int:
    """Return bytes from `512MB`, `1.5gib` or a number of them. Raises ConfigurationError."""
    return int(_parsed(value, "memory_limit", _SIZES, "a size such as 512MB or 2GiB"))


def _parsed(value: float | str, key: str, units: Mapping[str, float], must: str) -> float:
    if isinstance(value, int | float):
        return value
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", value)
    if match is not None:
        for unit in (match[2], match[2].upper()):
            if unit in units:
                return float(match[1]) * units[unit]
    raise ConfigurationError(Name(key), f"={value!r} must be {must}", code="option-invalid")
