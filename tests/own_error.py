"""A module with an exception class of its own, which no other module imports."""

from __future__ import annotations

from typing import NoReturn


class OwnError(Exception):
    """Raised by `fails`."""


def fails() -> NoReturn:
    raise OwnError("no luck")
