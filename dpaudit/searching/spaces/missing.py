"""Values that may be missing, and numbers that may be NaN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpaudit.searching.space import Edge, Space, identity, ordered, strategies


@dataclass(frozen=True, slots=True)
class OrMissing:
    """The values of a space, and one more: None, or NaN."""

    space: Space
    value: float | None = None

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

    def edges(self) -> Iterator[Edge]:
        return ordered([Edge(self.value, self._name, True), *self.space.edges()])

    def simpler(self, value: Any) -> Iterator[Any]:
        if self._is_value(value):
            yield self.space.simplest
        else:
            yield from self.space.simpler(value)

    def strategy(self) -> Any:
        return strategies().just(self.value) | self.space.strategy()
