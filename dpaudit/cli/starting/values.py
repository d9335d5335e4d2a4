"""Values as a YAML file and as Python has them."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

from dpaudit.inputs.datasets import FILE
from dpaudit.inputs.values import FORMS, IMPORT, Inline, Reference


def in_yaml(value: Any) -> str:
    """Return a value that was read, its tuples made or not, in one line of YAML, which is read back
    as the same value.

    >>> in_yaml({"bounds": {"tuple": [0, 1.5]}, "word": "yes: # no"})
    '{"bounds": {"tuple": [0, 1.5]}, "word": "yes: # no"}'
    """
    if isinstance(value, Mapping):
        items = (f"{in_yaml(key)}: {in_yaml(part)}" for key, part in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, tuple):
        return f"{{tuple: {in_yaml(list(value))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    if isinstance(value, Reference):
        return in_yaml(repr(value))
    if isinstance(value, Inline):
        return f"{{{value.form}: {in_yaml(value.data)}}}"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, datetime.date):
        return f"!!timestamp '{value.isoformat(*_SPACE[: isinstance(value, datetime.datetime)])}'"
    return json.dumps(value, ensure_ascii=not str(value).isprintable())


_SPACE = (" ",)


def in_python(value: Any) -> str | None:
    """Return a value that was read as an expression of Python; None for one that refers to a file
    or to an import, and for arrays and data frames.

    >>> in_python({"tuple": [0, 1.5]}), in_python("@rows.csv")
    ('(0, 1.5)', None)
    """
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, tuple):
        return in_python({"tuple": list(value)})
    if isinstance(value, list):
        parts = [in_python(part) for part in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    if isinstance(value, Reference | Inline):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, datetime.date):
        return f"datetime.{value!r}" if not repr(value).startswith("datetime.") else repr(value)
    if isinstance(value, str) and value.startswith((FILE, IMPORT)):
        return None
    return json.dumps(value) if isinstance(value, str) and value.isprintable() else repr(value)


def _mapping(value: Mapping[Any, Any]) -> str | None:
    if set(value) == {"tuple"} and isinstance(value["tuple"], list):
        inside = in_python(value["tuple"])
        comma = "," if len(value["tuple"]) == 1 else ""
        return None if inside is None else f"({inside[1:-1]}{comma})"
    items = [(in_python(key), in_python(part)) for key, part in value.items()]
    if len(value) == 1 and set(value) <= set(FORMS):
        return None
    if any(None in item for item in items):
        return None
    return "{" + ", ".join(f"{key}: {part}" for key, part in items) + "}"
