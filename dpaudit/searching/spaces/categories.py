"""Categories: a few values, each written out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.searching.space import Edge, different, identity, ordered, strategies
from dpaudit.searching.spaces.records import quoted

_NEW = "new category"


@dataclass(frozen=True, slots=True)
class Categories:
    """One of some values: texts, numbers or booleans, all of one type."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise DatasetError(
                "category [] has no values; write category [a, b]", code="space-invalid"
            )
        for value in self.values:
            _check(value)
        if len(list(different(self.values))) < len(self.values):
            raise DatasetError(
                f"{self.words()} names a value twice; name each once", code="space-invalid"
            )
        kinds = {_kind(value) for value in self.values}
        if len(kinds) > 1:
            raise DatasetError(
                f"{self.words()} mixes {' and '.join(sorted(kinds))}; quote them all, "
                'as in category ["1", "a"], if texts are meant',
                code="space-invalid",
            )

    def words(self) -> str:
        return f"category [{', '.join(map(_written, self.values))}]"

    def contains(self, value: Any) -> bool:
        return any(identity(value) == identity(one) for one in self.values)

    @property
    def simplest(self) -> Any:
        return self.values[0]

    def usual(self) -> Any:
        return self.values[0]

    def spread(self, number: int) -> list[Any]:
        return [self.values[i % len(self.values)] for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        known = [Edge(value, f"category {_written(value)}", True) for value in self.values]
        return ordered([*known, *(Edge(*one, False) for one in self._outside())])

    def _outside(self) -> Iterator[tuple[Any, str]]:
        first = self.values[0]
        if isinstance(first, str):
            yield from (
                (_NEW, "a new category"),
                ("", "the empty text"),
                ("é☃", "a non-ASCII text"),
            )
            yield first.swapcase() + " ", "a category in another spelling"
        elif not isinstance(first, bool):
            yield max(self.values) + 1, "a new category"
        yield None, "missing"

    def simpler(self, value: Any) -> Iterator[Any]:
        for one in self.values:
            if identity(one) == identity(value):
                return
            yield one

    def strategy(self) -> Any:
        return strategies().sampled_from(self.values)


def _check(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DatasetError(
            f"category {value!r} is no category; quote it if a text is meant", code="space-invalid"
        )
    if value is None:
        raise DatasetError(
            "a category is missing (null); write category [a, b] or missing", code="space-invalid"
        )
    if not isinstance(value, str | int | float):
        raise DatasetError(
            f"category {value!r} is neither a text nor a number nor true or false",
            code="space-invalid",
        )


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    return "texts" if isinstance(value, str) else "numbers"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else repr(value)
