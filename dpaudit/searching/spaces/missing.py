"""Values that may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpaudit.searching.space import Edge, Space, ordered, strategies


@dataclass(frozen=True, slots=True)
class OrMissing:
    """The values of a space, and None."""

    space: Space

    def words(self) -> str:
        inner = self.space.words()
        ends_open = inner.startswith(("list ", "vector "))
        return f"({inner}) or missing" if ends_open else f"{inner} or missing"

    def contains(self, value: Any) -> bool:
        return value is None or self.space.contains(value)

    @property
    def simplest(self) -> Any:
        return self.space.simplest

    def usual(self) -> Any:
        return self.space.usual()

    def spread(self, number: int) -> list[Any]:
        return self.space.spread(number)

    def edges(self) -> Iterator[Edge]:
        return ordered([Edge(None, "missing", True), *self.space.edges()])

    def simpler(self, value: Any) -> Iterator[Any]:
        if value is None:
            yield self.space.simplest
        else:
            yield from self.space.simpler(value)

    def strategy(self) -> Any:
        return strategies().none() | self.space.strategy()
