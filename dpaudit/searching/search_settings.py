"""The settings of a search, and the forms in which a mechanism takes datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpaudit.errors import Name, UsageError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.inputs.values import ARRAYS, array, frame
from dpaudit.searching.relations import Relation, relation_on
from dpaudit.searching.snippets import as_given, columns_of
from dpaudit.searching.space import Space
from dpaudit.wording import shortened, shown

# Largest length, in characters, of the text of an input in the label of a pair of inputs, such as
# `d1 = [0], d2 = [1]`. A longer text is cut.
_MAX_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of a search.

    inside: whether to try only pairs inside the space.
    outside: whether pairs outside the space are tried, too, and may be certified. If `inside` and
        `outside` are False, a few pairs outside are tried, and the report only notes their leaks.
    keep: number of pairs to certify; they share the false-alarm probability.
    elsewhere: whether the process that runs the mechanism, not this process, makes data frames.
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
        """The neighbouring relation between inputs of the space."""
        return relation_on(self.space, self.adjacency)

    def describe(self) -> str:
        form = f" as {self.form}" if self.form else ""
        where = ", inside it alone" if self.inside else ", and outside it" if self.outside else ""
        number = f", {self.keep} pairs kept" if self.keep > 1 else ""
        return f"{self.space.words()}{form} ({self.adjacency.describe()}{where}{number})"

    def pair(self, d1: Any, d2: Any) -> NeighbouringPair:
        """Return the pair to audit, made of two inputs in plain Python."""
        first, second = (shortened(repr(dataset), _MAX_CHARACTERS) for dataset in (d1, d2))
        label = f"d1 = {first}, d2 = {second}"
        return NeighbouringPair(self.formed(d1), self.formed(d2), self.adjacency, label)

    def formed(self, dataset: Any) -> Any:
        """Return a dataset in the form of the mechanism. Raises DatasetError if impossible."""
        return formed(dataset, self.form, self.space, elsewhere=self.elsewhere)


def invalid(name: str, value: Any, expected: str) -> UsageError:
    """Return the error for an option that must be `expected`, such as "a number"."""
    return UsageError(Name(name), f"={shown(value)} must be {expected}", code="option-invalid")


def check_where(inside: Any, outside: Any) -> None:
    """Raise UsageError unless `inside` and `outside` are booleans, at most one of them true."""
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
    """Return a copy of a dataset in a form. The mechanism may change the copy.

    space: states the columns of a table without rows, and the order of the columns of an array.
        None if unknown.
    elsewhere: whether to return `Rows`, from which the process of the mechanism makes a data frame.

    Raises DatasetError if that is impossible. The search leaves out such a dataset.
    """
    if form is None:
        return _copied(dataset)
    columns = [] if space is None else list(space.of_record().by_column())
    if form in ARRAYS:
        rows = as_given(dataset, form, columns or columns_of(dataset))
        values = array(rows, shown(dataset))
        return values.reshape(0, len(columns)) if columns and not values.size else values
    argument = _copied(as_given(dataset, form, columns))
    return frame(argument, form, shown(dataset), elsewhere=elsewhere)


def _copied(dataset: Any) -> Any:
    if isinstance(dataset, list):
        return [_copied(part) for part in dataset]
    if isinstance(dataset, dict):
        return {key: _copied(part) for key, part in dataset.items()}
    return dataset
