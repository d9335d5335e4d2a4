"""Prepare texts for a terminal: break messages into lines, and write texts in ASCII."""

from __future__ import annotations

import re
import sys
import unicodedata

_COLUMNS = 80
# Replaces each space at which a line must not break. No message contains this character, since
# `visible` shows it as an escape sequence.
_GLUE = "\0"
# Matches one word of a shell command, quoted or not. A comma or full stop at its end is not
# matched, since it belongs to the sentence around the command.
_WORD = r"""(?:(?<=[ =])'[^']*'|(?<=[ =])"[^"]*"|[^\s'";,.?)]|[;,.?)](?=[^\s'"]))+"""
_FLAG = rf"(?<![\w-])--?[a-zA-Z][\w-]*(?:[ =]{_WORD})?"
# Matches one argument of a command: a flag, or a word with a quote, capital, digit or sign such as
# `/`. A plain word may belong to the sentence, so it is not matched.
_ARGUMENT = rf"(?:{_FLAG}|(?=['\"]|\S*[A-Z\d.:/=…\[{{]\S){_WORD})"
# Matches texts that a user may copy: a command, a flag with its value, or a YAML key with its
# values in braces.
_PASTED = (
    r"\bpip install(?: [\w.-]*\w)+"
    rf"|\b(?:dpaudit|pip|pytest|chmod) [\w+-]+(?: [a-z]+(?= |$))?(?: {_ARGUMENT})*|{_FLAG}"
    r"|\w+: \{[^{}]*\}"
)


def folded(text: str) -> str:
    """Return a message with line breaks after at most 80 columns. There is no break inside a
    command or another text that the user may copy. If standard error is not a terminal, return it
    unchanged."""
    if not _is_terminal():
        return text
    import textwrap  # only terminals need it

    lines: list[str] = []
    for line in text.split("\n"):
        glued = re.sub(_PASTED, lambda match: match[0].replace(" ", _GLUE), line)
        lines += textwrap.wrap(
            glued,
            _COLUMNS,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines).replace(_GLUE, " ")


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # standard error is absent, or the mechanism has closed it
        return False


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
    """Return `text` in ASCII. A question mark replaces each character that has no spelling in
    ASCII.

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
