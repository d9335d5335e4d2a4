"""CSV files as rows of cells, or as columns of one type each."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.inputs.files import opened
from dpaudit.wording import counted

Rows = list[list[str]]
# Words for a missing value that other programs write.
_MISSING = frozenset({"None", "NA", "N/A", "n/a", "<NA>", "null", "NULL", "NaT"})
_TRUTH: Mapping[str, bool] = {"true": True, "false": False}


def read_rows(file: Path) -> list[Any]:
    """Return a mapping for each row, or, where the first row holds numbers alone, a list; every
    cell by itself is a number, None or text. Raises DatasetError."""
    rows = _rows(file)
    cells = [[_cell(text) for text in row] for row in rows]
    _check_missing(rows)
    if not _has_header(rows):
        return cells
    return [dict(zip(header(rows[0]), row, strict=True)) for row in cells[1:]]


def read_columns(file: Path) -> dict[str, list[Any]] | list[list[Any]]:
    """Return the columns by name, or, where the first row holds numbers alone, the rows; the cells
    of a column are all integers, all floats, all Booleans or all text, or None where they are
    empty. Raises DatasetError."""
    rows = _rows(file)
    names = header(rows[0]) if _has_header(rows) else None
    kept = rows if names is None else rows[1:]
    _check_missing(rows)
    columns = [_typed(list(column)) for column in zip(*kept, strict=True)]
    if names is None:
        return [list(row) for row in zip(*columns, strict=True)]
    return dict(zip(names, columns or [[] for _ in names], strict=True))


def lines(file: Path, delimiter: str = ",") -> Iterator[list[str]]:
    """Yield the cells of every line. Raises DatasetError for what is not CSV."""
    with opened(file) as data, io.TextIOWrapper(data, "utf-8-sig", newline="") as stream:
        yield from _rows_of(stream, delimiter)


def _rows_of(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield rows of cells. Raises DatasetError for a quotation mark that is never closed, which
    makes one cell of all that follows, and for a cell without end."""
    of_row: list[str] = []
    reader = csv.reader(_noted(lines, of_row), delimiter=delimiter)
    line = 1
    try:
        for row in reader:
            if sum(one.count('"') for one in of_row) % 2 and not _is_closed(of_row, delimiter):
                raise DatasetError(
                    f"the quotation mark in line {line} is never closed; close it, or take it out",
                    code="file-malformed",
                )
            yield row
            of_row.clear()
            line = reader.line_num + 1
    except csv.Error as error:
        raise DatasetError(f"line {line} is not CSV: {error}", code="file-malformed") from None


def _noted(lines: Iterable[str], note: list[str]) -> Iterator[str]:
    for line in lines:
        note.append(line)
        yield line


def _is_closed(lines: Sequence[str], delimiter: str) -> bool:
    """Whether every quoted cell of a row ends; what else is wrong with it is left to others."""
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "end of data" not in str(error)
    return True


def _rows(file: Path) -> Rows:
    rows = [row for row in lines(file) if row]
    if not rows:
        raise DatasetError("the file has no rows", code="file-empty")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise DatasetError(
                f"row {number} has {counted(len(row), 'cell')}, the first one has {len(rows[0])}",
                code="file-malformed",
            )
    return rows


def _check_missing(rows: Rows) -> None:
    """Raise DatasetError for a word such as None among the numbers of a column, which would be a
    text."""
    first = 1 if _has_header(rows) else 0
    for place, column in enumerate(zip(*rows[first:], strict=True)):
        words = {text.strip() for text in column} - {""}
        missing = sorted(words & _MISSING)
        if missing and words - _MISSING and all(map(_is_number, words - _MISSING)):
            name = repr(rows[0][place].strip()) if first else str(place + 1)
            raise DatasetError(
                f"the column {name} holds {missing[0]} among numbers; leave the cell of a missing "
                "value empty",
                code="file-malformed",
            )


def _is_number(text: str) -> bool:
    return isinstance(_cell(text), int | float)


def _has_header(rows: Rows) -> bool:
    return not all(isinstance(_cell(text), int | float) for text in rows[0])


def header(cells: list[str]) -> list[str]:
    """Return the names of the columns. Raises DatasetError for two alike."""
    names = [cell.strip() for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise DatasetError(
                f"two columns have the name {name!r}; give each its own name", code="file-malformed"
            )
    return names


def number(text: str, kind: Callable[[str], float] = float) -> float:
    """Return the number that a cell holds. Raises ValueError."""
    if "_" in text:  # Python would also read the identifier 1_000 as a number
        raise ValueError(text)
    found = kind(text)
    if isinstance(found, float) and math.isinf(found) and "inf" not in text.lower():
        raise DatasetError(
            f"{text.strip()} is larger than any float, 1.8e308; write inf if meant",
            code="number-too-large",
        )
    return found


_NUMBERS: tuple[Callable[[str], Any], ...] = (partial(number, kind=int), number)


def _typed(texts: Sequence[str]) -> list[Any]:
    """Return the cells of a column as the narrowest type that all of them have."""
    return _read(texts, (*_NUMBERS, lambda text: _TRUTH[text.lower()]))


def _cell(text: str) -> Any:
    """Return a cell as an integer or a float if it is one, None if it is empty, else as text."""
    return _read([text], _NUMBERS)[0]


def _read(texts: Sequence[str], kinds: Iterable[Callable[[str], Any]]) -> list[Any]:
    cells = [text.strip() or None for text in texts]
    for kind in kinds:
        with suppress(ValueError, KeyError):
            return [None if text is None else kind(text) for text in cells]
    return cells
