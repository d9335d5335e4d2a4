"""What stands for the signs that a terminal cannot show."""

from __future__ import annotations

import unicodedata

_SIGNS = {
    "ε": "eps",
    "λ": "lambda",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "∞": "inf",
    "√": "sqrt ",
    "·": "*",
    "×": "x",
    "→": "->",
    "⇒": "=>",
    "‖": "||",
    "⁄": "/",
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("‘’", "'"),
}
_GREEK, _RAISED = "GREEK ", "<super>"


def in_ascii(text: str) -> str:
    """Return a text in ASCII that says the same, with a question mark for what has no such form.

    >>> in_ascii("ε ≥ 1 … δ ≤ 10⁻⁹, é, 漢")
    'eps >= 1 ... delta <= 10^-9, e, ?'
    """
    parts: list[str] = []
    was_raised = False
    for character in text:
        is_raised = unicodedata.decomposition(character).startswith(_RAISED)
        parts.append("^" if is_raised and not was_raised else "")
        parts += map(_plain, unicodedata.normalize("NFKD", character))
        was_raised = is_raised
    return "".join(parts)


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return ""
    name = unicodedata.name(character, "")
    if character in _SIGNS or not name.startswith(_GREEK):
        return _SIGNS.get(character, "?")
    letter = name.partition(" WITH ")[0].rpartition(" ")[2]
    return letter.title() if "CAPITAL" in name else letter.lower()
