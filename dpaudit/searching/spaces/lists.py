"""Lists of records of one kind: of scalars, of rows of a table, of lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.searching.space import Edge, Space, identity, ordered, strategies
from dpaudit.searching.spaces.records import Records

MOST = 30
# Worst cases are small, and each proposal is looked at and kept.
LONGEST = 1000
# So many records are drawn one by one.
_DRAWN = 50
# As many records a harmless dataset has.
FEW = 3
_EDGES_OF_ITEMS = 12


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of `least` to `most` records of a space; of a fixed length they are vectors."""

    item: Space
    least: int = 0
    most: int = MOST

    def __post_init__(self) -> None:
        for size in (self.least, self.most):
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise DatasetError(
                    f"a list of {size!r} records is not possible; write list of 1 to 30",
                    code="space-invalid",
                )
            if size > LONGEST:
                raise DatasetError(
                    f"lists of {size} records are too long to search; write at most {LONGEST}",
                    code="space-invalid",
                )
        if self.least > self.most:
            raise DatasetError(
                f"no list has {self.least} to {self.most} records; "
                f"write list of {self.most} to {self.least}",
                code="space-invalid",
            )

    @property
    def is_vector(self) -> bool:
        """Whether the length is fixed, so that each place means something of its own."""
        return self.least == self.most

    def words(self) -> str:
        sizes = "" if (self.least, self.most) == (0, MOST) else f"{self.least} to {self.most} "
        if isinstance(self.item, Records):
            inner = self.item.columns_in_words()
            return f"table of {sizes}{inner}" if sizes else f"table {inner}"
        if self.is_vector:
            return f"vector of {self.least} {self.item.words()}"
        return f"list of {sizes}{self.item.words()}"

    def contains(self, value: Any) -> bool:
        return (
            isinstance(value, list)
            and self.least <= len(value) <= self.most
            and all(map(self.item.contains, value))
        )

    def fits(self, size: int) -> bool:
        """Return whether a list of so many records is of the space."""
        return self.least <= size <= self.most

    @property
    def simplest(self) -> list[Any]:
        return [self.item.simplest] * self.least

    def usual(self) -> list[Any]:
        return self.item.spread(min(max(FEW, self.least), self.most))

    def spread(self, number: int) -> list[Any]:
        size = len(self.usual())
        values = self.item.spread(size + number)
        return [values[i : i + size] for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        return ordered(self._edges())

    def _edges(self) -> Iterator[Edge]:
        size = max(1, self.least)
        yield Edge(self.simplest, "empty" if not self.least else "the simplest records", True)
        if self.most:
            for edge in list(self.item.edges())[:_EDGES_OF_ITEMS]:
                yield Edge([edge.value] * size, f"all records are {edge.words}", edge.inside)
            yield Edge(self.item.spread(self.most), "as many records as there may be", True)

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            yield self.simplest
            return
        yield from self._shorter(value)
        for i, record in enumerate(value):
            for other in self.item.simpler(record):
                yield [*value[:i], other, *value[i + 1 :]]

    def _shorter(self, value: list[Any]) -> Iterator[list[Any]]:
        size, known = len(value), set()
        half = (size + 1) // 2
        parts = [[], value[:half], value[size - half :]]
        parts += [value[:i] + value[i + 1 :] for i in range(size)]
        for part in parts:
            if self.least <= len(part) < size and (key := identity(part)) not in known:
                known.add(key)
                yield part

    def strategy(self) -> Any:
        st, item = strategies(), self.item.strategy()
        if self.least <= _DRAWN:
            return st.lists(item, min_size=self.least, max_size=self.most)
        # Hypothesis gives up on inputs that take too many choices, so that these come again.
        return st.lists(item, min_size=_DRAWN, max_size=_DRAWN).map(self._repeated)

    def _repeated(self, records: list[Any]) -> list[Any]:
        return list(islice(cycle(records), self.least))
