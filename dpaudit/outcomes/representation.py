"""Representations of outcomes, and outcomes as texts.

Outcomes that are equal by == may still look different to a recipient. The sign of zero is kept in
the numbers of a column. Every form has a path of its own, such as `type of output[0]`, whose last
step is of the kind "form".
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, DecimalException
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.outcomes.columns import (
    ABSENT,
    EXACT,
    ORDER,
    ROOT,
    Column,
    FloatArray,
    KeyArray,
    PlacePath,
    Raised,
    entry_word,
    is_negative_zero,
    kind_word,
    mix,
    recoded,
    text_key,
)
from dpaudit.outcomes.frames import is_frame, is_series
from dpaudit.outcomes.set_order import as_in_a_set

Entry = tuple[PlacePath, str | float]

# Column entries that stand for containers. The entry for any other object is "a " followed by the
# name of its type.
LIST, DICT, SET = "a list", "a dict", "a set"
# If outcomes are or contain sets, each element of the sets has a column. An outcome whose set
# contains the element has this entry in the column.
PRESENT = "present"
# Last steps of the paths of properties that == does not compare, such as `type of output`.
TYPE, EXPONENT, OFFSET = "type", "exponent", "UTC offset"
OF_TYPE = f"{TYPE} of "
SIGN = "sign of zero of "
# Maps a column entry, such as `NaN`, or the kind of an entry, such as `a string`, to the usual type
# of the values that have this entry. A value of its usual type gets no entry for its type.
_USUAL = {
    "NaN": "float",
    "True": "bool",
    "False": "bool",
    "a string": "str",
    "a list": "list",
    "a dict": "dict",
    "a set": "set",
}
# Values of these types get no entry in a column such as `type of output[0]`: the type is usual, or
# the value's own entry already shows it, as `None` does.
_UNNAMED = (float, str, bool, bytes, list, dict, set, complex, type(None), Raised)
# Values of the types in these modules get no column entry for their type, since the entry for the
# value itself already shows it.
_MODULES = ("datetime", "uuid")
# Start of the label for the order of a dict's keys, if no Python set of the same keys can have this
# order. The keys follow, as in `in the order (b, a)`.
_IN_ORDER = "in the order "
# Start of the label for the order of a dict's keys if a set of these keys may have this order. The
# keys follow in sorted order, as in `in an order of the set (a, b)`. So all orders that a set may
# have get the same label: they are random, and reveal nothing. If no set has the order, the label
# starts with `_IN_ORDER`.
_AS_IN_A_SET = "in an order of the set "
# Largest number of characters of a label for an order of keys. A longer label is cut, and hashes
# are appended.
_MAX_LABEL = 200
# If the label for an order of keys is cut, since it is longer than `_MAX_LABEL`, it keeps its
# first 40 characters.
_SHOWN_CHARACTERS = 40
# An example of a Decimal, such as `1.00`, is shown only if it has at most this number of digits
# after the point.
_SHOWN_PLACES = 8
# A long text for the order of a dict's keys is cut, and two hashes are appended: "… (900 keys, set
# <hash>, order <hash>)". The pattern matches these hashes. Its group is the first hash, which does
# not depend on the order of the keys.
_SET_DIGEST = re.compile(r"keys, set ([0-9a-f]{16}), order [0-9a-f]{16}\)$")


class InOrder(dict[Any, Any]):
    """A dict from another process, whose keys have an order that a set of these keys never has
    there. So the order may reveal something about the input."""


class AsInASet(dict[Any, Any]):
    """A dict from another process, whose keys have an order that a set of these keys may have
    there. All such orders count as random, and get the same label."""


@lru_cache(maxsize=1024)
def type_word(kind: type) -> str | None:
    """Return the name of a type that outcomes must show, such as a subclass of list. Return None
    for a usual type, such as float, and for a type that entries show already, such as a date."""
    if kind in _UNNAMED or kind in (InOrder, AsInASet) or issubclass(kind, enum.Enum):
        return None
    if is_frame(kind) or is_series(kind):
        return None
    if kind.__module__ in _MODULES or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return None
    return f"numpy.{kind.__name__}" if issubclass(kind, np.generic) else kind.__qualname__


def array_word(array: Any) -> str | None:
    """Return the type of an array, such as `array of int64`; None for a structured array."""
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "names", None):
        return None
    kind = "array" if type(array) is np.ndarray else type(array).__qualname__
    return kind if dtype is None else f"{kind} of {dtype}"


def is_array_type(kind: type) -> bool:
    """Return whether values of a type are arrays or can be converted to arrays, except NumPy
    scalars."""
    return issubclass(kind, np.void) or (
        hasattr(kind, "__array__") and not issubclass(kind, np.generic)
    )


def order_words(
    kind: type, keys: tuple[Any, ...], words: Sequence[str], *, texts: bool = True
) -> str | None:
    """Return a text that stands for the order of a dict's keys; None for fewer than two keys. All
    orders that a set of these keys may have get the same text, since these are random.

    kind: type of the dict.
    keys, words: the keys in the order of the dict, and their texts.
    texts: whether strings were hashed with the hash seed of this process. If not, any order of
        strings counts as the order of a set.
    """
    if len(keys) < 2:
        return None
    if issubclass(kind, InOrder | AsInASet):
        is_as_in_a_set = issubclass(kind, AsInASet)
    else:
        is_as_in_a_set = as_in_a_set(keys, texts=texts)
    shown = sorted(words) if is_as_in_a_set else words
    how = _AS_IN_A_SET if is_as_in_a_set else _IN_ORDER
    label = f"{how}({', '.join(shown)})"
    if len(label) <= _MAX_LABEL:
        return label
    every, order = (text_key(", ".join(listed)) for listed in (sorted(words), shown))
    return (
        f"{label[:_SHOWN_CHARACTERS]}… ({len(words):,} keys, set {every:016x}, order {order:016x})"
    )


def orders_differ(labels: Iterable[str]) -> bool:
    """Return whether, among texts from `order_words`, two differ but are of the same keys. `absent`
    is ignored."""
    sets = [_keys_of(label) for label in labels if label != ABSENT]
    return len(set(sets)) < len(sets)


def _keys_of(label: str) -> str:
    digest = _SET_DIGEST.search(label)
    if digest is not None:
        return digest[1]
    _, _, keys = label.partition("(")
    return ", ".join(sorted(keys[:-1].split(", ")))


def sign_keys(name: str, numbers: FloatArray) -> KeyArray | None:
    """Return numbers, (size,), that make hashes of -0.0 and 0.0 in the column `name` differ when
    they are added: 0 where the entry is not -0.0. Return None if there is no -0.0. They are added
    to hashes that leave the column out, too."""
    negative = is_negative_zero(numbers)
    if negative is None:
        return None
    key = np.array([(text_key("-0.0") + text_key(SIGN + name)) % 2**64], dtype=np.uint64)
    return np.asarray(negative * mix(key)[0], dtype=np.uint64)


def signs_differ(numbers: FloatArray) -> bool:
    """Return whether a column has both 0.0 and -0.0."""
    negative = is_negative_zero(numbers)
    return negative is not None and bool(((numbers == 0) & ~negative).any())


def signs_of(column: Column) -> Column:
    """Return a column with `0.0`, `-0.0` or `not a zero` for each number of a column."""
    numbers = column.numbers
    labels = ("not a zero", "0.0", "-0.0", *column.labels)
    codes = np.ones(len(numbers), dtype=np.int32)
    codes[numbers == 0] = 2
    negative = is_negative_zero(numbers)
    if negative is not None:
        codes[negative] = 3
    if column.codes is not None:
        codes = np.where(column.codes > 0, column.codes + np.int32(3), codes)
    return Column(SIGN + column.name, np.full(len(numbers), np.nan), codes, labels)


def types_of(form: Column, column: Column) -> Column:
    """Return a column with the name of the type of each entry of `column`, such as `float`.

    form: column with the types of the same outcomes that are unusual; `absent` for a usual type.
    """
    usual = _usual_types(column)
    if form.codes is None:
        return replace(usual, name=form.name)
    every = tuple(dict.fromkeys([*form.labels, *usual.labels]))
    known = {label: code for code, label in enumerate(every, 1)}
    stated = np.array([0, *(0 if text == ABSENT else known[text] for text in form.labels)])[
        form.codes
    ]
    implied = np.array([0, *(known[text] for text in usual.labels)])[usual.codes]
    codes = np.where(stated > 0, stated, implied).astype(np.int32)
    return Column(form.name, usual.numbers, codes, every)


def types_differ(types: Column, column: Column) -> bool:
    """Return whether two entries differ in type although entries of their kind usually have one
    type, such as an int among floats.

    types: column with the types of the same outcomes that are unusual; `absent` for a usual type.
    """
    usual = np.asarray(_usual_types(column).codes, dtype=np.int64)
    pairs = usual * (len(types.labels) + 1) + np.asarray(types.codes, dtype=np.int64)
    return len(np.unique(pairs)) > len(np.unique(usual))


def _usual_types(column: Column) -> Column:
    """Return a column in which the usual type, such as `float`, replaces each entry."""
    labels = ["float", *map(_usual_type, column.labels)]
    codes = np.broadcast_to(np.int32(0), len(column.numbers))
    codes = np.int32(1) + (codes if column.codes is None else column.codes)
    known: dict[str, int] = {}
    nothing = np.broadcast_to(np.float64(np.nan), len(codes))
    return Column(column.name, nothing, recoded(known, labels, codes, len(codes)), tuple(known))


def _usual_type(label: str) -> str:
    if label.startswith(("b'", 'b"')):
        return "bytes"
    return _USUAL.get(label) or _USUAL.get(kind_word(label), label)


@dataclass(frozen=True, slots=True)
class Phrases:
    """Texts that describe events of a column of forms, such as `type of output is int`.

    start: beginning of the text of an event, such as `type of output is `; the entry follows.
    absent, present: texts of two events: that an outcome has no entry, and that it has one.
    word: returns the text of an entry, to follow `start`.
    """

    start: str
    absent: str
    present: str
    word: Callable[[str], str] = str


def phrases_of(name: str) -> Phrases | None:
    """Return the texts that describe events of the column `name`; None unless it is a column of
    forms or of signs."""
    form, _, path = name.partition(" of ")
    if name.startswith(f"{ORDER} of "):
        path = name.removeprefix(f"{ORDER} of ")
        few, several = f"{path} has fewer than two keys", f"{path} has several keys"
        return Phrases(f"keys of {path} are ", few, several, _order_word)
    if form == EXPONENT:
        none, some = f"{path} is no finite Decimal", f"{path} is a finite Decimal"
        return Phrases(f"{path} is written with ", none, some, _digits_word)
    if form == OFFSET:
        none, some = f"{path} has no UTC offset", f"{path} has a UTC offset"
        return Phrases(f"{OFFSET} of {path} is ", none, some)
    if form == TYPE or name.startswith(SIGN):
        path = path if form == TYPE else name.removeprefix(SIGN)
        start = f"{form} of {path} is " if form == TYPE else f"{path} is "
        return Phrases(start, f"{path} is {ABSENT}", f"{path} is present")
    return None


def _order_word(label: str) -> str:
    return "in an order that a set of them has" if label.startswith(_AS_IN_A_SET) else label


def _digits_word(exponent: str) -> str:
    """Return a text for the exponent of a Decimal, `2 digits after the point, ...` for -2."""
    digits = -int(exponent)
    if digits < 0:
        return f"the exponent {-digits}, as in 1E+{-digits}"
    example = f", as in {decimal_word('1', exponent)}" if digits <= _SHOWN_PLACES else ""
    return f"{digits or 'no'} digit{'s' * (digits != 1)} after the point{example}"


def decimal_word(number: str, exponent: str) -> str:
    """Return the text of a Decimal with a given exponent, such as `1.00` for 1 with the exponent
    -2."""
    try:
        return str(Decimal(number).quantize(Decimal(1).scaleb(int(exponent))))
    except (DecimalException, ValueError):
        return f"{number} (exponent {exponent})"


def typed_word(word: str, kind: str) -> str:
    """Return a text that shows an outcome and its type: `[1]` for a list, `(1,)` for a tuple,
    otherwise for example `1 (of type int)`. In the argument `word`, lists and tuples are both
    written `(1)`."""
    if word.startswith("(") and kind == "list":
        return f"[{word[1:-1]}]"
    if word.startswith("(") and kind == "tuple":
        return word if "," in word or word == "()" else f"{word[:-1]},)"
    return f"{word} (of type {kind})"


def written(entries: Iterable[Entry]) -> str:
    """Return the text of an outcome, such as `{"a": (1, 2)}`, from (path, entry) of each value in
    it. Forms are shown only if there are entries for them."""
    parts: dict[str, list[PlacePath]] = {}
    words: dict[str, str] = {}
    for path, entry in entries:
        words[path.name] = entry if isinstance(entry, str) else entry_word(entry)
        if path.parent is not None:
            parts.setdefault(path.parent.name, []).append(path)
    return _written(ROOT, parts, words)


def _sort_key(path: PlacePath) -> tuple[int, str]:
    return (int(path.word), "") if path.step == "item" else (0, path.word)


def _written(path: PlacePath, parts: dict[str, list[PlacePath]], words: dict[str, str]) -> str:
    word = _value(path, parts, words)
    forms = {
        part.word: words[part.name] for part in parts.get(path.name, []) if part.step == "form"
    }
    if EXPONENT in forms:
        word = decimal_word(word, forms[EXPONENT])
    return typed_word(word, forms[TYPE]) if TYPE in forms else word


def _value(path: PlacePath, parts: dict[str, list[PlacePath]], words: dict[str, str]) -> str:
    word, inner = words[path.name], parts.get(path.name, [])
    if not word.startswith("a "):
        return next((words[part.name] for part in inner if part.word == EXACT), word)
    items = sorted((part for part in inner if part.step not in ("about", "form")), key=_sort_key)
    if word == SET:
        return f"{{{', '.join(part.word for part in items)}}}" if items else "set()"
    listed = [(part, _written(part, parts, words)) for part in items]
    if word == LIST:
        return f"({', '.join(value for _, value in listed)})"
    if word == DICT:
        return f"{{{', '.join(f'{part.word}: {value}' for part, value in listed)}}}"
    name = word.removeprefix("a ")
    return f"{name}({', '.join(f'{part.word}={value}' for part, value in listed)})"
