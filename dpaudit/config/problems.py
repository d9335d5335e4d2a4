"""Errors with a path in a configuration file, and their conversion to errors with file and line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from dpaudit.errors import ConfigurationError, DpauditError, Name

# Keys and list indices that lead from an audit to a value, such as ("claim", "epsilon").
Path = tuple[str | int, ...]
# Function from such keys to the start of a message about the value, such as `audits.yaml:12: `.
Locate = Callable[[Path], str]


class PlacedError(Exception):
    """A mistake of the user, with the path of the wrong value. `reported` converts it."""

    def __init__(self, path: Path, error: DpauditError) -> None:
        super().__init__(str(error))
        self.path = path
        self.error = error


def problem(path: Path, *parts: str, code: str) -> PlacedError:
    """Return a ConfigurationError with a path."""
    return PlacedError(path, ConfigurationError(*parts, code=code))


def conflict(path: Path, *parts: str) -> PlacedError:
    """Return the error for an option that another option excludes."""
    return problem(path, *parts, code="options-conflict")


def missing(path: Path, why: str) -> PlacedError:
    """Return the error for a required option that is missing."""
    return problem(path, why, code="option-missing")


def refusal(path: Path, why: str, code: str = "option-invalid") -> PlacedError:
    """Return a ConfigurationError whose message starts with the last key of the path."""
    return problem(path, Name(path[-1]), why, code=code)


@contextmanager
def about(*path: str | int) -> Iterator[None]:
    """Convert a DpauditError into a PlacedError with this path."""
    try:
        yield
    except DpauditError as error:
        raise PlacedError(path, error) from error


@contextmanager
def reported(locate: Locate, flags: Collection[str] = ()) -> Iterator[None]:
    """Convert a PlacedError into the error that it contains, with its place in front of the
    message.

    flags: options from the command line, which the message writes as flags.
    """
    try:
        yield
    except PlacedError as found:
        parts = found.error.spelled(lambda name: name if name in flags else str(name))
        error = type(found.error)(locate(found.path), *parts, code=found.error.code)
        raise error from found.error.__cause__
