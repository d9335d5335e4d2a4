"""Values that are neither plain numbers nor texts: dates, fractions, complex numbers, members.

A value that is not exactly a float keeps its nearest float, so that it has a place in the order,
and is told apart from all others by a label of its own (`exact value of output`). One that is no
number is a label, with numbers beside it (`timestamp of output`).
"""

from __future__ import annotations

import datetime
import enum
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from dpaudit.outcomes.columns import number_word, text_key
from dpaudit.outcomes.paths import quoted
from dpaudit.outcomes.representation import EXPONENT, OFFSET

EXACT = "exact value"

_EPOCH = datetime.datetime(1970, 1, 1)
_LONGEST_INTEGER = 2_000  # bits


@dataclass(frozen=True, slots=True)
class Described:
    """A value as an entry, and numbers or labels beside it, by what they say.

    forms: how it is represented, which Python does not compare.
    """

    entry: str | float
    beside: Mapping[str, str | float] = field(default_factory=dict)
    forms: Mapping[str, str | float] = field(default_factory=dict)


class Missing:
    """A missing value of a library, from another process. word: how it is written, as `<NA>`."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __str__(self) -> str:
        return self.word


Describe = Callable[[Any], Described]


def describer(kind: type) -> Describe | None:
    """Return what describes values of a type; None for a type that is not special."""
    for bases, describe in _DESCRIBERS:
        if issubclass(kind, bases):
            return describe
    if issubclass(kind, Missing):
        return _label
    pandas = sys.modules.get("pandas")
    return _label if pandas is not None and issubclass(kind, type(pandas.NA)) else None


def key_word(key: Any) -> str | None:
    """Return a dict's key or a set's element as it is written; None for what has no word.

    No two that differ are written alike: strings are in double quotes.
    """
    if isinstance(key, str):
        return quoted(str(key.value) if isinstance(key, enum.Enum) else str(key))
    if isinstance(key, bytes):
        return repr(bytes(key))
    if isinstance(key, tuple | frozenset):
        return _words_of(key)
    if isinstance(key, bool | np.bool_ | None):
        return str(key)
    if isinstance(key, float | np.float16 | np.float32):
        return "NaN" if math.isnan(key) else number_word(float(key))
    describe = describer(type(key))
    if isinstance(key, int | np.integer) and not isinstance(key, np.timedelta64):
        describe = exact_integer
    return None if describe is None else _word(describe(key))


def _word(described: Described) -> str:
    exact = described.beside.get(EXACT)
    if isinstance(exact, str):
        # The decimal 0.1 is not the float that is written 0.1; no float is written as digits alone.
        return exact if exact.removeprefix("-").isdecimal() else f"exactly {exact}"
    return described.entry if isinstance(described.entry, str) else number_word(described.entry)


def _words_of(parts: tuple[Any, ...] | frozenset[Any]) -> str | None:
    words = [key_word(part) for part in parts]
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        return None
    if isinstance(parts, tuple):
        return f"({', '.join(known)})"
    return f"{{{', '.join(sorted(known))}}}"


def exact_integer(value: int | np.integer) -> Described:
    """Return an integer of any size: the nearest float, and beside it what is lost by that."""
    exact = int(value)
    number = _nearest(exact)
    if math.isfinite(number) and int(number) == exact:
        return Described(number)
    word = str(exact) if exact.bit_length() <= _LONGEST_INTEGER else _digest(exact, 1)
    return Described(number, {EXACT: word})


def exactly(value: Any) -> Described:
    """Return a number of any precision: the nearest float, and beside it what is lost by that."""
    if not _is_finite(value):
        return Described("NaN" if value != value else math.copysign(math.inf, value))
    exact = Fraction(*map(int, value.as_integer_ratio()))
    if exact.denominator == 1:
        return exact_integer(exact.numerator)
    number = _nearest(exact)
    if math.isfinite(number) and exact == Fraction(number):
        return Described(number)
    return Described(number, {EXACT: _fraction_word(exact)})


def _is_finite(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return bool(abs(value) < math.inf)


def _nearest(exact: Fraction | int) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _fraction_word(exact: Fraction) -> str:
    """Return a fraction as a decimal where it is one."""
    top, bottom = exact.numerator, exact.denominator
    if max(abs(top), bottom).bit_length() > _LONGEST_INTEGER:
        return _digest(top, bottom)
    places = max(_power(bottom, 2), _power(bottom, 5))
    if 10**places % bottom:
        return str(exact)
    digits = tuple(map(int, str(abs(top) * (10**places // bottom))))
    return f"{Decimal((int(top < 0), digits, -places)):f}"


def _digest(top: int, bottom: int) -> str:
    bits = max(abs(top), bottom).bit_length()
    return f"number of {bits:,} bits, digest {text_key(f'{top:x}/{bottom:x}'):016x}"


def _power(number: int, prime: int) -> int:
    """Return how often a prime divides a number."""
    power = 0
    while number % prime == 0:
        number //= prime
        power += 1
    return power


def _complex(value: complex) -> Described:
    parts = {"real part": float(value.real), "imaginary part": float(value.imag)}
    beside = {part: "NaN" if math.isnan(one) else one for part, one in parts.items()}
    # Adding zero makes -0.0 and 0.0, which compare equal, one; the parts keep the sign.
    return Described(repr(complex(value.real + 0.0, value.imag + 0.0)), beside)


def _moment(value: datetime.datetime) -> Described:
    if value != value:  # pandas has a moment that is none
        return Described("NaT")
    aware = value.tzinfo is not None and value.utcoffset() is not None
    moved = value.astimezone(datetime.UTC) if aware else value
    plain = datetime.datetime(*moved.timetuple()[:6], moved.microsecond)
    nanoseconds = getattr(value, "nanosecond", 0)  # of pandas
    word = plain.isoformat(timespec="microseconds" if nanoseconds else "auto")
    word += f"{nanoseconds:03d}" if nanoseconds else ""
    beside = {"timestamp": (plain - _EPOCH).total_seconds() + 1e-9 * nanoseconds}
    forms = {OFFSET: str(value.utcoffset())} if aware else {}
    return Described(word + "Z" * aware, beside, forms)


def _date(value: datetime.date) -> Described:
    return Described(value.isoformat(), {"timestamp": (value - _EPOCH.date()).total_seconds()})


def _time(value: datetime.time) -> Described:
    clock = datetime.datetime.combine(_EPOCH, value.replace(tzinfo=None))
    return Described(value.isoformat(), {"seconds": (clock - _EPOCH).total_seconds()})


def _duration(value: datetime.timedelta) -> Described:
    # In words of its own, since 12:00:00 is a time of day too.
    plain = datetime.timedelta(value.days, value.seconds, value.microseconds)
    nanoseconds = getattr(value, "nanoseconds", 0)  # of pandas
    word = f"{plain} and {nanoseconds} ns" if nanoseconds else str(plain)
    return Described(f"duration {word}", {"seconds": plain.total_seconds() + 1e-9 * nanoseconds})


def describe_numpy_time(value: Any) -> Described:
    """Return one of NumPy's dates or time differences."""
    if np.isnat(value):
        return Described("NaT")
    is_moment = isinstance(value, np.datetime64)
    passed = value - np.datetime64(0, "s") if is_moment else value
    seconds = float(passed / np.timedelta64(1, "s"))
    return Described(str(value), {"timestamp" if is_moment else "seconds": seconds})


def _label(value: object) -> Described:
    return Described(str(value))


def _member(value: enum.Enum) -> Described:
    return Described(f"{type(value).__qualname__}.{value.name or repr(value.value)}")


def _decimal(value: Decimal) -> Described:
    """Return a decimal with its digits, 1.0 and 1.00 as two."""
    found = exactly(value)
    exponent = value.as_tuple().exponent
    entry = -0.0 if value.is_zero() and value.is_signed() else found.entry
    forms = {EXPONENT: str(exponent)} if isinstance(exponent, int) else {}
    return Described(entry, found.beside, forms)


def _long_double(value: np.longdouble) -> Described:
    return Described(-0.0) if value == 0 and np.signbit(value) else exactly(value)


# Subclasses come before what they are also: a moment is a date.
_DESCRIBERS: tuple[tuple[type | tuple[type, ...], Describe], ...] = (
    (enum.Enum, _member),
    (Decimal, _decimal),
    (Fraction, exactly),
    (np.longdouble, _long_double),
    ((complex, np.complexfloating), _complex),
    (datetime.datetime, _moment),
    (datetime.date, _date),
    (datetime.time, _time),
    (datetime.timedelta, _duration),
    ((np.datetime64, np.timedelta64), describe_numpy_time),
    (UUID, _label),
)
