"""Spaces of categories, of texts, of bytes, and of names of users."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

from dpaudit.errors import DatasetError
from dpaudit.searching.space import DescriptionReader, Space, distinct, identity, quoted, strategies
from dpaudit.searching.spaces.number_spaces import as_integer, as_number

_CONSTANTS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", "none", "None"), None),
}
# Length of a text, in characters, at which bugs are likely since it is unusually long.
_LONG_TEXT = 1000
# Random names of users are the numbers from 1 to this number.
_USERS = 5


@dataclass(frozen=True, slots=True)
class Categories(Space):
    """A set of a few values that the user lists: texts, numbers or Booleans, all of one type."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise DatasetError(problem, code="space-invalid")

    def _problem(self) -> str:
        if not self.values:
            return "category [] has no values; write category [a, b]"
        for value in self.values:
            if value is None:
                return "a category is missing (null); write category [a, b] or missing"
            if isinstance(value, float) and not math.isfinite(value):
                return f"category {value!r} is no category; quote it if a text is meant"
        if len(list(distinct(self.values))) < len(self.values):
            return f"{self.words()} names a value twice; name each once"
        types = {_type(value) for value in self.values}
        if len(types) > 1:
            return (
                f"{self.words()} mixes {' and '.join(sorted(types))}; quote them all, "
                'as in category ["1", "a"], if texts are meant'
            )
        return ""

    @classmethod
    def read(cls, line: DescriptionReader) -> Self:
        items = line.items("[", "]", "categories, as in [a, b]")
        return cls(tuple(_value(line) for _ in items))

    def words(self) -> str:
        return f"category [{', '.join(map(written, self.values))}]"

    def contains(self, value: Any) -> bool:
        return any(identity(value) == identity(known) for known in self.values)

    @property
    def simplest(self) -> Any:
        return self.values[0]

    def extremes(self) -> tuple[Any, Any]:
        return self.values[0], self.values[-1]

    def all_values(self) -> list[Any]:
        return list(self.values)

    def is_label(self) -> bool:
        return True

    def is_numeric(self) -> bool:
        return not isinstance(self.values[0], str)

    def least_step(self) -> float:
        values = sorted(map(float, self.values))
        return min((high - low for low, high in pairwise(values)), default=0.0)

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield from ((value, f"category {written(value)}") for value in self.values)
        first = self.values[0]
        if isinstance(first, str):
            yield from (("new category", "a new category"), ("", "the empty text"))
            yield from (("é☃", "a non-ASCII text"),)
            yield first.swapcase() + " ", "a category in another spelling"
        elif not isinstance(first, bool):
            yield max(self.values) + 1, "a new category"
        yield None, "missing"

    def simpler(self, value: Any) -> Iterator[Any]:
        for known in self.values:
            if identity(known) == identity(value):
                return
            yield known

    def strategy(self) -> Any:
        return strategies().sampled_from(self.values)


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    return "texts" if isinstance(value, str) else "numbers"


def written(value: Any) -> str:
    """Return a category in the notation of users, such as `true` or `"1"`."""
    if value is None or isinstance(value, bool):
        return {None: "null", False: "false", True: "true"}[value]
    return quoted(value) if isinstance(value, str) else repr(value)


def _value(line: DescriptionReader) -> Any:
    """Read a category from a line: a text of one or several words, a number or a Boolean."""
    words = []
    while line.next is not None and line.next.kind != "mark":
        words.append(line.token(""))
    if not words:
        raise line.wrong("a category")
    if len(words) == 1:
        (word,) = words
        return word.unquoted() if word.kind == "text" else _constant(word.text)
    if any(word.kind == "text" for word in words):
        raise line.back().wrong("',' or ']'")
    return " ".join(word.text for word in words)


def _constant(word: str) -> Any:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    number = as_integer(word)
    if number is None or isinstance(number, float):
        number = as_number(word)
    return word if number is None else number


@dataclass(frozen=True, slots=True)
class Texts(Space):
    """The set of all texts."""

    word: ClassVar[str] = "text"

    def contains(self, value: Any) -> bool:
        return isinstance(value, str)

    @property
    def simplest(self) -> str:
        return ""

    def usual(self) -> str:
        return "a"

    def spread(self, number: int) -> list[str]:
        return [chr(ord("a") + i % 26) * (1 + i // 26) for i in range(number)]

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield from (
            ("", "the empty text"),
            ("é☃", "a non-ASCII text"),
            (" ", "a blank"),
            ("A", "a text in capitals"),
            ("0", "a digit"),
            ("nan", "the text nan"),
            ("\n", "the end of a line"),
            ("\x00", "the character 0"),
            ("'\",;", "quotes and separators"),
            ("a" * _LONG_TEXT, "a long text"),
            (None, "missing"),
        )

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, str):
            yield from ("", "a")
            return
        half = len(value) // 2
        plain = "".join(letter if letter in "a " else "a" for letter in value)
        parts = [value[:half], value[half:], value[:-1], value[1:], plain]
        shorter = (text for text in distinct(["", "a", *parts]) if _cost(text) < _cost(value))
        yield from sorted(shorter, key=_cost)

    def strategy(self) -> Any:
        st = strategies()
        return st.text(st.characters(codec="utf-8"), max_size=20)


def _cost(text: str) -> tuple[int, int, str]:
    return len(text), sum(letter != "a" for letter in text), text


@dataclass(frozen=True, slots=True)
class Bytes(Space):
    """The set of all bytes."""

    word: ClassVar[str] = "bytes"

    def contains(self, value: Any) -> bool:
        return isinstance(value, bytes)

    @property
    def simplest(self) -> bytes:
        return b""

    def usual(self) -> bytes:
        return b"a"

    def spread(self, number: int) -> list[bytes]:
        return [text.encode() for text in Texts().spread(number)]

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield from (
            (b"", "no bytes"),
            (b"\x00", "the byte 0"),
            (b"\xff", "the byte 255, which is no UTF-8"),
            (b" ", "a blank"),
            (b"0", "a digit"),
            (b"\n", "the end of a line"),
            (b"a" * _LONG_TEXT, "many bytes"),
            (None, "missing"),
        )

    def simpler(self, value: Any) -> Iterator[Any]:
        if not isinstance(value, bytes):
            yield from (b"", b"a")
            return
        half = len(value) // 2
        parts = [b"", b"a", value[:half], value[half:], value[:-1], value[1:], b"a" * len(value)]
        costs = {part: (len(part), sum(byte != ord("a") for byte in part)) for part in parts}
        cost = len(value), sum(byte != ord("a") for byte in value)
        shorter = (part for part in distinct(parts) if costs[part] < cost)
        yield from sorted(shorter, key=lambda part: costs[part])

    def strategy(self) -> Any:
        return strategies().binary(max_size=20)


@dataclass(frozen=True, slots=True)
class UserNames(Space):
    """The names of users: integers or texts. Each record of a table belongs to one user."""

    word: ClassVar[str] = "user"

    def contains(self, value: Any) -> bool:
        return isinstance(value, int | str) and not isinstance(value, bool)

    @property
    def simplest(self) -> int:
        return 1

    def spread(self, number: int) -> list[int]:
        return list(range(1, number + 1))

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield 1, "user 1"

    def simpler(self, value: Any) -> Iterator[Any]:
        return iter(range(1, min(value, _USERS + 1)) if isinstance(value, int) else (1,))

    def strategy(self) -> Any:
        return strategies().integers(1, _USERS)
