"""The interface of a space: the set of values that an input of a mechanism may have.

An *edge* is a value at which mechanisms often have bugs: a bound, NaN, an empty list, a value just
outside the space. Each kind of space is one class in `spaces/`, with its edges and its syntax.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from dpaudit.errors import UsageError
from dpaudit.inputs.values import IMPORT
from dpaudit.wording import did_you_mean, install_command, shortened

_T = TypeVar("_T")


class MissingLibrary(UsageError):
    """Raised if an optional library is needed and not installed."""

    code = "package-missing"


@dataclass(frozen=True, slots=True)
class Edge:
    """A value at which bugs are likely.

    words: description, such as "the upper bound".
    inside: whether the value lies in the space.
    """

    value: Any
    words: str
    inside: bool


class Space(ABC):
    """A set of values: scalars, records or whole datasets, all in plain Python.

    A subclass is frozen, and its instances compare by value. It must define the abstract methods.
    If a user writes more than one word for such a space, it also defines `read`.
    """

    __slots__ = ()
    # The first word of a line that describes a space of this kind, such as `number`.
    word: ClassVar[str]

    @classmethod
    def read(cls, line: Line) -> Self:
        """Return the space that the rest of a line describes. The word of its kind has been
        read."""
        return cls()

    def words(self) -> str:
        """Return the line that describes the space, as a user writes it. `parse_space` makes an
        equal space from it."""
        return self.word

    @abstractmethod
    def contains(self, value: Any) -> bool:
        """Return whether a value lies in the space."""

    @property
    @abstractmethod
    def simplest(self) -> Any:
        """The value that shrinking moves towards."""

    @abstractmethod
    def all_edges(self) -> Iterator[tuple[Any, str]]:
        """Yield (value, description) for values at which bugs are likely, inside the space and
        outside. A value may occur twice."""

    @abstractmethod
    def simpler(self, value: Any) -> Iterator[Any]:
        """Yield a few values that are simpler than the given value, the simplest first."""

    @abstractmethod
    def strategy(self) -> Any:
        """Return a strategy of Hypothesis for the values. Raises MissingLibrary."""

    def usual(self) -> Any:
        """Return a value in the middle of the space, at which bugs are unlikely."""
        return self.simplest

    def spread(self, number: int) -> list[Any]:
        """Return `number` values at which bugs are unlikely. They repeat only if the space has too
        few different values."""
        values = self.all_values() or [self.simplest]
        return [values[i % len(values)] for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        """Yield the edges (values at which bugs are likely), each value once: edges inside the
        space, then edges outside."""
        edges = [Edge(value, words, self.contains(value)) for value, words in self.all_edges()]
        edges.sort(key=lambda edge: not edge.inside)
        return distinct(edges, key=lambda edge: edge.value)

    def extremes(self) -> tuple[Any, Any]:
        """Return (low, high), a low value and a high value of the space: its bounds if it has
        bounds."""
        low, high = self.spread(2)
        return low, high

    def all_values(self) -> list[Any] | None:
        """Return all values of the space; None if it has more than 30."""
        return None

    def is_label(self) -> bool:
        """Return whether values are labels, such as the city of a record, so that the records with
        one label form a group."""
        return False

    def is_numeric(self) -> bool:
        """Return whether values are numbers, or lists of numbers."""
        return False

    def least_step(self) -> float:
        """Return the smallest difference of two different numbers of the space; 0.0 for real
        numbers."""
        return 0.0

    def clamped(self, value: Any) -> Any:
        """Return a value in which every number beyond a bound is replaced by that bound."""
        return value

    def present(self) -> Space:
        """Return the space without its missing value (None or NaN)."""
        return self

    def of_record(self) -> Space:
        """Return the space of one record of a list. For a scalar, this is the space itself."""
        return self

    def by_column(self) -> Mapping[str, Space]:
        """Return the space of each column of a record, by name; an empty mapping for other
        values."""
        return {}


# The most common types, for speed: `isinstance(value, Mapping)` takes longer than the rest of
# `identity`.
_PLAIN = frozenset({int, str, bool, type(None)})


def identity(value: Any) -> Hashable:
    """Return a key that is equal for equal values. NaN equals NaN; −0.0 differs from 0.0, and 1
    differs from True and from 1.0."""
    own = type(value)
    kind = own.__name__
    if own in _PLAIN:
        return kind, value
    if own is list:
        return kind, tuple(map(identity, value))
    if own is dict:
        return kind, frozenset([(key, identity(part)) for key, part in value.items()])
    if isinstance(value, float):
        return (kind, "nan") if math.isnan(value) else (kind, value, math.copysign(1, value))
    if isinstance(value, list | tuple):
        return kind, tuple(map(identity, value))
    if isinstance(value, Mapping):
        return kind, frozenset((key, identity(part)) for key, part in value.items())
    return (kind, value) if isinstance(value, Hashable) else (kind, repr(value))


def distinct(values: Iterable[_T], key: Callable[[_T], Any] | None = None) -> Iterator[_T]:
    """Yield values without repetition. key: function that returns the part of a value to
    compare."""
    known: set[Hashable] = set()
    for value in values:
        if (named := identity(value if key is None else key(value))) not in known:
            known.add(named)
            yield value


def strategies() -> Any:
    """Import Hypothesis, which is optional, and return its module of strategies."""
    try:
        import hypothesis.strategies
    except ImportError as error:
        raise MissingLibrary(
            f"random inputs need Hypothesis, which cannot be imported ({error}); "
            f"{install_command('search')}"
        ) from None
    return hypothesis.strategies


class NotUnderstood(Exception):
    """Raised for a space that a user did not write correctly. The message gives the place and the
    reason."""

    code = "space-invalid"


_TOKEN = re.compile(
    rf'\s*(?:(?P<own>{IMPORT}[^\s,()\[\]{{}}]+)|(?P<text>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')'
    r"|(?P<mark>[\[\]{}(),:])|(?P<word>[^\s\[\]{}(),:\"']+)|(?P<odd>\S))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a mark (such as a bracket), a quoted text or an import path on a line. end: index on
    the line after its last character."""

    kind: str
    text: str
    end: int

    def unquoted(self) -> str:
        """Return the text without its quotes. Raises NotUnderstood."""
        if self.kind != "text":
            return self.text
        if self.text[0] == '"':
            try:
                return str(json.loads(self.text, strict=False))
            except ValueError as error:
                raise NotUnderstood(f"{self.text} is not a text: {error}") from None
        return re.sub(r"\\(.)", r"\1", self.text[1:-1])


class Line(ABC):
    """A line that describes a space, and is read token by token. All methods raise NotUnderstood.

    base: folder of relative import paths.
    """

    def __init__(self, text: str, base: Path | None) -> None:
        self.text, self.base = text, base
        self.tokens = list(_tokens(text))
        self._place = 0

    @abstractmethod
    def space(self) -> Space:
        """Read the description of a whole space from the line, and return the space."""

    @property
    def next(self) -> Token | None:
        """The next token; None at the end of the line."""
        return self.tokens[self._place] if self._place < len(self.tokens) else None

    def is_next(self, text: str) -> bool:
        """Return whether the next token is this word or mark."""
        return (
            self.next is not None
            and self.next.kind in ("word", "mark")
            and (self.next.text == text)
        )

    def skip(self, text: str) -> bool:
        """Read this word or mark if it comes next. Return whether it was read."""
        is_there = self.is_next(text)
        self._place += is_there
        return is_there

    def take(self, text: str, expected: str | None = None) -> None:
        """Read this word or mark, which must come next. expected: its description in the error
        message."""
        if not self.skip(text):
            raise self.wrong(expected or repr(text), (text,))

    def token(self, expected: str, *kinds: str) -> Token:
        """Read the next token and return it.

        expected: its description in the error message.
        kinds: allowed kinds of token; without any, every kind is allowed.
        """
        token = self.next
        if token is None or (kinds and token.kind not in kinds):
            raise self.wrong(expected)
        self._place += 1
        return token

    def items(self, opening: str, closing: str, expected: str) -> Iterator[None]:
        """Read a bracketed list. Yield None before each item, which the caller reads.

        opening, closing: the brackets.
        expected: description of an item in the error message.
        """
        self.take(opening, expected)
        while not self.skip(closing):
            yield
            if not self.is_next(closing):
                self.take(",", f"',' or {closing!r}")

    def size(self) -> int | None:
        """Read a number of records and return it; None if the next token is not a number."""
        if self.next is None or not self.next.text.isdecimal():
            return None
        return int(self.token("").text)

    def wrong(self, expected: str, known: Sequence[str] = ()) -> NotUnderstood:
        """Return the error for a wrong next token.

        expected: description of a right token.
        known: words that the user may have meant, for "did you mean".
        """
        start = self.tokens[self._place - 1].end if self._place else 0
        after = f" after {shortened(self.text[:start].strip(), 40)!r}" if start else ""
        if self.next is None:
            return NotUnderstood(f"it ends{after}, where {expected} is missing")
        near = did_you_mean(self.next.text, known)
        shown = shortened(self.next.text, 40)
        return NotUnderstood(f"{shown!r}{after} is not understood; expected {expected}.{near}")

    def back(self) -> Self:
        """Go back by one token, and return this line."""
        self._place -= 1
        return self


def _tokens(line: str) -> Iterator[Token]:
    place = 0
    while place < len(line.rstrip()):
        match = _TOKEN.match(line, place)
        if match is None or match.lastgroup is None or match.lastgroup == "odd":
            rest = shortened(line[place:].strip(), 30)
            raise NotUnderstood(f"{rest!r} is not understood; a quote is not closed")
        place = match.end()
        yield Token(match.lastgroup, match[match.lastgroup], place)


_WORD = re.compile(r"[^\W\d][\w.-]*")
# Words that have another meaning on a line.
_RESERVED = frozenset({"true", "false", "null", "none", "nan", "inf", "infinity", "or", "missing"})


def quoted(text: str) -> str:
    """Return a text as a user writes it on the line of a space: in quotes unless it is a plain
    word."""
    is_word = _WORD.fullmatch(text) and text.lower() not in _RESERVED
    return text if is_word else json.dumps(text, ensure_ascii=False)
