"""Errors that know where in a file they belong, until the file and line are put in front."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from dpaudit.errors import ConfigurationError, DpauditError, Name

# Keys and list indices from the audit down, e.g. ("claim", "epsilon").
Path = tuple[str | int, ...]
Locate = Callable[[Path], str]


class PlacedError(Exception):
    """An error of the user's and the path of the value it is about; `reported` unwraps it."""

    def __init__(self, path: Path, error: DpauditError) -> None:
        super().__init__(str(error))
        self.path = path
        self.error = error


def problem(path: Path, *parts: str, code: str) -> PlacedError:
    """Return a ConfigurationError at a path."""
    return PlacedError(path, ConfigurationError(*parts, code=code))


def refusal(path: Path, why: str, code: str = "option-invalid") -> PlacedError:
    """Return a ConfigurationError whose message begins with the option that it is about."""
    return problem(path, Name(path[-1]), why, code=code)


@contextmanager
def about(*path: str | int) -> Iterator[None]:
    """Say which value an error from another room is about."""
    try:
        yield
    except DpauditError as error:
        raise PlacedError(path, error) from error


@contextmanager
def reported(locate: Locate, flags: Collection[str] = ()) -> Iterator[None]:
    """Raise problems as plain errors of their own type, with their place in front. flags: options
    that no file is to blame for; the command line spells them as it has them."""
    try:
        yield
    except PlacedError as found:
        parts = found.error.spelled(lambda name: name if name in flags else str(name))
        error = type(found.error)(locate(found.path), *parts, code=found.error.code)
        raise error from found.error.__cause__
