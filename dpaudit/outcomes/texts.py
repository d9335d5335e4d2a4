"""The content of texts: structures in JSON, and numbers.

A text is read by itself, so the content of a draw depends on no other draw. A JSON object or array
is read as that structure, at `json(output)`. In any other text, each number gets a column, and
`words(output)` is the text with `#` in place of each. A text without digits has no content. The
text as a whole keeps its own column.

A comma ends a number, since `105,113` may be two numbers of a CSV line. A word that mixes digits
and letters, such as a UUID or a hash, is one label among the numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

# Last step of the path to the structure, the numbers, or the rest of a text.
JSON, NUMBERS, WORDS = "json", "numbers", "words"
# Numbers beyond this one get no columns; learning looks at no more columns either.
_MAX_NUMBERS = 4_096
# JSON texts with more characters are read as any other text, since they may have more than
# `reader.MAX_ENTRIES` entries.
_MAX_JSON = 200_000
_MAY_HAVE_CONTENT = re.compile(r"\s*[\[{]|[^0-9]*[0-9]")
# A sign after a word is a hyphen, as in 2024-01-05.
_NUMBER = r"(?:(?<![\w.)\]])[-+\u2212])?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+(?!\w))?"
_CODE = r"""
    (?P<code>
        (?<!\w)[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?!\w)  # a UUID
        # Eight or more letters and digits, with a letter between digits, as in a hash; no 12345e10.
      | (?<!\w)(?![0-9]+[eE][0-9]+\b)(?=[0-9A-Za-z_]*?[0-9][A-Za-z_]+[0-9])[0-9A-Za-z_]{8,}
    )
  | (?P<hex>-?0x[0-9a-f](?:\.[0-9a-f]+)?p[-+][0-9]+)  # as float.hex writes
"""
_NUMBERS = re.compile(_NUMBER)
_PARTS = re.compile(f"{_CODE} | {_NUMBER}", re.VERBOSE)
# Texts without a match have numbers alone, which take a third of the time.
_MAY_HAVE_CODE = re.compile(r"[0-9][A-Za-z_-]+[0-9]")


class Content(NamedTuple):
    """The content of one text.

    structure: the list or dict of a JSON text; None for any other text.
    numbers: numbers of any other text, in their order; a word such as a hash is a text.
    words: the text with `#` in place of each number.
    total: number of all numbers in the text, also of those beyond `_MAX_NUMBERS`.
    """

    structure: list[Any] | dict[str, Any] | None = None
    numbers: tuple[float | str, ...] = ()
    words: str = ""
    total: int = 0


def may_have_content(text: str) -> bool:
    """Return whether a text has a digit, or starts as a JSON object or array does."""
    return _MAY_HAVE_CONTENT.match(text) is not None


def content(text: str, levels: int) -> Content | None:
    """Return the content of a text; None if it has none. JSON is read if it has at most `levels`
    nested levels."""
    if not may_have_content(text):
        return None
    structure = _structure(text, levels)
    if structure is not None:
        return Content(structure)
    numbers: list[float | str] = []
    count = 0

    def hide(match: re.Match[str]) -> str:
        nonlocal count
        if count < _MAX_NUMBERS:
            numbers.append(_number(match))
        count += 1
        return "#"

    parts = _NUMBERS if _MAY_HAVE_CODE.search(text) is None else _PARTS
    words = parts.sub(hide, text)
    return Content(None, tuple(numbers), words, count) if count else None


def _structure(text: str, levels: int) -> list[Any] | dict[str, Any] | None:
    if text.lstrip()[:1] not in ("{", "[") or len(text) > _MAX_JSON:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list | dict):
        return None
    is_flat = text.count("[") + text.count("{") <= levels
    return value if is_flat or _depth(value) <= levels else None


def _depth(value: Any) -> int:
    """Return the number of nested levels of a list or dict; 0 for any other value."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, list | dict)]:
        depth += 1
        level = [
            part for item in level for part in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _number(match: re.Match[str]) -> float | str:
    text = match[0]
    if match.lastgroup == "code":
        return text
    return float.fromhex(text) if match.lastgroup == "hex" else float(text.replace("\u2212", "-"))


def how_read(contents: Iterable[str]) -> tuple[str, ...]:
    """Return a note on how texts were read, in a tuple. `contents` are the kinds of their contents:
    "json", "numbers" or "words". Return () if there are none."""
    kinds = set(contents)
    parts = ["texts are read as JSON"] if JSON in kinds else []
    parts += ["numbers in texts are read as columns"] if {NUMBERS, WORDS} & kinds else []
    return (" and ".join(parts),) if parts else ()
