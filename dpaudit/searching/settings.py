"""The settings of a search, and the forms in which a mechanism takes datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.errors import DatasetError, Name, UsageError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.inputs.values import ARRAYS, frame
from dpaudit.searching.relations import Relation, relation_on
from dpaudit.searching.space import Space
from dpaudit.wording import shortened, shown

# Characters of an input in the label of a pair.
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What to search, and how.

    space: the values of one input.  adjacency: the relation between two inputs.  form: data type of
    the datasets that the mechanism takes; None: plain Python.  inside: try no inputs outside the
    space.  outside: inputs outside it count; with neither, a few are tried, and a leak is noted.
    keep: number of pairs to certify, which share the error probability.  elsewhere: whether the
    process of the mechanism makes data frames.
    """

    space: Space
    adjacency: Adjacency
    form: str | None = None
    inside: bool = False
    outside: bool = False
    keep: int = 1
    elsewhere: bool = False

    @property
    def relation(self) -> Relation:
        """The relation on the space."""
        return relation_on(self.space, self.adjacency)

    def describe(self) -> str:
        """Return the settings in words."""
        form = f" as {self.form}" if self.form else ""
        where = ", inside it alone" if self.inside else ", and outside it" if self.outside else ""
        kept = f", {self.keep} pairs kept" if self.keep > 1 else ""
        return f"{self.space.words()}{form} ({self.adjacency.describe()}{where}{kept})"

    def pair(self, d1: Any, d2: Any) -> NeighbouringPair:
        """Return two inputs in plain Python as a pair to audit."""
        label = f"d1 = {shortened(repr(d1), _LONGEST)}, d2 = {shortened(repr(d2), _LONGEST)}"
        return NeighbouringPair(self.formed(d1), self.formed(d2), self.adjacency, label)

    def formed(self, dataset: Any) -> Any:
        """Return a dataset in the form that the mechanism takes. Raises DatasetError."""
        return formed(dataset, self.form, self.space, elsewhere=self.elsewhere)


def invalid(name: str, value: Any, expected: str) -> UsageError:
    """Return the error for the value of an option. expected: what it must be, in the message."""
    return UsageError(Name(name), f"={shown(value)} must be {expected}", code="option-invalid")


def check_where(inside: Any, outside: Any) -> None:
    """Raise UsageError unless both are booleans, and not both true."""
    for name, value in (("inside", inside), ("outside", outside)):
        if not isinstance(value, bool):
            raise invalid(name, value, "true or false")
    if inside and outside:
        raise UsageError(
            "give either ",
            Name("inside"),
            ", which leaves out inputs outside the space, or ",
            Name("outside"),
            ", which lets them count",
            code="options-conflict",
        )


def formed(
    dataset: Any, form: str | None, space: Space | None = None, *, elsewhere: bool = False
) -> Any:
    """Return a copy of a dataset in a form, which the mechanism may change.

    form: None (plain Python), `array` or `numpy`, `pandas`, `polars`.  space: its space, which has
    the columns of a table without rows, and their order in an array.  elsewhere: leave it to the
    process of the mechanism to make a data frame.
    Raises DatasetError where a dataset cannot take the form; such a dataset is not proposed.
    """
    if form is None:
        return _copied(dataset)
    columns = [] if space is None else list(space.of_record().by_column())
    if form in ARRAYS:
        return _array(dataset, columns)
    if columns and isinstance(dataset, list):
        dataset = {name: [row[name] for row in dataset] for name in columns}
    return frame(_copied(dataset), form, shown(dataset), elsewhere=elsewhere)


def _copied(dataset: Any) -> Any:
    if isinstance(dataset, list):
        return [_copied(part) for part in dataset]
    if isinstance(dataset, dict):
        return {key: _copied(part) for key, part in dataset.items()}
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
