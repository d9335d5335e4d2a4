"""Records: the rows of a table with typed columns, and who they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.searching.space import Edge, Space, ordered, strategies

_PLAIN = re.compile(r"[^\W\d][\w.-]*")
_USERS = 5


@dataclass(frozen=True, slots=True)
class Users:
    """Whom a record belongs to: a number or a text."""

    def words(self) -> str:
        return "user"

    def contains(self, value: Any) -> bool:
        return isinstance(value, int | str) and not isinstance(value, bool)

    @property
    def simplest(self) -> int:
        return 1

    def usual(self) -> int:
        return 1

    def spread(self, number: int) -> list[int]:
        return list(range(1, number + 1))

    def edges(self) -> Iterator[Edge]:
        yield Edge(1, "user 1", True)

    def simpler(self, value: Any) -> Iterator[Any]:
        return iter(range(1, min(value, _USERS + 1)) if isinstance(value, int) else (1,))

    def strategy(self) -> Any:
        return strategies().integers(1, _USERS)


@dataclass(frozen=True, slots=True)
class Records:
    """Mappings with the same keys, each value of a space of its own."""

    columns: Mapping[str, Space]

    def __post_init__(self) -> None:
        if not self.columns:
            raise DatasetError(
                "a table has no columns; write table {age: integer in [0, 120]}",
                code="space-invalid",
            )

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

    def edges(self) -> Iterator[Edge]:
        return ordered(self._edges())

    def _edges(self) -> Iterator[Edge]:
        """Yield a usual record with an edge in one column, all columns in turn."""
        usual = self.usual()
        by_column = [
            [(name, edge) for edge in space.edges()] for name, space in self.columns.items()
        ]
        for turn in zip_longest(*by_column):
            for name, edge in filter(None, turn):
                yield Edge({**usual, name: edge.value}, f"{name} is {edge.words}", edge.inside)

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, dict) or value.keys() != self.columns.keys():
            yield self.simplest
            return
        for name, space in self.columns.items():
            for other in space.simpler(value[name]):
                yield {**value, name: other}

    def strategy(self) -> Any:
        columns = {name: space.strategy() for name, space in self.columns.items()}
        # Hypothesis draws the columns in an order of its own.
        in_order = dict.fromkeys(columns)
        return strategies().fixed_dictionaries(columns).map(lambda row: in_order | row)


def quoted(text: str) -> str:
    """Return a text as the grammar reads it: in quotes where it is no plain word."""
    is_word = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED
    return text if is_word else json.dumps(text, ensure_ascii=False)


# Words that stand for something else in a line.
_RESERVED = frozenset({"true", "false", "null", "none", "nan", "inf", "infinity", "or", "missing"})
