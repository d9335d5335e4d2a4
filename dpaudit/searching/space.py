"""The interface of a space. Each kind of space is one class in `spaces/`, with its edges and its
notation. A new kind needs a module and one line in `spaces/__init__.py`."""

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
    """An edge of a space.

    words: description, such as "the upper bound".
    inside: whether the value lies in the space.
    """

    value: Any
    words: str
    inside: bool


class Space(ABC):
    """A set of possible values: scalars, records or whole datasets, all in plain Python.

    A subclass is frozen, and its instances compare by value. It must define the abstract methods.
    It must also define `read` if users can describe the space by more than one word, as in `number
    in [0, 1]`.
    """

    __slots__ = ()
    # The first word of the text by which users describe a space of this class, such as `number`.
    word: ClassVar[str]

    @classmethod
    def read(cls, line: DescriptionReader) -> Self:
        """Read the description of a space from a line, after its first word."""
        return cls()

    def words(self) -> str:
        """Return the description of the space as users write it, such as `number in [0, 1]`.
        `parse_space` makes an equal space from it."""
        return self.word

    @abstractmethod
    def contains(self, value: Any) -> bool:
        """Return whether a value lies in the space."""

    @property
    @abstractmethod
    def simplest(self) -> Any:
        """The simplest value of the space. Shrinking moves other values closer to it."""

    @abstractmethod
    def all_edges(self) -> Iterator[tuple[Any, str]]:
        """Yield (value, description) for edges inside and outside the space, maybe twice."""

    @abstractmethod
    def simpler(self, value: Any) -> Iterator[Any]:
        """Yield a few values that are simpler than the given value, the simplest first."""

    @abstractmethod
    def strategy(self) -> Any:
        """Return a strategy of Hypothesis that draws values of the space. Raises MissingLibrary."""

    def usual(self) -> Any:
        """Return a value in the middle of the space, at which bugs are unlikely."""
        return self.simplest

    def spread(self, number: int) -> list[Any]:
        """Return `number` values at which bugs are unlikely. They differ if that is possible."""
        values = self.all_values() or [self.simplest]
        return [values[i % len(values)] for i in range(number)]

    def edges(self) -> Iterator[Edge]:
        """Yield the edges, each value once: values inside the space, then values outside."""
        edges = [Edge(value, words, self.contains(value)) for value, words in self.all_edges()]
        edges.sort(key=lambda edge: not edge.inside)
        return distinct(edges, key=lambda edge: edge.value)

    def extremes(self) -> tuple[Any, Any]:
        """Return a low and a high value of the space. They are its bounds, if it has bounds."""
        low, high = self.spread(2)
        return low, high

    def all_values(self) -> list[Any] | None:
        """Return all values of the space; None if it has more than 30 values."""
        return None

    def is_label(self) -> bool:
        """Return whether values are labels, such as city names, which group records."""
        return False

    def is_numeric(self) -> bool:
        """Return whether all values of the space are numbers, or lists of numbers."""
        return False

    def least_step(self) -> float:
        """Return the smallest difference of numbers of the space: 1.0 for integers, else 0.0."""
        return 0.0

    def clamped(self, value: Any) -> Any:
        """Return a copy of a value in which a bound replaces every number beyond it."""
        return value

    def present(self) -> Space:
        """Return the space without its missing value (None or NaN), if it has one."""
        return self

    def of_record(self) -> Space:
        """Return the space of one record if values are lists of records, otherwise `self`."""
        return self

    def by_column(self) -> Mapping[str, Space]:
        """Return the space of each column, if values are records with columns or lists of such
        records. Otherwise return an empty mapping."""
        return {}


# The most common types of values. `identity` checks first whether a value has one of them: this is
# faster than its other checks, such as `isinstance(value, Mapping)`.
_PLAIN = frozenset({int, str, bool, type(None)})


def identity(value: Any) -> Hashable:
    """Return a key by which values are compared. NaN equals NaN; −0.0 differs from 0.0, and 1
    differs from True and from 1.0."""
    value_type = type(value)
    kind = value_type.__name__
    if value_type in _PLAIN:
        return kind, value
    if value_type is list:
        return kind, tuple(map(identity, value))
    if value_type is dict:
        return kind, frozenset([(key, identity(part)) for key, part in value.items()])
    if isinstance(value, float):
        return (kind, "nan") if math.isnan(value) else (kind, value, math.copysign(1, value))
    if isinstance(value, list | tuple):
        return kind, tuple(map(identity, value))
    if isinstance(value, Mapping):
        return kind, frozenset((key, identity(part)) for key, part in value.items())
    return (kind, value) if isinstance(value, Hashable) else (kind, repr(value))


def distinct(values: Iterable[_T], key: Callable[[_T], Any] | None = None) -> Iterator[_T]:
    """Yield values, without those that are equal to an earlier value. With `key`, values are equal
    if their keys are."""
    known: set[Hashable] = set()
    for value in values:
        if (value_key := identity(value if key is None else key(value))) not in known:
            known.add(value_key)
            yield value


def strategies() -> Any:
    """Return the module `hypothesis.strategies`. Raises MissingLibrary if it is not installed."""
    try:
        import hypothesis.strategies
    except ImportError as error:
        raise MissingLibrary(
            f"random inputs need Hypothesis, which cannot be imported ({error}); "
            f"{install_command('search')}"
        ) from None
    return hypothesis.strategies


class NotUnderstood(Exception):
    """Raised for a mistake in the description of a space. Has the wrong part and the reason."""

    code = "space-invalid"


_TOKEN = re.compile(
    rf'\s*(?:(?P<own>{IMPORT}[^\s,()\[\]{{}}]+)|(?P<text>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')'
    r"|(?P<mark>[\[\]{}(),:])|(?P<word>[^\s\[\]{}(),:\"']+)|(?P<odd>\S))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the description of a space: a word, a mark (such as a bracket), a quoted text or
    an import path.

    kind: "word", "mark", "text" (quoted) or "own" (import path).
    end: index in the description after the last character of the token.
    """

    kind: str
    text: str
    end: int

    def unquoted(self) -> str:
        """Return the text of the token, without quotes. Raises NotUnderstood for a text in double
        quotes that is not a valid string of JSON."""
        if self.kind != "text":
            return self.text
        if self.text[0] == '"':
            try:
                return str(json.loads(self.text, strict=False))
            except ValueError as error:
                raise NotUnderstood(f"{self.text} is not a text: {error}") from None
        return re.sub(r"\\(.)", r"\1", self.text[1:-1])


class DescriptionReader(ABC):
    """Reads the one-line description of a space, such as `list of number in [0, 1]`, token by
    token. Relative import paths are looked for in `base`, too. Methods raise NotUnderstood."""

    def __init__(self, text: str, base: Path | None) -> None:
        self.text, self.base = text, base
        self.tokens = list(_tokens(text))
        self._index = 0

    @abstractmethod
    def space(self) -> Space:
        """Read the description of a space from the next tokens of the line."""

    @property
    def next(self) -> Token | None:
        """The next token that was not read yet; None at the end of the line."""
        return self.tokens[self._index] if self._index < len(self.tokens) else None

    def is_next(self, text: str) -> bool:
        """Return whether the next token is this word or mark."""
        return (
            self.next is not None
            and self.next.kind in ("word", "mark")
            and (self.next.text == text)
        )

    def skip(self, text: str) -> bool:
        """Return whether the next token is this word or mark. If so, move past it."""
        is_there = self.is_next(text)
        self._index += is_there
        return is_there

    def take(self, text: str, expected: str | None = None) -> None:
        """Move past the next token if it is the word or mark `text`. Otherwise raise NotUnderstood;
        its message shows `expected`, or `text` if `expected` is None."""
        if not self.skip(text):
            raise self.wrong(expected or repr(text), (text,))

    def token(self, expected: str, *kinds: str) -> Token:
        """Return the next token, and move past it. If `kinds` are given, it must be of one of them.
        The error message says that `expected` was expected."""
        token = self.next
        if token is None or (kinds and token.kind not in kinds):
            raise self.wrong(expected)
        self._index += 1
        return token

    def items(self, opening: str, closing: str, expected: str) -> Iterator[None]:
        """Read a list in brackets, such as `[a, b]`. Yield None before each item: the caller must
        read the item before it continues the iteration. `expected` is the name of the list in error
        messages."""
        self.take(opening, expected)
        while not self.skip(closing):
            yield
            if not self.is_next(closing):
                self.take(",", f"',' or {closing!r}")

    def size(self) -> int | None:
        """Return the next token, and move past it, if it is a whole number; else return None."""
        if self.next is None or not self.next.text.isdecimal():
            return None
        return int(self.token("").text)

    def wrong(self, expected: str, known: Sequence[str] = ()) -> NotUnderstood:
        """Return the error for a wrong next token. It says what was `expected` and, if one of the
        words `known` is similar, "did you mean"."""
        start = self.tokens[self._index - 1].end if self._index else 0
        context = f" after {shortened(self.text[:start].strip(), 40)!r}" if start else ""
        if self.next is None:
            return NotUnderstood(f"it ends{context}, where {expected} is missing")
        near = did_you_mean(self.next.text, known)
        shown = shortened(self.next.text, 40)
        return NotUnderstood(f"{shown!r}{context} is not understood; expected {expected}.{near}")

    def back(self) -> Self:
        """Move back by one token, so that it is read again. Return this `DescriptionReader`."""
        self._index -= 1
        return self


def _tokens(line: str) -> Iterator[Token]:
    index = 0
    while index < len(line.rstrip()):
        match = _TOKEN.match(line, index)
        if match is None or match.lastgroup is None or match.lastgroup == "odd":
            remainder = shortened(line[index:].strip(), 30)
            raise NotUnderstood(f"{remainder!r} is not understood; a quote is not closed")
        index = match.end()
        yield Token(match.lastgroup, match[match.lastgroup], index)


_WORD = re.compile(r"[^\W\d][\w.-]*")
# Words that have a meaning in the description of a space, so that a text equal to one of them must
# be quoted.
_RESERVED = frozenset({"true", "false", "null", "none", "nan", "inf", "infinity", "or", "missing"})


def quoted(text: str) -> str:
    """Return a text in the notation of spaces: a plain word, else a JSON string."""
    is_word = _WORD.fullmatch(text) and text.lower() not in _RESERVED
    return text if is_word else json.dumps(text, ensure_ascii=False)
