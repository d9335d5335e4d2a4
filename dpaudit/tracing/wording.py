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


def number(value: float) -> str:
    """Return a number in a few digits."""
    return "∞" if math.isinf(value) else f"{value:.4g}"
