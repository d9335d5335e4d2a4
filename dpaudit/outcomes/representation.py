"""Representations of outcomes, and outcomes as texts.

Outcomes that are equal by Python's == may still differ for a recipient, in their representation:
the type of a number or a container, the sign of zero, the order of a dict's keys, the number of
digits of a Decimal. The numbers of a column include the sign of zero. Any other representation is
an entry at a path of its own, such as `type of output[0]`, whose step is "form". A value with the
usual representation (a float, a list, a dict) has no such entry.
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
    Path,
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

Entry = tuple[Path, str | float]

# Labels of containers. An object has the label "a " followed by the name of its type.
LIST, DICT, SET = "a list", "a dict", "a set"
# Entry of every element of a set.
PRESENT = "present"
# Last steps of paths of representations, such as `type of output`.
TYPE, EXPONENT, OFFSET = "type", "exponent", "UTC offset"
OF_TYPE = f"{TYPE} of "
SIGN = "sign of zero of "
# Kind of a value -> its usual type. A value of the usual type has no entry at `type of output`.
_USUAL = {
    "NaN": "float",
    "True": "bool",
    "False": "bool",
    "a string": "str",
    "a list": "list",
    "a dict": "dict",
    "a set": "set",
}
# Types without an entry at `type of output`: usual types, and types whose labels differ anyway.
_UNNAMED = (float, str, bool, bytes, list, dict, set, complex, type(None), Raised)
# Types of these modules have no entry either, since the labels of their values show the type.
_MODULES = ("datetime", "uuid")
# Prefixes of the label of an order of keys, which is followed by the keys in parentheses.
_IN_ORDER, _AS_IN_A_SET = "in the order ", "in an order of the set "
# A label of an order of keys with more than 200 characters is cut to 40 characters and digests.
_LONGEST_LABEL, _SHOWN = 200, 40
# An example of a Decimal is shown up to 8 digits after the point.
_SHOWN_PLACES = 8
# The end of a label that was cut. The group is the digest of the set of keys, without their order.
_SET_DIGEST = re.compile(r"keys, set ([0-9a-f]{16}), order [0-9a-f]{16}\)$")


class InOrder(dict[Any, Any]):
    """A dict from another process. In that process, no set of its keys has the order of the keys of
    the dict, so that the order reveals something."""


class AsInASet(dict[Any, Any]):
    """A dict from another process. In that process, a set of its keys may have the order of the
    keys of the dict, so that the order reveals nothing."""


@lru_cache(maxsize=1024)
def type_word(kind: type) -> str | None:
    """Return the name of an unusual type, such as a subclass of list or a NumPy number.

    Return None for a usual type, and for a type that the labels of its values show already.
    """
    if kind in _UNNAMED or kind in (InOrder, AsInASet) or issubclass(kind, enum.Enum):
        return None
    if is_frame(kind) or is_series(kind):
        return None
    if kind.__module__ in _MODULES or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return None
    return f"numpy.{kind.__name__}" if issubclass(kind, np.generic) else kind.__qualname__


def array_word(array: Any, *, types: bool) -> str | None:
    """Return the type of an array, such as `array of int64`; None for a record array.

    types: whether to include the dtype.
    """
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "names", None):
        return None
    kind = "array" if type(array) is np.ndarray else type(array).__qualname__
    return f"{kind} of {dtype}" if types and dtype is not None else kind


def is_array_type(kind: type) -> bool:
    """Return whether values of a type are arrays or convert to arrays, except NumPy scalars."""
    return issubclass(kind, np.void) or (
        hasattr(kind, "__array__") and not issubclass(kind, np.generic)
    )


def order_words(
    kind: type, keys: tuple[Any, ...], words: Sequence[str], *, texts: bool = True
) -> str | None:
    """Return the text that stands for the order of a mapping's keys; None for fewer than two keys.

    All orders that a set of these keys may have share one text, since the order of a set of strings
    is random.

    kind: type of the mapping.
    words: texts of the keys, in the order of the mapping.
    texts: whether strings were hashed with the hash seed of this process.
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
    if len(label) <= _LONGEST_LABEL:
        return label
    every, order = (text_key(", ".join(one)) for one in (sorted(words), shown))
    return f"{label[:_SHOWN]}… ({len(words):,} keys, set {every:016x}, order {order:016x})"


def orders_differ(labels: Iterable[str]) -> bool:
    """Return whether two of the labels describe different orders of the same keys of a dict.

    labels: distinct labels from `order_words`; `ABSENT` is ignored.
    """
    sets = [_keys_of(label) for label in labels if label != ABSENT]
    return len(set(sets)) < len(sets)


def _keys_of(label: str) -> str:
    found = _SET_DIGEST.search(label)
    if found is not None:
        return found[1]
    _, _, keys = label.partition("(")
    return ", ".join(sorted(keys[:-1].split(", ")))


def sign_keys(name: str, numbers: FloatArray) -> KeyArray | None:
    """Return the numbers that the entries -0.0 of a column add to the keys (64-bit hashes) of
    outcomes, shape (outcomes,).

    They are needed where keys are computed without the entries of the column. The number is 0 for
    every entry other than -0.0. Return None if the column has no -0.0.

    name: name of the column.
    """
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
    """Return a column with `0.0` or `-0.0` for each zero of a column, and `not a zero` for each
    other number.

    Entries that are no numbers stay as they are.
    """
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
    """Return a column with the type of each entry of a column, such as `float`.

    form: the column of unusual types; `ABSENT` where an entry has its usual type.
    """
    usual = _usual_types(column)
    if form.codes is None:
        return replace(usual, name=form.name)
    every = tuple(dict.fromkeys([*form.labels, *usual.labels]))
    place = {label: code for code, label in enumerate(every, 1)}
    own = np.array([0, *(0 if one == ABSENT else place[one] for one in form.labels)])[form.codes]
    implied = np.array([0, *(place[one] for one in usual.labels)])[usual.codes]
    codes = np.where(own > 0, own, implied).astype(np.int32)
    return Column(form.name, usual.numbers, codes, every)


def types_differ(types: Column, column: Column) -> bool:
    """Return whether entries of one kind, such as numbers or lists, have different types, such as
    int and float.

    types: the column of unusual types.
    """
    usual = np.asarray(_usual_types(column).codes, dtype=np.int64)
    pairs = usual * (len(types.labels) + 1) + np.asarray(types.codes, dtype=np.int64)
    return len(np.unique(pairs)) > len(np.unique(usual))


def _usual_types(column: Column) -> Column:
    """Return a column with the usual type of each entry of a column, such as `float` for a
    number."""
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
    """Texts that describe events about a column of representations (types, signs of zero, orders of
    keys). All entries of such a column are labels.

    start: text before every label except `ABSENT`.
    absent: text of the event that there is no entry.
    present: text of the event that there is an entry.
    word: returns the text of a label.
    """

    start: str
    absent: str
    present: str
    word: Callable[[str], str] = str


def phrases_of(name: str) -> Phrases | None:
    """Return the texts that describe events about a column of representations (types, signs of
    zero, orders of keys); None for any other column.

    name: name of the column.
    """
    form, _, place = name.partition(" of ")
    if name.startswith(f"{ORDER} of "):
        place = name.removeprefix(f"{ORDER} of ")
        few, several = f"{place} has fewer than two keys", f"{place} has several keys"
        return Phrases(f"keys of {place} are ", few, several, _order_word)
    if form == EXPONENT:
        none, some = f"{place} is no finite Decimal", f"{place} is a finite Decimal"
        return Phrases(f"{place} is written with ", none, some, _digits_word)
    if form == OFFSET:
        none, some = f"{place} has no UTC offset", f"{place} has a UTC offset"
        return Phrases(f"{OFFSET} of {place} is ", none, some)
    if form == TYPE or name.startswith(SIGN):
        place = place if form == TYPE else name.removeprefix(SIGN)
        start = f"{form} of {place} is " if form == TYPE else f"{place} is "
        return Phrases(start, f"{place} is {ABSENT}", f"{place} is present")
    return None


def _order_word(label: str) -> str:
    return "in an order that a set of them has" if label.startswith(_AS_IN_A_SET) else label


def _digits_word(exponent: str) -> str:
    """Return a Decimal's exponent as a text: `2 digits after the point, as in 1.00` for -2."""
    places = -int(exponent)
    if places < 0:
        return f"the exponent {-places}, as in 1E+{-places}"
    example = f", as in {decimal_word('1', exponent)}" if places <= _SHOWN_PLACES else ""
    return f"{places or 'no'} digit{'s' * (places != 1)} after the point{example}"


def decimal_word(number: str, exponent: str) -> str:
    """Return the text of a Decimal with a given exponent: `1.00` for 1 with exponent -2."""
    try:
        return str(Decimal(number).quantize(Decimal(1).scaleb(int(exponent))))
    except (DecimalException, ValueError):
        return f"{number} (exponent {exponent})"


def typed_word(word: str, kind: str) -> str:
    """Return the text of an outcome together with its type: `[1]` for a list, `(1,)` for a tuple.

    word: text of the outcome; lists and tuples are written as `(1)`.
    kind: name of the type.
    """
    if word.startswith("(") and kind == "list":
        return f"[{word[1:-1]}]"
    if word.startswith("(") and kind == "tuple":
        return word if "," in word or word == "()" else f"{word[:-1]},)"
    return f"{word} (of type {kind})"


def written(entries: Iterable[Entry]) -> str:
    """Return the text of an outcome, such as `{"a": (1, 2)}`.

    entries: the entries of the outcome; entries at paths with the step "form" are included only if
        the text should show representations.
    """
    parts: dict[str, list[Path]] = {}
    words: dict[str, str] = {}
    for path, entry in entries:
        words[path.name] = entry if isinstance(entry, str) else entry_word(entry)
        if path.parent is not None:
            parts.setdefault(path.parent.name, []).append(path)
    return _written(ROOT, parts, words)


def _place(path: Path) -> tuple[int, str]:
    return (int(path.word), "") if path.step == "item" else (0, path.word)


def _written(path: Path, parts: dict[str, list[Path]], words: dict[str, str]) -> str:
    word = _value(path, parts, words)
    forms = {one.word: words[one.name] for one in parts.get(path.name, []) if one.step == "form"}
    if EXPONENT in forms:
        word = decimal_word(word, forms[EXPONENT])
    return typed_word(word, forms[TYPE]) if TYPE in forms else word


def _value(path: Path, parts: dict[str, list[Path]], words: dict[str, str]) -> str:
    word, inner = words[path.name], parts.get(path.name, [])
    if not word.startswith("a "):
        return next((words[one.name] for one in inner if one.word == EXACT), word)
    kept = sorted((one for one in inner if one.step not in ("about", "form")), key=_place)
    if word == SET:
        return f"{{{', '.join(one.word for one in kept)}}}" if kept else "set()"
    listed = [(one, _written(one, parts, words)) for one in kept]
    if word == LIST:
        return f"({', '.join(value for _, value in listed)})"
    if word == DICT:
        return f"{{{', '.join(f'{one.word}: {value}' for one, value in listed)}}}"
    name = word.removeprefix("a ")
    return f"{name}({', '.join(f'{one.word}={value}' for one, value in listed)})"
