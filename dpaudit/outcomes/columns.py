"""Columns of a table of outcomes: paths (places in outcomes), entries, and keys of entries.

An entry is the content of one outcome at one place. It is a number or a label, which is a text for
a value that is not a number (`'a'`, `None`, `NaN`, `a dict`, `raised ValueError`, `absent`). A key
is a 64-bit hash.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
CodeArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]

# Label of an outcome that does not have the place of a column, in every table.
ABSENT = "absent"
# Prefix of the label of an exception. No string has this prefix: its label begins with a quote.
RAISED = "raised "
# Prefix of the name of a column that holds only the kinds of another column's entries.
KIND = "kind of "
# Prefixes of the names of columns whose numbers are exponents of two.
LOWEST_BIT, HIGHEST_BIT = "lowest set bit of ", "highest set bit of "
# Name of the column of the durations of calls, in nanoseconds.
ELAPSED = "elapsed time"
# Last step of the path at which the order of a dict's keys is an entry.
ORDER = "order of keys"
# Last step of the path at which the exact value of a number is an entry, if no float equals it.
EXACT = "exact value"
# The bits of -0.0 as a signed integer, which is the smallest int64.
_NEGATIVE_ZERO = np.iinfo(np.int64).min
# Units of durations: length in nanoseconds, and symbol.
_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))

# Kind of a step of a path. "root": the outcome itself.
# "item": item of a list.  "key": value of a dict at a key.  "element": element of a set.
# "attribute": attribute of an object.  "about": property of the value, such as its length.
# "form": representation of the value (its type, the order of its keys), which == does not compare.
Step = Literal["root", "item", "key", "element", "attribute", "about", "form"]


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the mechanism, which counts as an outcome.

    kind: name of the exception's type, such as `ValueError`.
    where: file and line that raised the exception, such as `mine.py:12`, or ""; not compared by ==.
    """

    kind: str
    message: str
    where: str = field(default="", compare=False)

    @property
    def words(self) -> str:
        """The exception in one line."""
        message = " ".join(self.message.split())
        text = f"{self.kind}: {message}" if message else self.kind
        return f"{text} ({self.where})" if self.where else text


@dataclass(frozen=True, slots=True)
class Path:
    """A place in an outcome, such as `output["Escargots"]` or `output[2].age`.

    Two paths with the same name are the same place.

    parent: path of the value that contains the value at this path; None for the outcome itself.
    step: kind of the last step.
    word: text of the last step: an index, a key, an element, an attribute or a property.
    name: text of the whole path.
    depth: number of steps from the outcome.
    """

    parent: Path | None
    step: Step
    word: str
    name: str = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        name, whole = self.word, "" if self.parent is None else self.parent.name
        if self.step in ("item", "key"):
            name = f"{whole}[{name}]"
        elif self.step == "attribute":
            name = f"{whole}.{name}"
        elif self.step == "element":
            name = f"element {name} of {whole}"
        elif self.step != "root":
            name = f"{name} of {whole}"
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "depth", 0 if self.parent is None else self.parent.depth + 1)

    @property
    def is_in_keys(self) -> bool:
        """Whether the keys (hashes) of outcomes depend on the entry at this path.

        True for all paths except the order of a dict's keys. A dict may be made from a set, and the
        order of a set differs between processes.
        """
        return self.step != "form" or self.word != ORDER

    @property
    def tells_by_absence(self) -> bool:
        """Whether the absence of an entry at this path adds information to the other entries.

        True for keys of dicts and elements of sets. False for items of a list, since the length of
        the list determines which items are absent.
        """
        return self.step in ("key", "element")

    def then(self, step: Step, word: str) -> Path:
        return Path(self, step, word)

    def item(self, place: int) -> Path:
        return Path(self, "item", str(place))

    def key(self, key: str) -> Path:
        return Path(self, "key", quoted(key))

    def about(self, what: str) -> Path:
        """Return the path of a property, such as `length`, of the value at this path."""
        return Path(self, "about", what)

    def form(self, what: str) -> Path:
        """Return the path of a representation, such as `type`, of the value at this path."""
        return Path(self, "form", what)


ROOT = Path(None, "root", "output")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The entries of all outcomes at one place.

    name: name of the place, such as `output`, `output["age"]` or `length of output`.
    numbers: (outcomes,), the numbers; NaN where the entry is a label.
    codes: (outcomes,), 0 for a number and k for `labels[k - 1]`; None if all entries are numbers.
    labels: distinct texts of the entries that are not numbers; a label may be unused.
    """

    name: str
    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()

    @classmethod
    def constant(cls, name: str, entry: str | float, size: int) -> Column:
        """Return a column of `size` equal entries, as broadcast arrays, which need no memory."""
        if isinstance(entry, str):
            codes = np.broadcast_to(np.int32(1), size)
            return cls(name, np.broadcast_to(np.float64(np.nan), size), codes, (entry,))
        return cls(name, np.broadcast_to(np.float64(entry), size))

    def take(self, index: NDArray[Any] | slice) -> Column:
        """Return a column of the entries in some rows. index: an index array, a mask or a slice."""
        codes = None if self.codes is None else self.codes[index]
        return Column(self.name, self.numbers[index], codes, self.labels)

    def trimmed(self) -> Column:
        """Return a column of the same entries without unused labels (texts of entries that are no
        numbers)."""
        codes, labels = self.codes, self.labels
        if codes is not None and len(codes) > 0:
            used, places = np.unique(codes, return_inverse=True)
            codes = (places + bool(used[0])).astype(np.int32)
            labels = tuple(labels[code - 1] for code in used if code)
        return Column(self.name, self.numbers, codes, labels)

    def keys(self) -> KeyArray:
        """Return 64-bit keys (hashes) of the entries, shape (outcomes,). Callers must not change
        the array.

        Equal entries have equal keys, but the keys of 0.0 and -0.0 differ.
        """
        has_more = self.codes is not None and 0 < len(self.codes) < len(self.labels)
        column = self.trimmed() if has_more else self
        return entry_keys(column.numbers, column.codes, label_keys(column.labels))

    def word(self, row: int) -> str:
        """Return the entry of one outcome as a text. row: number of the outcome, from 0."""
        code = 0 if self.codes is None else int(self.codes[row])
        return self.labels[code - 1] if code else entry_word(float(self.numbers[row]))


def quoted(text: str) -> str:
    """Return a string in double quotes on one line; different strings give different results."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def number_word(number: float) -> str:
    """Return the shortest decimal text that reads as a number; integers have no decimal point."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def entry_word(number: float) -> str:
    """Return a number as a text: `-0.0` for negative zero, else the result of `number_word`."""
    return "-0.0" if number == 0 and math.copysign(1.0, number) < 0 else number_word(number)


def number_writer(name: str) -> Callable[[float], str]:
    """Return the function that turns a number of the column `name` into a text.

    The text of 5 is `2^5` in columns of bits, `5 ns` in the column of durations, and else `5`.
    """
    if name == ELAPSED:
        return duration_word
    if name.startswith((LOWEST_BIT, HIGHEST_BIT)):
        return lambda exponent: f"2^{number_word(exponent)}"
    return number_word


def duration_word(nanoseconds: float) -> str:
    """Return a duration in the largest unit that it reaches: 210000 as `210 µs`."""
    scale, unit = next((one for one in _DURATIONS if abs(nanoseconds) >= one[0]), (1.0, "ns"))
    return f"{number_word(nanoseconds / scale)} {unit}"


def is_negative_zero(numbers: FloatArray) -> NDArray[np.bool_] | None:
    """Return a mask of the numbers that are -0.0; None if there is no -0.0.

    The usual case, None, takes one pass over the numbers and no memory.
    """
    bits = numbers.view(np.int64)
    if not len(bits) or bits.min() > _NEGATIVE_ZERO:
        return None
    return np.asarray(bits == _NEGATIVE_ZERO)


def kinds_of(column: Column) -> Column:
    """Return a column with the kind of each entry of a column, such as `a number`, `a string` or
    `absent`."""
    kinds = list(map(kind_word, column.labels))
    codes = column.codes
    if codes is None:
        codes = np.broadcast_to(np.int32(0), len(column.numbers))
    known: dict[str, int] = {}
    every = recoded(known, ["a number", *kinds], codes + np.int32(1), len(codes))
    nothing = np.broadcast_to(np.float64(np.nan), len(codes))
    return Column(KIND + column.name, nothing, every, tuple(known))


def kind_word(label: str) -> str:
    """Return the kind of a label (the text of an entry that is no number): `a string` for a quoted
    string, or the label itself.

    `None`, `NaN`, `absent`, exceptions and containers are kinds of their own. All other labels,
    such as dates, share the kind `a value of another kind`.
    """
    if label.startswith(("'", '"')):
        return "a string"
    is_own = label in ("None", "NaN", ABSENT) or label.startswith((RAISED, "a "))
    return label if is_own else "a value of another kind"


def join(columns: Sequence[Column]) -> Column:
    """Return one column with the entries of several columns of the same name."""
    numbers = np.concatenate([column.numbers for column in columns])
    if all(column.codes is None for column in columns):
        return Column(columns[0].name, numbers)
    known: dict[str, int] = {}
    codes = [recoded(known, column.labels, column.codes, len(column.numbers)) for column in columns]
    return Column(columns[0].name, numbers, np.concatenate(codes), tuple(known))


def recoded(
    known: dict[str, int], labels: Iterable[str], codes: CodeArray | None, size: int
) -> CodeArray:
    """Return the codes of a column, changed to refer to the labels in `known` instead of `labels`.

    known: label (text of an entry that is no number) -> code, from 1; labels that are missing are
        added.
    codes: codes that refer to `labels`; None for `size` numbers, whose codes are 0.
    """
    places = [0, *(known.setdefault(label, len(known) + 1) for label in labels)]
    if codes is None:
        return np.zeros(size, dtype=np.int32)
    return np.array(places, dtype=np.int32)[codes]


def entry_keys(numbers: FloatArray, codes: CodeArray | None, known: KeyArray) -> KeyArray:
    """Return the 64-bit keys (hashes) of entries, shape (entries,).

    numbers, codes: entries, as in `Column`.
    known: keys of the labels, from `label_keys`.
    """
    keys = numbers.view(np.uint64)
    return keys if codes is None else np.where(codes > 0, known[codes], keys)


def label_keys(labels: Iterable[str]) -> KeyArray:
    """Return an array with the 64-bit key (hash) of label number k, from 1, at index k, and 0
    (unused) at index 0."""
    return np.array([0, *map(text_key, labels)], dtype=np.uint64)


def text_key(text: str) -> int:
    """Return a 64-bit key (hash) of a text. It is the same in every process."""
    data = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def mix(keys: KeyArray) -> KeyArray:
    """Scramble 64-bit keys in place by the finaliser of SplitMix64, and return them.

    Sums of scrambled keys rarely collide; sums of unscrambled keys of similar numbers may.
    """
    shifted = keys >> np.uint64(30)
    keys ^= shifted
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= np.right_shift(keys, np.uint64(27), out=shifted)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= np.right_shift(keys, np.uint64(31), out=shifted)
    return keys


def find(keys: NDArray[np.integer], wanted: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the index of each wanted key (hash) in the sorted array `keys`.

    A key that is not in `keys` gets the index `len(keys)`.
    """
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.intp)
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    return np.where(keys[place] == wanted, place, len(keys))
