"""How the numbers of a column are written: as they are, as powers of two, or as durations."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit.outcomes.columns import number_word

# The names of columns whose numbers are exponents of two start so.
LOWEST_BIT, HIGHEST_BIT = "lowest set bit of ", "highest set bit of "
# The name of the column of how long calls took, in nanoseconds.
ELAPSED = "elapsed time"

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


def number_writer(name: str) -> Callable[[float], str]:
    """Return what writes the numbers of the column of this name: 5 as `5`, `2^5` or `5 ns`."""
    if name == ELAPSED:
        return duration_word
    if name.startswith((LOWEST_BIT, HIGHEST_BIT)):
        return lambda exponent: f"2^{number_word(exponent)}"
    return number_word


def duration_word(nanoseconds: float) -> str:
    """Return a duration in the largest unit that it reaches, `0.21 ms` as `210 µs`."""
    scale, unit = next((one for one in _UNITS if abs(nanoseconds) >= one[0]), (1.0, "ns"))
    return f"{number_word(nanoseconds / scale)} {unit}"
