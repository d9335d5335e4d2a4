"""Notations for values that YAML and JSON lack: tuples, arrays, data frames and imported objects.

`{tuple: [0, 1]}` stands for a tuple and `{array: [0, 1]}` for a NumPy array. `{pandas: {age:
[36]}}` and `{polars: {age: [36]}}` stand for data frames. `import:module:name` stands for the
imported object. To write the mapping `{tuple: [0, 1]}` itself, users write `{tuple: {tuple: [0,
1]}}`. For the other mappings, this is the same; `import::text` stands for the text `import:text`.
pandas and Polars are imported only when a data frame is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError, Name
from dpaudit.import_path import located, resolve, split
from dpaudit.watching import step

IMPORT = "import:"
_TUPLE = "tuple"
_CALLED = "()"
# Libraries of data frames: maps the name of the module to the name in messages.
LIBRARIES: Mapping[str, str] = {"pandas": "pandas", "polars": "Polars"}
ARRAYS = ("array", "numpy")
# Values of the option `as`, the data type of a dataset. `array` and `numpy` both mean a NumPy
# array; `pandas` and `polars` mean a data frame of this library.
FORMS = (*ARRAYS, *LIBRARIES)
# Maps the name of a library to the keyword arguments with which its `DataFrame` is created.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "pandas": {},
    "polars": {"orient": "row", "strict": False},  # strict=False reads 1 and 2.5 as floats
}


@dataclass(frozen=True, slots=True)
class Reference:
    """An import path whose object is imported only when it is needed, perhaps in another process.
    `called` says that the path ended with `()`: the value is then the result of calling the
    object."""

    path: str
    called: bool = False

    def __repr__(self) -> str:
        return f"{IMPORT}{self.path}{_CALLED if self.called else ''}"

    def value(self, *, calls: bool) -> Any:
        """Return the imported object. If the object is a function, and `calls` or `called` is true,
        return its result. Raises TargetError, and DatasetError if the call fails."""
        target = resolve(self.path)
        if not self.called and not (calls and callable(target)):
            return target
        try:
            with step(f"the call of {self!r}"):
                return target()
        except (Exception, SystemExit) as error:
            raise DatasetError(
                f"{self!r} failed: {type(error).__name__}: {error}; "
                "name an object, or a function that needs no argument",
                code="import-failed",
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Inline:
    """The content of an array or a data frame: lists, or a mapping from column name to list. The
    object itself is made only when it is needed, perhaps in another process, since only that
    process may have pandas or Polars."""

    form: str
    data: Any

    def __post_init__(self) -> None:
        """Raise DatasetError if `data` do not fit the form, or contain an import path."""
        if next(_lazy(self.data), None) is not None:
            raise DatasetError(
                f"{self!r} holds {next(_lazy(self.data))!r}; import the whole object",
                code="import-failed",
            )
        self.value(elsewhere=True)

    def __repr__(self) -> str:
        return f"{{{self.form}: {self.data!r}}}"

    def value(self, *, elsewhere: bool) -> Any:
        """Return the array or the data frame. With `elsewhere`, return the `Rows` of a data frame.
        Raises DatasetError if the data do not fit, and if the library of the data frame is
        missing."""
        if self.form in ARRAYS:
            return array(self.data, repr(self))
        return frame(self.data, self.form, repr(self), elsewhere=elsewhere)


def written(value: Any, base: Path | None = None) -> Any:
    """Return a value from YAML or JSON, with the notations in it replaced.

    `{tuple: …}` becomes a tuple; `import:module:name` a `Reference`; `{array: …}`, `{pandas: …}` or
    `{polars: …}` an `Inline`. A value without notations is returned unchanged.

    Raises DatasetError if the data of a notation do not fit, and TargetError for an invalid import
    path.
    """
    return _read(value, partial(_text, base=base)) if _has_forms(value) else value


def with_tuples(value: Any) -> Any:
    """Return a value from YAML or JSON with tuples, arrays and data frames in place of the
    notations. Texts such as `import:…` stay. Raises DatasetError if the data do not fit, as in
    `{tuple: 1}`."""
    return resolved(_read(value, str))


def _has_forms(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith(IMPORT)
    if isinstance(value, Mapping):
        return _form(value) is not None or any(map(_has_forms, value.values()))
    return isinstance(value, list) and any(map(_has_forms, value))


def _read(value: Any, text: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping) and (form := _form(value)) is not None:
        return _value_of(form, value[form], text)
    if isinstance(value, Mapping):
        return {key: _read(part, text) for key, part in value.items()}
    return [_read(part, text) for part in value] if isinstance(value, list) else value


def resolved(value: Any, *, calls: bool = False, elsewhere: bool = False) -> Any:
    """Return a copy of a value in which each `Reference` and each `Inline` is replaced by its
    value. With `calls`, imported functions are called. With `elsewhere`, a data frame is replaced
    by `Rows`. Raises the exceptions of the methods `value`."""
    if next(_lazy(value), None) is None:
        return value
    if isinstance(value, Reference):
        return value.value(calls=calls)
    if isinstance(value, Inline):
        return value.value(elsewhere=elsewhere)
    parts = value.values() if isinstance(value, Mapping) else value
    values = [resolved(part, calls=calls, elsewhere=elsewhere) for part in parts]
    return (
        dict(zip(value, values, strict=True)) if isinstance(value, Mapping) else type(value)(values)
    )


def references(value: Any) -> Iterator[Reference]:
    """Yield each `Reference` in a value."""
    yield from (part for part in _lazy(value) if isinstance(part, Reference))


def _lazy(value: Any) -> Iterator[Reference | Inline]:
    if type(value) in (Reference, Inline):
        yield value
    elif type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _lazy(part)


def _text(text: str, base: Path | None) -> Any:
    if text.startswith(IMPORT + ":"):
        return IMPORT + text.removeprefix(IMPORT + ":")
    if not text.startswith(IMPORT):
        return text
    path = located(text.removeprefix(IMPORT).removesuffix(_CALLED), base)
    split(path)
    return Reference(path, called=text.endswith(_CALLED))


def _form(value: Mapping[Any, Any]) -> str | None:
    """Return the key of a notation, such as `tuple` in `{tuple: [0, 1]}`; None if it is none."""
    key = next(iter(value)) if len(value) == 1 else None
    return key if key in (_TUPLE, *FORMS) else None


def _value_of(form: str, data: Any, text: Callable[[str], Any]) -> Any:
    """Return the value of a notation such as `{tuple: [0, 1]}`. Raises DatasetError."""
    if isinstance(data, Mapping) and set(data) == {form}:
        return {form: _read(data[form], text)}
    if form != _TUPLE:
        return Inline(form, _read(data, text))
    if isinstance(data, list):
        return tuple(_read(part, text) for part in data)
    raise DatasetError(
        f"tuple: {data!r} must be a list, as in {{tuple: [0, 1]}}; a mapping with this single "
        "key is written {tuple: {tuple: …}}",
        code="value-malformed",
    )


class Rows(list[Any]):
    """The rows (or columns) of a data frame. The process of the mechanism makes the data frame from
    them, by the library `pandas` or `polars`, so that this process does not need the library."""

    def __init__(self, library: str, data: Any) -> None:
        super().__init__(_rows_of(data))
        self.package, self.data = library, data

    def __reduce__(self) -> Any:
        return Rows, (self.package, self.data)

    @property
    def recipe(self) -> tuple[str, Any, dict[str, Any]]:
        """The library, the data and the options from which a worker process makes the data frame.
        The options are keyword arguments of the library's class `DataFrame`."""
        return self.package, self.data, dict(_OPTIONS[self.package])


def array(value: Any, words: str) -> NDArray[Any]:
    """Return a value as an array of numbers, Booleans or strings. Raises DatasetError."""
    try:
        converted = np.asarray(value)
    except (ValueError, OverflowError) as error:
        is_ragged = "inhomogeneous" in str(error)
        why = "it has rows of several lengths" if is_ragged else str(error)
        raise DatasetError(
            f"dataset {words} cannot become an array: {why}", code="form-impossible"
        ) from None
    if converted.dtype == object:
        holds = type(converted.ravel()[0]).__name__ if converted.size else "nothing"
        raise DatasetError(
            f"dataset {words} cannot become an array of numbers (",
            *(Name("as"), f"); it holds {holds} values"),
            code="form-impossible",
        )
    return converted


def frame(dataset: Any, library: str, words: str, *, elsewhere: bool = False) -> Any:
    """Return a dataset as a data frame of a library. With `elsewhere`, return its `Rows`. The
    dataset is a list of rows, a matrix, or a mapping of columns. Raises DatasetError for any other
    dataset, and if the library is not installed."""
    if type(dataset).__module__.partition(".")[0] == library:
        return dataset
    data = _data(dataset, words, LIBRARIES[library])
    if elsewhere:
        return Rows(library, data)
    try:
        module = import_module(library)
    except ImportError as error:
        raise DatasetError(
            Name("as"),
            f": {library} needs {LIBRARIES[library]}, which cannot be imported ({error}); "
            f"pip install {library}",
            code="package-missing",
        ) from None
    return module.DataFrame(data, **_OPTIONS[library])


def _data(dataset: Any, words: str, name: str) -> Any:
    """Return a dataset as columns by name or as rows, of equal length. Raises DatasetError."""
    if isinstance(dataset, np.ndarray) and dataset.ndim == 2:
        return dataset.tolist()
    if isinstance(dataset, Mapping):
        columns = {key: part for key, part in dataset.items() if isinstance(part, list)}
        if dataset and len(columns) == len(dataset) and _are_even(list(columns.values())):
            return columns
    elif isinstance(dataset, list) and dataset:
        if all(isinstance(row, Mapping) for row in dataset):
            keys = dict.fromkeys(key for row in dataset for key in row)
            return {key: [row.get(key) for row in dataset] for key in keys}
        if all(isinstance(row, list | tuple) for row in dataset) and _are_even(dataset):
            return dataset
    raise DatasetError(
        f"dataset {words} cannot become a {name} data frame: {_remedy(dataset)}, a .csv file, or "
        "columns, as in {age: [36, 41]}",
        code="form-impossible",
    )


def _remedy(dataset: Any) -> str:
    if isinstance(dataset, list) and not dataset:
        return "without rows it has no columns; give {age: []}"
    return "give rows, as in [{age: 36}, {age: 41}]"


def _are_even(parts: list[Any]) -> bool:
    return len(set(map(len, parts))) == 1


def _rows_of(data: Any) -> list[Any]:
    if not isinstance(data, Mapping):
        return list(data)
    return [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
