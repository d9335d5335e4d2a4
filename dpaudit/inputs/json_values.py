"""JSON as plain values, in which no key is given twice."""

from __future__ import annotations

import json
import math
from typing import Any


class MisleadingJson(ValueError):
    """A JSON text that Python would read as something else than it says: two values for one key, or
    a number that becomes infinite. code: kind of the error, as of a DpauditError."""

    def __init__(self, message: str, *, code: str = "value-malformed") -> None:
        super().__init__(message)
        self.code = code


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises MisleadingJson, and ValueError for what is not
    JSON."""
    return _DECODER.decode(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MisleadingJson(
            f"{text} is larger than any float, 1.8e308; write Infinity if that is meant",
            code="number-too-large",
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MisleadingJson(f"the key {twice!r} is given twice; give it once", code="key-twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float)
