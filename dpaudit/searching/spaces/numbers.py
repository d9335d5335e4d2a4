"""Numbers and integers, with bounds or without, and booleans."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.searching.space import Edge, different, ordered, strategies

_SUBNORMAL = 5e-324
_LARGEST = sys.float_info.max
_HUGE = 1e18
# Digits of random numbers; those below this part of the width of the bounds, or of 1, become 0.
_DIGITS, _TINY = 3, 1e-6
# From here on, adding 1 to a float may change nothing.
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Numbers:
    """Floats from `low` to `high`, both included; without bounds every float, NaN too."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        _check_bounds("number", self.low, self.high)
        for name, bound in (("low", self.low), ("high", self.high)):
            try:
                object.__setattr__(self, name, float(bound))
            except OverflowError:
                raise DatasetError(
                    "a bound of number is larger than any float; write inf", code="space-invalid"
                ) from None

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.low) or math.isfinite(self.high)

    def words(self) -> str:
        return (
            f"number in [{_shown(self.low)}, {_shown(self.high)}]" if self.is_bounded else "number"
        )

    def contains(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return self.low <= value <= self.high or not self.is_bounded

    @property
    def simplest(self) -> float:
        return min(max(0.0, self.low), self.high)

    def usual(self) -> float:
        if math.isfinite(self.low) and math.isfinite(self.high):
            return self.low / 2 + self.high / 2
        if math.isfinite(self.low):
            return self.low + 1
        return self.high - 1 if math.isfinite(self.high) else 1.0

    def spread(self, number: int) -> list[float]:
        return _spread(self.low, self.high, self.usual(), number)

    def edges(self) -> Iterator[Edge]:
        return ordered(Edge(value, words, self.contains(value)) for value, words in self._edges())

    def _edges(self) -> Iterator[tuple[Any, str]]:
        yield from _at_bounds(self.low, self.high)
        yield from ((0.0, "0"), (-0.0, "-0.0"), (_SUBNORMAL, "the smallest positive float"))
        yield from _beyond(self.low, self.high)
        yield from ((math.nan, "NaN"), (math.inf, "inf"), (-math.inf, "-inf"), (None, "missing"))
        yield from ((float(_EXACT), "2^53"), (_HUGE, "huge"), (-_HUGE, "huge and negative"))
        yield from ((_LARGEST, "the largest float"), (-_LARGEST, "the smallest float"))

    def simpler(self, value: Any) -> Iterator[Any]:
        nearest = [self.simplest, self.low, self.high, *(_rounded(value, self.simplest))]
        finite = (one for one in nearest if math.isfinite(one))
        return _below(finite, value, self._cost)

    def _cost(self, value: Any) -> tuple[Any, ...]:
        return _cost(value, self.simplest, self.contains(value))

    def strategy(self) -> Any:
        low, high = (one if math.isfinite(one) else None for one in (self.low, self.high))
        return strategies().floats(low, high, allow_nan=not self.is_bounded).map(self._short)

    def _short(self, value: float) -> float:
        """Return a number of few digits near a random one: edges have the others."""
        if not math.isfinite(value):
            return value
        width = min(self.high - self.low, 1.0)
        short = float(f"{value:.{_DIGITS}g}") if abs(value) >= _TINY * width else 0.0
        return short if self.contains(short) and math.isfinite(short) else value


@dataclass(frozen=True, slots=True)
class Integers:
    """Integers from `low` to `high`, both included; None: without that bound."""

    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise DatasetError(
                    f"the bounds of an integer must be integers, not {bound!r}",
                    code="space-invalid",
                )
        _check_bounds("integer", *self._limits)

    @property
    def _limits(self) -> tuple[float, float]:
        low, high = self.low, self.high
        return (-math.inf if low is None else low), (math.inf if high is None else high)

    def words(self) -> str:
        if self.low is None and self.high is None:
            return "integer"
        low, high = self._limits
        return f"integer in [{low}, {high}]"

    def contains(self, value: Any) -> bool:
        low, high = self._limits
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    @property
    def simplest(self) -> int:
        if self.low is not None and self.low > 0:
            return self.low
        return self.high if self.high is not None and self.high < 0 else 0

    def usual(self) -> int:
        if self.low is not None and self.high is not None:
            return (self.low + self.high) // 2
        if self.low is not None:
            return self.low + 1
        return self.high - 1 if self.high is not None else 1

    def spread(self, number: int) -> list[int]:
        if self.low is not None and self.high is not None:
            width = self.high - self.low
            return [self.low + width * (i + 1) // (number + 1) for i in range(number)]
        down = self.low is None and self.high is not None
        return [self.usual() - i if down else self.usual() + i for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        return ordered(Edge(value, words, self.contains(value)) for value, words in self._edges())

    def _edges(self) -> Iterator[tuple[Any, str]]:
        yield from (
            (bound, f"the {side} bound")
            for bound, side in ((self.low, "lower"), (self.high, "upper"))
            if bound is not None
        )
        yield from ((0, "0"), (1, "1"), (-1, "negative"))
        if self.low is not None:
            yield self.low - 1, "below the lower bound"
        if self.high is not None:
            yield self.high + 1, "above the upper bound"
            yield (
                self.high + 1000 * max(1, self.high - (self.low or 0)),
                "far above the upper bound",
            )
        yield None, "missing"
        yield from ((_EXACT + 1, "2^53 + 1"), (10**18, "huge"), (-(10**18), "huge and negative"))
        yield from ((2**63 - 1, "the largest of 64 bits"), (-(2**63), "the smallest of 64 bits"))
        yield 2**64, "beyond 64 bits"

    def simpler(self, value: Any) -> Iterator[Any]:
        halves = []
        if isinstance(value, int):
            away = value - self.simplest
            halves = [
                self.simplest + int(math.copysign(abs(away) // part, away)) for part in (2, 1)
            ]
            # Smaller steps, so that a limit is reached in few of them.
            steps = (abs(away) // part for part in (4, 16, 64, 256))
            halves += [value - int(math.copysign(max(1, step), away)) for step in steps]
        known = (self.simplest, self.low, self.high, *halves)
        return _below((one for one in known if one is not None), value, self._cost)

    def _cost(self, value: Any) -> tuple[Any, ...]:
        return _cost(value, self.simplest, self.contains(value))

    def strategy(self) -> Any:
        return strategies().integers(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Booleans:
    """False and True."""

    def words(self) -> str:
        return "boolean"

    def contains(self, value: Any) -> bool:
        return isinstance(value, bool)

    @property
    def simplest(self) -> bool:
        return False

    def usual(self) -> bool:
        return False

    def spread(self, number: int) -> list[bool]:
        return [i % 2 == 1 for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        yield from (Edge(False, "false", True), Edge(True, "true", True))
        yield Edge(None, "missing", False)

    def simpler(self, value: Any) -> Iterator[Any]:
        if value is True:
            yield False
        elif value is not False:
            yield from (False, True)

    def strategy(self) -> Any:
        return strategies().booleans()


def _check_bounds(kind: str, low: Any, high: Any) -> None:
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise DatasetError(
                f"a bound of {kind} is {bound!r}; bounds are numbers: {kind} in [0, 1]",
                code="space-invalid",
            )
        if bound != bound:
            raise DatasetError(
                f"a bound of {kind} is NaN; bounds are numbers: {kind} in [0, 1]",
                code="space-invalid",
            )
    line = f"{kind} in [{_shown(low)}, {_shown(high)}]"
    if low > high:
        swapped = f"{kind} in [{_shown(high)}, {_shown(low)}]"
        raise DatasetError(
            f"no value is {line}, since its lower bound is above its upper one; write {swapped}",
            code="space-invalid",
        )
    if low == math.inf or high == -math.inf:
        raise DatasetError(
            f"no finite value is {line}; write {kind} in [0, inf], or {kind} alone",
            code="space-invalid",
        )


def _shown(bound: float) -> str:
    """Return a bound as the grammar reads it; 1 for 1.0."""
    text = repr(bound)
    return text.removesuffix(".0")


def _spread(low: float, high: float, usual: float, number: int) -> list[float]:
    if number == 1 or low == high:
        return [usual] * number
    if math.isfinite(low) and math.isfinite(high):
        parts = [(i + 1) / (number + 1) for i in range(number)]
        return [low * (1 - part) + high * part for part in parts]
    down = not math.isfinite(low) and math.isfinite(high)
    return [usual - i if down else usual + i for i in range(number)]


def _at_bounds(low: float, high: float) -> Iterator[tuple[float, str]]:
    if math.isfinite(low):
        yield low, "the lower bound"
    if math.isfinite(high):
        yield high, "the upper bound"


def _beyond(low: float, high: float) -> Iterator[tuple[float, str]]:
    width = high - low if 0 < high - low < math.inf else 1.0
    if math.isfinite(low):
        yield low - width, "below the lower bound"
    if math.isfinite(high):
        yield high + width, "above the upper bound"
        yield high + 1000 * width, "far above the upper bound"


def _rounded(value: Any, simplest: float) -> Iterator[float]:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return
    yield float(round(value))
    yield simplest + (value - simplest) / 2
    for digits in (1, 2, 3, 6, 12):
        yield float(f"{value:.{digits}g}")


def _below(candidates: Any, value: Any, cost: Any) -> Iterator[Any]:
    """Yield the candidates that are simpler than a value, the simplest first."""
    most = cost(value)
    return iter(sorted((one for one in different(candidates) if cost(one) < most), key=cost))


def _cost(value: Any, simplest: float, inside: bool) -> tuple[Any, ...]:
    """Return how simple a value is: inside, then exactly the simplest, then short to write."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return (not inside, 2, 0, 0.0)
    # As it is written without an exponent, so that neither 1e-160 nor 1e160 is short.
    digits = len(f"{Decimal(str(abs(value))):f}".removesuffix(".0"))
    is_simplest = value == simplest and math.copysign(1, value) == math.copysign(1, simplest)
    return (not inside, 0 if is_simplest else 1, digits, abs(value - simplest))
