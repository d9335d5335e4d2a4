"""Read files of recorded outputs, one per row: NumPy arrays, CSV, JSON lines, Parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError
from dpaudit.inputs import files
from dpaudit.inputs.decoding import decoded
from dpaudit.inputs.files import malformed, opened, read_npy, reader_for, reading
from dpaudit.stats.one_run import Guesses
from dpaudit.wording import counted, did_you_mean, install_command, shortened, shown

Raw = list[Any] | NDArray[Any]
# Type of a table: maps the name of a column to its values. All columns have the same length.
Columns = dict[str, Raw]

_ARMS: Mapping[Any, bool] = {1: True, 2: False, "1": True, "2": False, "d1": True, "d2": False}
_IN, _OUT = (1, "1", "true", "yes"), (0, -1, "0", "-1", "false", "no")
_ABSTAINED = (None, "")
INCLUDED, GUESS = "included", "guess"
# Length to which a value is shortened in a message, in characters.
_SHOWN_CHARACTERS = 60


def read_pair(first: Path, second: Path) -> tuple[Raw, Raw]:
    """Return the outputs for d1 and those for d2, read from one file each. Raises DatasetError."""
    first_outputs, second_outputs = _read(first), _read(second)
    if _shape(first_outputs) != _shape(second_outputs):
        raise _invalid(
            f"{first} holds {_shape(first_outputs)} and {second} {_shape(second_outputs)}; "
            "both must hold outcomes of the same mechanism"
        )
    if isinstance(first_outputs, dict) and isinstance(second_outputs, dict):
        _check_names(first, first_outputs)
        second_outputs = {name: second_outputs[name] for name in first_outputs}
    return _rows(first_outputs), _rows(second_outputs)


def read_arms(file: Path, column: str) -> tuple[Raw, NDArray[np.bool_]]:
    """Return the outputs in a file, and a Boolean array of shape (outputs,) that is True for
    outputs for d1. In `column`, 1 marks outputs for d1, and 2 outputs for d2. Raises
    DatasetError."""
    table = read_columns(file)
    arms = column_of(file, table, column)
    outputs = {name: values for name, values in table.items() if name != column}
    if not outputs:
        raise _invalid(f"{file} has the column {column!r} only; add one with the outcomes")
    _check_names(file, outputs)
    is_d1 = [_arm(file, column, value) for value in plain_values(arms)]
    return _rows(outputs), np.array(is_d1, dtype=bool)


def read_guesses(file: Path, names: Mapping[str, str] | None = None) -> Guesses:
    """Return the numbers of canaries, of guesses and of right guesses from a file with one canary
    per row. The column `included` contains 1 or 0. The column `guess` contains 1, 0, or nothing if
    there is no guess about the canary. `names` gives the columns that have other names. Raises
    DatasetError."""
    table, names = read_columns(file), names or {}
    coin, guess = names.get(INCLUDED, INCLUDED), names.get(GUESS, GUESS)
    included = [in_or_out(file, coin, cell) for cell in plain_values(column_of(file, table, coin))]
    guesses = [
        None if cell in _ABSTAINED or cell != cell else in_or_out(file, guess, cell)
        for cell in plain_values(column_of(file, table, guess))
    ]
    pairs = [pair for pair in zip(included, guesses, strict=True) if pair[1] is not None]
    return Guesses(len(included), len(pairs), sum(is_in is said_in for is_in, said_in in pairs))


def read_columns(file: Path) -> Columns:
    """Return the columns of a file by name. Raises DatasetError for a file without column names."""
    return _named(file, _read(file))


def _invalid(why: str) -> DatasetError:
    return DatasetError(why, code="recording-invalid")


def _read(file: Path) -> Raw | Columns:
    if file.is_dir():
        raise DatasetError(f"{file} is a folder; name a file in it", code="file-unreadable")
    reader = reader_for(str(file), _READERS, str(file))
    with reading(file):
        outputs: Raw | Columns = reader(file)
    if len(next(iter(outputs.values()), []) if isinstance(outputs, dict) else outputs) == 0:
        raise DatasetError(f"{file} is empty; it must hold one output per row", code="file-empty")
    return outputs


def _read_npy(file: Path) -> Raw | Columns:
    array = read_npy(file)
    if array.ndim == 0:
        raise DatasetError("the array has no rows; give one output per row", code="file-empty")
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    return array


def _read_csv(file: Path) -> Columns:
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    rows = files.lines(file, delimiter)
    header = _header(next(rows, []))
    body = list(_checked(rows, header))
    columns = zip(*body, strict=True) if body else ([] for _ in header)
    return {name: _values(column) for name, column in zip(header, columns, strict=True)}


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and (mark := re.search(r"[;\t]", names[0])):
        raise malformed(
            f"the first line has no comma, but {mark[0]!r}; separate columns by commas, and write "
            "numbers with a decimal point"
        )
    if names and all(isinstance(_cell(name), float) for name in names):
        listed = shortened(",".join(names), _SHOWN_CHARACTERS)
        raise malformed(
            f"the first line holds numbers ({listed}), not the names of the columns; add a first "
            "line with names"
        )
    return files.header(names)


def _checked(rows: Iterator[list[str]], header: list[str]) -> Iterator[list[str]]:
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise malformed(
                f"line {number} has {counted(len(row), 'cell')}, the header has {len(header):,}; "
                "every row must have a cell for each column"
            )
        yield row


def _values(column: Sequence[str]) -> Raw:
    """Return the cells of a column: an array of numbers, else a list with None if empty."""
    with suppress(ValueError):
        if not any("_" in cell for cell in column):  # Python would read 1_000 as a number
            return np.array(column, dtype=np.float64)
    return [_cell(cell.strip()) for cell in column]


def _cell(text: str) -> Any:
    with suppress(ValueError):
        return files.number(text)
    return text or None


def _read_jsonl(file: Path) -> list[Any]:
    with opened(file) as data, io.TextIOWrapper(data, "utf-8-sig") as stream:
        return [
            decoded(line, f"line {number}", "json")
            for number, line in enumerate(stream, start=1)
            if line.strip()
        ]


def _read_parquet(file: Path) -> Columns:
    file.stat()  # a missing file is reported before a missing package
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DatasetError(
            f"Parquet needs pyarrow: {install_command('parquet')}",
            code="package-missing",
        ) from None
    try:
        with opened(file) as stream:
            table = parquet.read_table(stream)
    except pyarrow.ArrowException as error:
        raise malformed(f"not a Parquet file: {error}") from error
    return {name: _arrow(table.column(name)) for name in table.column_names}


def _arrow(column: Any) -> Raw:
    """Return a column of an Arrow table: an array of small numbers without gaps, else a list."""
    if column.null_count == 0 and str(column.type) in _ARROW_NUMBERS:
        return np.asarray(column.to_numpy())
    return list(column.to_pylist())


_ARROW_NUMBERS = ("bool", "float", "double", "int8", "int16", "int32", "uint8", "uint16", "uint32")
_READERS: Mapping[str, Callable[[Path], Raw | Columns]] = {
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
}


def _shape(outputs: Raw | Columns) -> str:
    """Return a description of the outputs in a file, such as `the columns a, b`."""
    if isinstance(outputs, dict):
        return f"the columns {', '.join(sorted(outputs))}"
    if isinstance(outputs, np.ndarray) and outputs.ndim > 1:
        return f"arrays of shape {outputs.shape[1:]}".replace(",)", ")")
    return "JSON values" if isinstance(outputs, list) else "single values"


def _check_names(file: Path, table: Columns) -> None:
    """Raise DatasetError if a column has no name, such as the index that pandas writes."""
    if len(table) > 1 and "" in table:
        number = list(table).index("") + 1
        raise _invalid(
            f"{file}: column {number} has no name; leave it out if it only numbers the rows "
            "(pandas: to_csv(..., index=False)), else name it in the first line"
        )


def _named(file: Path, outputs: Raw | Columns) -> Columns:
    """Return the content of a file by column name. Raises DatasetError if columns have no names."""
    if isinstance(outputs, dict):
        return outputs
    if isinstance(outputs, list) and all(isinstance(row, dict) for row in outputs):
        names = dict.fromkeys(name for row in outputs for name in row)
        return {name: [row.get(name) for row in outputs] for name in names}
    raise _invalid(
        f"{file} has no named columns; give .csv, .parquet, .jsonl with an object per line, or "
        ".npy of a structured array"
    )


def column_of(file: Path, table: Columns, name: str) -> Raw:
    """Return a column of a file. Raises DatasetError if the file does not have it."""
    if name not in table:
        raise DatasetError(
            f"{file} has no column {name!r}; it has {', '.join(table)}.{did_you_mean(name, table)}",
            code="column-unknown",
        )
    return table[name]


def _rows(outputs: Raw | Columns) -> Raw:
    """Return the outputs in a file: its only column, or a structured array of several."""
    if not isinstance(outputs, dict):
        return outputs
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    columns = {name: _array(values) for name, values in outputs.items()}
    kinds = [(name, column.dtype, column.shape[1:]) for name, column in columns.items()]
    rows = np.empty(len(next(iter(columns.values()))), dtype=kinds)
    for name, column in columns.items():
        rows[name] = column
    return rows


def _array(values: Raw) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def plain_values(values: Raw) -> list[Any]:
    """Return a column as a list. The values of a NumPy array become Python values, such as
    float."""
    return values.tolist() if isinstance(values, np.ndarray) else values


def _arm(file: Path, column: str, value: Any) -> bool:
    is_d1 = _ARMS.get(value) if isinstance(value, str | int | float) else None
    if is_d1 is None or isinstance(value, bool):
        raise _invalid(
            f"{file}: the column {column!r} holds {shown(value, _SHOWN_CHARACTERS)}; it must hold "
            "1 for outputs of d1 and 2 for outputs of d2"
        )
    return is_d1


def in_or_out(file: Path, column: str, value: Any, row: int = 0) -> bool:
    """Return whether a cell says that a canary is included. 1, true and yes mean True; 0, -1, false
    and no mean False, in any case of letters. Raises DatasetError for another cell. `row` is the
    number of the row in the message, from 1, or 0 if it is unknown."""
    coin = value.strip().casefold() if isinstance(value, str) else value
    if isinstance(coin, str | int | float) and coin in (*_IN, *_OUT):
        return coin in _IN
    empty = ", or empty where nothing was guessed" if column == GUESS else ""
    if value in (2, "2"):
        empty = "; if 1 means in, write 0 for 2; if 2 means in, write 0 for 1 and 1 for 2"
    where = f" in row {row:,}" if row else ""
    raise _invalid(
        f"{file}: the column {column!r} holds {shown(value, _SHOWN_CHARACTERS)}{where}; it must "
        f"hold 1 (in) or 0 (out){empty}"
    )
