"""One coordinate of every outcome: numbers, and labels for all that is not a number."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.raised import RAISED

FloatArray = NDArray[np.float64]
CodeArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]

# What a column says of outcomes that have no such entry, whatever table they stand in.
ABSENT = "absent"
# The name of a column that says only of what kind the entries of another one are starts so.
KIND = "kind of "
# The bits of -0.0, as the least integer.
_NEGATIVE_ZERO = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One coordinate of every outcome.

    name: `output`, `output[2]`, `output["age"]`, `length of output`.
    numbers: (size,), NaN where the entry is a label.
    codes: (size,), 0 for a number, k for `labels[k - 1]`; None when all entries are numbers.
    """

    name: str
    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()

    @classmethod
    def constant(cls, name: str, entry: str | float, size: int) -> Column:
        """Return a column of one label, or of one number, which takes no memory."""
        if isinstance(entry, str):
            codes = np.broadcast_to(np.int32(1), size)
            return cls(name, np.broadcast_to(np.float64(np.nan), size), codes, (entry,))
        return cls(name, np.broadcast_to(np.float64(entry), size))

    def take(self, index: NDArray[Any] | slice) -> Column:
        """Return the entries at `index`."""
        codes = None if self.codes is None else self.codes[index]
        return Column(self.name, self.numbers[index], codes, self.labels)

    def trimmed(self) -> Column:
        """Return the same entries, without the labels that none of them has."""
        codes, labels = self.codes, self.labels
        if codes is not None and len(codes) > 0:
            used, places = np.unique(codes, return_inverse=True)
            codes = (places + bool(used[0])).astype(np.int32)
            labels = tuple(labels[code - 1] for code in used if code)
        return Column(self.name, self.numbers, codes, labels)

    def keys(self) -> KeyArray:
        """Return a 64-bit key for every entry; equal entries have equal keys, 0.0 and -0.0 two. Not
        to be written to."""
        has_more = self.codes is not None and 0 < len(self.codes) < len(self.labels)
        one = self.trimmed() if has_more else self
        return entry_keys(one.numbers, one.codes, label_keys(one.labels))

    def word(self, row: int) -> str:
        """Return one entry as a reader would write it."""
        code = 0 if self.codes is None else int(self.codes[row])
        return self.labels[code - 1] if code else entry_word(float(self.numbers[row]))


def number_word(number: float) -> str:
    """Return the shortest decimal that is this number, integers without a point."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def entry_word(number: float) -> str:
    """Return a number as `number_word` does, but for -0.0, which is not 0 to who reads it."""
    return "-0.0" if number == 0 and math.copysign(1.0, number) < 0 else number_word(number)


def is_negative_zero(numbers: FloatArray) -> NDArray[np.bool_] | None:
    """Return which numbers are -0.0; None where none is, which one pass tells."""
    bits = numbers.view(np.int64)
    if not len(bits) or bits.min() > _NEGATIVE_ZERO:
        return None
    return np.asarray(bits == _NEGATIVE_ZERO)


def kinds_of(column: Column) -> Column:
    """Return of what kind every entry is: absent, a number, a string, None, a dict."""
    kinds = list(map(kind_word, column.labels))
    codes = column.codes
    if codes is None:
        codes = np.broadcast_to(np.int32(0), len(column.numbers))
    known: dict[str, int] = {}
    every = recoded(known, ["a number", *kinds], codes + np.int32(1), len(codes))
    nothing = np.broadcast_to(np.float64(np.nan), len(codes))
    return Column(KIND + column.name, nothing, every, tuple(known))


def kind_word(label: str) -> str:
    """Return of what kind a label is; of those that are few, the label itself."""
    if label.startswith(("'", '"')):
        return "a string"
    is_own = label in ("None", "NaN", ABSENT) or label.startswith((RAISED, "a "))
    return label if is_own else "a value of another kind"


def join(columns: Sequence[Column]) -> Column:
    """Return the entries of several columns of one name in one."""
    numbers = np.concatenate([column.numbers for column in columns])
    if all(column.codes is None for column in columns):
        return Column(columns[0].name, numbers)
    known: dict[str, int] = {}
    codes = [recoded(known, column.labels, column.codes, len(column.numbers)) for column in columns]
    return Column(columns[0].name, numbers, np.concatenate(codes), tuple(known))


def recoded(
    known: dict[str, int], labels: Iterable[str], codes: CodeArray | None, size: int
) -> CodeArray:
    """Return codes for the labels in `known`, which grows by those it lacks."""
    places = [0, *(known.setdefault(label, len(known) + 1) for label in labels)]
    if codes is None:
        return np.zeros(size, dtype=np.int32)
    return np.array(places, dtype=np.int32)[codes]


def entry_keys(numbers: FloatArray, codes: CodeArray | None, known: KeyArray) -> KeyArray:
    """Return the keys of entries; known: those of the labels, after a first one for numbers."""
    keys = numbers.view(np.uint64)
    return keys if codes is None else np.where(codes > 0, known[codes], keys)


def label_keys(labels: Iterable[str]) -> KeyArray:
    """Return the keys of labels, after a first one that stands for numbers."""
    return np.array([0, *map(text_key, labels)], dtype=np.uint64)


def text_key(text: str) -> int:
    """Return a 64-bit key of a text, the same in every process."""
    data = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def mix(keys: KeyArray) -> KeyArray:
    """Spread 64-bit keys in place (the finaliser of SplitMix64), so that sums do not collide."""
    shifted = keys >> np.uint64(30)
    keys ^= shifted
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= np.right_shift(keys, np.uint64(27), out=shifted)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= np.right_shift(keys, np.uint64(31), out=shifted)
    return keys


def find(keys: NDArray[np.integer], wanted: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the place of every wanted key in `keys` (rising), len(keys) for those not there."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.intp)
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    return np.where(keys[place] == wanted, place, len(keys))
