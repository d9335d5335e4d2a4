"""Errors that know where in a file they belong, until the file and line are put in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpaudit.errors import ConfigurationError, DpauditError

# Keys and list indices from the audit down, e.g. ("claim", "epsilon").
Path = tuple[str | int, ...]
Locate = Callable[[Path], str]


class PlacedError(Exception):
    """An error of the user's and the path of the value it is about; `reported` unwraps it."""

    def __init__(self, path: Path, error: DpauditError) -> None:
        super().__init__(str(error))
        self.path = path
        self.error = error


def problem(path: Path, message: str) -> PlacedError:
    """Return a ConfigurationError at a path."""
    return PlacedError(path, ConfigurationError(message))


@contextmanager
def about(*path: str | int) -> Iterator[None]:
    """Say which value an error from another room is about."""
    try:
        yield
    except DpauditError as error:
        raise PlacedError(path, error) from error


@contextmanager
def reported(locate: Locate) -> Iterator[None]:
    """Raise problems as plain errors of their own type, with their place in front."""
    try:
        yield
    except PlacedError as found:
        error = type(found.error)(f"{locate(found.path)}{found.error}")
        raise error from found.error.__cause__
