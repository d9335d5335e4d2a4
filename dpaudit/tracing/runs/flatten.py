"""Outputs as flat mappings: from the name of each part, such as `output[1]`, to a plain value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator


# Parts of an output, at most.
_MOST = 200_000
# Relative difference of floats that counts as rounding.
_CLOSE = 1e-9
_DEPTH = 12
# Entries, and characters, of a value in a message.
_FEW, _LONGEST = 8, 60
_NUMBERS = frozenset((int, float, bool))


class Missing:
    """Stands for a part that is missing."""


def flatten(output: Any) -> dict[str, Any]:
    """Return the parts of an output by their names, such as `output[1]`."""
    found: dict[str, Any] = {}
    for name, value in _parts("output", output, 0):
        if len(found) == _MOST:
            break
        found[name] = value
    return found


def _parts(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    value = plain(value)
    if isinstance(value, np.generic):
        value = value.item()
    if (
        depth > _DEPTH
        or value is None
        or isinstance(value, (bool, int, float, complex, str, bytes))
    ):
        yield name, value
        if isinstance(value, (str, bytes)):
            yield f"len({name})", len(value)
    elif isinstance(value, np.ndarray):
        yield from _of_array(name, value, depth)
    elif isinstance(value, dict):
        yield f"len({name})", len(value)
        for key, one in value.items():
            yield from _parts(f"{name}[{plain(key)!r}]", one, depth + 1)
    elif isinstance(value, (list, tuple)):
        yield f"len({name})", len(value)
        for place, one in enumerate(value):
            if type(one) in _NUMBERS:  # there may be very many
                yield f"{name}[{place}]", one
            else:
                yield from _parts(f"{name}[{place}]", one, depth + 1)
    elif isinstance(value, (set, frozenset)):
        yield name, tuple(sorted(map(repr, value)))
    elif hasattr(value, "detach"):  # a tensor
        value = value.detach().cpu()
        value = value.double() if value.dtype.is_floating_point else value
        yield from _of_array(name, np.asarray(value), depth)
    elif hasattr(value, "to_numpy"):
        yield f"{name}.index", tuple(map(repr, getattr(value, "index", ())))
        yield from _parts(name, value.to_numpy(), depth + 1)
    elif isinstance(getattr(value, "__dict__", None), dict):
        for key, one in vars(value).items():
            yield from _parts(f"{name}.{key}", one, depth + 1)
    else:
        yield name, repr(value)


def _of_array(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if not value.ndim:
        yield from _parts(name, value[()], depth + 1)
        return
    yield f"{name}.shape", value.shape
    for place in np.ndindex(value.shape):
        label = ", ".join(map(str, place))
        yield from _parts(f"{name}[{label}]", value[place], depth + 1)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal up to the rounding of floats."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-12)
    if isinstance(other, float) and isinstance(one, int) and not isinstance(one, bool):
        return same(other, one)
    return type(one) is type(other) and bool(one == other)


def briefly(value: Any) -> str:
    """Return a value as Python writes it, shortened."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.ravel(value)[:_FEW].tolist() if np.ndim(value) else value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(map(briefly, value))}{', …' if len(value) == _FEW else ''}]"
    text = "nothing" if value is Missing else repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
