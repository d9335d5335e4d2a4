"""Values that became text, on a command line or in a file, though they look like values of Python
or of YAML."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from dpaudit.inputs.json_values import parse_json
from dpaudit.wording import shortened, shown

_IMPORT = "import:module:name"
# Longer ones are hardly typed.
LONGEST = 2_000
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s+{_NUMBER})+")
_FRACTION = re.compile(r"\d+\s*/\s*[1-9]\d*")
_FILE = re.compile(r"[^\s:@][^\s:]*\.(?:json|ya?ml|csv|npy)", re.IGNORECASE)
_OBJECT = re.compile(r"[\w/-]+(?:\.[\w/-]+)+:[A-Za-z_]\w*(?:\(\))?")
_CALL = re.compile(r"[A-Za-z_][\w.]*\(.*\)", re.DOTALL)
_WORDS = {
    **dict.fromkeys(("nan", "+nan", "-nan"), ".nan"),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), ".inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-.inf"),
    **dict.fromkeys(("true", "yes", "on"), "true"),
    **dict.fromkeys(("false", "no", "off"), "false"),
}


def misread(text: str, value: Any, *, in_file: bool = False) -> list[str]:
    """Return what became text, or a mapping, and was hardly meant to: what it is and how to write
    it.  text: as it was typed.  value: what it was read as.  in_file: whether no shell takes quotes
    away."""
    if len(text) > LONGEST or _is_json(text):  # whose texts are in quotes
        return []
    said = _in_python(text.strip(), value, in_file=in_file)
    if said is not None:
        return [said]
    found = dict.fromkeys(one for one in _texts(value) if not _is_quoted(one, text))
    every = (_in_words(one, is_all=one == text.strip(), in_file=in_file) for one in found)
    return [one for one in every if one is not None]


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_python(text: str, value: Any, *, in_file: bool) -> str | None:
    """Return what to say of a text that Python would read as something else."""
    # Imported here, since most values are JSON.
    import ast

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is no good Python either
            meant = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if _are_alike(meant, value):
        return None
    read = "text here" if value == text else f"read as {shown(value)}"
    form = _in_yaml(meant)
    name = shortened(text)
    if isinstance(meant, set) and isinstance(value, dict):
        return (
            f"{name} is {read}; for a list write {_in_yaml(list(value))}, for a set give {_IMPORT}"
        )
    if form is None:
        return f"{name} is {read}; name what is meant by {_IMPORT}"
    if isinstance(meant, tuple) and not text.startswith("("):
        form = f"{_in_yaml(list(meant))}"
    quoted = f", or {_quoted(name, in_file=in_file)} for the text" if value == text else ""
    return f"{name} is {read}; write {form}{quoted}"


def _are_alike(meant: Any, value: Any) -> bool:
    """Return whether Python and YAML read the same, but for texts, which they quote otherwise."""
    if isinstance(meant, list) and isinstance(value, list):
        return len(meant) == len(value) and all(map(_are_alike, meant, value))
    if isinstance(meant, Mapping) and isinstance(value, Mapping):
        return len(meant) == len(value) and all(map(_are_alike, meant.values(), value.values()))
    if isinstance(meant, str) and isinstance(value, str):
        return True
    return type(meant) is type(value) and meant == value


def _in_yaml(value: Any) -> str | None:
    """Return a value of Python as YAML; None for one that has no form there."""
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else f"{'-' * (value < 0)}.inf"
    if isinstance(value, list | tuple):
        parts = list(map(_in_yaml, value))
        if any(one is None for one in parts):
            return None
        listed = f"[{', '.join(map(str, parts))}]"
        return listed if isinstance(value, list) else f"{{tuple: {listed}}}"
    if isinstance(value, dict):
        parts = [_in_yaml(one) for pair in value.items() for one in pair]
        if any(one is None for one in parts):
            return None
        return f"{{{', '.join(f'{one}: {other}' for one, other in _by_two(parts))}}}"
    return None


def _by_two(parts: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(parts[::2], parts[1::2], strict=True)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _is_quoted(part: str, text: str) -> bool:
    return f'"{part}"' in text or f"'{part}'" in text


def _quoted(text: str, *, in_file: bool) -> str:
    return f'"{text}"' if in_file else f"'\"{text}\"'"


def _in_words(text: str, *, is_all: bool, in_file: bool) -> str | None:
    """Return what to say of a text. is_all: whether nothing else was typed."""
    name, quoted = shortened(text), _quoted(text, in_file=in_file or not is_all)
    form = "null" if text == "None" else _WORDS.get(text.lower())
    if form is not None:
        return f"{name} is text here; write {form}, or {quoted} for the text"
    if _NUMBERS.fullmatch(text):
        return f"{name} is one text here; write commas: [{', '.join(text.split())}]"
    if _FRACTION.fullmatch(text):
        over, under = text.split("/")
        return f"{name} is text here; write {int(over) / int(under):.17g}"
    if is_all and not in_file and _FILE.fullmatch(text):
        return f"{name} is text here; write @{name} for what is in that file, or {quoted}"
    if is_all and not in_file and _OBJECT.fullmatch(text):
        return f"{name} is text here; write import:{name} for what it names, or {quoted}"
    if _CALL.fullmatch(text):
        return (
            f"{name} is text here, and calls nothing; write its value, or name what makes it, "
            "import:module:name"
        )
    return None
