"""Spaces of numbers and of integers, with or without bounds, and of Booleans."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

from dpaudit.errors import DatasetError
from dpaudit.searching.space import DescriptionReader, NotUnderstood, Space, distinct, strategies
from dpaudit.wording import shortened

_SUBNORMAL = 5e-324
_MAX_FLOAT = sys.float_info.max
_HUGE = 1e18
# An input at which bugs are likely: from this number on, neighbouring floats differ by at least 2,
# so that adding 1 may change nothing.
_FIRST_GAP = 2**53
# Significant digits to which random numbers are rounded, so that they are easy to read.
_DIGITS = 3
# A random number becomes 0 if its absolute value is below a limit. The limit is this number times
# the distance between the bounds, or this number itself if the bounds are more than 1 apart.
_ZERO_SHARE = 1e-6
# A set of integers counts as small, so that all its values are listed, if it has at most this
# number of values.
_FEW_VALUES = 30


@dataclass(frozen=True, slots=True)
class _Bounded(Space):
    """The numbers from `low` to `high`, both included. An infinite bound stands for no bound."""

    low: Any = -math.inf
    high: Any = math.inf

    of: ClassVar[type[int] | type[float]]

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if low != low or high != high:
            raise DatasetError(
                f"a bound of {self.word} is NaN; bounds are numbers: {self.word} in [0, 1]",
                code="space-invalid",
            )
        line = f"{self.word} in [{_shown(low)}, {_shown(high)}]"
        if low > high:
            swapped = f"{self.word} in [{_shown(high)}, {_shown(low)}]"
            raise DatasetError(
                f"no value is {line}, since its lower bound is above its upper one; "
                f"write {swapped}",
                code="space-invalid",
            )
        if low == math.inf or high == -math.inf:
            raise DatasetError(
                f"no finite value is {line}; write {self.word} in [0, inf], or {self.word} alone",
                code="space-invalid",
            )

    @classmethod
    def read(cls, line: DescriptionReader) -> Self:
        example = f"{cls.word} in [0, 1]"
        if not line.skip("in"):
            if line.is_next("["):
                raise line.wrong(f"'in', as in {example!r}")
            return cls()
        line.take("[", "bounds, as in [0, 1]")
        low = cls._bound(line)
        line.take(",")
        high = cls._bound(line)
        line.take("]")
        return cls(low, high)

    @classmethod
    def _bound(cls, line: DescriptionReader) -> Any:
        token = line.token("a bound")
        bound = cls.parsed(token.text) if token.kind == "word" else None
        if bound is None:
            article = "an" if cls.word == "integer" else "a"
            raise line.back().wrong(f"{article} {cls.word} as a bound")
        return bound

    @staticmethod
    def parsed(word: str) -> Any:
        """Return the bound that a user wrote as a word, such as `1e3`; None if it is no number."""
        return as_number(word)

    @property
    def has_low(self) -> bool:
        return bool(self.low > -math.inf)

    @property
    def has_high(self) -> bool:
        return bool(self.high < math.inf)

    @property
    def is_bounded(self) -> bool:
        return self.has_low or self.has_high

    def words(self) -> str:
        bounds = f" in [{_shown(self.low)}, {_shown(self.high)}]" if self.is_bounded else ""
        return self.word + bounds

    @property
    def simplest(self) -> Any:
        return min(max(self.of(0), self.low), self.high)

    def usual(self) -> Any:
        if self.has_low:
            return self._middle() if self.has_high else self.low + 1
        return self.high - 1 if self.has_high else self.of(1)

    def spread(self, number: int) -> list[Any]:
        if self.has_low and self.has_high:
            return self._between(number)
        step = -1 if self.has_high else 1
        return [self.usual() + step * i for i in range(number)]

    @abstractmethod
    def _middle(self) -> Any:
        """Return the number in the middle between the two bounds."""

    @abstractmethod
    def _between(self, number: int) -> list[Any]:
        """Return `number` equally spaced values between the two bounds."""

    def extremes(self) -> tuple[Any, Any]:
        usual = self.usual()
        return (
            self.low if self.has_low else usual - 1,
            self.high if self.has_high else usual + 1,
        )

    def is_numeric(self) -> bool:
        return True

    def clamped(self, value: Any) -> Any:
        return min(max(value, self.low), self.high) if isinstance(value, int | float) else value

    def _cost(self, value: Any) -> tuple[Any, ...]:
        """Return a sort key that is smaller for a simpler value."""
        outside = not self.contains(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (isinstance(value, float) and not math.isfinite(value)):
            return (outside, 2, 0, 0.0)
        # Write the number without an exponent, so that 1e-160 and 1e160 count as long.
        digits = len(f"{Decimal(str(abs(value))):f}".removesuffix(".0"))
        simplest = self.simplest
        is_simplest = value == simplest and math.copysign(1, value) == math.copysign(1, simplest)
        return (outside, not is_simplest, digits, abs(value - simplest))

    def _below(self, candidates: Iterable[Any], value: Any) -> Iterator[Any]:
        """Yield the candidates that are simpler than `value`, the simplest first."""
        cost = self._cost(value)
        below = [candidate for candidate in distinct(candidates) if self._cost(candidate) < cost]
        return iter(sorted(below, key=self._cost))


@dataclass(frozen=True, slots=True)
class Numbers(_Bounded):
    """The set of floats between two bounds. Without bounds, it contains every float, also NaN."""

    word: ClassVar[str] = "number"
    of: ClassVar[type[int] | type[float]] = float

    def contains(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return bool(self.low <= value <= self.high) or not self.is_bounded

    def _middle(self) -> Any:
        return self.low / 2 + self.high / 2

    def _between(self, number: int) -> list[Any]:
        if number == 1 or self.low == self.high:
            return [self.usual()] * number
        parts = [(i + 1) / (number + 1) for i in range(number)]
        return [self.low * (1 - part) + self.high * part for part in parts]

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        low, high = self.low, self.high
        width = high - low if 0 < high - low < math.inf else 1.0
        if self.has_low:
            yield low, "the lower bound"
        if self.has_high:
            yield high, "the upper bound"
        yield from ((0.0, "0"), (-0.0, "-0.0"), (_SUBNORMAL, "the smallest positive float"))
        if self.has_low:
            yield low - width, "below the lower bound"
        if self.has_high:
            yield high + width, "above the upper bound"
            yield high + 1000 * width, "far above the upper bound"
        yield from ((math.nan, "NaN"), (math.inf, "inf"), (-math.inf, "-inf"), (None, "missing"))
        yield from ((float(_FIRST_GAP), "2^53"), (_HUGE, "huge"), (-_HUGE, "huge and negative"))
        yield from ((_MAX_FLOAT, "the largest float"), (-_MAX_FLOAT, "the smallest float"))

    def simpler(self, value: Any) -> Iterator[Any]:
        known = [self.simplest, self.low, self.high]
        if isinstance(value, int | float) and math.isfinite(value):
            known += [float(round(value)), self.simplest + (value - self.simplest) / 2]
            known += [float(f"{value:.{digits}g}") for digits in (1, 2, 3, 6, 12)]
        return self._below(filter(math.isfinite, known), value)

    def strategy(self) -> Any:
        low = self.low if self.has_low else None
        high = self.high if self.has_high else None
        return strategies().floats(low, high, allow_nan=not self.is_bounded).map(self._short)

    def _short(self, value: float) -> float:
        """Return a random number rounded to three digits, unless that moves it out of the space."""
        if not math.isfinite(value):
            return value
        width = min(self.high - self.low, 1.0)
        short = float(f"{value:.{_DIGITS}g}") if abs(value) >= _ZERO_SHARE * width else 0.0
        return short if self.contains(short) and math.isfinite(short) else value


@dataclass(frozen=True, slots=True)
class Integers(_Bounded):
    """The set of the integers between two bounds. An infinite bound stands for no bound."""

    word: ClassVar[str] = "integer"
    of: ClassVar[type[int] | type[float]] = int

    @staticmethod
    def parsed(word: str) -> Any:
        return as_integer(word)

    def contains(self, value: Any) -> bool:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return is_integer and bool(self.low <= value <= self.high)

    def _middle(self) -> Any:
        return (self.low + self.high) // 2

    def _between(self, number: int) -> list[Any]:
        width = self.high - self.low
        return [self.low + width * (i + 1) // (number + 1) for i in range(number)]

    def all_values(self) -> list[Any] | None:
        is_small = self.has_low and self.has_high and self.high - self.low < _FEW_VALUES
        return list(range(self.low, self.high + 1)) if is_small else None

    def least_step(self) -> float:
        return 1.0

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        low, high = self.low, self.high
        if self.has_low:
            yield low, "the lower bound"
        if self.has_high:
            yield high, "the upper bound"
        yield from ((0, "0"), (1, "1"), (-1, "negative"))
        if self.has_low:
            yield low - 1, "below the lower bound"
        if self.has_high:
            width = max(1, high - (low if self.has_low else 0))
            yield high + 1, "above the upper bound"
            yield high + 1000 * width, "far above the upper bound"
        yield None, "missing"
        yield from (
            (_FIRST_GAP + 1, "2^53 + 1"),
            (10**18, "huge"),
            (-(10**18), "huge and negative"),
        )
        yield from ((2**63 - 1, "the largest of 64 bits"), (-(2**63), "the smallest of 64 bits"))
        yield 2**64, "beyond 64 bits"

    def simpler(self, value: Any) -> Iterator[Any]:
        known = [self.simplest, *([self.low] if self.has_low else [])]
        known += [self.high] if self.has_high else []
        if isinstance(value, int):
            size = abs(value - self.simplest)
            sign = 1 if value >= self.simplest else -1
            known.append(self.simplest + sign * (size // 2))
            # Also try smaller steps, so that shrinking quickly reaches the smallest integer that
            # still violates a claim.
            known += [value - sign * max(1, size // part) for part in (4, 16, 64, 256)]
        return self._below(known, value)

    def strategy(self) -> Any:
        low = self.low if self.has_low else None
        high = self.high if self.has_high else None
        return strategies().integers(low, high)


@dataclass(frozen=True, slots=True)
class Booleans(Space):
    """The set of the two values False and True."""

    word: ClassVar[str] = "boolean"

    def contains(self, value: Any) -> bool:
        return isinstance(value, bool)

    @property
    def simplest(self) -> bool:
        return False

    def all_values(self) -> list[Any]:
        return [False, True]

    def is_label(self) -> bool:
        return True

    def is_numeric(self) -> bool:
        return True

    def least_step(self) -> float:
        return 1.0

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield from ((False, "false"), (True, "true"), (None, "missing"))

    def simpler(self, value: Any) -> Iterator[Any]:
        if value is True:
            yield False
        elif value is not False:
            yield from (False, True)

    def strategy(self) -> Any:
        return strategies().booleans()


def as_number(word: str) -> float | None:
    """Return the float that a word stands for, such as `1e3` or `inf`, or None."""
    try:
        value = float(word)
    except ValueError:
        return None
    if math.isinf(value) and "inf" not in word.lower():
        raise NotUnderstood(
            f"{shortened(word, 40)} is larger than any float, 1.8e308; write inf for infinity"
        )
    return value


def as_integer(word: str) -> int | float | None:
    """Return the integer that a word stands for, or the float for `inf` and `nan`, or None."""
    if word.lstrip("+-").lower() in ("inf", "infinity", "nan"):
        return float(word)
    try:
        return int(word)
    except ValueError:
        return None


def _shown(bound: float) -> str:
    """Return a bound in the notation of users, such as `1` for 1.0."""
    return repr(bound).removesuffix(".0")
