"""An outcome in words, put together again from its entries."""

from __future__ import annotations

from collections.abc import Iterable

from dpaudit.outcomes.columns import entry_word
from dpaudit.outcomes.paths import ROOT, Path
from dpaudit.outcomes.representation import EXPONENT, TYPE, decimal_word, typed_word
from dpaudit.outcomes.special import EXACT

Entry = tuple[Path, str | float]

# How the kinds of wholes are called; those of objects are named after their type.
LIST, DICT, SET = "a list", "a dict", "a set"
# The entry of every element of a set.
PRESENT = "present"


def written(entries: Iterable[Entry]) -> str:
    """Return `{"a": (1, 2)}`; entries: all of one outcome, those of step "form" only if they are to
    be written."""
    parts: dict[str, list[Path]] = {}
    words: dict[str, str] = {}
    for path, entry in entries:
        words[path.name] = entry if isinstance(entry, str) else entry_word(entry)
        if path.parent is not None:
            parts.setdefault(path.parent.name, []).append(path)
    return _written(ROOT, parts, words)


def _place(path: Path) -> tuple[int, str]:
    """Return what parts are sorted by: their place in a list; else their names, in one order."""
    return (int(path.word), "") if path.step == "item" else (0, path.word)


def _written(path: Path, parts: dict[str, list[Path]], words: dict[str, str]) -> str:
    word = _value(path, parts, words)
    forms = {one.word: words[one.name] for one in parts.get(path.name, []) if one.step == "form"}
    if EXPONENT in forms:
        word = decimal_word(word, forms[EXPONENT])
    return typed_word(word, forms[TYPE]) if TYPE in forms else word


def _value(path: Path, parts: dict[str, list[Path]], words: dict[str, str]) -> str:
    word, inner = words[path.name], parts.get(path.name, [])
    if not word.startswith("a "):
        return next((words[one.name] for one in inner if one.word == EXACT), word)
    kept = sorted((one for one in inner if one.step not in ("about", "form")), key=_place)
    if word == SET:
        return f"{{{', '.join(one.word for one in kept)}}}" if kept else "set()"
    listed = [(one, _written(one, parts, words)) for one in kept]
    if word == LIST:
        return f"({', '.join(value for _, value in listed)})"
    if word == DICT:
        return f"{{{', '.join(f'{one.word}: {value}' for one, value in listed)}}}"
    name = word.removeprefix("a ")
    return f"{name}({', '.join(f'{one.word}={value}' for one, value in listed)})"
