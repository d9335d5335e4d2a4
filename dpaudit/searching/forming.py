"""A dataset of the search as the mechanism takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.errors import DatasetError
from dpaudit.inputs.frames import ARRAYS, frame
from dpaudit.searching.neighbours import item_of
from dpaudit.searching.space import Space
from dpaudit.searching.spaces.records import Records
from dpaudit.wording import shown


def formed(
    dataset: Any, form: str | None, space: Space | None = None, *, elsewhere: bool = False
) -> Any:
    """Return a dataset in a form, such as that of option `as`; a copy, which mechanisms may change.

    form: None (plain Python), `array` or `numpy`, `pandas`, `polars`.  space: where it is from; it
    names the columns of a table without rows, and their order in an array.  elsewhere: leave it to
    the process that the mechanism is in to make a data frame.
    Raises DatasetError where it cannot take the form: such a dataset is not proposed.
    """
    if form is None:
        return _copied(dataset)
    item = None if space is None else item_of(space)
    columns = list(item.columns) if isinstance(item, Records) else []
    if form in ARRAYS:
        return _array(dataset, columns)
    if columns and isinstance(dataset, list):
        dataset = {name: [row[name] for row in dataset] for name in columns}
    return frame(_copied(dataset), form, shown(dataset), elsewhere=elsewhere)


def _copied(dataset: Any) -> Any:
    if isinstance(dataset, list):
        return [_copied(one) for one in dataset]
    if isinstance(dataset, dict):
        return {key: _copied(one) for key, one in dataset.items()}
    return dataset


def _array(dataset: Any, columns: list[str]) -> Any:
    rows = dataset
    if isinstance(dataset, list) and dataset and isinstance(dataset[0], dict):
        rows = [[row[name] for name in columns or row] for row in dataset]
    try:
        array = np.asarray(rows)
    except (ValueError, OverflowError) as error:
        raise DatasetError(
            f"dataset {shown(dataset)} cannot become an array: {error}", code="form-impossible"
        ) from None
    if array.dtype == object:
        raise DatasetError(
            f"dataset {shown(dataset)} cannot become an array of numbers (as: array)",
            code="form-impossible",
        )
    return array.reshape(0, len(columns)) if columns and not array.size else array
