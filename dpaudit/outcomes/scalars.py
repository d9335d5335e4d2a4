"""Numbers, strings, bytes and Booleans as entries of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import CodeArray, FloatArray, text_key

# Integers beyond it are not all floats.
LARGEST_EXACT = 2**53
# A text or bytes so long is known by its length too, and by less than all of it in words.
LONG = 64
_LONGEST_LABEL = 200
_SHOWN = 40
# Different strings of an array that are compared with all others; and strings at a time.
_MOST_TEXTS, _PIECE = 32, 16_384


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Values of a column, not yet in their rows: as `Column` keeps them."""

    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()


def of_floats(values: NDArray[np.floating]) -> Entries:
    """Return floats of at most 64 bits."""
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    if not len(numbers) or not np.isnan(numbers.min()):  # one pass, and no array
        return Entries(numbers)
    return Entries(numbers, np.isnan(numbers).astype(np.int32), ("NaN",))


def of_booleans(values: NDArray[np.bool_]) -> Entries:
    """Return Booleans, which are no numbers."""
    nothing = np.full(len(values), np.nan)
    return Entries(nothing, values.astype(np.int32) + 1, ("False", "True"))


def of_texts(values: Sequence[str]) -> Entries:
    """Return strings as labels; equal ones are written once."""
    place = {text: code for code, text in enumerate(dict.fromkeys(values), 1)}
    codes = np.fromiter(map(place.__getitem__, values), dtype=np.int32, count=len(values))
    return Entries(np.full(len(codes), np.nan), codes, tuple(map(text_label, place)))


def of_text_array(array: NDArray[np.str_]) -> Entries | None:
    """Return an array of short strings as labels, as of `of_texts`, without a Python string each;
    None where these are long, or many are different."""
    width = array.itemsize // 4
    if not len(array) or not 0 < width <= LONG:
        return None
    array = np.asarray(array)  # what np.char makes takes spaces off a string that is asked for
    letters = np.ascontiguousarray(array).view(np.uint32).reshape(len(array), width)
    # By place in the string, for few rows at a time to stay in the cache.
    codes = np.empty(len(array), dtype=np.int32)
    texts: list[str] = []
    known = np.empty((0, width), dtype=np.uint32)
    for start in range(0, len(array), _PIECE):
        piece = np.ascontiguousarray(letters[start : start + _PIECE].T)
        found = codes[start : start + _PIECE]
        found[:] = 0
        for code, text in enumerate(known, 1):
            found[_are(piece, text)] = code
        while not found.all():
            if len(texts) == _MOST_TEXTS:
                return None
            first = int(np.argmin(found))
            known = np.append(known, piece[:, first][None], axis=0)
            texts.append(str(array[start + first]))
            found[_are(piece, known[-1])] = len(texts)
    return Entries(np.full(len(codes), np.nan), codes, tuple(map(text_label, texts)))


def _are(letters: NDArray[np.uint32], text: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which columns of letters are this text."""
    found: NDArray[np.bool_] = letters[0] == text[0]
    for row, letter in zip(letters[1:], text[1:], strict=True):
        found &= row == letter
    return found


def of_mixed(values: Sequence[str | float]) -> Entries:
    """Return labels and numbers, none of the numbers NaN."""
    known: dict[str, int] = {}
    codes = [known.setdefault(one, len(known) + 1) if isinstance(one, str) else 0 for one in values]
    numbers = [math.nan if isinstance(one, str) else one for one in values]
    some = np.array(codes, dtype=np.int32) if known else None
    return Entries(np.array(numbers), some, tuple(known))


def text_label(text: str) -> str:
    """Return a string quoted, of a long one the start, the length and a digest."""
    return _cut(str.__repr__(text), text, len(text), "characters")


def bytes_label(data: bytes) -> str:
    """Return bytes as Python writes them, of many the start, their number and a digest."""
    return _cut(repr(bytes(data)), repr(bytes(data)), len(data), "bytes")


def _cut(label: str, whole: str, size: int, unit: str) -> str:
    if size <= _LONGEST_LABEL:
        return label
    return f"{label[:_SHOWN]}… ({size:,} {unit}, digest {text_key(whole):016x})"


def values_of(array: NDArray[Any]) -> list[Any]:
    """Return the values of an array: Python's own where those say as much."""
    kind = array.dtype.kind
    if kind == "V" and array.dtype.names is None:
        return [one.tobytes() for one in array]
    plain = kind in "biuSUO" or (kind == "f" and array.itemsize <= 8)
    return array.tolist() if plain else list(array)
