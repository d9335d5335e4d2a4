"""The kinds of spaces, and the notation in which users describe them: one line of text, or the
columns of a table with such lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError, Name
from dpaudit.searching.space import DescriptionReader, NotUnderstood, Space, quoted
from dpaudit.searching.spaces.labels import Bytes, Categories, Texts, UserNames
from dpaudit.searching.spaces.number_spaces import Booleans, Integers, Numbers
from dpaudit.searching.spaces.record_spaces import ALSO, Lists, OrMissing, Records
from dpaudit.searching.spaces.user_spaces import Own
from dpaudit.wording import did_you_mean, shortened

# List of (word, reader, example), one for each kind of space. A description of the space begins
# with the word. The reader is a function that reads the rest of the description and returns the
# space.
_KINDS: tuple[tuple[str, Callable[[DescriptionReader], Space], str], ...] = (
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
    ("user", UserNames.read, "user"),
)
EXAMPLES = {word: example for word, _, example in _KINDS}
_READERS = {word: reader for word, reader, _ in _KINDS}
# Largest depth of nested descriptions, as in `list of list of number`. Deeper descriptions raise an
# error instead of exhausting the stack.
_DEPTH = 30


def parse_space(value: Any, base: Path | None = None) -> Space:
    """Return the space that a user describes: by one line, such as `list of number in [0, 1]`, or
    by the columns of a table, such as `{"table": {"age": "integer"}, "rows": [1, 50]}`.

    Raises DatasetError, whose message names the part that was not understood. Raises TargetError
    for a wrong import path, which is looked for in `base`, too.
    """
    try:
        return _parsed(_as_line(value, base), base)
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


class _SpaceLine(DescriptionReader):
    """A line that describes a space of any kind."""

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


def _as_line(value: Any, base: Path | None) -> str:
    """Return the line of a space that is given as a line, or as the columns of a table."""
    if isinstance(value, str):
        return value
    for key in value if isinstance(value, Mapping) else ():
        if key not in ("table", "rows"):
            near = did_you_mean(str(key), ("table", "rows"))
            raise NotUnderstood(f"{key!r} is not known; known: table, rows.{near}")
    if not isinstance(value, Mapping) or "table" not in value:
        raise NotUnderstood(f"{value!r} is no space; write one line, as in {EXAMPLES['list']!r}")
    columns = value["table"]
    if not isinstance(columns, Mapping) or not all(isinstance(v, str) for v in columns.values()):
        raise NotUnderstood(
            f"columns are names with spaces, as in {{age: integer}}, not {columns!r}"
        )
    for line in columns.values():
        _parsed(line, base)  # a mistake is reported for this column alone
    inside = ", ".join(f"{quoted(str(name))}: ({line})" for name, line in columns.items())
    return f"table {_rows(value.get('rows'))}{{{inside}}}"


def _rows(rows: Any) -> str:
    if rows is None:
        return ""
    if isinstance(rows, int):
        return f"of {rows!r} "
    if not isinstance(rows, list | tuple) or len(rows) != 2:
        raise NotUnderstood(f"rows: bounds are two numbers, as in [1, 50], not {rows!r}")
    return f"of {rows[0]!r} to {rows[1]!r} "
