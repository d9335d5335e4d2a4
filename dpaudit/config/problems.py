"""Define errors that contain the path of a wrong setting, and turn them into errors that name its
place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from dpaudit.errors import ConfigurationError, DpauditError, Name

# Type of the path of a value: the keys and list indices that lead from the settings of an audit to
# the value, such as ("claim", "epsilon").
Path = tuple[str | int, ...]
# Type of a function that takes the path of a value, such as ("claim", "epsilon"), and returns the
# file and line of the value, such as `audits.yaml:12: `. Messages start with this text.
Locate = Callable[[Path], str]


class PlacedError(Exception):
    """An error of the user, with the path of the wrong value. `reported` replaces it by the error
    that it contains, with the place in front of the message."""

    def __init__(self, path: Path, error: DpauditError) -> None:
        super().__init__(str(error))
        self.path = path
        self.error = error


def problem(path: Path, *parts: str, code: str) -> PlacedError:
    """Return a PlacedError that contains a ConfigurationError with the message in `parts`."""
    return PlacedError(path, ConfigurationError(*parts, code=code))


def conflict(path: Path, *parts: str) -> PlacedError:
    """Return the error for an option that may not be combined with another option."""
    return problem(path, *parts, code="options-conflict")


def missing(path: Path, why: str) -> PlacedError:
    """Return the error for a required option that is missing in the mapping at `path`."""
    return problem(path, why, code="option-missing")


def refusal(path: Path, why: str, code: str = "option-invalid") -> PlacedError:
    """Return a PlacedError for a wrong value. Its message is the last key of the path followed by
    `why`, such as `samples=-1 must be above 0`."""
    return problem(path, Name(path[-1]), why, code=code)


@contextmanager
def about(*path: str | int) -> Iterator[None]:
    """Inside the context, replace a DpauditError by a PlacedError with this path."""
    try:
        yield
    except DpauditError as error:
        raise PlacedError(path, error) from error


@contextmanager
def reported(locate: Locate, flags: Collection[str] = ()) -> Iterator[None]:
    """Inside the context, replace a PlacedError by the error that it contains, with the place in
    front of the message. The message writes the options in `flags` as flags, such as --samples."""
    try:
        yield
    except PlacedError as placed:
        parts = placed.error.spelled(lambda name: name if name in flags else str(name))
        error = type(placed.error)(locate(placed.path), *parts, code=placed.error.code)
        raise error from placed.error.__cause__


def located(error: PlacedError, locate: Locate) -> DpauditError:
    """Return the error that a PlacedError contains, with its place in front of the message."""
    try:
        with reported(locate):
            raise error
    except DpauditError as reported_error:
        return reported_error
