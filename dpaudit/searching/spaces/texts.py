"""Texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpaudit.searching.space import Edge, different, strategies

_LONG = 1000


@dataclass(frozen=True, slots=True)
class Texts:
    """Every text that can be written as UTF-8."""

    def words(self) -> str:
        return "text"

    def contains(self, value: Any) -> bool:
        return isinstance(value, str)

    @property
    def simplest(self) -> str:
        return ""

    def usual(self) -> str:
        return "a"

    def spread(self, number: int) -> list[str]:
        return [chr(ord("a") + i % 26) * (1 + i // 26) for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        for value, words in (
            ("", "the empty text"),
            ("é☃", "a non-ASCII text"),
            (" ", "a blank"),
            ("A", "a text in capitals"),
            ("0", "a digit"),
            ("nan", "the text nan"),
            ("\n", "the end of a line"),
            ("\x00", "the character 0"),
            ("'\",;", "quotes and separators"),
            ("a" * _LONG, "a long text"),
        ):
            yield Edge(value, words, True)
        yield Edge(None, "missing", False)

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, str):
            yield from ("", "a")
            return
        half = len(value) // 2
        plain = "".join(one if one in "a " else "a" for one in value)
        parts = [value[:half], value[half:], value[:-1], value[1:], plain]
        cost = _cost(value)
        simpler = (one for one in different(["", "a", *parts]) if _cost(one) < cost)
        yield from sorted(simpler, key=_cost)

    def strategy(self) -> Any:
        st = strategies()
        return st.text(st.characters(codec="utf-8"), max_size=20)


def _cost(text: str) -> tuple[int, int, str]:
    return len(text), sum(one != "a" for one in text), text
