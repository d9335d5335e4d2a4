"""Durations as people write them."""

from __future__ import annotations

import re

from dpaudit.errors import ConfigurationError, Name

_UNITS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_duration(value: float | str, key: str = "time") -> float:
    """Return seconds from `30s`, `2m`, `1h`, `500ms` or a number. Raises ConfigurationError."""
    if isinstance(value, int | float):
        return float(value)
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", value)
    if match is None or match[2] not in _UNITS:
        why = f"={value!r} must be a duration such as 30s, 2m or 1h"
        raise ConfigurationError(Name(key), why)
    return float(match[1]) * _UNITS[match[2]]
