"""Datasets that users state as values, files (`@rows.csv`) or objects (`import:my.data:frame`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError, DpauditError
from dpaudit.inputs.decoding import check_read, decoded
from dpaudit.inputs.files import (
    Reader,
    near_file,
    read_columns,
    read_npy,
    read_rows,
    read_text,
    reader_for,
    why_unreadable,
)
from dpaudit.inputs.values import ARRAYS, IMPORT, LIBRARIES, array, frame, resolved, written
from dpaudit.wording import shortened

_log = logging.getLogger(__name__)

FILE = "@"


def parse_dataset(text: str) -> Any:
    """Return the value of a command-line argument in JSON or YAML. A text such as `@file` or
    `import:path` is returned unchanged; `load_dataset` reads it. Raises DatasetError."""
    if text.startswith((FILE, IMPORT)):
        return text
    if not text.strip():
        raise DatasetError("the value is empty; write null for None", code="value-malformed")
    return decoded(text, f"dataset {_shown(text)!r}")


def load_dataset(
    value: Any, *, form: str | None = None, base: Path | None = None, elsewhere: bool = False
) -> Any:
    """Return the dataset that a user states, in the form `form`; without a form, as it is.

    `@file` stands for the contents of a file (.json, .yaml, .csv, .npy), and `@@text` for the
    string `@text`. In any other value, `values.written` replaces the notations. Imported functions
    are called. Raises DatasetError, and TargetError for an invalid import path.
    """
    if form is not None and form in LIBRARIES:
        content = _dereferenced(value, base, {".csv": read_columns}, elsewhere=elsewhere)
        return frame(content, form, repr(_shown(value)), elsewhere=elsewhere)
    dataset = _dereferenced(value, base, {}, elsewhere=elsewhere)
    return array(dataset, repr(_shown(value))) if form in ARRAYS else dataset


def _dereferenced(
    value: Any, base: Path | None, readers: Mapping[str, Reader], *, elsewhere: bool
) -> Any:
    if isinstance(value, str) and value.startswith(FILE):
        text = value.removeprefix(FILE)
        return text if text.startswith(FILE) else _read(text, base, {**READERS, **readers})
    return resolved(written(value, base), calls=True, elsewhere=elsewhere)


def _read(name: str, base: Path | None, readers: Mapping[str, Reader]) -> Any:
    paths = [Path(name)] if base is None else [Path(name), base / name]
    if Path(name).suffix.lower() not in readers and any(path.is_dir() for path in paths):
        raise DatasetError(
            f"dataset @{name} is a folder; name a file in it", code="file-unreadable"
        )
    reader = reader_for(name, readers, f"dataset @{name}")
    # Special files, such as devices, are accepted here, since the reader refuses them with a better
    # message.
    file = next((path for path in paths if path.exists() and not path.is_dir()), None)
    if file is None:
        where = " or ".join(dict.fromkeys(str(path.parent.resolve()) for path in paths))
        near = next(filter(None, map(near_file, paths)), "")
        raise DatasetError(
            f"dataset @{name}: there is no such file in {where}.{near}", code="file-not-found"
        )
    try:
        return reader(file)
    except DpauditError as error:
        raise DatasetError(f"dataset @{name}: {error}", code=error.code) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"dataset @{name} cannot be read: {why_unreadable(error)}", code="file-unreadable"
        ) from error


def _read_json(file: Path) -> Any:
    return decoded(_text_of(file), "the file", "json")


def _read_yaml(file: Path) -> Any:
    text = _text_of(file)
    value = decoded(text, "the file", "yaml")
    for warning in check_read(text, value, in_file=True):
        _log.warning("%s: %s", file, warning)
    return value


def _text_of(file: Path) -> str:
    text = read_text(file)
    if not text.strip():
        raise DatasetError("the file is empty; write null for None", code="file-empty")
    return text


READERS: Mapping[str, Reader] = {
    ".json": _read_json,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".csv": read_rows,
    ".npy": read_npy,
}


def _shown(value: Any) -> str:
    return shortened(value if isinstance(value, str) else repr(value))
