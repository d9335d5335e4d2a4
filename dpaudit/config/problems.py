"""Errors with a path in a configuration file, and their conversion to errors with file and line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from dpaudit.errors import ConfigurationError, DpauditError, Name

# Keys and list indices that lead from an audit to a value, such as ("claim", "epsilon").
Path = tuple[str | int, ...]
# Function from a path to the start of a message about its value, such as `audits.yaml:12: `.
Locate = Callable[[Path], str]


class PlacedError(Exception):
    """An error of the user with the path (keys and indices) of the wrong value. `reported` converts
    it into the contained error with file and line."""

    def __init__(self, path: Path, error: DpauditError) -> None:
        super().__init__(str(error))
        self.path = path
        self.error = error


def problem(path: Path, *parts: str, code: str) -> PlacedError:
    """Return a ConfigurationError, with the path of the wrong value, as a PlacedError. parts: the
    pieces of its message."""
    return PlacedError(path, ConfigurationError(*parts, code=code))


def conflict(path: Path, *parts: str) -> PlacedError:
    """Return the error for an option that another option excludes. path: path of the option."""
    return problem(path, *parts, code="options-conflict")


def missing(path: Path, why: str) -> PlacedError:
    """Return the error for a required option that is missing. path: path that it would have."""
    return problem(path, why, code="option-missing")


def refusal(path: Path, why: str, code: str = "option-invalid") -> PlacedError:
    """Return a ConfigurationError as a PlacedError. The message starts with the last key of the
    path, and goes on with `why`."""
    return problem(path, Name(path[-1]), why, code=code)


@contextmanager
def about(*path: str | int) -> Iterator[None]:
    """Inside the context, convert a DpauditError into a PlacedError with this path."""
    try:
        yield
    except DpauditError as error:
        raise PlacedError(path, error) from error


@contextmanager
def reported(locate: Locate, flags: Collection[str] = ()) -> Iterator[None]:
    """Inside the context, convert a PlacedError into the error that it contains, with its place in
    front of the message.

    locate: function from a path to the place, such as `audits.yaml:12: `.

    flags: options from the command line, which the message writes as flags.
    """
    try:
        yield
    except PlacedError as found:
        parts = found.error.spelled(lambda name: name if name in flags else str(name))
        error = type(found.error)(locate(found.path), *parts, code=found.error.code)
        raise error from found.error.__cause__
