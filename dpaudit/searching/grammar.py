"""A space as users write it: in one line, or as a mapping of YAML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError, Name
from dpaudit.inputs.values import IMPORT
from dpaudit.searching.space import Space
from dpaudit.searching.spaces.categories import Categories
from dpaudit.searching.spaces.lists import MOST, Lists
from dpaudit.searching.spaces.missing import OrMissing
from dpaudit.searching.spaces.numbers import Integers, Numbers
from dpaudit.searching.spaces.own import Own
from dpaudit.searching.spaces.records import Records
from dpaudit.searching.spaces.registry import EXAMPLES, PLAIN
from dpaudit.wording import did_you_mean, shortened

WORDS = tuple(EXAMPLES)
_TOKEN = re.compile(
    rf'\s*(?:(?P<own>{IMPORT}[^\s,()\[\]{{}}]+)|(?P<text>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')'
    r"|(?P<mark>[\[\]{}(),:])|(?P<word>[^\s\[\]{}(),:\"']+)|(?P<odd>\S))"
)
_CONSTANTS: Mapping[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", "none", "None"), None),
}
# Values that a space may have in addition, by their names.
_ALSO: Mapping[str, float | None] = {"missing": None, "nan": math.nan}
# Deeper ones nobody means.
_DEPTH = 30


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, a mark or a quoted text of a line, and where it ends."""

    kind: str
    text: str
    end: int


class _NotUnderstood(Exception):
    """What is wrong with a line or a mapping."""

    code = "space-invalid"


def parse_space(value: Any, base: Path | None = None) -> Space:
    """Return the space that a user wrote, as one line or as a mapping.

    base: where a relative file of an import path is looked for, after the working directory.
    Raises DatasetError, which says what was not understood; TargetError for a wrong import.
    """
    try:
        return _Reader(base).space(value, 0)
    except (_NotUnderstood, DatasetError) as error:
        raise DatasetError(Name("space"), f"={_shown(value)}: {error}", code=error.code) from None


class _Reader:
    """Reads mappings, and the lines in them."""

    def __init__(self, base: Path | None) -> None:
        self.base = base

    def space(self, value: Any, depth: int) -> Space:
        if depth > _DEPTH:
            raise _NotUnderstood("it is nested too deeply")
        if isinstance(value, str):
            return _Line(value, self.base).whole()
        if not isinstance(value, Mapping):
            raise _NotUnderstood(
                f"{value!r} is no space; write one line, as in 'list of number in [0, 1]'"
            )
        return self._mapping({str(key): part for key, part in value.items()}, depth)

    def _mapping(self, value: dict[str, Any], depth: int) -> Space:
        readers: dict[str, tuple[str, Callable[[Any, Any, int], Space]]] = {
            "table": ("rows", self._table),
            "list": ("length", self._list),
            "vector": ("length", self._vector),
            "number": ("", self._number),
            "integer": ("", self._integer),
            "category": ("", self._category),
            "record": ("", self._record),
        }
        kind = next((one for one in readers if one in value), None)
        if kind is None:
            said = ", ".join(map(repr, value)) or "nothing"
            near = next(filter(None, (did_you_mean(one, readers) for one in value)), "")
            raise _NotUnderstood(f"{said} names no space; known keys: {', '.join(readers)}.{near}")
        sizes_key, reader = readers[kind]
        known = [one for one in (kind, sizes_key, *_ALSO) if one]
        for key in value:
            if key not in known:
                near = did_you_mean(key, known)
                raise _NotUnderstood(
                    f"{key!r} is not known beside {kind!r}; known: {', '.join(known)}.{near}"
                )
        space = reader(value[kind], value.get(sizes_key) if sizes_key else None, depth)
        for key, other in _ALSO.items():
            is_given = value.get(key, False)
            if not isinstance(is_given, bool):
                raise _NotUnderstood(f"{key}={is_given!r} is neither true nor false")
            space = _or(space, other) if is_given else space
        return space

    def _table(self, columns: Any, sizes: Any, depth: int) -> Space:
        return Lists(self._record(columns, None, depth), *_sizes(sizes, "rows"))

    def _list(self, inner: Any, sizes: Any, depth: int) -> Space:
        return Lists(self.space(inner, depth + 1), *_sizes(sizes, "length"))

    def _vector(self, inner: Any, size: Any, depth: int) -> Space:
        if isinstance(size, bool) or not isinstance(size, int):
            raise _NotUnderstood(f"a vector has a fixed length, not {size!r}; write length: 5")
        return Lists(self.space(inner, depth + 1), size, size)

    def _record(self, columns: Any, _: Any, depth: int) -> Records:
        if not isinstance(columns, Mapping):
            raise _NotUnderstood(
                f"columns are names with spaces, as in {{age: integer}}, not {columns!r}"
            )
        return Records({str(name): self.space(one, depth + 1) for name, one in columns.items()})

    def _number(self, bounds: Any, _: Any, __: int) -> Space:
        return Numbers() if bounds is None else Numbers(*_two(bounds, "number"))

    def _integer(self, bounds: Any, _: Any, __: int) -> Space:
        return Integers() if bounds is None else Integers(*map(_open, _two(bounds, "integer")))

    def _category(self, values: Any, _: Any, __: int) -> Space:
        if not isinstance(values, list | tuple):
            raise _NotUnderstood(f"categories are a list, as in [a, b], not {values!r}")
        return Categories(tuple(values))


class _Line:
    """Reads one line, word after word."""

    def __init__(self, line: str, base: Path | None) -> None:
        self.line, self.base = line, base
        self.tokens = list(_tokens(line))
        self.place = 0
        self.depth = 0

    def whole(self) -> Space:
        if not self.tokens:
            raise _NotUnderstood(f"it is empty; write a space, as in {EXAMPLES['list']!r}")
        space = self.space()
        if self.next is not None:
            raise self.wrong("the end", ("or",) if self.next.kind == "word" else ())
        return space

    @property
    def next(self) -> _Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def is_next(self, *texts: str) -> bool:
        """Return whether these words or marks come next."""
        coming = self.tokens[self.place : self.place + len(texts)]
        plain = [one.text for one in coming if one.kind in ("word", "mark")]
        return plain == list(texts)

    def take(self, text: str, expected: str | None = None) -> None:
        if not self.is_next(text):
            raise self.wrong(expected or repr(text), (text,))
        self.place += 1

    def any(self, expected: str) -> _Token:
        if self.next is None:
            raise self.wrong(expected)
        self.place += 1
        return self.tokens[self.place - 1]

    def wrong(self, expected: str, known: Sequence[str] = ()) -> _NotUnderstood:
        """Return what is wrong with the next word."""
        start = self.tokens[self.place - 1].end if self.place else 0
        after = f" after {shortened(self.line[:start].strip(), 40)!r}" if start else ""
        if self.next is None:
            return _NotUnderstood(f"it ends{after}, where {expected} is missing")
        near = did_you_mean(self.next.text, known)
        return _NotUnderstood(
            f"{self.next.text!r}{after} is not understood; expected {expected}.{near}"
        )

    def space(self) -> Space:
        self.depth += 1
        if self.depth > _DEPTH:
            raise _NotUnderstood("it is nested too deeply")
        found = self.kind()
        while self.is_next("or"):
            self.place += 1
            token = self.any("'missing' or 'NaN'")
            word = token.text.lower() if token.kind == "word" else ""
            if word not in _ALSO:
                self.place -= 1
                raise self.wrong("'missing', as in number or missing, or 'NaN'", tuple(_ALSO))
            found = _or(found, _ALSO[word])
        self.depth -= 1
        return found

    def kind(self) -> Space:
        if self.next is not None and self.next.kind == "own":
            return Own.of(self.any("").text, self.base)
        if self.is_next("("):
            self.place += 1
            inner = self.space()
            self.take(")")
            return inner
        if self.next is None or self.next.kind != "word" or self.next.text not in WORDS:
            raise self.wrong(f"one of {', '.join(WORDS)}", WORDS)
        word = self.any("").text
        if word in PLAIN:
            return PLAIN[word]()
        reader: Callable[[], Space] = getattr(self, f"_{word}")
        return reader()

    def _number(self) -> Space:
        return Numbers(*self._bounds(_number)) if self.is_next("in") else self._unbounded("number")

    def _integer(self) -> Space:
        if not self.is_next("in"):
            return self._unbounded("integer")
        return Integers(*map(_open, self._bounds(_integer)))

    def _unbounded(self, kind: str) -> Space:
        """Return the space without bounds; bounds without `in` are a slip."""
        if self.is_next("["):
            raise self.wrong(f"'in', as in {EXAMPLES[kind]!r}")
        return Numbers() if kind == "number" else Integers()

    def _bounds(self, read: Callable[[str], Any]) -> tuple[Any, Any]:
        self.take("in")
        self.take("[", "bounds, as in [0, 1]")
        low = self._bound(read)
        self.take(",")
        high = self._bound(read)
        self.take("]")
        return low, high

    def _bound(self, read: Callable[[str], Any]) -> Any:
        token = self.any("a bound")
        value = read(token.text) if token.kind == "word" else None
        if value is None:
            self.place -= 1
            kind = "a number" if read is _number else "an integer"
            raise self.wrong(f"{kind} as a bound")
        return value

    def _category(self) -> Space:
        self.take("[", "categories, as in [a, b]")
        values: list[Any] = []
        while not self.is_next("]"):
            values.append(self._value())
            if not self.is_next("]"):
                self.take(",", "',' or ']'")
        self.place += 1
        return Categories(tuple(values))

    def _value(self) -> Any:
        words = []
        while self.next is not None and self.next.kind != "mark":
            token = self.any("")
            words.append(token)
        if not words:
            raise self.wrong("a category")
        if len(words) == 1:
            return _unquoted(words[0]) if words[0].kind == "text" else _constant(words[0].text)
        if any(one.kind == "text" for one in words):
            self.place -= 1
            raise self.wrong("',' or ']'")
        return " ".join(one.text for one in words)

    def _list(self) -> Space:
        self.take("of", f"'of', as in {EXAMPLES['list']!r}")
        sizes = self._sizes()
        return Lists(self.space(), *sizes)

    def _vector(self) -> Space:
        self.take("of", f"'of', as in {EXAMPLES['vector']!r}")
        size = self._size()
        if size is None:
            raise self.wrong(f"a length, as in {EXAMPLES['vector']!r}")
        return Lists(self.space(), size, size)

    def _table(self) -> Space:
        sizes: tuple[int, int] = (0, MOST)
        if self.is_next("of"):
            self.place += 1
            sizes = self._sizes()
        return Lists(self._record(), *sizes)

    def _sizes(self) -> tuple[int, int]:
        least = self._size()
        if least is None:
            return 0, MOST
        if not self.is_next("to"):
            return least, least
        self.place += 1
        most = self._size()
        if most is None:
            raise self.wrong("a number of records, as in list of 1 to 30")
        return least, most

    def _size(self) -> int | None:
        if self.next is None or not self.next.text.isdecimal():
            return None
        return int(self.any("").text)

    def _record(self) -> Records:
        self.take("{", f"columns, as in {EXAMPLES['table']!r}")
        columns: dict[str, Space] = {}
        while not self.is_next("}"):
            name = self._name()
            if name in columns:
                raise _NotUnderstood(f"the column {name!r} is there twice; name each once")
            self.take(":", f"':' and what is in the column {name!r}")
            columns[name] = self.space()
            if not self.is_next("}"):
                self.take(",", "',' or '}'")
        self.place += 1
        return Records(columns)

    def _name(self) -> str:
        token = self.any("a column's name, or '}'")
        if token.kind == "text":
            return str(_unquoted(token))
        if token.kind != "word":
            self.place -= 1
            raise self.wrong("a column's name")
        return token.text


def _tokens(line: str) -> Iterator[_Token]:
    place = 0
    while place < len(line.rstrip()):
        found = _TOKEN.match(line, place)
        if found is None or found.lastgroup is None or found.lastgroup == "odd":
            rest = line[place:].strip()
            raise _NotUnderstood(
                f"{shortened(rest, 30)!r} is not understood; a quote is not closed"
            )
        place = found.end()
        yield _Token(found.lastgroup, found[found.lastgroup], place)


def _unquoted(token: _Token) -> str:
    if token.text[0] == '"':
        try:
            return str(json.loads(token.text, strict=False))
        except ValueError as error:
            raise _NotUnderstood(f"{token.text} is not a text: {error}") from None
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])


def _constant(word: str) -> Any:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    number = _integer(word)
    if number is None or isinstance(number, float):
        number = _number(word)
    return word if number is None else number


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    if math.isinf(value) and "inf" not in word.lower():
        raise _NotUnderstood(f"{word} is larger than any float, 1.8e308; write inf for infinity")
    return value


def _integer(word: str) -> int | float | None:
    if word.lstrip("+-").lower() in ("inf", "infinity", "nan"):
        return float(word)
    try:
        return int(word)
    except ValueError:
        return None


def _open(bound: Any) -> Any:
    """Return a bound of integers; None for none."""
    if isinstance(bound, float) and math.isinf(bound):
        return None
    return bound


def _or(space: Space, value: float | None) -> Space:
    """Return a space with one more value. Raises where NaN is added to no numbers."""
    inner = space
    while isinstance(inner, OrMissing):
        inner = inner.space
    if value is not None and not isinstance(inner, Numbers):
        raise _NotUnderstood("only numbers can be NaN; write number in [0, 1] or NaN")
    return OrMissing(space, value)


def _two(bounds: Any, kind: str) -> tuple[Any, Any]:
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise _NotUnderstood(f"{kind}: bounds are two numbers, as in [0, 1], not {bounds!r}")
    return bounds[0], bounds[1]


def _sizes(sizes: Any, key: str) -> tuple[int, int]:
    if sizes is None:
        return 0, MOST
    if isinstance(sizes, int) and not isinstance(sizes, bool):
        return sizes, sizes
    least, most = _two(sizes, key)
    return least, most


def _shown(value: Any) -> str:
    return shortened(repr(value), 100)
