"""Files of users: open them, read CSV and .npy, and explain why a file is missing or cannot be
read. Endless files, such as /dev/zero, are refused before they are read."""

from __future__ import annotations

import csv
import io
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError, DpauditError
from dpaudit.import_path import describe_mode, describe_non_file
from dpaudit.wording import counted, did_you_mean, did_you_mean_file

Reader = Callable[[Path], Any]
CsvRows = list[list[str]]
# Largest number of bytes that are read from a pipe, since a pipe may never end.
MAX_PIPED_BYTES = 1 << 28
# Texts by which other programs mark missing values in CSV files.
_MISSING = frozenset({"None", "NA", "N/A", "n/a", "<NA>", "null", "NULL", "NaT"})
_TRUTH: Mapping[str, bool] = {"true": True, "false": False}
# This line is appended to a CSV file while the file is read. If it becomes part of a cell, a
# quotation mark in the file was never closed.
_END = "\ufdd0"


def malformed(why: str) -> DatasetError:
    return DatasetError(why, code="file-malformed")


def reader_for(name: str, readers: Mapping[str, Reader], file: str) -> Reader:
    """Return the function of `readers`, a mapping from suffix to function, for the suffix of
    `name`, such as `.csv`. Raises DatasetError, with the description `file`, if there is none."""
    suffix = Path(name).suffix
    if suffix.lower() in readers:
        return readers[suffix.lower()]
    near = did_you_mean(suffix, readers) if suffix else near_file(Path(name))
    raise DatasetError(
        f"{file}: files of type {suffix or 'unknown'!r} are not read; known: "
        f"{', '.join(readers)}.{near}",
        code="file-type-unknown",
    )


def opened(file: Path) -> BinaryIO:
    """Return a binary stream of a file. A pipe, such as `<(...)` in a shell, is first read to its
    end. Raises DatasetError for another kind of file, for an empty pipe, and for a pipe with more
    than 2²⁸ bytes. Raises OSError if the file cannot be opened."""
    mode = file.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise DatasetError(
            f"it is {describe_mode(mode)}, not a file; name a file", code="file-unreadable"
        )
    # Without O_NONBLOCK, opening a pipe to which no program writes would wait forever.
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(number, True)
    stream = os.fdopen(number, "rb")
    if stat.S_ISREG(mode):
        return stream
    with stream:
        return io.BytesIO(piped(stream))


def piped(stream: BinaryIO) -> bytes:
    """Return all bytes of a pipe. Raises DatasetError if it is empty or has more than 2²⁸ bytes."""
    content = stream.read(MAX_PIPED_BYTES + 1)
    if not content:
        raise DatasetError("this pipe is empty; name a file", code="file-empty")
    if len(content) > MAX_PIPED_BYTES:
        raise DatasetError(
            f"this pipe holds more than {MAX_PIPED_BYTES:,} bytes; write them to a file, and name "
            "the file",
            code="file-unreadable",
        )
    return content


def read_text(file: Path) -> str:
    """Return the text of a file. Raises the exceptions of `opened`, and UnicodeDecodeError."""
    with opened(file) as stream, io.TextIOWrapper(stream, "utf-8-sig") as text:
        return text.read()


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return the reason why a file cannot be read, without the name of the file."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8; save it as UTF-8"
    return error.strerror or str(error)


def near_file(missing: Path) -> str:
    """Return ` Did you mean 'x'?` for the file with the most similar name in the folder of a
    missing file. Return "" if no name is similar. If `missing` is a folder or another object that
    is not a file, return a text that says so."""
    kind = describe_non_file(missing)
    if kind:
        return f" That is {kind}; name a file."
    names: list[str] = []
    with suppress(OSError):  # a folder that is missing, or may not be listed
        names = sorted(path.name for path in missing.parent.iterdir() if path.is_file())
    return did_you_mean_file(missing.name, names)


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Inside the context, replace each exception of reading a file by a DatasetError. The message
    names the file and, if it is missing, a file with a similar name."""
    try:
        yield
    except FileNotFoundError:
        raise DatasetError(
            f"there is no file {str(file)!r}.{near_file(file)}", code="file-not-found"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{file} cannot be read: {why_unreadable(error)}", code="file-unreadable"
        ) from error
    except DpauditError as error:
        raise type(error)(f"{file}: {error}", code=error.code) from error


def read_npy(file: Path) -> NDArray[Any]:
    """Return the array of a `.npy` file. Pickled objects are refused, since loading them could run
    code. Raises DatasetError and FileNotFoundError."""
    try:
        with opened(file) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError):
        raise malformed(
            "not a complete array of numbers or text as numpy.save writes it (pickled objects are "
            "refused); save it again with numpy.save, as plain numbers"
        ) from None


def read_rows(file: Path) -> list[Any]:
    """Return the rows of a CSV file as mappings from column name to value, or as lists if the first
    row consists of numbers.

    Each cell is read by itself: it becomes a number, None (if it is empty) or text. Raises
    DatasetError if the file is empty or not valid CSV, if its rows differ in length, or if a column
    of numbers contains a word such as NA.
    """
    rows = _rows(file)
    cells = [[_cell(text) for text in row] for row in rows]
    _check_missing(rows)
    if not _has_header(rows):
        return cells
    return [dict(zip(header(rows[0]), row, strict=True)) for row in cells[1:]]


def read_columns(file: Path) -> dict[str, list[Any]] | list[list[Any]]:
    """Return the columns of a CSV file as a mapping from name to list. If the first row consists of
    numbers, the columns have no names, and the list of rows is returned. All cells of a column get
    the same type: integer, float, Boolean or text. Empty cells become None. Raises DatasetError."""
    rows = _rows(file)
    names = header(rows[0]) if _has_header(rows) else None
    cells = rows if names is None else rows[1:]
    _check_missing(rows)
    columns = [_typed(list(column)) for column in zip(*cells, strict=True)]
    if names is None:
        return [list(row) for row in zip(*columns, strict=True)]
    return dict(zip(names, columns or [[] for _ in names], strict=True))


def lines(file: Path, delimiter: str = ",") -> Iterator[list[str]]:
    """Yield each row of a CSV file as a list of texts. Raises DatasetError for invalid CSV, and for
    a quotation mark that is never closed, which would turn the rest of the file into one cell."""
    with opened(file) as data, io.TextIOWrapper(data, "utf-8-sig", newline="") as stream:
        reader = csv.reader(chain(stream, [_END]), delimiter=delimiter)
        line = 1
        try:
            for row in reader:
                if row == [_END]:
                    return
                if row and row[-1].endswith(_END):
                    raise malformed(
                        f"the quotation mark in line {line} is never closed; close it, or take it "
                        "out"
                    )
                yield row
                line = reader.line_num + 1
        except csv.Error as error:
            raise malformed(f"line {line} is not CSV: {error}") from None


def _rows(file: Path) -> CsvRows:
    rows = [row for row in lines(file) if row]
    if not rows:
        raise DatasetError("the file has no rows", code="file-empty")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise malformed(
                f"row {number} has {counted(len(row), 'cell')}, the first one has {len(rows[0]):,}"
            )
    return rows


def _check_missing(rows: CsvRows) -> None:
    """Raise DatasetError if a column of numbers contains a word such as NA."""
    # The word would turn the whole column into text.
    first = 1 if _has_header(rows) else 0
    for index, column in enumerate(zip(*rows[first:], strict=True)):
        words = {text.strip() for text in column} - {""}
        missing = sorted(words & _MISSING)
        if missing and words - _MISSING and all(map(_is_number, words - _MISSING)):
            name = repr(rows[0][index].strip()) if first else str(index + 1)
            raise malformed(
                f"the column {name} holds {missing[0]} among numbers; leave the cell of a missing "
                "value empty"
            )


def _is_number(text: str) -> bool:
    return isinstance(_cell(text), int | float)


def _has_header(rows: CsvRows) -> bool:
    return not all(isinstance(_cell(text), int | float) for text in rows[0])


def header(cells: list[str]) -> list[str]:
    """Return the column names in the first row of a CSV file. Raises DatasetError if two are
    equal."""
    names = [cell.strip() for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise malformed(f"two columns have the name {name!r}; give each its own name")
    return names


def number(text: str, kind: Callable[[str], float] = float) -> float:
    """Return the number in a cell, as an int or a float. Raises ValueError if the cell contains no
    number, and DatasetError if the number is larger than any float."""
    if "_" in text:  # 1_000 may be an identifier; Python reads a number
        raise ValueError(text)
    value = kind(text)
    if isinstance(value, float) and math.isinf(value) and "inf" not in text.lower():
        raise DatasetError(
            f"{text.strip()} is larger than any float, 1.8e308; write inf",
            code="number-too-large",
        )
    return value


_NUMBERS: tuple[Callable[[str], Any], ...] = (partial(number, kind=int), number)


def _typed(texts: Sequence[str]) -> list[Any]:
    """Convert all cells to the first of integer, float, Boolean and text that fits all."""
    return _read(texts, (*_NUMBERS, lambda text: _TRUTH[text.lower()]))


def _cell(text: str) -> Any:
    """Return the value of a cell: a number if it is one, None if it is empty, else text."""
    return _read([text], _NUMBERS)[0]


def _read(texts: Sequence[str], kinds: Iterable[Callable[[str], Any]]) -> list[Any]:
    cells = [text.strip() or None for text in texts]
    for kind in kinds:
        with suppress(ValueError, KeyError):
            return [None if text is None else kind(text) for text in cells]
    return cells
