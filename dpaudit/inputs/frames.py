"""Values as NumPy arrays, and as data frames of pandas or Polars, which are imported when a frame
is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError

# What a library is called in messages, and what its frames are to be made with.
LIBRARIES: Mapping[str, str] = {"pandas": "pandas", "polars": "Polars"}
ARRAYS = ("array", "numpy")
# Forms of a value, as users write them.
FORMS = (*ARRAYS, *LIBRARIES)
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "pandas": {},
    "polars": {"orient": "row", "strict": False},  # 1 and 2.5 in one column are floats
}


class Rows(list[Any]):
    """The rows of a frame that is made in another process, by the Python that the mechanism is run
    by; this one need not have the library.

    library: its name.  data: what the frame is made from.
    """

    def __init__(self, library: str, data: Any) -> None:
        super().__init__(_rows_of(data))
        self.package, self.data = library, data

    def __reduce__(self) -> Any:
        return Rows, (self.package, self.data)

    @property
    def recipe(self) -> tuple[str, Any, dict[str, Any]]:
        """What a worker makes the frame from: the library, the data and the options."""
        return self.package, self.data, dict(_OPTIONS[self.package])


def array(value: Any, words: str) -> NDArray[Any]:
    """Return a value as an array of numbers, Booleans or texts. words: the value in messages.
    Raises DatasetError for anything else."""
    try:
        found = np.asarray(value)
    except ValueError as error:
        is_ragged = "inhomogeneous" in str(error)
        why = "it has rows of several lengths" if is_ragged else str(error)
        raise DatasetError(
            f"dataset {words} cannot become an array: {why}", code="form-impossible"
        ) from None
    if found.dtype == object:
        holds = type(found.ravel()[0]).__name__ if found.size else "nothing"
        raise DatasetError(
            f"dataset {words} cannot become an array of numbers (as: array); it holds {holds} "
            "values",
            code="form-impossible",
        )
    return found


def frame(dataset: Any, library: str, words: str, *, elsewhere: bool = False) -> Any:
    """Return a dataset as a data frame.

    dataset: rows (a list of mappings or of lists, a matrix), or columns (a mapping of lists).
    words: the dataset in messages.  elsewhere: leave it to the process that the mechanism is in.
    Raises DatasetError for anything else, and when the library is not installed.
    """
    if type(dataset).__module__.partition(".")[0] == library:
        return dataset
    data = _data(dataset, words, LIBRARIES[library])
    if elsewhere:
        return Rows(library, data)
    return _imported(library).DataFrame(data, **_OPTIONS[library])


def _imported(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise DatasetError(
            f"as: {library} needs {LIBRARIES[library]}, which cannot be imported ({error}); "
            f"pip install {library}",
            code="package-missing",
        ) from None


def _data(dataset: Any, words: str, name: str) -> Any:
    """Return what a frame is made from: lists of equal length by name, or rows of equal length."""
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
