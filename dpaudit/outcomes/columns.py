"""Columns of a table of outcomes: the place that a column stands for, its entries and their keys.

An entry is what one outcome has at one place: a number, or a label, which is a word for anything
that is not a number (`'a'`, `None`, `NaN`, `a dict`, `raised ValueError`, `absent`).
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

# Label of outcomes that have no entry at a place, in every table.
ABSENT = "absent"
# Start of the label of an exception. The label of a string starts with a quotation mark.
RAISED = "raised "
# Start of the name of a column that holds only the kinds of another column's entries.
KIND = "kind of "
# Starts of the names of columns whose numbers are exponents of two.
LOWEST_BIT, HIGHEST_BIT = "lowest set bit of ", "highest set bit of "
# Name of the column of the durations of calls, in nanoseconds.
ELAPSED = "elapsed time"
# Last step of the path that holds the order of a dict's keys.
ORDER = "order of keys"
# Last step of the path that holds the exact value of a number that no float is equal to.
EXACT = "exact value"
# The bits of -0.0, read as a signed integer: the smallest one.
_NEGATIVE_ZERO = np.iinfo(np.int64).min
_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))

# item: of a list; key: of a dict; element: of a set; attribute: of an object; about: a property of
# the whole value, such as its length; form: how the value is represented, which == does not compare
# (its type, the order of its keys).
Step = Literal["root", "item", "key", "element", "attribute", "about", "form"]


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the mechanism as an outcome, with the name of its type as `kind`.

    where: the line that raised it, such as `mine.py:12`, or ""; not compared.
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

    Paths with the same name are the same place.
    parent: the path of the value that contains this one; None for the outcome itself.
    word: the last step in words: an index, a key, an element, an attribute or a property.
    name: the whole path in words.  depth: the number of steps from the outcome.
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
        """Whether the keys of outcomes depend on the entry at this path.

        They do not depend on the order of a dict's keys, because the order in which a set lists its
        elements differs between processes.
        """
        return self.step != "form" or self.word != ORDER

    @property
    def tells_by_absence(self) -> bool:
        """Whether a missing entry is information of its own: for keys and elements, but not for
        items of a list, which follow from its length."""
        return self.step in ("key", "element")

    def then(self, step: Step, word: str) -> Path:
        return Path(self, step, word)

    def item(self, place: int) -> Path:
        return Path(self, "item", str(place))

    def key(self, key: str) -> Path:
        return Path(self, "key", quoted(key))

    def about(self, what: str) -> Path:
        """Return the path of a property of the value here, such as `length`."""
        return Path(self, "about", what)

    def form(self, what: str) -> Path:
        """Return the path of how the value here is represented, such as `type`."""
        return Path(self, "form", what)


ROOT = Path(None, "root", "output")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The entries of all outcomes at one place.

    name: `output`, `output[2]`, `output["age"]`, `length of output`.
    numbers: (outcomes,), NaN where the entry is a label.
    codes: (outcomes,), 0 for a number, k for `labels[k - 1]`; None if all entries are numbers.
    """

    name: str
    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()

    @classmethod
    def constant(cls, name: str, entry: str | float, size: int) -> Column:
        """Return a column of `size` equal entries, as broadcast arrays, which take no memory."""
        if isinstance(entry, str):
            codes = np.broadcast_to(np.int32(1), size)
            return cls(name, np.broadcast_to(np.float64(np.nan), size), codes, (entry,))
        return cls(name, np.broadcast_to(np.float64(entry), size))

    def take(self, index: NDArray[Any] | slice) -> Column:
        """Return the entries at `index`."""
        codes = None if self.codes is None else self.codes[index]
        return Column(self.name, self.numbers[index], codes, self.labels)

    def trimmed(self) -> Column:
        """Return the same entries without unused labels."""
        codes, labels = self.codes, self.labels
        if codes is not None and len(codes) > 0:
            used, places = np.unique(codes, return_inverse=True)
            codes = (places + bool(used[0])).astype(np.int32)
            labels = tuple(labels[code - 1] for code in used if code)
        return Column(self.name, self.numbers, codes, labels)

    def keys(self) -> KeyArray:
        """Return 64-bit keys of the entries, shape (outcomes,), which callers must not change.

        Equal entries have equal keys; 0.0 and -0.0 have two.
        """
        has_more = self.codes is not None and 0 < len(self.codes) < len(self.labels)
        column = self.trimmed() if has_more else self
        return entry_keys(column.numbers, column.codes, label_keys(column.labels))

    def word(self, row: int) -> str:
        """Return the entry of one outcome in words."""
        code = 0 if self.codes is None else int(self.codes[row])
        return self.labels[code - 1] if code else entry_word(float(self.numbers[row]))


def quoted(text: str) -> str:
    """Return a string in double quotes on one line; different strings give different lines."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def number_word(number: float) -> str:
    """Return the shortest decimal that is equal to a number; integers have no point."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def entry_word(number: float) -> str:
    """Return `-0.0` for negative zero, else `number_word`."""
    return "-0.0" if number == 0 and math.copysign(1.0, number) < 0 else number_word(number)


def number_writer(name: str) -> Callable[[float], str]:
    """Return the function that writes numbers of the column `name`: `5`, `2^5` or `5 ns`."""
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
    """Return which numbers are -0.0; None if none is, which takes one pass and no memory."""
    bits = numbers.view(np.int64)
    if not len(bits) or bits.min() > _NEGATIVE_ZERO:
        return None
    return np.asarray(bits == _NEGATIVE_ZERO)


def kinds_of(column: Column) -> Column:
    """Return the column of the kinds of the entries: `absent`, `a number`, `a string`, `None`."""
    kinds = list(map(kind_word, column.labels))
    codes = column.codes
    if codes is None:
        codes = np.broadcast_to(np.int32(0), len(column.numbers))
    known: dict[str, int] = {}
    every = recoded(known, ["a number", *kinds], codes + np.int32(1), len(codes))
    nothing = np.broadcast_to(np.float64(np.nan), len(codes))
    return Column(KIND + column.name, nothing, every, tuple(known))


def kind_word(label: str) -> str:
    """Return the kind of a label; labels of few values, such as `None`, are their own kind."""
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
    """Return codes that refer to the labels of `known` instead of `labels`.

    known: codes from 1 by label; missing labels are added.  codes: None stands for `size` numbers.
    """
    places = [0, *(known.setdefault(label, len(known) + 1) for label in labels)]
    if codes is None:
        return np.zeros(size, dtype=np.int32)
    return np.array(places, dtype=np.int32)[codes]


def entry_keys(numbers: FloatArray, codes: CodeArray | None, known: KeyArray) -> KeyArray:
    """Return the keys of entries. known: keys of the labels, from `label_keys`."""
    keys = numbers.view(np.uint64)
    return keys if codes is None else np.where(codes > 0, known[codes], keys)


def label_keys(labels: Iterable[str]) -> KeyArray:
    """Return the keys of labels by code; code 0 (a number) has the key 0."""
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
    """Return the index of each wanted key in `keys`, which rise; len(keys) for missing keys."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.intp)
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    return np.where(keys[place] == wanted, place, len(keys))
