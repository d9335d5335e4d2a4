"""Spaces of records with columns, of lists of records, and of values that may be missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice, zip_longest
from typing import Any, Self

from dpaudit.errors import DatasetError
from dpaudit.searching.space import (
    DescriptionReader,
    NotUnderstood,
    Space,
    distinct,
    identity,
    quoted,
    strategies,
)
from dpaudit.searching.spaces.number_spaces import Numbers

# Largest number of records in a list, if its description, such as `list of number`, states no
# number.
DEFAULT_MAX_RECORDS = 30
# Largest number of records that a user may allow: datasets that leak most are small, and each
# proposed dataset is kept in memory.
MAX_RECORDS = 1000
# If all lists of a space are longer than this, Hypothesis draws this number of records, and the
# list repeats them. Hypothesis gives up on inputs that take too many random choices.
_MAX_DRAWN_RECORDS = 50
# Number of records of a usual dataset, if the space allows this number.
USUAL_RECORDS = 3
# For at most this number of edges, a list is tried in which every record is this edge, such as
# `[nan, nan]`.
_EDGES_OF_ITEMS = 12
# Values that users may add to a space, as in `number or missing`. Maps the word to the value.
ALSO: Mapping[str, float | None] = {"missing": None, "nan": math.nan}


@dataclass(frozen=True, slots=True)
class OrMissing(Space):
    """The values of `space` and one missing value: None (written `missing`) or NaN (`nan`)."""

    space: Space
    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not isinstance(self.present(), Numbers):
            raise NotUnderstood("only numbers can be NaN; write number in [0, 1] or NaN")

    @property
    def _name(self) -> str:
        return "missing" if self.value is None else "NaN"

    def _is_value(self, value: Any) -> bool:
        return identity(value) == identity(self.value)

    def words(self) -> str:
        inner = self.space.words()
        ends_open = inner.startswith(("list ", "vector "))
        return f"({inner}) or {self._name}" if ends_open else f"{inner} or {self._name}"

    def contains(self, value: Any) -> bool:
        return self._is_value(value) or self.space.contains(value)

    @property
    def simplest(self) -> Any:
        return self.space.simplest

    def usual(self) -> Any:
        return self.space.usual()

    def spread(self, number: int) -> list[Any]:
        return self.space.spread(number)

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield self.value, self._name
        yield from ((edge.value, edge.words) for edge in self.space.edges())

    def simpler(self, value: Any) -> Iterator[Any]:
        return iter([self.space.simplest]) if self._is_value(value) else self.space.simpler(value)

    def strategy(self) -> Any:
        return strategies().just(self.value) | self.space.strategy()

    def present(self) -> Space:
        return self.space.present()

    def extremes(self) -> tuple[Any, Any]:
        return self.space.extremes()

    def all_values(self) -> list[Any] | None:
        return self.space.all_values()

    def is_label(self) -> bool:
        return self.space.is_label()

    def is_numeric(self) -> bool:
        return self.space.is_numeric()

    def least_step(self) -> float:
        return self.space.least_step()

    def clamped(self, value: Any) -> Any:
        return self.space.clamped(value)

    def of_record(self) -> Space:
        return self.space.of_record()

    def by_column(self) -> Mapping[str, Space]:
        return self.space.by_column()


@dataclass(frozen=True, slots=True)
class Records(Space):
    """The set of records with given columns. A record is a mapping from column to value."""

    columns: Mapping[str, Space]

    def __post_init__(self) -> None:
        if not self.columns:
            raise DatasetError(
                "a table has no columns; write table {age: integer in [0, 120]}",
                code="space-invalid",
            )

    @classmethod
    def read(cls, line: DescriptionReader) -> Self:
        columns: dict[str, Space] = {}
        for _ in line.items("{", "}", "columns, as in {age: integer in [0, 120]}"):
            name = line.token("a column's name, or '}'", "text", "word").unquoted()
            if name in columns:
                raise NotUnderstood(f"the column {name!r} is there twice; name each once")
            line.take(":", f"':' and what is in the column {name!r}")
            columns[name] = line.space()
        return cls(columns)

    def words(self) -> str:
        return f"record {self.columns_in_words()}"

    def columns_in_words(self) -> str:
        parts = (f"{quoted(name)}: {space.words()}" for name, space in self.columns.items())
        return f"{{{', '.join(parts)}}}"

    def contains(self, value: Any) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() == self.columns.keys()
            and all(space.contains(value[name]) for name, space in self.columns.items())
        )

    @property
    def simplest(self) -> dict[str, Any]:
        return {name: space.simplest for name, space in self.columns.items()}

    def usual(self) -> dict[str, Any]:
        return {name: space.usual() for name, space in self.columns.items()}

    def spread(self, number: int) -> list[dict[str, Any]]:
        columns = {name: space.spread(number) for name, space in self.columns.items()}
        return [{name: column[i] for name, column in columns.items()} for i in range(number)]

    def extremes(self) -> tuple[Any, Any]:
        pairs = {name: space.extremes() for name, space in self.columns.items()}
        low, high = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
        return low, high

    def by_column(self) -> Mapping[str, Space]:
        return self.columns

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        usual = self.usual()
        columns = [[(name, edge) for edge in space.edges()] for name, space in self.columns.items()]
        for turn in zip_longest(*columns):
            for name, edge in filter(None, turn):
                yield {**usual, name: edge.value}, f"{name} is {edge.words}"

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, dict) or value.keys() != self.columns.keys():
            yield self.simplest
            return
        for name, space in self.columns.items():
            for replacement in space.simpler(value[name]):
                yield {**value, name: replacement}

    def strategy(self) -> Any:
        columns = {name: space.strategy() for name, space in self.columns.items()}
        # Hypothesis draws the columns in another order, so the order of `columns` is restored.
        in_order = dict.fromkeys(columns)
        return strategies().fixed_dictionaries(columns).map(lambda row: in_order | row)


@dataclass(frozen=True, slots=True)
class Lists(Space):
    """The lists of `min_size` to `max_size` records. If both sizes are equal, the lists are
    vectors."""

    item: Space
    min_size: int = 0
    max_size: int = DEFAULT_MAX_RECORDS

    def __post_init__(self) -> None:
        longest = max(self.min_size, self.max_size)
        if longest > MAX_RECORDS:
            raise DatasetError(
                f"lists of {longest:,} records are too long to search; write at most {MAX_RECORDS}",
                code="space-invalid",
            )
        if self.min_size > self.max_size:
            raise DatasetError(
                f"no list has {self.min_size} to {self.max_size} records; "
                f"write list of {self.max_size} to {self.min_size}",
                code="space-invalid",
            )

    @classmethod
    def read(cls, line: DescriptionReader) -> Self:
        line.take("of", "'of', as in 'list of number in [0, 1]'")
        sizes = _sizes(line)
        return cls(line.space(), *sizes)

    @classmethod
    def read_vector(cls, line: DescriptionReader) -> Self:
        """Read the rest of `vector of 5 number`, the space of lists of a fixed length."""
        line.take("of", "'of', as in 'vector of 5 number'")
        size = line.size()
        if size is None:
            raise line.wrong("a length, as in 'vector of 5 number'")
        return cls(line.space(), size, size)

    @classmethod
    def read_table(cls, line: DescriptionReader) -> Self:
        """Read the rest of `table {age: integer in [0, 120]}`, a space of lists of records."""
        sizes = _sizes(line) if line.skip("of") else (0, DEFAULT_MAX_RECORDS)
        return cls(Records.read(line), *sizes)

    @property
    def is_vector(self) -> bool:
        """Whether all lists have the same length, so that each position has its own meaning."""
        return self.min_size == self.max_size

    def words(self) -> str:
        sizes = (
            ""
            if (self.min_size, self.max_size) == (0, DEFAULT_MAX_RECORDS)
            else f"{self.min_size} to {self.max_size} "
        )
        if isinstance(self.item, Records):
            return f"table {'of ' if sizes else ''}{sizes}{self.item.columns_in_words()}"
        if self.is_vector:
            return f"vector of {self.min_size} {self.item.words()}"
        return f"list of {sizes}{self.item.words()}"

    def contains(self, value: Any) -> bool:
        return (
            isinstance(value, list)
            and self.fits(len(value))
            and all(map(self.item.contains, value))
        )

    def fits(self, size: int) -> bool:
        """Return whether the space contains lists of `size` records."""
        return self.min_size <= size <= self.max_size

    @property
    def simplest(self) -> list[Any]:
        return [self.item.simplest] * self.min_size

    def usual(self) -> list[Any]:
        return self.item.spread(min(max(USUAL_RECORDS, self.min_size), self.max_size))

    def spread(self, number: int) -> list[Any]:
        size = len(self.usual())
        values = self.item.spread(size + number)
        return [values[i : i + size] for i in range(number)]

    def extremes(self) -> tuple[Any, Any]:
        low, high = self.item.extremes()
        size = len(self.usual())
        return [low] * size, [high] * size

    def is_numeric(self) -> bool:
        return self.item.is_numeric()

    def least_step(self) -> float:
        return self.item.least_step()

    def clamped(self, value: Any) -> Any:
        return list(map(self.item.clamped, value)) if isinstance(value, list) else value

    def of_record(self) -> Space:
        return self.item

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        size = max(1, self.min_size)
        yield self.simplest, "the simplest records" if self.min_size else "empty"
        if self.max_size:
            for edge in list(self.item.edges())[:_EDGES_OF_ITEMS]:
                yield [edge.value] * size, f"all records are {edge.words}"
            yield self.item.spread(self.max_size), "the most records"

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            yield self.simplest
            return
        yield from self._shorter(value)
        for i, record in enumerate(value):
            for replacement in self.item.simpler(record):
                yield [*value[:i], replacement, *value[i + 1 :]]

    def _shorter(self, value: list[Any]) -> Iterator[list[Any]]:
        size = len(value)
        half = (size + 1) // 2
        parts = [[], value[:half], value[size - half :]]
        parts += [value[:i] + value[i + 1 :] for i in range(size)]
        return distinct(part for part in parts if self.min_size <= len(part) < size)

    def strategy(self) -> Any:
        st, item = strategies(), self.item.strategy()
        if self.min_size <= _MAX_DRAWN_RECORDS:
            return st.lists(item, min_size=self.min_size, max_size=self.max_size)
        records = st.lists(item, min_size=_MAX_DRAWN_RECORDS, max_size=_MAX_DRAWN_RECORDS)
        return records.map(lambda values: list(islice(cycle(values), self.min_size)))


def _sizes(line: DescriptionReader) -> tuple[int, int]:
    """Read two sizes, `5 to 10`, or one, `5`, which counts twice; without a number, 0 and 30."""
    min_size = line.size()
    if min_size is None:
        return 0, DEFAULT_MAX_RECORDS
    if not line.skip("to"):
        return min_size, min_size
    max_size = line.size()
    if max_size is None:
        raise line.wrong("a number of records, as in list of 1 to 30")
    return min_size, max_size
