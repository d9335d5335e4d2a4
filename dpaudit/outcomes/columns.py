"""Columns of a table of outcomes: their names (paths), their entries, and the hashes of entries."""

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
RowArray = NDArray[np.int32]

# Entry of a column for an outcome without the place of this column, such as a list that is too
# short.
ABSENT = "absent"
# Start of the entry for an exception, such as `raised ValueError`. The entry for a string starts
# with a quotation mark, so no string is mistaken for an exception.
RAISED = "raised "
# Start of the name of a column that contains only the kinds of another column's entries, such as `a
# number` or `a string`.
KIND = "kind of "
# Start of the name of a column that holds, for each number, the exponent k of its lowest set bit
# 2^k: for 12 = 2^3 + 2^2, k is 2.
LOWEST_BIT = "lowest set bit of "
# Start of the name of a column that holds, for each number, the exponent k of its highest set bit
# 2^k: for 12 = 2^3 + 2^2, k is 3.
HIGHEST_BIT = "highest set bit of "
# Name of the column with the durations of calls, in nanoseconds.
ELAPSED = "elapsed time"
# Name of the last step of a path that leads to the order of a dict's keys. The column for the path
# has a name such as `order of keys of output`.
ORDER = "order of keys"
# A number that no float equals, such as 2^53 + 1, gets a further entry: its exact value, as a text.
# Name of the last step of the path to this entry, as in `exact value of output[0]`.
EXACT = "exact value"
# The bits of the float -0.0, read as a signed 64-bit integer. They are the smallest such integer,
# so the minimum over the bits of all numbers shows whether any of them is -0.0.
_NEGATIVE_ZERO = np.iinfo(np.int64).min
# Units of durations, as (length in nanoseconds, symbol), longest first.
_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))

# Kind of a step on the path from an outcome to a value inside it. "root": the outcome itself.
# "item": item of a list. "key": value of a dict at a key. "element": element of a set. "attribute":
# attribute of an object. "about": property of the value, such as its length. "form": property that
# == does not compare, such as the type of the value or the order of its keys. "content": content of
# a text, such as its numbers.
Step = Literal["root", "item", "key", "element", "attribute", "about", "form", "content"]


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the mechanism, as an outcome.

    kind: name of the exception's type, such as `ValueError`.
    where: file and line that raised it, such as `mine.py:12`; "" if unknown. Not compared by ==.
    """

    kind: str
    message: str
    where: str = field(default="", compare=False)

    @property
    def words(self) -> str:
        """The exception as a text of one line, such as `ValueError: no rows (mine.py:12)`."""
        message = " ".join(self.message.split())
        text = f"{self.kind}: {message}" if message else self.kind
        return f"{text} ({self.where})" if self.where else text


@dataclass(frozen=True, slots=True)
class PlacePath:
    """A place in an outcome, such as `output["Escargots"]`. Equal names denote the same place.

    parent: path of the value that contains the value at this place; None for the outcome itself.
    step: kind of the last step, such as "key".
    word: text of the last step: an index, a key, an element of a set, an attribute or a property.
    depth: number of steps from the outcome to this place.
    texts: if the place lies in the content of a text, or of several nested ones, their names.
    contents: the kind of each of these contents: "json", "numbers" or "words".
    """

    parent: PlacePath | None
    step: Step
    word: str
    name: str = field(init=False)
    depth: int = field(init=False)
    texts: tuple[str, ...] = field(init=False)
    contents: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        name, parent_name = self.word, "" if self.parent is None else self.parent.name
        texts = () if self.parent is None else self.parent.texts
        contents = () if self.parent is None else self.parent.contents
        if self.step in ("item", "key"):
            name = f"{parent_name}[{name}]"
        elif self.step == "attribute":
            name = f"{parent_name}.{name}"
        elif self.step == "element":
            name = f"element {name} of {parent_name}"
        elif self.step == "content":
            name, texts = f"{name}({parent_name})", (*texts, parent_name)
            contents = (*contents, self.word)
        elif self.step != "root":
            name = f"{name} of {parent_name}"
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "depth", 0 if self.parent is None else self.parent.depth + 1)
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "contents", contents)

    @property
    def is_in_keys(self) -> bool:
        """Whether the hash of an outcome depends on its entry at this path. It does not for orders
        of a dict's keys, since a set in the dict may order them differently in each process."""
        return self.step != "form" or self.word != ORDER

    @property
    def tells_by_absence(self) -> bool:
        """Whether it is information of its own that an outcome has no entry here. It is for keys of
        dicts, elements of sets and contents of texts, but not for items of lists, whose length
        tells the same."""
        return self.step in ("key", "element", "content")

    def then(self, step: Step, word: str) -> PlacePath:
        return PlacePath(self, step, word)

    def item(self, place: int) -> PlacePath:
        return PlacePath(self, "item", str(place))

    def key(self, key: str) -> PlacePath:
        return PlacePath(self, "key", quoted(key))

    def about(self, what: str) -> PlacePath:
        """Return the path of a property, such as `length`, of the value at this path."""
        return PlacePath(self, "about", what)

    def form(self, what: str) -> PlacePath:
        """Return the path of a form, such as `type`, of the value at this path."""
        return PlacePath(self, "form", what)


ROOT = PlacePath(None, "root", "output")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The entries of all outcomes at one place, called `name`. Some of `labels` may be used by no
    entry."""

    name: str
    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()

    @classmethod
    def constant(cls, name: str, entry: str | float, size: int) -> Column:
        """Return a column with `size` copies of one entry. Its arrays are broadcast, so they use
        almost no memory."""
        if isinstance(entry, str):
            codes = np.broadcast_to(np.int32(1), size)
            return cls(name, np.broadcast_to(np.float64(np.nan), size), codes, (entry,))
        return cls(name, np.broadcast_to(np.float64(entry), size))

    def take(self, index: NDArray[Any] | slice) -> Column:
        """Return a column with the entries of some outcomes. index: index array, mask or slice."""
        codes = None if self.codes is None else self.codes[index]
        return Column(self.name, self.numbers[index], codes, self.labels)

    def trimmed(self) -> Column:
        """Return a column with the same entries, without unused texts in `labels`."""
        codes, labels = self.codes, self.labels
        if codes is not None and len(codes) > 0:
            used, indices = np.unique(codes, return_inverse=True)
            codes = (indices + bool(used[0])).astype(np.int32)
            labels = tuple(labels[code - 1] for code in used if code)
        return Column(self.name, self.numbers, codes, labels)

    def keys(self) -> KeyArray:
        """Return a hash of each entry, (size,), as an array that callers must not change. Equal
        entries have equal hashes, except that 0.0 and -0.0 differ."""
        has_more = self.codes is not None and 0 < len(self.codes) < len(self.labels)
        column = self.trimmed() if has_more else self
        return entry_keys(column.numbers, column.codes, label_keys(column.labels))

    def word(self, row: int) -> str:
        """Return the entry of one outcome as a text. row: index of the outcome."""
        code = 0 if self.codes is None else int(self.codes[row])
        return self.labels[code - 1] if code else entry_word(float(self.numbers[row]))


@dataclass(frozen=True, slots=True, eq=False)
class PlaceEntries:
    """The entries of some outcomes at one place.

    rows: index of the outcome of each entry, (entries,); None: all outcomes, in order.
    """

    path: PlacePath
    rows: RowArray | None
    column: Column


def at(rows: RowArray | None, place: Sequence[int] | NDArray[np.int64]) -> RowArray:
    """Return `rows[place]`. None for `rows` stands for all rows 0, 1, 2, ...; then the result is
    `place`."""
    indices = np.asarray(place, dtype=np.int32)
    return indices if rows is None else rows[indices]


def quoted(text: str) -> str:
    """Return a string in double quotes on one line. Different strings give different results."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def number_word(number: float) -> str:
    """Return the shortest text that Python reads as the given number. Integers are written without
    a decimal point."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def entry_word(number: float) -> str:
    """Return a number as a text: `-0.0` for negative zero, else the result of `number_word`."""
    return "-0.0" if number == 0 and math.copysign(1.0, number) < 0 else number_word(number)


def number_writer(name: str) -> Callable[[float], str]:
    """Return a function that writes a number as reports show it in the column `name`: 5 is `2^5` in
    a column of bits, `5 ns` in the column of durations, and `5` in others."""
    if name == ELAPSED:
        return duration_word
    if name.startswith((LOWEST_BIT, HIGHEST_BIT)):
        return lambda exponent: f"2^{number_word(exponent)}"
    return number_word


def duration_word(nanoseconds: float) -> str:
    """Return a duration as a text in the largest unit in which it is at least 1, such as `210 µs`
    for 210,000."""
    scale, unit = next((entry for entry in _DURATIONS if abs(nanoseconds) >= entry[0]), (1.0, "ns"))
    return f"{number_word(nanoseconds / scale)} {unit}"


def is_negative_zero(numbers: FloatArray) -> NDArray[np.bool_] | None:
    """Return a mask of the numbers that are -0.0; None if none is."""
    bits = numbers.view(np.int64)
    if not len(bits) or bits.min() > _NEGATIVE_ZERO:
        return None
    return np.asarray(bits == _NEGATIVE_ZERO)


def kinds_of(column: Column) -> Column:
    """Return a column with the kind of each entry, such as `a number`, `a string` or `absent`."""
    kinds = list(map(kind_word, column.labels))
    codes = column.codes
    if codes is None:
        codes = np.broadcast_to(np.int32(0), len(column.numbers))
    known: dict[str, int] = {}
    every = recoded(known, ["a number", *kinds], codes + np.int32(1), len(codes))
    nothing = np.broadcast_to(np.float64(np.nan), len(codes))
    return Column(KIND + column.name, nothing, every, tuple(known))


def kind_word(label: str) -> str:
    """Return the kind of a label, such as `a string` for `'a'`. `None`, `NaN`, `absent`, exceptions
    and containers are kinds of their own; all others, such as dates, are `a value of another kind`.
    """
    if label.startswith(("'", '"')):
        return "a string"
    is_own = label in ("None", "NaN", ABSENT) or label.startswith((RAISED, "a "))
    return label if is_own else "a value of another kind"


def join(columns: Sequence[Column]) -> Column:
    """Return one column with the entries of several columns of the same name, in their order."""
    numbers = np.concatenate([column.numbers for column in columns])
    if all(column.codes is None for column in columns):
        return Column(columns[0].name, numbers)
    known: dict[str, int] = {}
    codes = [recoded(known, column.labels, column.codes, len(column.numbers)) for column in columns]
    return Column(columns[0].name, numbers, np.concatenate(codes), tuple(known))


def recoded(
    known: dict[str, int], labels: Iterable[str], codes: CodeArray | None, size: int
) -> CodeArray:
    """Return new codes for the entries of a column, which refer to labels that several columns
    share.

    known: the shared labels: maps a label to its new code, from 1. Labels of the column that are
        missing are added to it.
    labels, codes: those of the column; `codes` is None if all of its `size` entries are numbers.
    """
    new_codes = [0, *(known.setdefault(label, len(known) + 1) for label in labels)]
    if codes is None:
        return np.zeros(size, dtype=np.int32)
    return np.array(new_codes, dtype=np.int32)[codes]


def entry_keys(numbers: FloatArray, codes: CodeArray | None, known: KeyArray) -> KeyArray:
    """Return a hash of each entry of a column, (size,). `known` has the hash of label k at index k,
    as from `label_keys`."""
    keys = numbers.view(np.uint64)
    return keys if codes is None else np.where(codes > 0, known[codes], keys)


def label_keys(labels: Iterable[str]) -> KeyArray:
    """Return the hashes of labels, (labels + 1,): label k, counted from 1, is at index k; index 0
    is 0."""
    return np.array([0, *map(text_key, labels)], dtype=np.uint64)


def text_key(text: str) -> int:
    """Return a 64-bit hash of a text. It is the same in every process."""
    data = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def mix(keys: KeyArray) -> KeyArray:
    """Scramble hashes in place, by the last step of the random generator SplitMix64, and return the
    array. Sums of scrambled hashes rarely collide."""
    shifted = keys >> np.uint64(30)
    keys ^= shifted
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= np.right_shift(keys, np.uint64(27), out=shifted)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= np.right_shift(keys, np.uint64(31), out=shifted)
    return keys


def find(keys: NDArray[np.integer], wanted: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the index in `keys`, which are sorted, of each wanted hash; `len(keys)` for a hash
    that is not among them."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.intp)
    indices = np.searchsorted(keys, wanted)
    indices[indices == len(keys)] = 0
    return np.where(keys[indices] == wanted, indices, len(keys))
