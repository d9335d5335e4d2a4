"""Datasets: values, files (`@rows.csv`) and objects (`import:my.data:frame`)."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import DatasetError, DpauditError, did_you_mean
from dpaudit.targets.files import TOO_DEEP, near_file, read_npy
from dpaudit.targets.import_path import located, resolve

FILE, IMPORT = "@", "import:"


def parse_dataset(text: str) -> Any:
    """Return the value of a command-line argument: JSON, else YAML, `@file` or `import:path`.

    References stay text, for `load_dataset`. Raises DatasetError when it is neither.
    """
    if text.startswith((FILE, IMPORT)):
        return text
    if not text.strip():
        raise DatasetError("the dataset is empty; write null if None is meant, '\"\"' for no text")
    try:
        return json.loads(text)
    except ValueError:
        return _parse_yaml(text, f"dataset {_short(text)!r}")
    except RecursionError:
        raise DatasetError(f"dataset {_short(text)!r} is {TOO_DEEP}") from None


def load_dataset(value: Any, *, as_array: bool = False, base: Path | None = None) -> Any:
    """Return the dataset that a parsed value stands for.

    value: `@file` is read (.json, .yaml, .csv, .npy; relative to the working directory, then to
    `base`), `import:module:name` is imported, and called when it is a function; `@@text` is the
    string `@text`; anything else is the dataset itself.
    as_array: hand a NumPy array over.  Raises DatasetError, or TargetError for a wrong import.
    """
    dataset = _dereferenced(value, base)
    return _array(dataset, value) if as_array else dataset


def find_file(name: str, base: Path | None) -> Path | None:
    """Return the file of that name in the working directory, else in `base`; None for neither."""
    places = [Path(name)] if base is None else [Path(name), base / name]
    return next((place for place in places if place.is_file()), None)


def _dereferenced(value: Any, base: Path | None) -> Any:
    if not isinstance(value, str):
        return value
    if value.startswith(FILE + FILE):
        return value[1:]
    if value.startswith(FILE):
        return _read(value[1:], base)
    if value.startswith(IMPORT):
        return _imported(located(value.removeprefix(IMPORT), base))
    return value


def _imported(path: str) -> Any:
    found = resolve(path)
    if not callable(found):
        return found
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise DatasetError(
            f"dataset import:{path} failed: {type(error).__name__}: {error}; "
            "name an object, or a function that needs no argument"
        ) from error


def _read(name: str, base: Path | None) -> Any:
    reader = READERS.get(Path(name).suffix.lower())
    if reader is None:
        raise DatasetError(
            f"dataset @{name}: files of type {Path(name).suffix or 'unknown'!r} are not read; "
            f"known: {', '.join(READERS)}.{did_you_mean(Path(name).suffix, READERS)}"
        )
    file = find_file(name, base)
    if file is None:
        raise DatasetError(f"dataset @{name}: there is no such file{_near(name, base)}")
    try:
        return reader(file)
    except DpauditError as error:
        raise DatasetError(f"dataset @{name}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"dataset @{name} cannot be read: {error}") from error


def _near(name: str, base: Path | None) -> str:
    places = [Path(name)] if base is None else [Path(name), base / name]
    where = " or ".join(dict.fromkeys(str(place.parent.resolve()) for place in places))
    return f" in {where}.{next(filter(None, map(near_file, places)), '')}"


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8-sig"))
    except ValueError as error:
        raise DatasetError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise DatasetError(f"it is {TOO_DEEP}") from None


def _read_yaml(file: Path) -> Any:
    return _parse_yaml(file.read_text("utf-8-sig"), "the file")


def _parse_yaml(text: str, name: str) -> Any:
    # YAML takes 20 ms to import, which a plain number on the command line need not pay.
    from dpaudit.targets.yaml_values import YamlError, parse_yaml

    try:
        return parse_yaml(text)
    except YamlError as error:
        line = "" if error.line is None else f" (line {error.line})"
        raise DatasetError(f"{name} is neither JSON nor plain YAML: {error}{line}") from None


def _read_csv(file: Path) -> list[Any]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    if not rows:
        raise DatasetError("the file has no rows")
    _check_widths(rows)
    cells = [[_cell(text) for text in row] for row in rows]
    if all(isinstance(cell, int | float) for cell in cells[0]):
        return cells
    return [dict(zip(_header(rows[0]), row, strict=True)) for row in cells[1:]]


def _header(names: list[str]) -> list[str]:
    names = [name.strip() for name in names]
    for name in names:
        if names.count(name) > 1:
            raise DatasetError(f"the column {name!r} is there twice; give each its own name")
    return names


def _check_widths(rows: list[list[str]]) -> None:
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise DatasetError(
                f"row {number} has {len(row)} cells, the first one has {len(rows[0])}"
            )


def _cell(text: str) -> Any:
    """Return a cell as an integer or a float if it is one, None if it is empty, else as text."""
    text = text.strip()
    for kind in (int, float):
        with suppress(ValueError):
            # Python would also read the identifier 1_000 as a number.
            return kind(text) if "_" not in text else text
    return text or None


READERS: Mapping[str, Callable[[Path], Any]] = {
    ".json": _read_json,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".csv": _read_csv,
    ".npy": read_npy,
}


def _array(dataset: Any, value: Any) -> Any:
    try:
        array = np.asarray(dataset)
    except ValueError as error:
        raise DatasetError(f"dataset {_short(value)!r} is no array: {error}") from None
    if array.dtype == object:
        raise DatasetError(
            f"dataset {_short(value)!r} is no array of numbers (as: array); "
            f"it holds {type(array.ravel()[0]).__name__ if array.size else 'nothing'} values"
        )
    return array


def _short(value: Any, width: int = 60) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"
