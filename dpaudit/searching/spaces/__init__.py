"""The kinds of spaces (sets of possible inputs), and the notation in which users describe them: one
line of text, or a mapping of such lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError, Name
from dpaudit.searching.space import Line, NotUnderstood, Space, quoted
from dpaudit.searching.spaces.datasets import ALSO, Lists, OrMissing, Records
from dpaudit.searching.spaces.labels import Bytes, Categories, Texts, Users, written
from dpaudit.searching.spaces.numbers import Booleans, Integers, Numbers
from dpaudit.searching.spaces.own import Own
from dpaudit.wording import did_you_mean, shortened

# List of (word, reader, example), one for each kind of space (set of possible values). A
# description of the space begins with the word. The reader is a function that reads the rest of the
# description and returns the space.
_KINDS: tuple[tuple[str, Callable[[Line], Space], str], ...] = (
    ("number", Numbers.read, "number in [0, 1]"),
    ("integer", Integers.read, "integer in [0, 120]"),
    ("boolean", Booleans.read, "boolean"),
    ("category", Categories.read, "category [a, b]"),
    ("text", Texts.read, "text"),
    ("bytes", Bytes.read, "bytes"),
    ("list", Lists.read, "list of number in [0, 1]"),
    ("vector", Lists.read_vector, "vector of 5 number"),
    ("table", Lists.read_table, "table {age: integer in [0, 120], city: category [a, b]}"),
    ("record", Records.read, "record {age: integer in [0, 120]}"),
    ("user", Users.read, "user"),
)
EXAMPLES = {word: example for word, _, example in _KINDS}
_READERS = {word: reader for word, reader, _ in _KINDS}
# Maps a kind of space (set of possible values) to the key for its number of records, in a
# description by a mapping, such as `{list: "number in [0, 1]", length: 5}`. "" stands for a space
# without records.
_SIZES = {
    "table": "rows",
    "list": "length",
    "vector": "length",
    "number": "",
    "integer": "",
    "category": "",
    "record": "",
}
# Largest depth of nested descriptions, as in `list of list of number`. Deeper descriptions raise an
# error instead of exhausting the stack.
_DEPTH = 30


def parse_space(value: Any, base: Path | None = None) -> Space:
    """Return the space (set of possible inputs) that a user describes by one line, such as `list of
    number in [0, 1]`, or by a mapping of lines.

    base: folder in which the relative file of an import path is looked for, after the working
    directory. None for the working directory alone.

    Raises DatasetError, whose message names the part that was not understood; TargetError for a
    wrong import path.
    """
    try:
        return _parsed(_as_line(value, base, 0), base)
    except (NotUnderstood, DatasetError) as error:
        shown = shortened(repr(value), 100)
        raise DatasetError(Name("space"), f"={shown}: {error}", code=error.code) from None


def _parsed(text: str, base: Path | None) -> Space:
    line = _SpaceLine(text, base)
    if line.next is None:
        raise NotUnderstood(f"it is empty; write a space, as in {EXAMPLES['list']!r}")
    space = line.space()
    if line.next is not None:
        raise line.wrong("the end", ("or",) if line.next.kind == "word" else ())
    return space


class _SpaceLine(Line):
    """A line that describes a space (a set of possible inputs) of any kind."""

    depth = 0

    def space(self) -> Space:
        self.depth += 1
        if self.depth > _DEPTH:
            raise NotUnderstood("it is nested too deeply")
        space = self._without_missing()
        while self.skip("or"):
            token = self.token("'missing' or 'NaN'")
            word = token.text.lower() if token.kind == "word" else ""
            if word not in ALSO:
                expected = "'missing', as in number or missing, or 'NaN'"
                raise self.back().wrong(expected, tuple(ALSO))
            space = OrMissing(space, ALSO[word])
        self.depth -= 1
        return space

    def _without_missing(self) -> Space:
        if self.next is not None and self.next.kind == "own":
            return Own.read(self)
        if self.skip("("):
            inner = self.space()
            self.take(")")
            return inner
        if self.next is None or self.next.kind != "word" or self.next.text not in _READERS:
            raise self.wrong(f"one of {', '.join(EXAMPLES)}", tuple(EXAMPLES))
        return _READERS[self.token("").text](self)


def _as_line(value: Any, base: Path | None, depth: int) -> str:
    """Return the description of a space (a set of possible values) as one line.

    value: the line itself, or a mapping whose values are lines or further mappings.
    depth: number of mappings that contain this value.
    """
    if depth > _DEPTH:
        raise NotUnderstood("it is nested too deeply")
    if isinstance(value, Mapping):
        return _line_of({str(key): part for key, part in value.items()}, base, depth)
    if not isinstance(value, str):
        raise NotUnderstood(f"{value!r} is no space; write one line, as in {EXAMPLES['list']!r}")
    return value


def _line_of(value: dict[str, Any], base: Path | None, depth: int) -> str:
    kind = next((key for key in _SIZES if key in value), None)
    if kind is None:
        given = ", ".join(map(repr, value)) or "nothing"
        near = next(filter(None, (did_you_mean(key, _SIZES) for key in value)), "")
        raise NotUnderstood(f"{given} names no space; known keys: {', '.join(_SIZES)}.{near}")
    known = [key for key in (kind, _SIZES[kind], *ALSO) if key]
    for key in value:
        if key not in known:
            near = did_you_mean(key, known)
            raise NotUnderstood(
                f"{key!r} is not known next to {kind!r}; known: {', '.join(known)}.{near}"
            )
    line = f"{kind} {_sizes(value, kind)}{_rest(kind, value[kind], base, depth)}"
    for key in ALSO:
        is_given = value.get(key, False)
        if not isinstance(is_given, bool):
            raise NotUnderstood(f"{key}={is_given!r} is neither true nor false")
        line = f"({line}) or {key}" if is_given else line
    return line


def _sizes(value: dict[str, Any], kind: str) -> str:
    key = _SIZES[kind]
    if not key:
        return ""
    sizes = value.get(key)
    if kind == "vector" and (isinstance(sizes, bool) or not isinstance(sizes, int)):
        raise NotUnderstood(f"a vector has a fixed length, not {sizes!r}; write length: 5")
    if sizes is None:
        return "" if kind == "table" else "of "
    if isinstance(sizes, int):
        return f"of {sizes!r} "
    least, most = _two(sizes, key)
    return f"of {least!r} to {most!r} "


def _rest(kind: str, value: Any, base: Path | None, depth: int) -> str:
    """Return the end of the line that describes a space (a set of possible values), such as `in [0,
    1]`: the part after its kind and its number of records.

    kind: key of the user's mapping that names the kind, such as "number".
    value: value at this key, such as `[0, 1]`.
    """

    def inner(part: Any) -> str:
        line = _as_line(part, base, depth + 1)
        _parsed(line, base)  # a mistake is reported for this part alone
        return f"({line})"

    if kind in ("list", "vector"):
        return inner(value)
    if kind in ("table", "record"):
        if not isinstance(value, Mapping):
            raise NotUnderstood(
                f"columns are names with spaces, as in {{age: integer}}, not {value!r}"
            )
        columns = (f"{quoted(str(name))}: {inner(space)}" for name, space in value.items())
        return f"{{{', '.join(columns)}}}"
    if kind == "category":
        if not isinstance(value, list | tuple):
            raise NotUnderstood(f"categories are a list, as in [a, b], not {value!r}")
        for category in value:
            if not isinstance(category, str | int | float | None):
                raise NotUnderstood(
                    f"category {category!r} is neither a text nor a number nor true or false"
                )
        return f"[{', '.join(map(written, value))}]"
    if value is None:
        return ""
    low, high = _two(value, kind)
    return f"in [{low!r}, {high!r}]"


def _two(value: Any, kind: str) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise NotUnderstood(f"{kind}: bounds are two numbers, as in [0, 1], not {value!r}")
    return value[0], value[1]
