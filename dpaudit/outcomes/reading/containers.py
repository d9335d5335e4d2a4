"""How lists, arrays, dicts, sets and objects are read: part by part, for all outcomes at once."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError
from dpaudit.outcomes.long_table import at
from dpaudit.outcomes.paths import ORDER, Path
from dpaudit.outcomes.reading.reader import Reader, Rows, Values
from dpaudit.outcomes.representation import TYPE, array_word, order_words
from dpaudit.outcomes.scalars import values_of
from dpaudit.outcomes.special import key_word
from dpaudit.outcomes.words import DICT, LIST, PRESENT, SET

_DEEPEST = 50
# Deep enough to be rare; further up the first outcome is looked at, before what contains itself a
# thousand times has a billion places.
_LOOKS_FOR_CYCLES_AT = 3
# So many keys, and sets of them, are looked for in all values at once.
_FEW_KEYS, _FEW_SETS = 64, 1_024

Places = NDArray[np.intp]


def read_lists(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read sequences of any length."""
    _check_depth(path, values)
    reader.constant(path, rows, LIST)
    lengths = reader.lengths(path, rows, values)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest == longest:
        for i, column in enumerate(zip(*values, strict=True)):
            reader.read(path.item(i), rows, column)
        return
    order = np.argsort(-lengths, kind="stable")
    ordered = [values[i] for i in order]
    there = np.searchsorted(-lengths[order], -np.arange(longest), side="left")
    for i, count in enumerate(there.tolist()):
        reader.read(path.item(i), at(rows, order[:count]), [one[i] for one in ordered[:count]])


def read_arrays(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read arrays, and what knows how to be one."""
    arrays = list(map(_array, values))
    _read_array_entries(reader, path, rows, values, arrays)
    if reader.types:  # else the type of an array belongs to the call that made a batch
        reader.forms(path.form(TYPE), rows, [array_word(one, types=True) for one in values])


def _read_array_entries(
    reader: Reader, path: Path, rows: Rows, values: Values, arrays: Sequence[NDArray[Any]]
) -> None:
    first = arrays[0]
    is_plain = first.dtype.names is not None or not first.dtype.hasobject
    if is_plain and len({(one.dtype, one.shape) for one in arrays}) == 1:
        stack = np.concatenate if first.ndim == 1 else np.stack
        together = stack(arrays).reshape(len(arrays), *first.shape)
        reader.read_array(path, rows, together)
        return
    _check_depth(path, values)
    records = {one.dtype: one for one in arrays if one.ndim == 0 and one.dtype.kind == "V"}
    for dtype in records:
        place = [i for i, one in enumerate(arrays) if one.ndim == 0 and one.dtype == dtype]
        reader.read_array(path, at(rows, place), np.stack([arrays[i] for i in place]))
    others = [i for i, one in enumerate(arrays) if one.ndim or one.dtype not in records]
    # The entries of an array have its type, which is kept; objects have types of their own.
    for is_own, types in ((True, reader.types), (False, False)):
        place = [i for i in others if arrays[i].dtype.hasobject is is_own]
        if place:
            parts = [arrays[i][()] if arrays[i].ndim == 0 else values_of(arrays[i]) for i in place]
            with reader.counting(types=types):
                reader.read(path, at(rows, place), parts)


def read_dicts(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read mappings, and in which order their keys are."""
    _check_depth(path, values)
    reader.constant(path, rows, DICT)
    keys = list(values[0])
    are_texts = set(map(type, keys)) == {str}
    # Most mechanisms write the same keys in the same order.
    if are_texts and all(list(one) == keys for one in values):
        words = [path.key(key).word for key in keys]
        kinds, texts = set(map(type, values)), reader.text_orders
        orders = {kind: order_words(kind, tuple(keys), words, texts=texts) for kind in kinds}
        reader.forms(path.form(ORDER), rows, [orders[type(one)] for one in values])
        reader.lengths(path, rows, values)
        _read_columns(reader, path, rows, values, keys)
        return
    _read_orders(reader, path, rows, values)
    read_keys(reader, path, rows, values)


def _read_orders(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read the orders of keys; keys that are equal and of several types are several."""
    known: dict[Any, str | None] = {}
    orders: list[str | None] = []
    for value in values:
        keys = tuple(value)
        name = type(value), keys, tuple(map(type, keys))
        if name not in known:
            words = [key_word_at(key, path) for key in keys]
            known[name] = order_words(type(value), keys, words, texts=reader.text_orders)
        orders.append(known[name])
    reader.forms(path.form(ORDER), rows, orders)


def _read_columns(
    reader: Reader, path: Path, rows: Rows, values: Values, keys: Sequence[str]
) -> None:
    for key, column in zip(keys, _columns(values, keys), strict=True):
        reader.read(path.key(key), rows, column)


def read_keys(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read what is in mappings, and how many keys they have."""
    reader.lengths(path, rows, values)
    keys = list(values[0])
    if keys and set(map(type, keys)) == {str} and _share(values, keys):
        _read_columns(reader, path, rows, values, keys)
        return
    for word, alike in _by_word(path, values).items():
        parts = [values[i][key] for key, place in alike for i in place.tolist()]
        reader.read(path.then("key", word), at(rows, _all_places(alike)), parts)


def _share(values: Values, keys: Sequence[str]) -> bool:
    """Return whether all mappings have just these keys."""
    expected = dict.fromkeys(keys).keys()
    return all(one.keys() == expected for one in values)


def _columns(values: Values, keys: Sequence[str]) -> Iterable[Sequence[Any]]:
    if len(keys) == 1:
        return [list(map(itemgetter(*keys), values))]
    return zip(*map(itemgetter(*keys), values), strict=True)


def _by_word(path: Path, values: Values) -> dict[str, list[tuple[Any, Places]]]:
    """Return the keys, or elements, by how they are written, each with which values have it."""
    found: dict[str, list[tuple[Any, Places]]] = {}
    for key, place in _places(values):
        word = key_word_at(key, path)
        alike = found.setdefault(word, [])
        if alike:
            _check_apart(_all_places(alike), place, word, path)
        alike.append((key, place))
    return found


def _all_places(alike: list[tuple[Any, Places]]) -> Places:
    return np.concatenate([place for _, place in alike])


def read_sets(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read sets; every element is a place, where there is something or not."""
    reader.constant(path, rows, SET)
    reader.lengths(path, rows, values)
    # In an order of their own: that of a set of texts is another one in every process.
    for word, alike in sorted(_by_word(path, values).items()):
        reader.constant(path.then("element", word), at(rows, _all_places(alike)), PRESENT)


def _places(values: Values) -> list[tuple[Any, Places]]:
    """Return every key, or element, with which of the values have it; 1 and True are two."""
    index: dict[tuple[Any, ...], int] = {}
    which = [index.setdefault(keys, len(index)) for keys in map(tuple, values)]
    every = dict.fromkeys(key for keys in index for key in keys)
    are_few = len(index) <= _FEW_SETS and len(every) <= _FEW_KEYS
    if are_few and all(isinstance(key, str) for key in every):
        # Texts that are equal are one key; a few sets of them are had by many values.
        number = np.array(which)
        sets = {key: np.array([key in keys for keys in index]) for key in every}
        return [(key, np.flatnonzero(having[number])) for key, having in sets.items()]
    found: defaultdict[tuple[type, Any], list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        for key in value:
            found[type(key), key].append(place)
    return [(key, np.array(places)) for (_, key), places in found.items()]


def read_records(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read dataclasses and named tuples."""
    _check_depth(path, values)
    for kind in dict.fromkeys(map(type, values)):
        place = [i for i, one in enumerate(values) if type(one) is kind]
        inside = rows if len(place) == len(values) else at(rows, place)
        reader.constant(path, inside, f"a {kind.__qualname__}")
        for name in _attributes(kind):
            parts = [getattr(values[i], name) for i in place]
            reader.read(path.then("attribute", name), inside, parts)


def _attributes(kind: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind._fields)


def _array(value: Any) -> np.ndarray[Any, Any]:
    # A masked entry is None, not what lies under the mask.
    filled = hasattr(value, "filled")
    return np.array(value.tolist(), dtype=object) if filled else np.asarray(value)


def key_word_at(key: Any, path: Path) -> str:
    """Return a key or an element as it is written. Raises MechanismError for one that cannot be."""
    word = key_word(key)
    if word is None:
        raise MechanismError(
            f"the mechanism returns keys or elements of type {type(key).__qualname__} in "
            f"{path.name}; supported are strings, numbers, and tuples of these: give post_process "
            "a function that turns an output into one with such keys",
            code="output-unsupported",
        )
    return word


def _check_apart(first: Places, second: Places, word: str, path: Path) -> None:
    if not set(first.tolist()).isdisjoint(second.tolist()):
        raise MechanismError(
            f"the mechanism returns two keys or elements of {path.name} that are both written "
            f"{word}; give post_process a function that turns an output into one where keys differ",
            code="output-unsupported",
        )


def _check_depth(path: Path, values: Values) -> None:
    looked_at: Values = ()
    if 0 < path.depth <= _LOOKS_FOR_CYCLES_AT:
        looked_at = values if path.depth == _LOOKS_FOR_CYCLES_AT else values[:1]
    if path.depth > _DEEPEST or any(map(_contains_itself, looked_at)):
        raise MechanismError(
            f"the mechanism returns outputs that contain themselves, or have more than {_DEEPEST} "
            "levels; give post_process a function that turns an output into a flat one",
            code="output-too-large",
        )


def _contains_itself(value: Any) -> bool:
    try:
        return _is_cyclic(value, set(), set())
    except RecursionError:
        return True


def _is_cyclic(value: Any, above: set[int], done: set[int]) -> bool:
    if id(value) in above:
        return True
    if id(value) in done:
        return False
    above.add(id(value))
    found = any(_is_cyclic(part, above, done) for part in _parts_of(value))
    above.remove(id(value))
    done.add(id(value))
    return found


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    if dataclasses.is_dataclass(value):
        return [getattr(value, name) for name in _attributes(type(value))]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else ()
    return value if isinstance(value, list | tuple) else ()
