"""Convert tables of outcomes to plain arrays for files, and back. The conversion is exact and uses
no pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import Column, Path
from dpaudit.outcomes.long_table import LongTable, Vocabulary
from dpaudit.outcomes.tables import Outcomes, Table, TimedOutcomes

Arrays = Mapping[str, NDArray[Any]]

# Type of a path (place in an outcome), written as the list of its steps. `output[2]` is [["root",
# "output"], ["item", "2"]].
_Steps = list[list[Any]]
# Names of the fields of a `LongTable` that are arrays.
_LONG = ("offsets", "rows", "numbers", "codes")


def pack(outcomes: Outcomes) -> dict[str, NDArray[Any]]:
    """Convert a table of outcomes to arrays of numbers. Return a mapping from name to array.
    `unpack` makes an equal table from it."""
    match outcomes:
        case TimedOutcomes(outcomes=inner, nanoseconds=nanoseconds):
            return {**pack(inner), "nanoseconds": nanoseconds}
        case Table():
            return _pack_table(outcomes)
        case LongTable():
            return _pack_long(outcomes)
    raise TypeError(f"{type(outcomes).__name__} is no table of outcomes")


def unpack(arrays: Arrays) -> Outcomes:
    """Return the table of outcomes from which `pack` made the given arrays."""
    if "nanoseconds" in arrays:
        inner = {name: one for name, one in arrays.items() if name != "nanoseconds"}
        return TimedOutcomes(unpack(inner), arrays["nanoseconds"])
    words = json.loads(arrays["words"].tobytes())
    return _unpack_long(words, arrays) if "offsets" in arrays else _unpack_table(words, arrays)


def _pack_table(table: Table) -> dict[str, NDArray[Any]]:
    coded = [column.codes for column in table.all_columns if column.codes is not None]
    words = {
        "size": table.size,
        "paths": list(map(_steps, table.paths)),
        "fixed": [[_steps(path), entry] for path, entry in table.fixed],
        "forms": [[_steps(path), list(column.labels)] for path, column in table.forms],
        "columns": [
            [column.name, column.codes is not None, list(column.labels)]
            for column in table.all_columns
        ],
    }
    arrays: dict[str, NDArray[Any]] = {
        "words": _encoded(words),
        "numbers": np.stack([column.numbers for column in table.all_columns]),
        "codes": np.stack(coded) if coded else np.empty((0, table.size), dtype=np.int32),
    }
    for place, (_, column) in enumerate(table.forms):
        arrays[f"form_{place}_numbers"] = column.numbers
        if column.codes is not None:
            arrays[f"form_{place}_codes"] = column.codes
    return arrays


def _unpack_table(words: Any, arrays: Arrays) -> Table:
    codes = iter(arrays["codes"])
    columns = tuple(
        Column(name, numbers, next(codes) if has_codes else None, tuple(labels))
        for (name, has_codes, labels), numbers in zip(
            words["columns"], arrays["numbers"], strict=True
        )
    )
    fixed = tuple((_path(steps), entry) for steps, entry in words["fixed"])
    forms = tuple(
        _unpack_form(place, _path(steps), tuple(labels), arrays)
        for place, (steps, labels) in enumerate(words["forms"])
    )
    return Table(columns, words["size"], tuple(map(_path, words["paths"])), fixed, forms)


def _unpack_form(
    place: int, path: Path, labels: tuple[str, ...], arrays: Arrays
) -> tuple[Path, Column]:
    numbers, codes = arrays[f"form_{place}_numbers"], arrays.get(f"form_{place}_codes")
    return path, Column(path.name, numbers, codes, labels)


def _pack_long(table: LongTable) -> dict[str, NDArray[Any]]:
    vocabulary = table.vocabulary
    words = {
        "size": table.size,
        "paths": list(map(_steps, vocabulary.paths)),
        "labels": list(vocabulary.labels),
    }
    return {"words": _encoded(words), **{name: getattr(table, name) for name in _LONG}}


def _unpack_long(words: Any, arrays: Arrays) -> LongTable:
    vocabulary = Vocabulary(tuple(map(_path, words["paths"])), tuple(words["labels"]))
    offsets, rows, numbers, codes = (arrays[name] for name in _LONG)
    return LongTable(vocabulary, offsets, rows, numbers, codes, words["size"])


def _steps(path: Path) -> _Steps:
    before = [] if path.parent is None else _steps(path.parent)
    return [*before, [path.step, path.word]]


def _path(steps: _Steps) -> Path:
    *before, (step, word) = steps
    return Path(_path(before) if before else None, step, word)


def _encoded(words: Any) -> NDArray[np.uint8]:
    # JSON in ASCII represents every float without loss, and every string, even a string with lone
    # surrogates (halves of characters), which UTF-8 cannot encode.
    return np.frombuffer(json.dumps(words).encode("ascii"), dtype=np.uint8)
