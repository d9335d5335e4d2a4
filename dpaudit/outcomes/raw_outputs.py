"""Read the raw outputs of a mechanism into a table: `from_raw`, and one function for each type of
values. A function `_read_…(reader, path, rows, values)` adds the entries for values of one type at
the place `path` to a `Reader`."""

from __future__ import annotations

import dataclasses
from collections import abc, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import Given, MechanismError, Name
from dpaudit.outcomes.columns import ORDER, RAISED, ROOT, CodeArray, PlacePath, Raised, at
from dpaudit.outcomes.frames import as_frame, as_series, is_frame, is_series
from dpaudit.outcomes.reader import Read, Reader, Rows, Values
from dpaudit.outcomes.representation import DICT, LIST, PRESENT, SET, TYPE, array_word, order_words
from dpaudit.outcomes.scalars import (
    LONG_TEXT,
    MAX_EXACT,
    Describe,
    Entries,
    bytes_label,
    describe_numpy_time,
    describer,
    exact_integer,
    key_word,
    numbered,
    of_booleans,
    of_floats,
    of_mixed,
    of_texts,
    text_label,
    values_of,
)
from dpaudit.outcomes.tables import Outcomes
from dpaudit.outcomes.texts import JSON, NUMBERS, WORDS, Content, content
from dpaudit.torch_use import UnreadableError, is_tensor, readable, widened
from dpaudit.watching import Watch, step
from dpaudit.wording import FILE_PREFIX

# Number of bytes at the start of a value of type bytes that get a column each.
_BYTES_WITH_COLUMNS = 32
# Largest number of levels of nested containers in an output. An output with more levels is refused.
_MAX_DEPTH = 50
# Outputs that contain themselves, such as a list that is an item of itself, are refused. To find
# them, containers down to this depth of nesting are checked. At depths 1 and 2, only the first
# container at each place (position in an output, such as `output[0]`) is checked; at depth 3, the
# containers of all outputs are. Greater depths would take too long: a list that contains itself
# 1,000 times has a billion places at depth 3.
_LOOKS_FOR_CYCLES_AT = 3
# A fast method reads dicts (or sets) with string keys if all of them together have at most this
# number of different keys, and at most `_MAX_FAST_SETS` combinations of keys. Otherwise a slower
# loop reads them.
_MAX_FAST_KEYS = 64
# Largest number of different combinations of keys for which the fast method reads dicts (or sets).
_MAX_FAST_SETS = 1_024

Places = NDArray[np.intp]

# All calls share one watch, so that its warning about slow reading appears only once.
_watch = Watch()


def from_raw(
    raw: abc.Sequence[Any] | NDArray[Any],
    *,
    types: bool = True,
    text_orders: bool = True,
    rounds: bool = False,
) -> Outcomes:
    """Return the table of raw outputs: each item of a list, or each row of an array, is one
    outcome. Raise MechanismError, with type and place, for a value whose type is not supported.

    An outcome may be a number, a string, bytes, a Boolean, None, a date, a fraction, a complex
    number, a member of an enumeration, a UUID or a NumPy scalar; a list, tuple, set, dict, array,
    dataclass, named tuple, data frame or series (pandas, Polars, Arrow) of these; or `Raised`.

    types: whether the type of a number is part of an outcome, so that 1 and 1.0 differ. The dtype
        of an array of all outcomes never counts, since a single float among integers would change
        it for all of them.
    text_orders: whether the order of string keys in a dict may be part of an outcome. It is part
        only if this process has a fixed hash seed. Must be False for outputs of a process with
        another hash seed.
    rounds: whether fractions are rounded to 40 significant bits, about 12 digits.
    """
    with step("reading outputs of the mechanism", _watch):
        orders = {"text_orders": text_orders, "rounds": rounds}
        reader = Reader(len(raw), _reader_of, types=types, **orders)
        if isinstance(raw, np.ndarray) and raw.dtype != object:
            reader.read_array(ROOT, None, widened(raw))
        elif len(raw):
            reader.read(ROOT, None, raw if isinstance(raw, list) else list(raw))
        else:
            reader.add(ROOT, None, Entries(np.empty(0)))
        return reader.table()


def _reader_of(kind: type, path: PlacePath) -> Read:
    """Return the function that reads values of a type. Raises MechanismError without one."""
    read = _EXACTLY.get(kind) or _by_base(kind)
    if read is None:
        is_plain = kind.__module__ == "builtins" or kind.__module__.startswith(FILE_PREFIX)
        name = kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"
        where = "" if path.parent is None else f" (as {path.name})"
        raise MechanismError(
            f"the mechanism returns a value of type {name}{where}; supported outputs are numbers, "
            "strings, bytes, Booleans, None, dates, and lists, sets, dicts, arrays, dataclasses "
            "and data frames of these: ",
            *_remedy(kind),
            code="output-unsupported",
        )
    return read


def _remedy(kind: type) -> tuple[str, ...]:
    if issubclass(kind, abc.Iterator):
        typed = "--post-process builtins:list (YAML: post_process: builtins:list)"
        return "let it return list(…) of all, or give ", Given("post_process=list", typed)
    if any("__call__" in vars(base) for base in kind.__mro__):
        option = Given("factory=True", "--factory (YAML: factory: true)")
        return "if it is a factory, which makes the mechanism, give ", option
    return "give ", Name("post_process"), " a function that turns an output into one"


def _by_base(kind: type) -> Read | None:
    for bases, read in _BY_BASE:
        if issubclass(kind, bases):
            return read
    if dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return _read_records
    if is_frame(kind):
        return _read_frames
    if is_series(kind):
        return _read_series
    describe = describer(kind)
    if describe is not None:
        return partial(_read_special, describe)
    if is_tensor(kind):
        return _read_tensors
    if hasattr(kind, "__array__"):
        return _read_arrays
    return next((read for base, read in _BY_PROTOCOL if issubclass(kind, base)), None)


def _read_tensors(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    try:
        arrays = list(map(_array, map(readable, values)))
    except UnreadableError as error:
        where = "" if path.parent is None else f" (as {path.name})"
        raise MechanismError(
            f"the mechanism returns{where} {error}", code="output-unsupported"
        ) from None
    _read_typed_arrays(reader, path, rows, values, arrays)


def _read_floats(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_floats(np.array(values, dtype=np.float64)))


def _read_integers(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    if min(values) >= -MAX_EXACT and max(values) <= MAX_EXACT:
        reader.add(path, rows, Entries(np.array(values, dtype=np.float64)))
    else:
        _read_special(exact_integer, reader, path, rows, values)


def _read_booleans(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_booleans(np.array(values, dtype=np.bool_)))


def _read_nothing(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_mixed(["None"] * len(values)))


def _read_raised(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_mixed([RAISED + value.kind for value in values]))


def _read_texts(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    texts, codes = numbered(values)
    reader.add(path, rows, of_texts(texts, codes))
    _read_contents(reader, path, rows, texts, codes)
    long = [i for i, length in enumerate(map(len, values)) if length > LONG_TEXT]
    if long:
        lengths = np.array([len(values[i]) for i in long], dtype=np.float64)
        reader.add(path.about("length"), at(rows, long), Entries(lengths))


def _read_contents(
    reader: Reader, path: PlacePath, rows: Rows, texts: Sequence[str], codes: CodeArray
) -> None:
    """Add the entries for the contents of texts; `codes` has the index of each text, from 1."""
    levels = _MAX_DEPTH - path.depth - 1
    contents = {
        i: text_content for i, text in enumerate(texts) if (text_content := content(text, levels))
    }
    structures = {i: text.structure for i, text in contents.items() if text.structure is not None}
    if structures:
        inside, index = _among(rows, structures, codes)
        values = list(map(list(structures.values()).__getitem__, index.tolist()))
        reader.read(path.then("content", JSON), inside, values)
    if len(structures) < len(contents):
        numeric = {i: text for i, text in contents.items() if i not in structures}
        inside, index = _among(rows, numeric, codes)
        _read_numbers(reader, path, inside, list(numeric.values()), index)


def _among(rows: Rows, chosen: Collection[int], codes: NDArray[np.integer]) -> tuple[Rows, Places]:
    """Return the rows whose text is a chosen one, and the index of this text among the chosen."""
    index = np.full(int(codes.max()), -1)
    index[list(chosen)] = np.arange(len(chosen))
    choice = index[codes - 1]
    indices = np.flatnonzero(choice >= 0)
    return (rows, choice) if len(indices) == len(choice) else (at(rows, indices), choice[indices])


def _read_numbers(
    reader: Reader, path: PlacePath, rows: Rows, contents: Sequence[Content], index: Places
) -> None:
    """Add the column entries for the numbers in texts, and for the texts without them."""
    remaining, every = path.then("content", WORDS), path.then("content", NUMBERS)
    words, codes = numbered([content.words for content in contents])
    if len(words) == 1:
        reader.constant(remaining, rows, text_label(words[0]))
    else:
        reader.add(remaining, rows, of_texts(words, codes[index]))
    counts = np.array([content.total for content in contents], dtype=np.float64)
    if (counts == counts[0]).all():
        reader.constant(every.about("length"), rows, float(counts[0]))
    else:
        reader.add(every.about("length"), rows, Entries(counts[index]))
    longest = max(len(content.numbers) for content in contents)
    for i in range(longest):
        numbers = {
            j: content.numbers[i] for j, content in enumerate(contents) if i < len(content.numbers)
        }
        inside, indices = _among(rows, numbers, index + 1)
        entries = of_mixed([text_label(n) if isinstance(n, str) else n for n in numbers.values()])
        codes_here = None if entries.codes is None else entries.codes[indices]
        reader.add(
            every.item(i), inside, Entries(entries.numbers[indices], codes_here, entries.labels)
        )


def _as_text(data: bytes) -> str:
    """Return the text that bytes stand for in UTF-8; "" if a character cannot be printed."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if "".join(text.split()).isprintable() else ""


def _read_bytes(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    data = list(map(bytes, values))
    reader.add(path, rows, of_mixed(list(map(bytes_label, data))))
    _read_contents(reader, path, rows, *numbered(list(map(_as_text, data))))
    lengths = reader.lengths(path, rows, data)
    for length in np.unique(lengths):
        indices = np.flatnonzero(lengths == length)
        inside = rows if len(indices) == len(data) else at(rows, indices)
        every = np.frombuffer(b"".join([data[i] for i in indices]), dtype=np.uint8)
        table = every.reshape(len(indices), length).astype(np.float64)
        for i in range(min(int(length), _BYTES_WITH_COLUMNS)):
            reader.add(path.item(i), inside, Entries(np.ascontiguousarray(table[:, i])))


def _read_special(
    describe: Describe, reader: Reader, path: PlacePath, rows: Rows, values: Values
) -> None:
    described = list(map(describe, values))
    reader.add(path, rows, of_mixed([description.entry for description in described]))
    for aspect in dict.fromkeys(word for description in described for word in description.beside):
        indices = [i for i, description in enumerate(described) if aspect in description.beside]
        inside = rows if len(indices) == len(described) else at(rows, indices)
        entries = of_mixed([described[i].beside[aspect] for i in indices])
        reader.add(path.about(aspect), inside, entries)
    for form in dict.fromkeys(word for description in described for word in description.forms):
        reader.forms(
            path.form(form), rows, [description.forms.get(form) for description in described]
        )


def _read_lists(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
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
        reader.read(path.item(i), at(rows, order[:count]), [value[i] for value in ordered[:count]])


def _read_arrays(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Add the column entries for arrays, or objects that NumPy can convert to arrays."""
    _read_typed_arrays(reader, path, rows, values, list(map(_array, values)))


def _read_typed_arrays(
    reader: Reader, path: PlacePath, rows: Rows, values: Values, arrays: Sequence[NDArray[Any]]
) -> None:
    _read_array_entries(reader, path, rows, values, arrays)
    if reader.types:  # otherwise the dtype depends on the other outcomes of the batch
        reader.forms(path.form(TYPE), rows, [array_word(value) for value in values])


def _read_array_entries(
    reader: Reader, path: PlacePath, rows: Rows, values: Values, arrays: Sequence[NDArray[Any]]
) -> None:
    first = arrays[0]
    is_plain = first.dtype.names is not None or not first.dtype.hasobject
    if is_plain and len({(array.dtype, array.shape) for array in arrays}) == 1:
        stack = np.concatenate if first.ndim == 1 else np.stack
        together = stack(arrays).reshape(len(arrays), *first.shape)
        reader.read_array(path, rows, together)
        return
    _check_depth(path, values)
    records = {
        array.dtype: array for array in arrays if array.ndim == 0 and array.dtype.kind == "V"
    }
    for dtype in records:
        indices = [i for i, array in enumerate(arrays) if array.ndim == 0 and array.dtype == dtype]
        reader.read_array(path, at(rows, indices), np.stack([arrays[i] for i in indices]))
    remaining = [i for i, array in enumerate(arrays) if array.ndim or array.dtype not in records]
    # The dtype of an array, which has a column entry of its own, gives the types of all its items,
    # so no types of items are read (`types=False`). Only the items of an array of Python objects
    # may differ in type, so their types are read.
    for is_own, is_typed in ((True, reader.types), (False, False)):
        indices = [i for i in remaining if arrays[i].dtype.hasobject is is_own]
        if indices:
            parts = [
                arrays[i][()] if arrays[i].ndim == 0 else values_of(arrays[i]) for i in indices
            ]
            with reader.counting(types=is_typed):
                reader.read(path, at(rows, indices), parts)


def _read_dicts(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Add the order of the keys of each dict, their number, and the value at each key."""
    _check_depth(path, values)
    reader.constant(path, rows, DICT)
    keys = list(values[0])
    are_texts = set(map(type, keys)) == {str}
    # All dicts have the same string keys in the same order. A faster method reads this common case.
    if are_texts and all(list(value) == keys for value in values):
        words = [path.key(key).word for key in keys]
        kinds, texts = set(map(type, values)), reader.text_orders
        orders = {kind: order_words(kind, tuple(keys), words, texts=texts) for kind in kinds}
        reader.forms(path.form(ORDER), rows, [orders[type(value)] for value in values])
        reader.lengths(path, rows, values)
        _read_columns(reader, path, rows, values, keys)
        return
    _read_orders(reader, path, rows, values)
    _read_keys(reader, path, rows, values)


def _read_orders(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Add the order of the keys of each dict. The keys 1 and True count as different."""
    known: dict[Any, str | None] = {}
    orders: list[str | None] = []
    for value in values:
        keys = tuple(value)
        name = type(value), keys, tuple(map(type, keys))
        if name not in known:
            words = [_key_word_at(key, path) for key in keys]
            known[name] = order_words(type(value), keys, words, texts=reader.text_orders)
        orders.append(known[name])
    reader.forms(path.form(ORDER), rows, orders)


def _read_columns(
    reader: Reader, path: PlacePath, rows: Rows, values: Values, keys: Sequence[str]
) -> None:
    of_value: Iterable[Any] = map(itemgetter(*keys), values)
    columns = [list(of_value)] if len(keys) == 1 else zip(*of_value, strict=True)
    for key, column in zip(keys, columns, strict=True):
        reader.read(path.key(key), rows, column)


def _read_keys(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Add the number of keys of each dict, and read the value at each key."""
    reader.lengths(path, rows, values)
    keys = list(values[0])
    expected = dict.fromkeys(keys).keys()
    are_texts = set(map(type, keys)) == {str}
    if are_texts and all(value.keys() == expected for value in values):
        _read_columns(reader, path, rows, values, keys)
        return
    for word, alike in _by_word(path, values).items():
        parts = [values[i][key] for key, indices in alike for i in indices.tolist()]
        reader.read(path.then("key", word), at(rows, _all_places(alike)), parts)


def _by_word(path: PlacePath, values: Values) -> dict[str, list[tuple[Any, Places]]]:
    """Return {text of a key: [(key, indices of the values that have this key)]}."""
    by_word: dict[str, list[tuple[Any, Places]]] = {}
    for key, indices in _indices_of_keys(values):
        word = _key_word_at(key, path)
        alike = by_word.setdefault(word, [])
        if alike:
            _check_apart(_all_places(alike), indices, word, path)
        alike.append((key, indices))
    return by_word


def _all_places(alike: list[tuple[Any, Places]]) -> Places:
    return np.concatenate([indices for _, indices in alike])


def _read_sets(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Add a column for each element of the sets, with `present` where a set contains it."""
    reader.constant(path, rows, SET)
    reader.lengths(path, rows, values)
    # Elements are sorted, so that columns have the same order in every process: the order of a set
    # of strings differs from process to process.
    for word, alike in sorted(_by_word(path, values).items()):
        reader.constant(path.then("element", word), at(rows, _all_places(alike)), PRESENT)


def _indices_of_keys(values: Values) -> list[tuple[Any, Places]]:
    """Return (key, indices of the dicts or sets that have it) for each key; 1 is not True."""
    index: dict[tuple[Any, ...], int] = {}
    which = [index.setdefault(keys, len(index)) for keys in map(tuple, values)]
    every = dict.fromkeys(key for keys in index for key in keys)
    are_few = len(index) <= _MAX_FAST_SETS and len(every) <= _MAX_FAST_KEYS
    if are_few and all(isinstance(key, str) for key in every):
        # This is the common case: all keys are strings, and the dicts have few distinct keys, in
        # few distinct combinations. NumPy masks are then faster than the loop below. `number` holds
        # the index of the combination of keys of each dict.
        number = np.array(which)
        sets = {key: np.array([key in keys for keys in index]) for key in every}
        return [(key, np.flatnonzero(having[number])) for key, having in sets.items()]
    indices: defaultdict[tuple[type, Any], list[int]] = defaultdict(list)
    for position, value in enumerate(values):
        for key in value:
            indices[type(key), key].append(position)
    return [(key, np.array(positions)) for (_, key), positions in indices.items()]


def _read_records(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Add the column entries for dataclasses and named tuples at one place in the outcomes."""
    _check_depth(path, values)
    for kind in dict.fromkeys(map(type, values)):
        indices = [i for i, value in enumerate(values) if type(value) is kind]
        inside = rows if len(indices) == len(values) else at(rows, indices)
        reader.constant(path, inside, f"a {kind.__qualname__}")
        for name in _attributes(kind):
            parts = [getattr(values[i], name) for i in indices]
            reader.read(path.then("attribute", name), inside, parts)


def _attributes(kind: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind._fields)


def _array(value: Any) -> np.ndarray[Any, Any]:
    # `asarray` would replace a masked entry of a masked array by the hidden number; here it becomes
    # None.
    filled = hasattr(value, "filled")
    return np.array(value.tolist(), dtype=object) if filled else widened(np.asarray(value))


def _key_word_at(key: Any, path: PlacePath) -> str:
    """Return the text of a key or an element. Raises MechanismError for other types."""
    word = key_word(key)
    if word is None:
        raise MechanismError(
            f"the mechanism returns keys or elements of type {type(key).__qualname__} in "
            f"{path.name}; supported are strings, numbers, and tuples of these: give ",
            *(Name("post_process"), " a function that turns an output into one with such keys"),
            code="output-unsupported",
        )
    return word


def _check_apart(first: Places, second: Places, word: str, path: PlacePath) -> None:
    if not set(first.tolist()).isdisjoint(second.tolist()):
        raise MechanismError(
            f"the mechanism returns two keys or elements of {path.name} that are both written "
            f"{word}; give ",
            *(Name("post_process"), " a function that turns an output into one where keys differ"),
            code="output-unsupported",
        )


def _check_depth(path: PlacePath, values: Values) -> None:
    looked_at: Values = ()
    if 0 < path.depth <= _LOOKS_FOR_CYCLES_AT:
        looked_at = values if path.depth == _LOOKS_FOR_CYCLES_AT else values[:1]
    if path.depth > _MAX_DEPTH or any(map(_contains_itself, looked_at)):
        raise MechanismError(
            "the mechanism returns outputs that contain themselves, or have more than "
            f"{_MAX_DEPTH} levels; give ",
            *(Name("post_process"), " a function that turns an output into a flat one"),
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
    is_cyclic = any(_is_cyclic(part, above, done) for part in _parts_of(value))
    above.remove(id(value))
    done.add(id(value))
    return is_cyclic


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    if dataclasses.is_dataclass(value):
        return [getattr(value, name) for name in _attributes(type(value))]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else ()
    return value if isinstance(value, list | tuple) else ()


def _read_frames(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Read data frames as dicts of their columns, and add the order of the columns."""
    frames = [as_frame(value) for value in values]
    words = [frame.word for frame in frames]
    if len(set(words)) == 1:
        reader.constant(path, rows, words[0])
    else:
        reader.add(path, rows, of_mixed(words))
    tables = [frame.columns for frame in frames]
    orders = [f"({', '.join(_key_word_at(key, path) for key in table)})" for table in tables]
    about = path.about("order of columns")
    if len(set(orders)) == 1:
        reader.constant(about, rows, orders[0])
    else:
        reader.add(about, rows, of_mixed(orders))
    _read_keys(reader, path, rows, tables)


def _read_series(reader: Reader, path: PlacePath, rows: Rows, values: Values) -> None:
    """Read series as lists, or as dicts if the index is not 0, 1, 2, ..."""
    series = [as_series(entry) for entry in values]
    if reader.types:  # otherwise the dtype depends on the other outcomes of the batch
        reader.forms(path.form(TYPE), rows, [entry.word for entry in series])
    reader.read(path, rows, [entry.entries for entry in series])


_EXACTLY: dict[type, Read] = {
    float: _read_floats,
    int: _read_integers,
    str: _read_texts,
    bool: _read_booleans,
    dict: _read_dicts,
    list: _read_lists,
    tuple: _read_lists,
    set: _read_sets,
    frozenset: _read_sets,
    np.ndarray: _read_arrays,
    np.float64: _read_floats,
    Raised: _read_raised,
    type(None): _read_nothing,
}
_Bases = tuple[type | tuple[type, ...], Read]
_BY_BASE: tuple[_Bases, ...] = (
    (np.timedelta64, partial(_read_special, describe_numpy_time)),  # before its base, np.integer
    ((float, np.float16, np.float32), _read_floats),
    ((int, np.integer), _read_integers),
    (str, _read_texts),
    (np.bool_, _read_booleans),
    ((bytes, bytearray, memoryview), _read_bytes),
    ((np.ndarray, np.void), _read_arrays),
)
_BY_PROTOCOL: tuple[_Bases, ...] = (
    (abc.Mapping, _read_dicts),
    (abc.Set, _read_sets),
    (tuple, _read_lists),
    (abc.Sequence, _read_lists),
)
