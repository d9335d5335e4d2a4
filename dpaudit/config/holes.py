"""Places of a file that are still to be filled in, as `dpaudit init` leaves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpaudit.config.problems import Path, PlacedError, problem

# Unlike anything that somebody audits. In the place of any value of an audit.
FILL_IN = "FILL_IN"
# The deepest that is looked for one: what an audit is about may be large.
_DEPTH = 4
_LISTS = (("pairs",), ("init",), ("compose",))


def check_filled_in(settings: Mapping[str, Any]) -> None:
    """Raise a PlacedError that names all that is still to be filled in."""
    found = list(holes(settings))
    if found:
        raise unfilled(found)


def unfilled(found: Sequence[Path]) -> PlacedError:
    """Return the error of places that are still to be filled in, at the first of them."""
    names = [".".join(map(str, path)) for path in found]
    last = f" and {names[-1]}" if len(names) > 1 else names[-1]
    them = "it" if len(names) == 1 else "them"
    return problem(
        found[0],
        f"{', '.join(names[:-1])}{last} must be filled in: put a value in the place of "
        f"{FILL_IN}, or give {them} on the command line",
        code="fill-in-left",
    )


def holes(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of what is still to be filled in."""
    if isinstance(value, str):
        if value == FILL_IN:
            yield path
    elif len(path) < _DEPTH and isinstance(value, Mapping):
        for key, part in value.items():
            if key == FILL_IN and path:
                yield path
            yield from holes(part, (*path, key))
    elif len(path) < _DEPTH and isinstance(value, list) and path[-1:] in _LISTS:
        for place, part in enumerate(value):
            yield from holes(part, (*path, place))
