"""What runs show, as text that goes from one process to another."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .appearing import Appearing
from .coupling import Coupled, Runs
from .differences import Chosen, Comparison, Hidden, Parted
from .flipping import Absorbed
from .paths import Laws
from .places import Place
from .seldom import Seldom
from .selected import Selected

_KINDS: dict[str, Any] = {
    one.__name__: one
    for one in (
        *(Runs, Coupled, Absorbed, Comparison, Hidden, Chosen, Parted, Place, Laws, Appearing),
        *(Selected, Seldom),
    )
}
# Entries of an array, and characters of anything else, among parameters that are shown alone.
_MOST, _LONGEST = 64, 200


def written(runs: Runs) -> bytes:
    """Return runs as JSON: a record, or a tuple, is a mapping with one key."""
    return json.dumps(_plain(runs)).encode()


def read(data: bytes) -> Runs:
    """Return the runs that were written. Raises ValueError for anything else."""
    try:
        found = _made(json.loads(data))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"malformed runs ({error})") from None
    if not isinstance(found, Runs):
        raise ValueError(f"{type(found).__name__} in place of runs")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, tuple):
        name = type(value).__name__ if type(value) in _KINDS.values() else "tuple"
        return {name: list(map(_plain, value))}
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {"dict": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, np.ndarray):
        return list(map(_plain, np.ravel(value)[:_MOST].tolist()))
    return repr(value)[:_LONGEST]


def _made(node: Any) -> Any:
    if isinstance(node, list):
        return list(map(_made, node))
    if not isinstance(node, dict):
        return node
    ((name, parts),) = node.items()
    if name == "dict":
        return {_made(key): _made(one) for key, one in parts}
    made = map(_made, parts)
    return tuple(made) if name == "tuple" else _KINDS[name](*made)
