"""Lines and numbers as a reader calls them."""

from __future__ import annotations

import math
import os
from pathlib import Path

from dpaudit.certificates.traced import SourceLine
from dpaudit.tracing.runs.places import Place


def shown(place: Place) -> SourceLine:
    """Return a line as a reader calls it."""
    here, file = Path(os.getcwd()), Path(place.file)
    inside = file.relative_to(here) if file.is_relative_to(here) else file
    return SourceLine(str(inside), place.line, place.code)


# Of a number that was computed, so much more or less is rounding.
_ROUNDING = 1e-9


def times(count: int) -> str:
    """Return how often, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def rounded_up(value: float) -> str:
    """Return a number in a few digits that is no smaller: of a scale that has to be at least so
    large."""
    if not math.isfinite(value) or value <= 0:
        return number(value)
    unit = _unit(value)
    return number(math.ceil(value / unit * (1 - _ROUNDING)) * unit)


def rounded_down(value: float) -> str:
    """Return a number above 0 in a few digits that is no larger: of a bound that may be at most so
    large."""
    unit = _unit(value)
    return number(math.floor(value / unit * (1 + _ROUNDING)) * unit)


def _unit(value: float) -> float:
    return 10.0 ** (math.floor(math.log10(value)) - 3)


def number(value: float) -> str:
    """Return a number in a few digits."""
    return "∞" if math.isinf(value) else f"{value:.4g}"
