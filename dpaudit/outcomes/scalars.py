"""Convert values without parts, such as numbers, texts and dates, to entries.

Numbers, strings, bytes and Booleans are converted many at a time, to the `Entries` of one column.
Rarer types (dates, fractions, complex numbers, members of enumerations) are converted one by one,
to `Described`. A number that no float equals has two entries: the nearest float at its own path,
and its exact value, as a text, at a further path, such as `exact value of output`. A value with a
label may also have numbers at further paths, such as `timestamp of output`.
"""

from __future__ import annotations

import datetime
import enum
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import EXACT, CodeArray, FloatArray, number_word, quoted, text_key
from dpaudit.outcomes.representation import EXPONENT, OFFSET
from dpaudit.outcomes.texts import may_have_content

# Every integer with at most this absolute value equals a float.
MAX_EXACT = 2**53
# If a string has more characters than this, its length gets a column of its own, in addition to the
# column of the string.
LONG_TEXT = 64
# The column entry for a string with more characters (or bytes) than this is cut, and a hash is
# appended.
_MAX_LABEL = 200
# If the column entry for a string is cut, since it is longer than `_MAX_LABEL`, it keeps its
# first 40 characters.
_SHOWN_CHARACTERS = 40
# Arrays with at most this number of distinct strings are read by comparing all strings with each
# distinct string. With more distinct strings, a dict is faster.
_MAX_TEXTS = 32
# Number of strings that are compared at a time, so that they stay in the processor's cache.
_TEXTS_PER_BLOCK = 16_384
# An integer with more bits than this is written as a hash, since its digits would be too long.
_MAX_INTEGER_BITS = 2_000
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The entries of one column for some outcomes. `Column` describes the fields."""

    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """One value as an entry, with entries for its properties.

    beside: entries of properties by name, such as `timestamp`.
    forms: forms by name, such as `UTC offset`.
    """

    entry: str | float
    beside: Mapping[str, str | float] = field(default_factory=dict)
    forms: Mapping[str, str | float] = field(default_factory=dict)


class Missing:
    """The missing value of a library, from another process. word: its text, such as `<NA>`."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __str__(self) -> str:
        return self.word


Describe = Callable[[Any], Described]


def of_floats(values: NDArray[np.floating]) -> Entries:
    """Return the column entries for floats of at most 64 bits. The entry for NaN is the text
    `NaN`."""
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    if not len(numbers) or not np.isnan(numbers.min()):  # one pass that makes no array
        return Entries(numbers)
    return Entries(numbers, np.isnan(numbers).astype(np.int32), ("NaN",))


def of_booleans(values: NDArray[np.bool_]) -> Entries:
    """Return the column entries for Booleans: the texts `True` and `False`."""
    nothing = np.full(len(values), np.nan)
    return Entries(nothing, values.astype(np.int32) + 1, ("False", "True"))


def numbered(values: Sequence[str]) -> tuple[list[str], CodeArray]:
    """Return (distinct strings, codes): the code of a value is the index of its string, counted
    from 1."""
    index = {text: code for code, text in enumerate(dict.fromkeys(values), 1)}
    codes = np.fromiter(map(index.__getitem__, values), dtype=np.int32, count=len(values))
    return list(index), codes


def of_texts(texts: Sequence[str], codes: CodeArray) -> Entries:
    """Return the entries for strings. `texts` are the distinct strings, and `codes` has the code of
    each value, from 1. Labels are the strings in quotes."""
    return Entries(np.full(len(codes), np.nan), codes, tuple(map(text_label, texts)))


def of_text_array(array: NDArray[np.str_]) -> Entries | None:
    """Return the entries for an array of short strings, without conversion to Python strings.
    Return None if strings are longer than 64 characters, if more than 32 are distinct, or if any
    has content (`texts.py`)."""
    width = array.itemsize // 4
    if not len(array) or not 0 < width <= LONG_TEXT:
        return None
    array = np.asarray(array)  # a chararray would strip trailing spaces
    letters = np.ascontiguousarray(array).view(np.uint32).reshape(len(array), width)
    codes = np.empty(len(array), dtype=np.int32)
    texts: list[str] = []
    known = np.empty((0, width), dtype=np.uint32)
    for start in range(0, len(array), _TEXTS_PER_BLOCK):
        piece = np.ascontiguousarray(letters[start : start + _TEXTS_PER_BLOCK].T)
        block_codes = codes[start : start + _TEXTS_PER_BLOCK]
        block_codes[:] = 0
        for code, text in enumerate(known, 1):
            block_codes[_are(piece, text)] = code
        while not block_codes.all():
            if len(texts) == _MAX_TEXTS:
                return None
            first = int(np.argmin(block_codes))
            known = np.append(known, piece[:, first][None], axis=0)
            texts.append(str(array[start + first]))
            if may_have_content(texts[-1]):
                return None
            block_codes[_are(piece, known[-1])] = len(texts)
    return Entries(np.full(len(codes), np.nan), codes, tuple(map(text_label, texts)))


def _are(letters: NDArray[np.uint32], text: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return a mask of the strings that equal `text`. `letters` has one string per column."""
    is_equal: NDArray[np.bool_] = letters[0] == text[0]
    for row, letter in zip(letters[1:], text[1:], strict=True):
        is_equal &= row == letter
    return is_equal


def of_mixed(values: Sequence[str | float]) -> Entries:
    """Convert a list of numbers and texts to the `Entries` of a column. No number may be NaN."""
    known: dict[str, int] = {}
    codes = [
        known.setdefault(value, len(known) + 1) if isinstance(value, str) else 0 for value in values
    ]
    numbers = [math.nan if isinstance(value, str) else value for value in values]
    some = np.array(codes, dtype=np.int32) if known else None
    return Entries(np.array(numbers), some, tuple(known))


def text_label(text: str) -> str:
    """Return the label of a string: the string in quotes or, if it is long, its start, its length
    and a hash."""
    return _cut(str.__repr__(text), text, len(text), "characters")


def bytes_label(data: bytes) -> str:
    """Return the label of bytes: their `repr` or, if there are many, their start, their number and
    a hash."""
    return _cut(repr(bytes(data)), repr(bytes(data)), len(data), "bytes")


def _cut(label: str, content: str, size: int, unit: str) -> str:
    if size <= _MAX_LABEL:
        return label
    return f"{label[:_SHOWN_CHARACTERS]}… ({size:,} {unit}, digest {text_key(content):016x})"


def values_of(array: NDArray[Any]) -> list[Any]:
    """Return the values of an array as a list. They are converted to Python's own types, unless
    that would lose precision."""
    kind = array.dtype.kind
    if kind == "V" and array.dtype.names is None:
        return [entry.tobytes() for entry in array]
    plain = kind in "biuSUO" or (kind == "f" and array.itemsize <= 8)
    return array.tolist() if plain else list(array)


def describer(kind: type) -> Describe | None:
    """Return the function that converts values of a type, such as dates, to `Described`; None if
    there is none."""
    for bases, describe in _DESCRIBERS:
        if issubclass(kind, bases):
            return describe
    pandas = sys.modules.get("pandas")
    return _label if pandas is not None and issubclass(kind, type(pandas.NA)) else None


def key_word(key: Any) -> str | None:
    """Return the text of a key of a dict or an element of a set; strings are in double quotes.
    Return None if its type is not supported. Different keys have different texts."""
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
        # The float 0.1 and the Decimal 0.1 are different keys, so they need different texts: `0.1`
        # and `exactly 0.1`. An integer that no float equals needs no prefix, since its digits are
        # the text of no float.
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
    """Convert an integer of any size to the nearest float. If the float differs from it, all of its
    digits are a property."""
    exact = int(value)
    number = _nearest(exact)
    if math.isfinite(number) and int(number) == exact:
        return Described(number)
    word = str(exact) if exact.bit_length() <= _MAX_INTEGER_BITS else _digest(exact, 1)
    return Described(number, {EXACT: word})


def exactly(value: Any) -> Described:
    """Convert a Decimal, a fraction or a long double to the nearest float. If the float differs
    from it, the exact value is a property."""
    is_finite = value.is_finite() if isinstance(value, Decimal) else bool(abs(value) < math.inf)
    if not is_finite:
        return Described("NaN" if value != value else math.copysign(math.inf, value))
    exact = Fraction(*map(int, value.as_integer_ratio()))
    if exact.denominator == 1:
        return exact_integer(exact.numerator)
    number = _nearest(exact)
    if math.isfinite(number) and exact == Fraction(number):
        return Described(number)
    return Described(number, {EXACT: _fraction_word(exact)})


def _nearest(exact: Fraction | int) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _fraction_word(exact: Fraction) -> str:
    """Return the text of a fraction: `0.125` if its decimal places are finite, else `1/3`."""
    top, bottom = exact.numerator, exact.denominator
    if max(abs(top), bottom).bit_length() > _MAX_INTEGER_BITS:
        return _digest(top, bottom)
    decimals = max(_power(bottom, 2), _power(bottom, 5))
    if 10**decimals % bottom:
        return str(exact)
    digits = tuple(map(int, str(abs(top) * (10**decimals // bottom))))
    return f"{Decimal((int(top < 0), digits, -decimals)):f}"


def _digest(top: int, bottom: int) -> str:
    bits = max(abs(top), bottom).bit_length()
    return f"number of {bits:,} bits, digest {text_key(f'{top:x}/{bottom:x}'):016x}"


def _power(number: int, prime: int) -> int:
    """Return the largest k for which prime**k divides a number."""
    power = 0
    while number % prime == 0:
        number //= prime
        power += 1
    return power


def _complex(value: complex) -> Described:
    parts = {"real part": float(value.real), "imaginary part": float(value.imag)}
    beside = {part: "NaN" if math.isnan(number) else number for part, number in parts.items()}
    # Adding 0.0 replaces -0.0 by 0.0, so that the entries of equal complex numbers are equal. The
    # two properties "real part" and "imaginary part" keep the signs of zeros.
    return Described(repr(complex(value.real + 0.0, value.imag + 0.0)), beside)


def _moment(value: datetime.datetime) -> Described:
    if value != value:  # pandas.NaT is a datetime
        return Described("NaT")
    aware = value.tzinfo is not None and value.utcoffset() is not None
    moved = value.astimezone(datetime.UTC) if aware else value
    plain = datetime.datetime(*moved.timetuple()[:6], moved.microsecond)
    nanoseconds = getattr(value, "nanosecond", 0)  # pandas only
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
    plain = datetime.timedelta(value.days, value.seconds, value.microseconds)
    nanoseconds = getattr(value, "nanoseconds", 0)  # pandas only
    word = f"{plain} and {nanoseconds} ns" if nanoseconds else str(plain)
    # Times of day are also written as 12:00:00, so durations have a prefix.
    return Described(f"duration {word}", {"seconds": plain.total_seconds() + 1e-9 * nanoseconds})


def describe_numpy_time(value: Any) -> Described:
    """Convert a datetime64 or timedelta64 to a label, with the number of seconds as a property."""
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
    exact = exactly(value)
    exponent = value.as_tuple().exponent
    entry = -0.0 if value.is_zero() and value.is_signed() else exact.entry
    # The Decimals 1.0 and 1.00 are equal by ==; only their exponents, -1 and -2, distinguish them.
    forms = {EXPONENT: str(exponent)} if isinstance(exponent, int) else {}
    return Described(entry, exact.beside, forms)


def _long_double(value: np.longdouble) -> Described:
    return Described(-0.0) if value == 0 and np.signbit(value) else exactly(value)


# Maps types to the functions that convert their values. The first matching entry is used, so a
# subclass such as `datetime` comes before its base `date`.
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
    ((UUID, Missing), _label),
)
