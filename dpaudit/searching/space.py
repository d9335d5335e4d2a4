"""What one input of a mechanism may be: a space of values, with those where bugs sit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpaudit.errors import UsageError
from dpaudit.wording import install_command

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class MissingLibrary(UsageError):
    """A library that an extra brings is not installed."""

    code = "package-missing"


@dataclass(frozen=True, slots=True)
class Edge:
    """A value where bugs sit.

    words: what it is, such as "the upper bound".  inside: whether it lies in the space.
    """

    value: Any
    words: str
    inside: bool


class Space(Protocol):
    """A set of values: of scalars, records or whole datasets."""

    def words(self) -> str:
        """Return the space as one line, which the grammar reads back to an equal one."""
        ...

    def contains(self, value: Any) -> bool:
        """Return whether a value lies in the space."""
        ...

    @property
    def simplest(self) -> Any:
        """What a witness is shrunk towards."""
        ...

    def usual(self) -> Any:
        """Return a harmless value in the middle."""
        ...

    def spread(self, number: int) -> list[Any]:
        """Return so many harmless values, different ones where there are any."""
        ...

    def edges(self) -> Iterator[Edge]:
        """Yield values where bugs sit, those inside first, each once."""
        ...

    def simpler(self, value: Any) -> Iterator[Any]:
        """Yield a few values that are simpler than one, the simplest first."""
        ...

    def strategy(self) -> SearchStrategy[Any]:
        """Return a strategy of Hypothesis. Raises UsageError where that is not installed."""
        ...


# Most values are of these; to ask whether one is a mapping takes longer than all the rest.
_PLAIN = frozenset({int, str, bool, type(None)})


def identity(value: Any) -> Hashable:
    """Return what tells values apart: NaN is NaN, while −0.0 is not 0.0, nor is 1 True or 1.0."""
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


def types_in(value: Any) -> frozenset[tuple[str, str]]:
    """Return the types of the values in a dataset, each with its column: null, text, number, list
    or table."""
    return frozenset(_types(value, ""))


def _types(value: Any, column: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield column, "table"
        for name, part in value.items():
            yield from _types(part, f"{column}.{name}")
    elif isinstance(value, list | tuple):
        yield column, "list"
        for part in value:
            yield from _types(part, f"{column}[]")
    elif value is None or isinstance(value, str):
        yield column, "null" if value is None else "text"
    else:
        yield column, "number" if isinstance(value, int | float) else type(value).__name__


def ordered(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield edges, those inside first, and of the same value only the first."""
    known: set[Hashable] = set()
    for one in sorted(edges, key=lambda edge: not edge.inside):
        if (key := identity(one.value)) not in known:
            known.add(key)
            yield one


def different(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values, of the same ones only the first."""
    known: set[Hashable] = set()
    for value in values:
        if (key := identity(value)) not in known:
            known.add(key)
            yield value


def strategies() -> Any:
    """Return the strategies of Hypothesis, which is imported only where it is used."""
    try:
        import hypothesis.strategies
    except ImportError as error:
        raise MissingLibrary(
            f"random inputs need Hypothesis, which cannot be imported ({error}); "
            f"{install_command('search')}"
        ) from None
    return hypothesis.strategies
