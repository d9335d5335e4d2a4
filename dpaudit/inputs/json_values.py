"""JSON as plain values, in which no key is given twice."""

from __future__ import annotations

import json
from typing import Any


class DuplicateKey(ValueError):
    """A JSON object with two values for one key, of which a reader would get the last."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises DuplicateKey, and ValueError for what is not JSON."""
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateKey(f"the key {twice!r} is given twice; give it once")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
